/* quorum.c - votes, and the token that follows from them. */
#include "core/quorum.h"
#include "core/lease.h"
#include "core/token.h"

#include <assert.h>
#include <string.h>

#define NS_PER_US 1000

static enum hf__quorum_action decide(struct hf__quorum *vote, int64_t now_ns);

unsigned hf__quorum_majority(unsigned count)
{
    return count / 2 + 1;
}

static void start(struct hf__quorum *vote, enum hf__quorum_kind kind, unsigned count)
{
    assert(count >= HF__QUORUM_NODES_MIN && count <= HF__QUORUM_NODES_MAX && count % 2 == 1);
    memset(vote, 0, sizeof *vote);
    vote->kind = kind;
    vote->count = count;
}

void hf__quorum_start(struct hf__quorum *vote, unsigned count, uint32_t ttl_ms, uint64_t guess,
                      int64_t sent_at_ns, int64_t apart_us)
{
    start(vote, HF__VOTE_ACQUIRE, count);
    vote->apart_us = apart_us;
    vote->ttl_ms = ttl_ms;
    vote->guess = guess;
    vote->sent_at_ns = sent_at_ns;
}

void hf__quorum_start_extend(struct hf__quorum *vote, unsigned count, uint32_t ttl_ms,
                             int64_t sent_at_ns)
{
    start(vote, HF__VOTE_EXTEND, count);
    vote->ttl_ms = ttl_ms;
    vote->sent_at_ns = sent_at_ns;
}

enum hf__quorum_action hf__quorum_on_grant(struct hf__quorum *vote, unsigned index, uint64_t prev,
                                           bool applied, uint64_t clk, int64_t now_ns)
{
    struct hf__quorum_node *node = &vote->node[index];

    assert(vote->kind == HF__VOTE_ACQUIRE && index < vote->count);
    if (node->state != HF__NODE_ASKED)
        return HF__QUORUM_WAIT;
    if (vote->phase != HF__PHASE_GRANT) {
        /* Its counter is not in the token's maximum, and a node without memory would raise to
         * anything: this one must not count. */
        node->state = HF__NODE_LATE;
        return HF__QUORUM_WAIT;
    }
    node->state = HF__NODE_GRANTED;
    node->voted = true;
    node->prev = prev;
    node->applied = applied;
    node->clk = clk;
    node->offset_us = (int64_t)clk - now_ns / NS_PER_US;
    return decide(vote, now_ns);
}

enum hf__quorum_action hf__quorum_on_yes(struct hf__quorum *vote, unsigned index, bool exact,
                                         int64_t now_ns)
{
    assert(vote->kind == HF__VOTE_EXTEND && index < vote->count);
    if (vote->node[index].state != HF__NODE_ASKED)
        return HF__QUORUM_WAIT;
    vote->node[index].state = HF__NODE_GRANTED;
    vote->node[index].applied = exact;
    return decide(vote, now_ns);
}

enum hf__quorum_action hf__quorum_on_raise(struct hf__quorum *vote, unsigned index, int64_t now_ns)
{
    assert(index < vote->count);
    if (vote->phase != HF__PHASE_RAISE || vote->node[index].state != HF__NODE_GRANTED)
        return HF__QUORUM_WAIT;
    vote->node[index].state = HF__NODE_RAISED;
    return decide(vote, now_ns);
}

enum hf__quorum_action hf__quorum_on_no(struct hf__quorum *vote, unsigned index,
                                        enum hf__quorum_no no, int64_t now_ns)
{
    struct hf__quorum_node *node = &vote->node[index];
    bool awaited = node->state == HF__NODE_ASKED ||
                   (vote->phase == HF__PHASE_RAISE && node->state == HF__NODE_GRANTED);

    assert(index < vote->count);
    if (!awaited)
        return HF__QUORUM_WAIT;
    node->state = HF__NODE_NO;
    node->no = no;
    return decide(vote, now_ns);
}

bool hf__quorum_raises(const struct hf__quorum *vote, unsigned index)
{
    return vote->phase == HF__PHASE_RAISE && vote->node[index].state == HF__NODE_GRANTED;
}

static unsigned in_state(const struct hf__quorum *vote, enum hf__quorum_state state)
{
    unsigned n = 0;

    for (unsigned i = 0; i < vote->count; i++)
        n += vote->node[i].state == state;
    return n;
}

static unsigned applied(const struct hf__quorum *vote)
{
    unsigned n = 0;

    for (unsigned i = 0; i < vote->count; i++)
        n += vote->node[i].state == HF__NODE_GRANTED && vote->node[i].applied;
    return n;
}

unsigned hf__quorum_clocks(const int64_t *offset_us, unsigned known, unsigned count,
                           int64_t apart_us)
{
    unsigned best = 0, most = 0;

    /* A group has an earliest clock: try each. */
    for (unsigned i = 0; i < count; i++) {
        unsigned group = 0, size = 0;

        for (unsigned j = 0; j < count && (known & 1u << i) != 0; j++)
            if ((known & 1u << j) != 0 && offset_us[j] >= offset_us[i] &&
                offset_us[j] - offset_us[i] < apart_us) {
                group |= 1u << j;
                size++;
            }
        if (size > most) {
            best = group;
            most = size;
        }
    }
    return best;
}

/* The nodes that granted and whose clocks are close to each other. A renewal makes no token. */
static unsigned agreed(const struct hf__quorum *vote)
{
    int64_t offset_us[HF__QUORUM_NODES_MAX] = {0};
    unsigned granted = 0;

    for (unsigned i = 0; i < vote->count; i++) {
        offset_us[i] = vote->node[i].offset_us;
        if (vote->node[i].state == HF__NODE_GRANTED)
            granted |= 1u << i;
    }
    if (vote->kind == HF__VOTE_EXTEND)
        return granted;
    return hf__quorum_clocks(offset_us, granted, vote->count, vote->apart_us);
}

static unsigned size_of(unsigned nodes)
{
    unsigned n = 0;

    for (; nodes != 0; nodes &= nodes - 1)
        n++;
    return n;
}

/* From now on, the grants of nodes with another clock do not count. */
static void disown(struct hf__quorum *vote)
{
    unsigned counted = agreed(vote);

    for (unsigned i = 0; i < vote->count; i++) {
        struct hf__quorum_node *node = &vote->node[i];

        if (node->state != HF__NODE_GRANTED || (counted & 1u << i) != 0)
            continue;
        node->state = HF__NODE_NO;
        node->no = HF__NO_CLOCK;
        node->voted = false;
    }
}

static enum hf__quorum_action fail_vote(struct hf__quorum *vote, enum hf__quorum_why why)
{
    vote->phase = HF__PHASE_FAILED;
    vote->why = why;
    return HF__QUORUM_FAILED;
}

/* What the nodes have said to the question of this phase. */
struct tally {
    unsigned yes, held, fresh, off, silent;
    unsigned open; /* not answered yet */
};

static struct tally count_up(const struct hf__quorum *vote)
{
    bool raising = vote->phase == HF__PHASE_RAISE;
    unsigned granted = raising ? 0 : in_state(vote, HF__NODE_GRANTED);
    unsigned counted = raising ? 0 : size_of(agreed(vote));
    /* A node that took the guess counts for that, whatever the others' clocks. */
    unsigned took = raising ? 0 : applied(vote);
    struct tally tally = {.yes = counted > took ? counted : took};

    tally.off = granted - tally.yes;
    for (unsigned i = 0; i < vote->count; i++) {
        const struct hf__quorum_node *node = &vote->node[i];

        if (raising && !node->voted)
            continue; /* it was not asked to raise, whatever it did before */
        tally.yes += node->state == HF__NODE_RAISED;
        tally.open += node->state == (raising ? HF__NODE_GRANTED : HF__NODE_ASKED);
        if (node->state == HF__NODE_NO) {
            tally.held += node->no == HF__NO_HELD;
            tally.fresh += node->no == HF__NO_QUARANTINE;
            tally.silent += node->no == HF__NO_ANSWER;
        }
    }
    return tally;
}

/* There is no majority: why not? Silent nodes may have done what they were asked. So it is unknown
 * if they may have made a majority with those that said yes; otherwise it is certain that there was
 * none, and the reason is the first of: held, quarantine, clocks, out of reach, without which one
 * would have been possible. */
static enum hf__quorum_why blame(const struct hf__quorum *vote, const struct tally *tally)
{
    unsigned majority = hf__quorum_majority(vote->count);
    unsigned may = tally->yes + tally->silent;

    if (may >= majority)
        return HF__WHY_UNKNOWN;
    if (vote->kind == HF__VOTE_EXTEND ? tally->held > vote->count - majority
                                      : tally->held > 0 && may + tally->held >= majority)
        return vote->phase == HF__PHASE_RAISE ? HF__WHY_RAISED : HF__WHY_HELD;
    if (tally->fresh > 0 && may + tally->held + tally->fresh >= majority)
        return HF__WHY_QUARANTINE;
    if (tally->off > 0 && may + tally->held + tally->fresh + tally->off >= majority)
        return HF__WHY_CLOCKS;
    return HF__WHY_UNREACHABLE;
}

/* There cannot be a majority any more. The reason must not depend on who answers first: as long as
 * the answers to come can change it, they are waited for. */
static enum hf__quorum_action give_up(struct hf__quorum *vote)
{
    struct tally tally = count_up(vote);
    enum hf__quorum_why why = blame(vote, &tally);
    struct tally held = tally, fresh = tally, off = tally, silent = tally;

    held.held += tally.open;
    fresh.fresh += tally.open;
    off.off += tally.open;
    silent.silent += tally.open;
    if (blame(vote, &held) != why || blame(vote, &fresh) != why || blame(vote, &off) != why ||
        blame(vote, &silent) != why)
        return HF__QUORUM_WAIT;
    if (vote->phase == HF__PHASE_GRANT)
        disown(vote);
    return fail_vote(vote, why);
}

static enum hf__quorum_action finish(struct hf__quorum *vote, uint64_t token, int64_t now_ns)
{
    if (vote->ttl_ms > 0 && now_ns >= hf__deadline_ns(vote->sent_at_ns, vote->ttl_ms))
        return fail_vote(vote, HF__WHY_LATE);
    vote->token = token;
    vote->phase = HF__PHASE_DONE;
    return HF__QUORUM_DONE;
}

/* Above every counter before its grant, every clock (a node that lost its counter has nothing
 * else), and the guess if any node has it as its counter now. */
static enum hf__quorum_action choose_token(struct hf__quorum *vote)
{
    uint64_t highest = 0;

    disown(vote);
    for (unsigned i = 0; i < vote->count; i++) {
        const struct hf__quorum_node *node = &vote->node[i];

        if (node->state != HF__NODE_GRANTED)
            continue;
        if (node->prev > highest)
            highest = node->prev;
        if (node->clk > highest)
            highest = node->clk;
        if (node->applied && vote->guess > highest)
            highest = vote->guess;
    }
    if (!hf__token_next(highest, 0, 0, &vote->token))
        return fail_vote(vote, HF__WHY_TOKENS);
    vote->phase = HF__PHASE_RAISE;
    return HF__QUORUM_RAISE;
}

/* A majority said yes, and the one that knows the token must be among them. If none does the token
 * is not the hold's; unless it is one of those that did not answer. */
static enum hf__quorum_action confirm(struct hf__quorum *vote, int64_t now_ns)
{
    struct tally tally = count_up(vote);

    if (applied(vote) > 0)
        return finish(vote, 0, now_ns);
    if (tally.open > 0)
        return HF__QUORUM_WAIT;
    return fail_vote(vote, tally.yes == vote->count ? HF__WHY_HELD : HF__WHY_UNKNOWN);
}

/* Answers as soon as the rest of the nodes cannot change the answer, nor the reason of a
 * failure. */
static enum hf__quorum_action decide(struct hf__quorum *vote, int64_t now_ns)
{
    unsigned majority = hf__quorum_majority(vote->count);
    unsigned asked = in_state(vote, HF__NODE_ASKED);
    unsigned granted = size_of(agreed(vote));
    unsigned raised = in_state(vote, HF__NODE_RAISED);

    switch (vote->phase) {
    case HF__PHASE_GRANT:
        if (vote->kind == HF__VOTE_EXTEND && granted >= majority)
            return confirm(vote, now_ns);
        if (vote->kind == HF__VOTE_ACQUIRE && applied(vote) >= majority)
            return finish(vote, vote->guess, now_ns);
        if (granted + asked < majority && applied(vote) + asked < majority)
            return give_up(vote);
        if (vote->kind == HF__VOTE_ACQUIRE && granted >= majority &&
            applied(vote) + asked < majority)
            return choose_token(vote);
        return HF__QUORUM_WAIT;
    case HF__PHASE_RAISE:
        if (raised >= majority)
            return finish(vote, vote->token, now_ns);
        if (raised + in_state(vote, HF__NODE_GRANTED) < majority)
            return give_up(vote);
        return HF__QUORUM_WAIT;
    case HF__PHASE_DONE:
    case HF__PHASE_FAILED:
        break;
    }
    return HF__QUORUM_WAIT;
}

bool hf__quorum_consistent(const struct hf__quorum *vote)
{
    unsigned majority = hf__quorum_majority(vote->count);
    unsigned raised = in_state(vote, HF__NODE_RAISED);

    switch (vote->phase) {
    case HF__PHASE_GRANT:
        return raised == 0 && in_state(vote, HF__NODE_LATE) == 0;
    case HF__PHASE_RAISE:
        return vote->kind == HF__VOTE_ACQUIRE && vote->token > 0 && raised < majority;
    case HF__PHASE_DONE:
        if (vote->kind == HF__VOTE_EXTEND)
            return in_state(vote, HF__NODE_GRANTED) >= majority && applied(vote) > 0;
        return vote->token > 0 && (raised >= majority || applied(vote) >= majority);
    case HF__PHASE_FAILED:
        return true;
    }
    return false;
}
