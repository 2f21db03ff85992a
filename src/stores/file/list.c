/* list.c - what is held and waited for. */
#include "stores/file/internal.h"

#include <string.h>

/* Reads a page as it stands. Only if a change was caught in the middle it is read under its lock.
 */
static enum hf_status read_page(struct file_store *store, uint32_t page_no, int64_t deadline_ns,
                                struct page *out, struct hf_error *err)
{
    enum hf_status status = hf__page_read(store, page_no, out, NULL);

    if (status != HF_CORRUPT)
        return status;
    status = hf__guard_lock(store, page_no, deadline_ns, err);
    if (status != HF_OK)
        return status;
    status = hf__page_read(store, page_no, out, err);
    hf__guard_unlock(store, page_no);
    return status;
}

static bool fits(const struct slot *slot, const struct hf_query *query)
{
    if (query->exact)
        return strcmp(slot->name, query->name) == 0;
    return strncmp(slot->name, query->name, strlen(query->name)) == 0;
}

/* Returns false when fn wants no more. */
static bool show(struct file_store *store, const struct slot *slot, hf_list_fn *fn, void *data)
{
    int64_t now_ns = store->base.host->now_ns();
    bool held = hf__slot_held(store, slot, now_ns);
    uint64_t waiters = hf__queue_count(store, slot);
    struct hf_lock_info info = {
        .size = sizeof info,
        .name = slot->name,
        .label = held ? slot->label : "",
        .token = slot->token,
        .remaining_ms = held ? (slot->expires_ns - now_ns) / HF__NS_PER_MS : 0,
        .age_ms = held ? (now_ns - slot->taken_ns) / HF__NS_PER_MS : 0,
        .waiters = waiters,
        .held = held,
        .detached = held && slot->client == 0,
    };

    return (!held && waiters == 0) || fn(&info, data);
}

/* Shows the slots of a page that are not left-overs of a split. */
static bool show_page(struct file_store *store, const struct page *page, uint32_t page_no,
                      const struct hf_query *query, hf_list_fn *fn, void *data)
{
    for (int i = 0; i < SLOTS_PER_PAGE; i++) {
        const struct slot *slot = &page->slots[i];

        if (slot->hash != 0 && hf__page_route(&page->head, page_no, slot->hash) == page_no &&
            fits(slot, query) && !show(store, slot, fn, data))
            return false;
    }
    return true;
}

/* Lists a page and those that were split off it. A page that nobody refers to is never seen: it is
 * what a killed splitter left behind. */
static enum hf_status list_tree(struct file_store *store, uint32_t page_no, uint32_t level,
                                const struct hf_query *query, hf_list_fn *fn, void *data,
                                bool *more, struct hf_error *err)
{
    struct page page;
    enum hf_status status;

    if (store->base.host->now_ns() >= query->deadline_ns)
        return hf__fail(err, HF_UNREACHABLE, "store file:%s: listing took too long", store->shown);
    status = read_page(store, page_no, query->deadline_ns, &page, err);
    if (status != HF_OK)
        return status;
    *more = show_page(store, &page, page_no, query, fn, data);
    for (uint32_t i = level; i < page.head.depth && *more && status == HF_OK; i++)
        status = list_tree(store, page.head.next[i], i + 1, query, fn, data, more, err);
    return status;
}

static enum hf_status list_one(struct file_store *store, const struct hf_query *query,
                               hf_list_fn *fn, void *data, struct hf_error *err)
{
    uint64_t hash = hf__name_hash(query->name);
    struct bucket bucket;
    enum hf_status status = hf__bucket_lock(store, hash, query->deadline_ns, &bucket, err);

    if (status != HF_OK)
        return status;
    hf__bucket_unlock(store, &bucket); /* the copy is ours; fn may take its time */
    (void)show_page(store, &bucket.page, bucket.page_no, query, fn, data);
    return HF_OK;
}

enum hf_status hf__file_list(struct hf_store_base *base, const struct hf_query *query,
                             hf_list_fn *fn, void *data, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    enum hf_status status = HF_OK;
    bool more = true;

    if (store->slots_fd < 0)
        return HF_OK; /* there is no store yet */
    status = hf__place_check(store, err);
    if (status != HF_OK)
        return status;
    if (query->exact)
        return list_one(store, query, fn, data, err);
    for (uint32_t root = 1; root <= ROOTS && more && status == HF_OK; root++)
        status = list_tree(store, root, 0, query, fn, data, &more, err);
    return status;
}
