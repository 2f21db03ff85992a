/* begun.c - taking and releasing a lock in two halves, for threads that must not wait: what can be
 * done in the map alone is done by the first half. Whatever wants a system call, because it is time
 * to see whether the store is still there, to raise the floor, or to end a FIFO, is not begun. */
#include "stores/file/file.h"
#include "stores/file/floor.h"
#include "stores/file/operations.h"
#include "stores/file/page.h"
#include "stores/file/quick.h"

#include <stdlib.h>

struct hf_begun {
    struct hf_grant grant; /* of an acquire */
};

static bool is_due(struct file_store *store, const struct quick *quick)
{
    int64_t wall_us = store->base.host->wall_us();
    uint64_t token = quick->claim->token;

    if (token == 0 && wall_us > 0)
        token = (uint64_t)wall_us;
    return quick->now_ns >= atomic_load_explicit(&store->check_at_ns, memory_order_relaxed) ||
           hf__floor_is_near(store, token);
}

/* Where words are guarded by locks of bytes, these may be taken. The first acquire of a store makes
 * the FIFO that it lives by. */
static bool is_ready(struct file_store *store, const struct quick *quick)
{
    bool takes = quick->claim->token == 0;

    return store->mapped && !is_due(store, quick) &&
           (takes ? atomic_load_explicit(&store->life_fd, memory_order_acquire) >= 0
                  : atomic_load_explicit(&store->kept_count, memory_order_acquire) == 0);
}

struct hf_begun *hf__file_begin(struct hf_store_base *base, const struct hf_claim *claim)
{
    struct file_store *store = hf__file_of(base);
    struct quick quick = {
        .claim = claim, .hash = hf__name_hash(claim->name), .now_ns = base->host->now_ns()};
    struct hf_begun *begun;

    if (!is_ready(store, &quick) || hf__quick_begin(store, &quick, NULL) != HF_OK)
        return NULL;
    begun = calloc(1, sizeof *begun);
    /* In the map a swap is done or not done: what failed has changed nothing. */
    if (begun != NULL && (claim->token == 0 ? hf__quick_take(store, &quick, &begun->grant, NULL)
                                            : hf__quick_release(store, &quick, NULL)) == HF_OK)
        return begun;
    free(begun);
    return NULL;
}

bool hf__file_answered(struct hf_store_base *base, struct hf_begun *begun, int64_t until_ns)
{
    (void)base;
    (void)begun;
    (void)until_ns;
    return true;
}

enum hf_status hf__file_end(struct hf_store_base *base, struct hf_begun *begun,
                            struct hf_grant *grant, struct hf_error *err)
{
    (void)base;
    (void)err;
    if (grant != NULL)
        *grant = begun->grant;
    free(begun);
    return HF_OK;
}
