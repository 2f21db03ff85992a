/* tiny.h - a store that grants everything, as small as a store can be. */
#ifndef HF_TESTS_TINY_H
#define HF_TESTS_TINY_H

#include <holdfast/store.h>
#include <stdlib.h>
#include <string.h>

static inline enum hf_status tiny_acquire(struct hf_store_base *store, const struct hf_claim *claim,
                                          struct hf_grant *grant, struct hf_error *err)
{
    (void)claim;
    (void)err;
    grant->sent_at_ns = store->host->now_ns();
    grant->token = (uint64_t)store->host->wall_us();
    return HF_OK;
}

static inline enum hf_status tiny_renew(struct hf_store_base *store, const struct hf_claim *claim,
                                        struct hf_grant *grant, struct hf_error *err)
{
    return tiny_acquire(store, claim, grant, err);
}

static inline enum hf_status tiny_release(struct hf_store_base *store, const struct hf_claim *claim,
                                          struct hf_error *err)
{
    (void)store;
    (void)claim;
    (void)err;
    return HF_OK;
}

static inline enum hf_status tiny_list(struct hf_store_base *store, const struct hf_query *query,
                                       hf_list_fn *fn, void *data, struct hf_error *err)
{
    (void)store;
    (void)query;
    (void)fn;
    (void)data;
    (void)err;
    return HF_OK;
}

static inline void tiny_close(struct hf_store_base *store, bool forked)
{
    (void)forked;
    free(store);
}

static inline enum hf_status tiny_open_with(const struct hf_store_ops *ops,
                                            const struct hf_host *host, struct hf_store_base **out)
{
    struct hf_store_base *store = calloc(1, sizeof *store);

    if (store == NULL)
        return HF_NOMEM;
    store->ops = ops;
    store->host = host;
    *out = store;
    return HF_OK;
}

#endif /* HF_TESTS_TINY_H */
