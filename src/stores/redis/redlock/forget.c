/* forget.c - removing what the nodes keep about a lock that nobody will use again. */
#include "base/base.h"
#include "stores/redis/redlock/redlock.h"

/* What the nodes said. */
struct votes {
    unsigned done, busy;
};

static void ask_node(struct rl_round *round, unsigned index, const struct rd_keys *keys)
{
    rd_script_begin(&round->request, RD_SCRIPT_FORGET, keys, 0);
    (void)rl_round_send(round, index);
}

static void ask_nodes(struct rl_round *round, struct rl_store *store, const struct rd_keys *keys,
                      int64_t deadline_ns, struct votes *votes)
{
    struct rd_reply *reply;
    enum rl_event event;
    unsigned index;

    for (unsigned i = 0; i < store->count; i++)
        if (round->joined[i])
            ask_node(round, i, keys);
    deadline_ns = rl_round_deadline(round, deadline_ns);
    while (votes->done + votes->busy < store->count &&
           (event = rl_round_next(round, deadline_ns, &index, &reply)) != RL_SILENCE) {
        if (event == RL_JOINED || event == RL_AGAIN)
            ask_node(round, index, keys);
        if (event == RL_ANSWER && reply->type == RD_REPLY_ERROR)
            (void)rl_round_error(round, index, keys->lock, reply);
        else if (event == RL_ANSWER)
            *(rd_reply_number(reply, 0) == 1 ? &votes->done : &votes->busy) += 1;
        rd_reply_free(reply);
    }
}

enum hf_status rl_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report)
{
    struct rl_store *store = (struct rl_store *)base;
    const char *shown = store->setup.url.parts.shown;
    struct votes votes = {0};
    struct rl_round round;
    struct rd_keys keys;
    enum hf_status status = rd_claim_keys(&store->setup.url, name, &keys, report);

    if (status != HF_OK)
        return status;
    rl_round_begin(&round, store, false);
    ask_nodes(&round, store, &keys, deadline_ns, &votes);
    rl_round_end(&round, 0, NULL);
    if (votes.busy > 0)
        return hf__fail_lock(report, HF_BUSY, name, shown, " is held at %u of the nodes",
                             votes.busy);
    if (votes.done < store->count)
        return hf__fail_lock(report, HF_UNREACHABLE, name, shown, ": only %u of %u nodes forgot it",
                             votes.done, (unsigned)store->count);
    return hf__fail(report, HF_OK, "the key holdfast:inc at every node");
}
