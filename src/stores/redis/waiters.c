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

enum hf_status rd_ask(struct rd_store *store, const struct hf_query *query,
                      enum rd_script_id script, struct rd_answer *out, struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_call call = {.lock = query->name,
                           .urgent = true,
                           .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                           .request = &request};
    struct rd_keys keys;
    enum hf_status status = rd_claim_keys(&store->setup.url, query->name, &keys, err);

    if (status != HF_OK)
        return status;
    call.slot = rd_route_slot(store, &keys);
    rd_script_begin(&request, script, &keys, 1);
    rd_request_number(&request, HF_WAITERS_MAX);
    status = rd_call(store, &call, out, NULL, err);
    rd_request_release(&request);
    return status == HF_UNKNOWN ? HF_UNREACHABLE : status;
}

enum hf_status rd_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err)
{
    struct rd_answer answer;
    enum hf_status status = rd_ask((struct rd_store *)base, query, RD_SCRIPT_WAITERS, &answer, err);

    if (status != HF_OK)
        return status;
    tell(answer.reply, fn, data);
    rd_answer_release(&answer);
    return hf__ok(err);
}
