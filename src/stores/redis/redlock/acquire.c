/* acquire.c - taking a lock at a majority of the nodes.
 *
 * src/core/quorum.c decides; here the requests are written and the answers read. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"
#include "core/wait.h"

#include <stdio.h>
#include <string.h>

#define WINDOW_MAX_US 10000000LL /* how far a guess may be from a node's clock; and max_ttl/6 */

/* One attempt, with an owner of its own. */
struct attempt {
    struct rl_store *store;
    const struct hf_claim *claim;
    const char *owner;
    char flags[RL_FLAGS_SIZE]; /* of its hold */
    struct rd_keys keys;
    struct rl_round round;
    struct hf__quorum vote;
    bool asked[HF__QUORUM_NODES_MAX]; /* GRANT was sent */
    char holder[HF_LABEL_MAX + 1];    /* what the nodes say of who has it */
    int64_t holder_ms;
    struct hf__wait_rounds rounds;
};

static int64_t now_of(const struct rl_store *store)
{
    return store->base.host->now_ns();
}

static void build_grant(struct attempt *a, unsigned index)
{
    const struct hf_claim *claim = a->claim;
    int64_t window_us = a->store->setup.url.max_ttl_ms * 1000 / 6;
    char record[HF_LABEL_MAX + HF_OWNER_LEN + 64];

    (void)snprintf(record, sizeof record, "%llu %u %s %s %s", (unsigned long long)a->vote.guess,
                   claim->ttl_ms, a->flags, a->owner, claim->label != NULL ? claim->label : "");
    rd_script_begin(&a->round.request, RD_SCRIPT_REDLOCK_GRANT, &a->keys, 6);
    rd_request_word(&a->round.request, a->owner);
    rd_request_number(&a->round.request, claim->ttl_ms);
    rd_request_word(&a->round.request, a->round.id[index]);
    rd_request_number(&a->round.request, (int64_t)a->vote.guess);
    rd_request_number(&a->round.request, window_us < WINDOW_MAX_US ? window_us : WINDOW_MAX_US);
    rd_request_word(&a->round.request, record);
}

static void build_raise(struct attempt *a, unsigned index)
{
    rd_script_begin(&a->round.request, RD_SCRIPT_REDLOCK_RAISE, &a->keys, 3);
    rd_request_word(&a->round.request, a->owner);
    rd_request_number(&a->round.request, (int64_t)a->vote.token);
    rd_request_word(&a->round.request, a->round.id[index]);
}

/* GRANT to a node that has joined. */
static enum hf__quorum_action ask_for_grant(struct attempt *a, unsigned index)
{
    build_grant(a, index);
    a->asked[index] = rl_round_send(&a->round, index);
    if (a->asked[index])
        return HF__QUORUM_WAIT;
    return hf__quorum_on_no(&a->vote, index, HF__NO_UNREACHABLE, now_of(a->store));
}

/* Asks every node that has joined; those on their way are asked when they do. */
static enum hf__quorum_action ask_for_grants(struct attempt *a)
{
    enum hf__quorum_action action = HF__QUORUM_WAIT;
    int64_t wall_us = a->store->base.host->wall_us();

    hf__quorum_start(&a->vote, a->store->count, a->claim->ttl_ms,
                     wall_us > 0 ? (uint64_t)wall_us : 1, now_of(a->store),
                     rl_clocks_apart_us(a->store));
    for (unsigned i = 0; i < a->store->count && action == HF__QUORUM_WAIT; i++) {
        if (a->round.joined[i])
            action = ask_for_grant(a, i);
        else if (!rl_round_coming(&a->round, i))
            action =
                hf__quorum_on_no(&a->vote, i, rl_round_missing(&a->round, i), now_of(a->store));
    }
    return action;
}

static void note_holder(struct attempt *a, const struct rd_reply *reply)
{
    int64_t left_ms = rd_reply_number(rd_reply_at(reply, 1), -1);

    if (a->holder[0] == '\0')
        hf__copy_printable(a->holder, sizeof a->holder, rd_reply_text(rd_reply_at(reply, 2)));
    if (left_ms > a->holder_ms)
        a->holder_ms = left_ms;
}

static enum hf__quorum_action on_grant(struct attempt *a, unsigned index,
                                       const struct rd_reply *reply)
{
    int64_t prev = rd_reply_number(rd_reply_at(reply, 1), INT64_MAX);
    bool applied = rd_reply_number(rd_reply_at(reply, 2), 0) == 1;
    int64_t clock_us = rd_reply_number(rd_reply_at(reply, 3), 0);

    rl_node_clock(a->store, index, clock_us);
    return hf__quorum_on_grant(&a->vote, index, (uint64_t)prev, applied, (uint64_t)clock_us,
                               now_of(a->store));
}

static enum hf__quorum_action on_answer(struct attempt *a, unsigned index,
                                        const struct rd_reply *reply)
{
    int64_t now_ns = now_of(a->store);
    bool raising = a->vote.phase == HF__PHASE_RAISE && hf__quorum_raises(&a->vote, index);

    if (raising && reply->type == RD_REPLY_INTEGER)
        return hf__quorum_on_raise(&a->vote, index, now_ns);
    if (raising && rd_reply_is(reply, "refused"))
        return hf__quorum_on_no(&a->vote, index, HF__NO_HELD, now_ns);
    if (rd_reply_is(reply, "granted"))
        return on_grant(a, index, reply);
    if (rd_reply_is(reply, "corrupt")) {
        struct hf_error err;

        (void)rd_corrupt(&a->store->setup.url, a->claim->name, &a->keys, reply, &err);
        rl_trouble_add(&a->round.troubles, &err);
        return hf__quorum_on_no(&a->vote, index, HF__NO_UNREACHABLE, now_ns);
    }
    if (rd_reply_is(reply, "held")) {
        note_holder(a, reply);
        return hf__quorum_on_no(&a->vote, index, HF__NO_HELD, now_ns);
    }
    return hf__quorum_on_no(&a->vote, index,
                            rl_round_error(&a->round, index, a->claim->name, reply), now_ns);
}

static enum hf__quorum_action ask_to_raise(struct attempt *a, unsigned index)
{
    build_raise(a, index);
    if (rl_round_send(&a->round, index))
        return HF__QUORUM_WAIT;
    return hf__quorum_on_no(&a->vote, index, HF__NO_UNREACHABLE, now_of(a->store));
}

static enum hf__quorum_action send_raises(struct attempt *a)
{
    enum hf__quorum_action action = HF__QUORUM_WAIT;

    for (unsigned i = 0; i < a->vote.count && action == HF__QUORUM_WAIT; i++)
        if (hf__quorum_raises(&a->vote, i))
            action = ask_to_raise(a, i);
    return action;
}

/* Which hold is undone: that of this attempt, if its claim may have come twice. */
static const char *undone(const struct attempt *a)
{
    return a->claim->detached ? a->flags : "";
}

/* To every node that may have granted, behind the GRANT on the same connection, where it cannot
 * overtake. Nobody waits for the answers. Returns those nodes as bits. */
static unsigned take_back(struct attempt *a)
{
    unsigned nodes = 0;

    for (unsigned i = 0; i < a->vote.count; i++) {
        if (!a->asked[i] || (a->vote.node[i].state == HF__NODE_NO &&
                             a->vote.node[i].no == HF__NO_HELD && a->vote.token == 0))
            continue;
        rl_build_release(&a->round.request, &a->keys, a->owner, 0, undone(a));
        (void)rl_round_send(&a->round, i);
        nodes |= 1u << i;
    }
    return nodes;
}

/* Ends a vote that failed. */
static void give_up(struct attempt *a)
{
    struct rl_debt debt = rl_round_debt(&a->round, a->claim, a->owner, a->claim->ttl_ms);

    (void)stpcpy(debt.flags, undone(a));
    rl_round_end(&a->round, take_back(a), &debt);
    explicit_bzero(&debt, sizeof debt);
}

static enum hf_status explain(struct attempt *a, struct hf_error *err)
{
    const char *name = a->claim->name;
    const char *shown = a->store->setup.url.parts.shown;
    char time[32], left[64] = "";

    switch (a->vote.why) {
    case HF__WHY_HELD:
    case HF__WHY_RAISED:
        (void)hf__format_duration(time, sizeof time, a->holder_ms);
        if (a->holder_ms > 0)
            (void)snprintf(left, sizeof left, ", for another %s", time);
        return hf__fail_lock(err, HF_BUSY, name, shown, " is held by %.60s%s",
                             a->holder[0] != '\0' ? a->holder : "another client", left);
    case HF__WHY_QUARANTINE:
        (void)hf__fail_lock(err, HF_QUARANTINE, name, shown,
                            ": too many nodes restarted and may have forgotten who holds what");
        err->retry_after_ms = a->round.retry_after_ms;
        return HF_QUARANTINE;
    case HF__WHY_CLOCKS:
        return rl_clocks_fail(a->store, name, err);
    case HF__WHY_UNREACHABLE:
        return rl_too_few(a->store, name, &a->round.troubles, err);
    case HF__WHY_TOKENS:
        return hf__fail_lock(err, HF_CORRUPT, name, shown, ": a node's token counter is damaged");
    case HF__WHY_UNKNOWN:
    case HF__WHY_LATE:
        break;
    }
    return hf__fail_lock(err, HF_UNKNOWN, name, shown,
                         ": too few of %u nodes answered in time; what was granted is being "
                         "released",
                         a->vote.count);
}

static enum hf__quorum_action on_event(struct attempt *a, enum rl_event event, unsigned index,
                                       const struct rd_reply *reply)
{
    switch (event) {
    case RL_ANSWER:
        return on_answer(a, index, reply);
    case RL_BROKE:
        return hf__quorum_on_no(&a->vote, index, HF__NO_ANSWER, now_of(a->store));
    case RL_AGAIN:
        if (hf__quorum_raises(&a->vote, index))
            return ask_to_raise(a, index);
        /* fall through */
    case RL_JOINED:
        /* In the second round a grant would come too late to count. */
        if (a->vote.phase == HF__PHASE_GRANT)
            return ask_for_grant(a, index);
        return HF__QUORUM_WAIT;
    case RL_MISSING:
        return hf__quorum_on_no(&a->vote, index, rl_round_missing(&a->round, index),
                                now_of(a->store));
    case RL_SILENCE:
        break;
    }
    return rl_round_time_out(&a->round, &a->vote);
}

static enum hf_status try_once(struct attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    enum hf__quorum_action action;
    int64_t deadline_ns;

    a->holder[0] = '\0';
    a->holder_ms = 0;
    memset(a->asked, 0, sizeof a->asked);
    rl_round_begin(&a->round, a->store, true);
    action = ask_for_grants(a);
    deadline_ns = rl_round_deadline(&a->round, HF_NEVER);
    while (action == HF__QUORUM_WAIT || action == HF__QUORUM_RAISE) {
        struct rd_reply *reply;
        unsigned index;

        if (action == HF__QUORUM_RAISE) {
            deadline_ns = rl_round_deadline(&a->round, HF_NEVER);
            action = send_raises(a);
        } else {
            enum rl_event event = rl_round_next(&a->round, deadline_ns, &index, &reply);

            action = on_event(a, event, index, reply);
            rd_reply_free(reply);
        }
    }
    if (action == HF__QUORUM_FAILED) {
        give_up(a);
        return explain(a, err);
    }
    rl_round_end(&a->round, 0, NULL);
    grant->token = a->vote.token;
    grant->sent_at_ns = a->vote.sent_at_ns;
    return HF_OK;
}

/* Whether to try again, once it is time; else *status is the last word. */
static bool waits_on(struct attempt *a, enum hf_status *status, struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = a->claim->wait_until_ns,
                                    .cancel_fd = a->claim->cancel_fd};
    struct hf__wait_step step;
    uint32_t dice;

    a->store->base.host->random(&dice, sizeof dice);
    step = hf__wait_unqueued(&a->rounds, *status, now_of(a->store), dice);
    if (step.next == HF__WAIT_RETURN)
        return false;
    if (hf__patience_pause(&patience, step.until_ns) != HF__WAITED_CANCELLED)
        return true;
    *status = hf__fail_lock(err, HF_CANCELLED, a->claim->name, a->store->setup.url.parts.shown,
                            ": cancelled while waiting");
    return false;
}

/* What an earlier attempt has under way must never be taken for the next one's. */
static void draw_owner(struct attempt *a, struct hf_grant *grant)
{
    unsigned char raw[HF_OWNER_LEN / 2];

    a->store->base.host->random(raw, sizeof raw);
    hf__hex_encode(grant->owner, raw, sizeof raw);
    a->owner = grant->owner;
}

/* A relay cannot know that nobody sends a client's request a second time. */
static void name_attempt(struct attempt *a)
{
    uint32_t dice;

    a->store->base.host->random(&dice, sizeof dice);
    (void)snprintf(a->flags, sizeof a->flags, a->claim->detached ? "d%u" : "-", dice);
}

enum hf_status rl_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct attempt a = {.store = (struct rl_store *)base, .claim = claim, .owner = claim->owner};
    struct hf_error own;
    bool met_anew = false; /* a node had to be met again: that is no failure yet */
    enum hf_status status = rd_claim_keys(&a.store->setup.url, claim->name, &a.keys, err);

    if (err == NULL)
        err = &own;
    if (status == HF_OK)
        status = rd_check_ttl(&a.store->setup.url, claim, err);
    if (status != HF_OK)
        return status;
    name_attempt(&a);
    hf__wait_rounds_init(&a.rounds, claim->wait_until_ns);
    for (;;) {
        status = try_once(&a, grant, err);
        if (status == HF_OK)
            return hf__ok(err);
        if (status == HF_QUARANTINE && err->retry_after_ms <= 1 && !met_anew)
            met_anew = true;
        else if (!waits_on(&a, &status, err))
            return status;
        draw_owner(&a, grant);
    }
}
