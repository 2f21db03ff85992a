/* waiters.c - who waits, in order. */
#include "base/base.h"
#include "stores/redis/redis.h"

static void tell(const struct rd_reply *reply, hf_waiter_fn *fn, void *data)
{
    for (size_t i = 0; i + 1 < reply->len; i += 2) {
        char label[HF_LABEL_MAX + 1];
        const struct hf_waiter waiter = {.size = sizeof waiter,
                                         .label = label,
                                         .waited_ms = rd_reply_number(rd_reply_at(reply, i), -1)};

        hf__copy_printable(label, sizeof label, rd_reply_text(rd_reply_at(reply, i + 1)));
        if (!fn(&waiter, data))
            return;
    }
}

enum hf_status rd_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_request request = {0};
    struct rd_call call = {.lock = query->name,
                           .urgent = true,
                           .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                           .request = &request};
    struct rd_answer answer;
    struct rd_keys keys;
    enum hf_status status = rd_claim_keys(&store->setup.url, query->name, &keys, err);

    if (status != HF_OK)
        return status;
    call.slot = rd_route_slot(store, &keys);
    rd_script_begin(&request, RD_SCRIPT_WAITERS, &keys, 1);
    rd_request_number(&request, HF_WAITERS_MAX);
    status = rd_call(store, &call, &answer, NULL, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status == HF_UNKNOWN ? HF_UNREACHABLE : status;
    tell(answer.reply, fn, data);
    rd_answer_release(&answer);
    return hf__ok(err);
}
