/* forget.c - a name that nobody will use again. */
#include "client/client.h"

enum hf_status hf__forget(struct hf_store *store, const char *name, struct hf_error *report)
{
    enum hf_status status;

    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(report);
    if (HF__OPERATION(store->base->ops, forget) == NULL)
        return hf__fail_lock(report, HF_UNSUPPORTED, name, store->url,
                             ": this kind of store does not forget a name");
    status = hf__store_begin_use(store, report);
    if (status != HF_OK)
        return status;
    (void)hf__ok(report);
    status = store->base->ops->forget(store->base, name,
                                      hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS, report);
    hf__store_end(store);
    return status;
}
