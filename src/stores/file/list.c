/* list.c - what is held and waited for.
 *
 * Pages are read as they stand, without their locks, so that a listing disturbs nobody and nobody
 * holds it up; of each lock its word, its details, and its word again, which must be the same. Its
 * cost is bounded: each page is read once, each client is asked once whether it lives, and a queue
 * is counted to WAITERS_COUNTED and estimated from there. */
#include "base/base.h"
#include "stores/file/byte_lock.h"
#include "stores/file/life.h"
#include "stores/file/location.h"
#include "stores/file/operations.h"
#include "stores/file/revocation.h"
#include "stores/file/slot.h"
#include "stores/file/ticket.h"

#include <string.h>

#define TORN_TRIES 10 /* to read a page that others write */
#define LIVES      64 /* clients whose answer is remembered */

struct listing {
    struct file_store *store;
    const struct hf_query *query;
    hf_list_fn *fn;
    void *data;
    bool more; /* fn wants to see more */
    struct {
        uint64_t client;
        bool alive;
    } lives[LIVES];
};

/* A change caught in the middle looks like damage, and is over in no time. Only what stays so is
 * read under its lock. */
static enum hf_status read_page(struct listing *listing, uint32_t page_no, struct page *out,
                                struct hf_error *err)
{
    struct file_store *store = listing->store;
    enum hf_status status = hf__page_read(store, page_no, out, NULL);

    for (int i = 0; i < TORN_TRIES && status == HF_CORRUPT; i++) {
        hf__sleep_ns(HF__NS_PER_MS / 10);
        status = hf__page_read(store, page_no, out, NULL);
    }
    if (status == HF_OK)
        return status;
    status = hf__byte_lock(store, page_no, listing->query->deadline_ns, err);
    if (status == HF_BUSY)
        return hf__byte_lock_explain(store, page_no, err);
    if (status != HF_OK)
        return status;
    status = hf__page_read(store, page_no, out, err);
    hf__byte_unlock(store, page_no);
    return status;
}

static bool fits(const char *name, const struct hf_query *query)
{
    if (query->exact)
        return strcmp(name, query->name) == 0;
    return strncmp(name, query->name, strlen(query->name)) == 0;
}

/* One client may hold a million locks. */
static bool is_alive(struct listing *listing, uint64_t client)
{
    size_t at = (size_t)(client % LIVES);

    if (client == 0)
        return true; /* detached */
    if (listing->lives[at].client != client) {
        listing->lives[at].client = client;
        listing->lives[at].alive = hf__life_check(listing->store, client);
    }
    return listing->lives[at].alive;
}

static void show(struct listing *listing, const struct view *view)
{
    int64_t now_ns = listing->store->base.host->now_ns();
    bool held = view->expires_ns > now_ns && is_alive(listing, view->details.client);
    bool broken = held && view->broken == view->token;
    struct hf_revocation revocation = {.at_ms = 0};
    char label[HF_LABEL_MAX + 1];
    struct hf_lock_info info = {
        .size = sizeof info,
        .name = view->name,
        .label = held ? label : "",
        .token = view->token,
        .remaining_ms = held ? (view->expires_ns - now_ns) / HF__NS_PER_MS : 0,
        .age_ms = held ? (now_ns - view->details.taken_ns) / HF__NS_PER_MS : 0,
        .waiters = hf__ticket_count(listing->store, view),
        .held = held,
        .detached = held && view->details.client == 0,
        .ttl_ms = held ? (uint32_t)view->details.ttl_ms : 0,
        .revocation = broken ? &revocation : NULL,
    };

    if (held)
        info.renewed_ms = listing->store->base.host->wall_us() / 1000 -
                          ((int64_t)view->details.ttl_ms - info.remaining_ms);
    if (broken)
        (void)hf__revocation_read(listing->store, view->name, view->token, &revocation);
    hf__copy_printable(label, sizeof label, view->details.label);
    if (held || info.waiters > 0)
        listing->more = listing->fn(&info, listing->data);
}

/* What a slot of the page says now: its name may have changed meanwhile. HF_STALE: it changes all
 * the time, and is not shown. */
static enum hf_status show_slot(struct listing *listing, const struct bucket *bucket, int index,
                                struct hf_error *err)
{
    struct view view;
    enum hf_status status = hf__slot_read(listing->store, bucket, index, &view, err);

    if (status != HF_OK)
        return status;
    if (view.hash != bucket->page.slots[index].hash || !fits(view.name, listing->query))
        return HF_OK;
    if (!hf__name_valid(view.name) || hf__name_hash(view.name) != view.hash)
        return hf__page_damaged(listing->store, bucket->page_no, err);
    show(listing, &view);
    return HF_OK;
}

/* Shows the slots of a page that are not left-overs of a split. */
static enum hf_status show_page(struct listing *listing, const struct bucket *bucket,
                                struct hf_error *err)
{
    enum hf_status status = HF_OK;

    for (int i = 0; i < SLOTS_PER_PAGE && listing->more && status == HF_OK; i++) {
        const struct slot *slot = &bucket->page.slots[i];

        if (slot->hash == 0 ||
            hf__page_route(&bucket->page.head, bucket->page_no, slot->hash) != bucket->page_no ||
            !fits(slot->name, listing->query))
            continue;
        status = show_slot(listing, bucket, i, err);
        if (status == HF_STALE)
            status = HF_OK;
    }
    return status;
}

/* Lists a page and those that were split off it. A page that nobody refers to is never seen: it is
 * what a killed splitter left behind. Every page knows where it belongs, and so is met once. */
static enum hf_status list_tree(struct listing *listing, uint32_t page_no,
                                const struct page_head *parent, uint32_t split,
                                struct hf_error *err)
{
    struct bucket bucket = {.page_no = page_no};
    const struct page_head *head = &bucket.page.head;
    enum hf_status status = read_page(listing, page_no, &bucket.page, err);

    if (status == HF_OK && parent != NULL && !hf__child_sound(parent, split, head))
        status = hf__page_damaged(listing->store, page_no, err);
    if (status == HF_OK)
        status = show_page(listing, &bucket, err);
    for (uint32_t i = head->born; status == HF_OK && i < head->depth && listing->more; i++)
        status = list_tree(listing, head->next[i], head, i, err);
    return status;
}

static enum hf_status list_one(struct listing *listing, struct hf_error *err)
{
    uint64_t hash = hf__name_hash(listing->query->name);
    struct bucket bucket = {.page_no = hf__page_guess(listing->store, hash)};

    for (int steps = 0; steps <= 2 * SPLITS_MAX; steps++) {
        enum hf_status status = read_page(listing, bucket.page_no, &bucket.page, err);
        uint32_t next;

        if (status != HF_OK)
            return status;
        next = hf__page_route(&bucket.page.head, bucket.page_no, hash);
        if (next == bucket.page_no)
            return show_page(listing, &bucket, err);
        bucket.page_no = next;
    }
    return hf__page_damaged(listing->store, bucket.page_no, err);
}

enum hf_status hf__file_list(struct hf_store_base *base, const struct hf_query *query,
                             hf_list_fn *fn, void *data, struct hf_error *err)
{
    struct listing listing = {
        .store = hf__file_of(base), .query = query, .fn = fn, .data = data, .more = true};
    enum hf_status status = HF_OK;

    if (listing.store->slots_fd < 0)
        return HF_OK; /* there is no store yet */
    status = hf__location_check(listing.store, err);
    if (status != HF_OK)
        return status;
    if (query->exact)
        return list_one(&listing, err);
    for (uint32_t root = 1; root <= ROOTS && listing.more && status == HF_OK; root++)
        status = list_tree(&listing, root, NULL, 0, err);
    return status;
}
