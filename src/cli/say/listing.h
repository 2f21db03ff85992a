/* listing.h - locks as a store lists them, collected and sorted. */
#ifndef HF_CLI_LISTING_H
#define HF_CLI_LISTING_H

#include "cli/say/show.h"

struct cli_listing {
    struct cli_lock *locks;
    size_t count;
    size_t capacity;
    bool full; /* there are too many, or the memory is used up */
};

/* Fills a zeroed listing with the locks whose names start with prefix, by name, slots by number.
 * What was collected is there even if the store breaks off. */
enum hf_status cli_listing_read(struct cli_listing *listing, struct hf_store *store,
                                const char *prefix, struct hf_error *err);
void cli_listing_release(struct cli_listing *listing);

#endif /* HF_CLI_LISTING_H */
