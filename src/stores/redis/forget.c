/* forget.c - removing what a server keeps about a lock that nobody will use again. */
#include "base/base.h"
#include "stores/redis/redis.h"

enum hf_status rd_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_request request = {0};
    struct rd_call call = {.lock = name,
                           .urgent = true,
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                           .request = &request};
    struct rd_answer answer;
    struct rd_keys keys;
    enum hf_status status = rd_claim_keys(&store->setup.url, name, &keys, report);
    bool done;

    if (status != HF_OK)
        return status;
    call.slot = rd_route_slot(store, &keys);
    rd_script_begin(&request, RD_SCRIPT_FORGET, &keys, 0);
    status = rd_call(store, &call, &answer, NULL, report);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    done = rd_reply_number(answer.reply, 0) == 1;
    rd_answer_release(&answer);
    if (!done)
        return hf__fail_lock(report, HF_BUSY, name, store->setup.url.parts.shown,
                             " is held or waited for");
    return hf__fail(report, HF_OK, "%s",
                    store->cluster ? "the keys holdfast:inc:{...} at the servers of the cluster"
                                   : "the key holdfast:inc, which tells whether the server was "
                                     "restarted");
}
