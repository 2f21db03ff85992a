/* listing.c - locks as a store lists them, collected and sorted. */
#include "cli/say/listing.h"

#include "cli/say/slots.h"

#include <stdlib.h>

enum { LIST_MAX = 20 * 1000 * 1000 }; /* locks in one listing */

static bool collect(const struct hf_lock_info *info, void *data)
{
    struct cli_listing *listing = data;

    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? listing->capacity * 2 : 64;
        struct cli_lock *locks = NULL;

        if (capacity <= LIST_MAX)
            locks = realloc(listing->locks, capacity * sizeof *locks);
        if (locks == NULL) {
            listing->full = true;
            return false;
        }
        listing->locks = locks;
        listing->capacity = capacity;
    }
    if (!cli_lock_copy(&listing->locks[listing->count], info)) {
        listing->full = true;
        return false;
    }
    listing->count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct cli_lock *left = a;
    const struct cli_lock *right = b;

    return cli_slots_compare(left->info.name, right->info.name);
}

enum hf_status cli_listing_read(struct cli_listing *listing, struct hf_store *store,
                                const char *prefix, struct hf_error *err)
{
    enum hf_status status = hf_list(store, prefix, collect, listing, err);

    if (listing->count > 1)
        qsort(listing->locks, listing->count, sizeof *listing->locks, by_name);
    return status;
}

void cli_listing_release(struct cli_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        cli_lock_clear(&listing->locks[i]);
    free(listing->locks);
}
