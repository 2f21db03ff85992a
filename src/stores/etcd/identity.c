/* identity.c - who an etcd is: the cluster that every answer names, and the prefix in it. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdio.h>
#include <string.h>

enum { PREFIX_SEED = 0x65746364 };

enum hf_status ec_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct ec_answer answer;
    enum hf_status status = ec_meet(store, deadline_ns, &answer, err);
    const char *cluster;

    if (status != HF_OK)
        return status;
    cluster = ec_answer_cluster(answer.json);
    if (cluster[0] == '\0')
        status = hf__fail_lock(err, HF_UNKNOWN, NULL, store->url.common.shown,
                               ": it does not name its cluster");
    else
        (void)snprintf(out, HF_IDENTITY_SIZE, "id:etcd:%.40s:%016llx", cluster,
                       (unsigned long long)hf__hash64(store->url.prefix, strlen(store->url.prefix),
                                                      PREFIX_SEED));
    ec_answer_release(&answer);
    return status == HF_OK ? hf__ok(err) : status;
}
