/* hold.c - renewing, looking at and releasing a lock at a majority of the nodes. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <string.h>

static int64_t now_of(const struct rl_store *store)
{
    return store->base.host->now_ns();
}

static void build_revoke(struct rl_poll *p)
{
    struct rd_request *request = &p->round.request;

    rd_script_begin(request, p->script, &p->keys, 5);
    rd_request_word(request, p->claim->owner);
    rd_request_number(request, (int64_t)p->claim->token);
    rd_request_word(request, p->revoke->by);
    rd_request_word(request, p->revoke->reason);
    rd_request_word(request, p->revoke->now ? "1" : "0");
}

static void build_question(struct rl_poll *p)
{
    struct rd_request *request = &p->round.request;

    if (p->script == RD_SCRIPT_REDLOCK_RELEASE) {
        rl_build_release(request, &p->keys, p->claim->owner, p->claim->token, "");
        return;
    }
    if (p->script == RD_SCRIPT_REDLOCK_REVOKE) {
        build_revoke(p);
        return;
    }
    rd_script_begin(request, p->script, &p->keys, p->script == RD_SCRIPT_REDLOCK_RENEW ? 3 : 2);
    rd_request_word(request, p->claim->owner);
    rd_request_number(request, (int64_t)p->claim->token);
    if (p->script == RD_SCRIPT_REDLOCK_RENEW)
        rd_request_number(request, p->claim->ttl_ms);
}

/* {'lost', why}: of what the nodes say, that it was broken tells most. */
static void note_loss(struct rl_poll *p, const struct rd_reply *reply)
{
    const char *why = rd_reply_text(rd_reply_at(reply, 1));

    if (strcmp(why, "broken") == 0) {
        p->loss = HF_LOSS_BROKEN;
        rd_revocation_take(reply, 2, &p->revocation);
    } else if (p->loss == HF_LOSS_BROKEN) {
        return;
    } else if (strcmp(why, "taken") == 0) {
        p->loss = HF_LOSS_TAKEN;
    } else if (p->loss != HF_LOSS_TAKEN)
        p->loss = strcmp(why, "forgotten") == 0 ? HF_LOSS_FORGOTTEN : HF_LOSS_EXPIRED;
}

/* {'held', pttl, ttl, known}: kept in falling order, so that the Q-th is how long a majority
 * holds. */
static void note_held(struct rl_poll *p, const struct rd_reply *reply)
{
    int64_t left_ms = rd_reply_number(rd_reply_at(reply, 1), 0);
    int64_t ttl_ms = rd_reply_number(rd_reply_at(reply, 2), 0);
    unsigned at = p->held++;

    for (; at > 0 && p->remaining_ms[at - 1] < left_ms; at--)
        p->remaining_ms[at] = p->remaining_ms[at - 1];
    p->remaining_ms[at] = left_ms;
    if (ttl_ms > 0 && ttl_ms <= HF_TTL_MAX_MS)
        p->ttl_ms = (uint32_t)ttl_ms;
    p->broken |= rd_reply_text(rd_reply_at(reply, 4))[0] != '\0';
}

/* {'revoked', ms that it may last, known}: the hold ends when the last of them has. */
static void note_revoked(struct rl_poll *p, const struct rd_reply *reply)
{
    int64_t left_ms = rd_reply_number(rd_reply_at(reply, 1), -1);

    if (p->revoked == 0 || left_ms > p->remaining_ms[0])
        p->remaining_ms[0] = left_ms;
    p->revoked++;
}

static enum hf__quorum_action on_word(struct rl_poll *p, unsigned index,
                                      const struct rd_reply *reply)
{
    int64_t now_ns = now_of(p->store);

    if (rd_reply_is(reply, "held")) {
        note_held(p, reply);
        return hf__quorum_on_yes(&p->vote, index, rd_reply_number(rd_reply_at(reply, 3), 0) == 1,
                                 now_ns);
    }
    if (rd_reply_is(reply, "revoked")) {
        note_revoked(p, reply);
        return hf__quorum_on_yes(&p->vote, index, rd_reply_number(rd_reply_at(reply, 2), 0) == 1,
                                 now_ns);
    }
    if (reply->type == RD_REPLY_INTEGER)
        return hf__quorum_on_yes(&p->vote, index, rd_reply_number(reply, 0) == 1, now_ns);
    if (rd_reply_is(reply, "lost")) {
        note_loss(p, reply);
        return hf__quorum_on_no(&p->vote, index, HF__NO_HELD, now_ns);
    }
    return hf__quorum_on_no(&p->vote, index,
                            rl_round_error(&p->round, index, p->claim->name, reply), now_ns);
}

/* The question to a node that has joined. */
static enum hf__quorum_action ask_node(struct rl_poll *p, unsigned index)
{
    build_question(p);
    if (rl_round_send(&p->round, index))
        return HF__QUORUM_WAIT;
    return hf__quorum_on_no(&p->vote, index, HF__NO_UNREACHABLE, now_of(p->store));
}

static enum hf__quorum_action next_word(struct rl_poll *p, int64_t deadline_ns)
{
    enum hf__quorum_action action = HF__QUORUM_WAIT;
    struct rd_reply *reply;
    unsigned index;

    switch (rl_round_next(&p->round, deadline_ns, &index, &reply)) {
    case RL_ANSWER:
        action = on_word(p, index, reply);
        break;
    case RL_BROKE:
        action = hf__quorum_on_no(&p->vote, index, HF__NO_ANSWER, now_of(p->store));
        break;
    case RL_JOINED:
    case RL_AGAIN:
        action = ask_node(p, index);
        break;
    case RL_MISSING:
        action = hf__quorum_on_no(&p->vote, index, HF__NO_UNREACHABLE, now_of(p->store));
        break;
    case RL_SILENCE:
        action = rl_round_time_out(&p->round, &p->vote);
        break;
    }
    rd_reply_free(reply);
    return action;
}

/* A release that did not reach a node, or was not answered there, is kept in mind. */
static void end_poll(struct rl_poll *p)
{
    bool ends = p->script == RD_SCRIPT_REDLOCK_RELEASE ||
                (p->revoke != NULL && p->revoke->now && p->revoke->token != 0);
    struct rl_debt debt;

    if (!ends) {
        rl_round_end(&p->round, 0, NULL);
        return;
    }
    debt = rl_round_debt(&p->round, p->claim, p->claim->owner, p->store->setup.url.max_ttl_ms);
    rl_round_end(&p->round, (1u << p->store->count) - 1, &debt);
    explicit_bzero(&debt, sizeof debt);
}

enum hf_status rl_poll_all(struct rl_poll *p, struct hf_error *err)
{
    const char *shown = p->store->setup.url.parts.shown;
    enum hf__quorum_action action = HF__QUORUM_WAIT;
    int64_t deadline_ns;

    rl_round_begin(&p->round, p->store, false);
    hf__quorum_start_extend(&p->vote, p->store->count,
                            p->script == RD_SCRIPT_REDLOCK_RENEW ? p->claim->ttl_ms : 0,
                            now_of(p->store));
    /* To all, even if the answer is clear before the last is sent. */
    for (unsigned i = 0; i < p->store->count; i++) {
        enum hf__quorum_action now = HF__QUORUM_WAIT;

        if (p->round.joined[i])
            now = ask_node(p, i);
        else if (!rl_round_coming(&p->round, i))
            now = hf__quorum_on_no(&p->vote, i, HF__NO_UNREACHABLE, now_of(p->store));
        if (now != HF__QUORUM_WAIT)
            action = now;
    }
    deadline_ns = rl_round_deadline(&p->round, p->claim->deadline_ns);
    while (action == HF__QUORUM_WAIT)
        action = next_word(p, deadline_ns);
    end_poll(p);
    if (action == HF__QUORUM_DONE)
        return hf__ok(err);
    if (p->vote.why == HF__WHY_HELD && p->loss == HF_LOSS_BROKEN)
        return hf__fail_broken(err, p->claim->name, shown, &p->revocation);
    if (p->vote.why == HF__WHY_HELD)
        return hf__fail_lock(err, HF_LOST, p->claim->name, shown,
                             " is not held any more by a majority of the nodes");
    if (p->vote.why != HF__WHY_UNKNOWN)
        return rl_too_few(p->store, p->claim->name, &p->round.troubles, err);
    return hf__fail_lock(err, HF_UNKNOWN, p->claim->name, shown,
                         ": fewer than %u of %u nodes answered: %.80s",
                         hf__quorum_majority(p->vote.count), p->vote.count,
                         rl_trouble_text(p->store, &p->round.troubles));
}

enum hf_status rl_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct rl_poll p = {.store = (struct rl_store *)base,
                        .claim = claim,
                        .script =
                            claim->ttl_ms > 0 ? RD_SCRIPT_REDLOCK_RENEW : RD_SCRIPT_REDLOCK_LOOK};
    enum hf_status status = rd_claim_keys(&p.store->setup.url, claim->name, &p.keys, err);

    if (status == HF_OK)
        status = rd_check_ttl(&p.store->setup.url, claim, err);
    if (status == HF_OK)
        status = rl_poll_all(&p, err);
    if (status == HF_OK) {
        grant->sent_at_ns = p.vote.sent_at_ns;
        grant->ttl_ms = p.script == RD_SCRIPT_REDLOCK_LOOK ? p.ttl_ms : 0;
        if (p.script == RD_SCRIPT_REDLOCK_LOOK)
            grant->remaining_ms = p.remaining_ms[hf__quorum_majority(p.vote.count) - 1];
        if (p.broken)
            grant->loss = HF_LOSS_BROKEN;
    } else if (status == HF_LOST) {
        /* Held by the owner everywhere, and nowhere with this token. */
        grant->loss = p.loss != HF_LOSS_NONE ? p.loss : HF_LOSS_TAKEN;
        if (p.loss == HF_LOSS_BROKEN && grant->revocation != NULL)
            *grant->revocation = p.revocation;
    }
    return status;
}

enum hf_status rl_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct rl_poll p = {
        .store = (struct rl_store *)base, .claim = claim, .script = RD_SCRIPT_REDLOCK_RELEASE};
    enum hf_status status = rd_claim_keys(&p.store->setup.url, claim->name, &p.keys, err);

    return status == HF_OK ? rl_poll_all(&p, err) : status;
}
