/* forget.c - a name that nobody will use again. Keys are gone with their hold; tokens are revisions
 * of the whole cluster, so there is none to be kept for a name. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

static bool found(const struct hf_lock_info *info, void *data)
{
    (void)info;
    *(bool *)data = true;
    return false;
}

enum hf_status ec_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report)
{
    struct ec_store *store = (struct ec_store *)base;
    const struct hf_query query = {.name = name, .exact = true, .deadline_ns = deadline_ns};
    bool busy = false;
    enum hf_status status = ec_list(base, &query, found, &busy, report);

    if (status != HF_OK)
        return status;
    if (busy)
        return hf__fail_lock(report, HF_BUSY, name, store->url.common.shown,
                             " is held or waited for");
    return hf__fail(report, HF_OK, "history, until the cluster is compacted");
}
