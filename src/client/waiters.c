/* waiters.c - who waits for a lock. */
#include "client/client.h"

#include <holdfast/waiters.h>

enum hf_status hf_waiters(struct hf_store *store, const char *name, hf_waiter_fn *fn, void *data,
                          struct hf_error *err)
{
    struct hf_query query = {.name = name, .exact = true};
    enum hf_status status;

    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(err);
    if (HF__OPERATION(store->base->ops, waiters) == NULL)
        return hf__fail_lock(err, HF_UNSUPPORTED, name, store->url,
                             ": this kind of store does not know who waits");
    status = hf__store_begin(store, err);
    if (status != HF_OK)
        return status;
    query.deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    status = store->base->ops->waiters(store->base, &query, fn, data, err);
    hf__store_end(store);
    return status == HF_OK ? hf__ok(err) : status;
}
