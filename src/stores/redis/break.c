/* break.c - breaking a hold. */
#include "base/base.h"
#include "stores/redis/redis.h"

#include <string.h>

/* {'not', why}: the hold that is meant is not the present one. */
static enum hf_status not_broken(const struct rd_store *store, const struct hf_revoke *revoke,
                                 const char *word, struct hf_error *err)
{
    static const struct {
        const char *word;
        enum hf__not_broken why;
    } reasons[] = {{"free", HF__NOT_HELD},
                   {"waiter", HF__HANDED_OVER},
                   {"ours", HF__HELD_WITH_OTHER_TOKEN},
                   {"foreign", HF__HELD_BY_FOREIGN}};

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(reasons[i].word, word) == 0)
            return hf__fail_not_broken(err, revoke->name, store->setup.url.parts.shown,
                                       revoke->token, reasons[i].why);
    return rd_nonsense(&store->setup.url, revoke->name, err);
}

/* {'revoked', ms that it may last, flags, label, kind, again} */
static enum hf_status judge(const struct rd_store *store, const struct hf_revoke *revoke,
                            const struct rd_reply *reply, struct hf_broken *out,
                            struct hf_error *err)
{
    if (rd_reply_is(reply, "not"))
        return not_broken(store, revoke, rd_reply_text(rd_reply_at(reply, 1)), err);
    if (!rd_reply_is(reply, "revoked"))
        return rd_nonsense(&store->setup.url, revoke->name, err);
    out->remaining_ms = rd_reply_number(rd_reply_at(reply, 1), -1);
    out->detached = strchr(rd_reply_text(rd_reply_at(reply, 2)), 'd') != NULL;
    hf__copy_printable(out->label, sizeof out->label, rd_reply_text(rd_reply_at(reply, 3)));
    out->foreign = strcmp(rd_reply_text(rd_reply_at(reply, 4)), "foreign") == 0;
    out->again = rd_reply_text(rd_reply_at(reply, 5))[0] != '\0';
    return hf__ok(err);
}

/* The incarnation, if the server grants: then it may pass the lock on. */
static void learn_incarnation(struct rd_store *store, unsigned slot,
                              const struct hf__patience *patience, char id[RD_INCARNATION_LEN + 1])
{
    struct rd_met met = {0};
    struct rd_node *node;

    id[0] = '\0';
    if (rd_route(store, slot, patience, &node, NULL) == HF_OK &&
        rd_incarnation_pass(node, patience, &met, NULL) == HF_OK)
        memcpy(id, met.id, sizeof met.id);
}

enum hf_status rd_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_request request = {0};
    struct rd_call call = {.lock = revoke->name,
                           .patience = {.deadline_ns = revoke->deadline_ns, .cancel_fd = -1},
                           .request = &request};
    struct rd_answer answer;
    struct rd_keys keys;
    char id[RD_INCARNATION_LEN + 1];
    enum hf_status status = rd_claim_keys(&store->setup.url, revoke->name, &keys, err);

    if (status != HF_OK)
        return status;
    call.slot = rd_route_slot(store, &keys);
    learn_incarnation(store, call.slot, &call.patience, id);
    rd_script_begin(&request, RD_SCRIPT_REVOKE, &keys, 5);
    rd_request_number(&request, (int64_t)revoke->token);
    rd_request_word(&request, revoke->by);
    rd_request_word(&request, revoke->reason);
    rd_request_word(&request, revoke->now ? "1" : "0");
    rd_request_word(&request, id);
    status = rd_call(store, &call, &answer, NULL, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    status = judge(store, revoke, answer.reply, out, err);
    rd_answer_release(&answer);
    return status;
}

enum hf_status rd_last_break(struct hf_store_base *base, const struct hf_query *query,
                             struct hf_revocation *out, struct hf_error *err)
{
    struct rd_answer answer;
    enum hf_status status =
        rd_ask((struct rd_store *)base, query, RD_SCRIPT_LAST_BREAK, &answer, err);

    if (status != HF_OK)
        return status;
    if (answer.reply->len >= 3) {
        out->at_ms = rd_reply_number(rd_reply_at(answer.reply, 0), 0);
        hf__copy_printable(out->by, sizeof out->by, rd_reply_text(rd_reply_at(answer.reply, 1)));
        hf__copy_printable(out->reason, sizeof out->reason,
                           rd_reply_text(rd_reply_at(answer.reply, 2)));
    }
    rd_answer_release(&answer);
    return hf__ok(err);
}
