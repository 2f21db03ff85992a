/* round.c - one request to every node at once, and the answers as they come. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <stdio.h>
#include <string.h>

static void miss(struct rl_round *round, unsigned index, const struct hf_error *err)
{
    round->missing[index] = err->code;
    rl_trouble_add(&round->troubles, err);
    if (err->code == HF_QUARANTINE &&
        (round->retry_after_ms == 0 || err->retry_after_ms < round->retry_after_ms))
        round->retry_after_ms = err->retry_after_ms > 0 ? err->retry_after_ms : 1;
    rl_link_give(round->store, index, round->link[index]);
    round->link[index] = NULL;
}

/* Whether a node whose link is ready may be sent to. If it has to be met first, it is on its way
 * again. */
static void admit(struct rl_round *round, unsigned index)
{
    struct hf_error err;
    enum hf_status status = HF_OK;

    /* What is owed goes first: a key left there may be in our own way. */
    rl_link_settle(round->store, index, round->link[index]);
    if (round->votes)
        status = rl_node_vote(round->store, index, round->id[index], &err);
    if (status == HF_UNKNOWN)
        rl_link_meet(round->store, index, round->link[index]);
    else if (status != HF_OK)
        miss(round, index, &err);
    else
        round->joined[index] = true;
}

/* Goes on with a link that is on its way. True: there is news of it. */
static bool step(struct rl_round *round, unsigned index)
{
    struct rl_link *link = round->link[index];
    struct hf_error err = {0};

    if (!rl_link_step(round->store, index, link, &err))
        return false;
    if (link->conn->broken)
        miss(round, index, &err);
    else
        admit(round, index);
    return round->link[index] == NULL || round->joined[index];
}

bool rl_round_coming(const struct rl_round *round, unsigned index)
{
    return round->link[index] != NULL && !round->joined[index];
}

void rl_round_begin(struct rl_round *round, struct rl_store *store, bool votes)
{
    memset(round, 0, sizeof *round);
    round->store = store;
    round->votes = votes;
    for (unsigned i = 0; i < store->count; i++) {
        struct hf_error err;

        round->link[i] = rl_link_take(store, i, &err);
        if (round->link[i] == NULL)
            miss(round, i, &err);
        else if (round->link[i]->state == RL_READY)
            admit(round, i);
        if (rl_round_coming(round, i))
            (void)step(round, i);
    }
}

bool rl_round_send(struct rl_round *round, unsigned index)
{
    bool sent = round->joined[index] && rl_link_send(round->link[index], &round->request);

    rd_request_clear(&round->request);
    round->pending[index] += sent;
    return sent;
}

/* A node that was told to forget its scripts gets them once more. True: it did not act on what it
 * was asked, and can be asked again. */
static bool reload(struct rl_round *round, unsigned index, const struct rd_reply *reply)
{
    if (round->loaded[index] || reply->type != RD_REPLY_ERROR ||
        rd_verdict(reply->text) != RD_NOSCRIPT)
        return false;
    round->loaded[index] = true;
    return rl_link_load(round->link[index]);
}

/* An answer that has come already, or the news that none will. */
static bool take_news(struct rl_round *round, unsigned index, struct rd_reply **reply,
                      enum rl_event *event)
{
    if (!rl_link_glance(round->link[index], reply)) {
        round->pending[index] = 0;
        *event = RL_BROKE;
        return true;
    }
    if (*reply == NULL)
        return false;
    round->pending[index]--;
    *event = reload(round, index, *reply) ? RL_AGAIN : RL_ANSWER;
    if (*event == RL_AGAIN) {
        rd_reply_free(*reply);
        *reply = NULL;
    }
    return true;
}

/* Whether a node has something to tell now. sure: poll said so. */
static bool visit(struct rl_round *round, unsigned index, bool sure, struct rd_reply **reply,
                  enum rl_event *event)
{
    const struct rd_conn *conn;

    *reply = NULL;
    if (rl_round_coming(round, index)) {
        if (!step(round, index))
            return false;
        *event = round->joined[index] ? RL_JOINED : RL_MISSING;
        return true;
    }
    if (round->pending[index] == 0)
        return false;
    conn = round->link[index]->conn;
    /* TLS, and what was read along with an earlier answer, does not show in poll. */
    return (sure || conn->tls != NULL || rd_reader_pending(conn->reader)) &&
           take_news(round, index, reply, event);
}

/* What to wait for. *deadline_ns comes nearer where poll cannot tell. */
static nfds_t gather(const struct rl_round *round, struct pollfd *fds, unsigned *who,
                     int64_t *deadline_ns)
{
    nfds_t count = 0;

    for (unsigned i = 0; i < round->store->count; i++) {
        bool coming = rl_round_coming(round, i);
        const struct rl_link *link = round->link[i];

        if (!coming && round->pending[i] == 0)
            continue;
        if (link->state == RL_CONNECTING && link->conn->step_ns < *deadline_ns)
            *deadline_ns = link->conn->step_ns;
        who[count] = i;
        fds[count++] =
            (struct pollfd){.fd = link->conn->fd,
                            .events = link->state == RL_CONNECTING ? link->conn->wants : POLLIN};
    }
    return count;
}

enum rl_event rl_round_next(struct rl_round *round, int64_t deadline_ns, unsigned *index,
                            struct rd_reply **reply)
{
    struct pollfd fds[HF__QUORUM_NODES_MAX];
    unsigned who[HF__QUORUM_NODES_MAX];
    enum rl_event event;

    for (;;) {
        int64_t until_ns = deadline_ns;
        nfds_t count;
        int ready;

        for (unsigned i = 0; i < round->store->count; i++) {
            bool sure = (round->ready & 1u << i) != 0;

            round->ready &= ~(1u << i);
            if (visit(round, i, sure, reply, &event)) {
                *index = i;
                return event;
            }
        }
        count = gather(round, fds, who, &until_ns);
        ready = count > 0 ? hf__poll_until(fds, count, until_ns) : 0;
        if (ready == 0 && (count == 0 || until_ns == deadline_ns))
            return RL_SILENCE;
        for (nfds_t i = 0; i < count; i++)
            round->ready |= fds[i].revents != 0 ? 1u << who[i] : 0;
    }
}

struct rl_debt rl_round_debt(const struct rl_round *round, const struct hf_claim *claim,
                             const char *owner, int64_t ttl_ms)
{
    struct rl_debt debt = {.token = claim->token,
                           .until_ns = round->store->base.host->now_ns() + ttl_ms * HF__NS_PER_MS};

    (void)snprintf(debt.name, sizeof debt.name, "%s", claim->name);
    (void)snprintf(debt.owner, sizeof debt.owner, "%s", owner);
    return debt;
}

void rl_round_end(struct rl_round *round, unsigned left, const struct rl_debt *debt)
{
    for (unsigned i = 0; i < round->store->count; i++) {
        struct rl_link *link = round->link[i];

        if (left & 1u << i) {
            if (!round->joined[i] || link->conn->broken)
                rl_node_owe(round->store, i, debt);
            else if (round->pending[i] > 0)
                rl_debts_add(&link->debts, debt);
        }
        if (link != NULL)
            link->owed += round->pending[i];
        rl_link_give(round->store, i, link);
    }
    rd_request_release(&round->request);
}

enum hf__quorum_no rl_round_error(struct rl_round *round, unsigned index, const char *lock,
                                  const struct rd_reply *reply)
{
    struct hf_error err;
    const char *text = reply->type == RD_REPLY_ERROR ? reply->text : "";

    if (rd_reply_is(reply, "new") || (text[0] != '\0' && rd_verdict(text) == RD_NOSCRIPT)) {
        rl_node_unload(round->store, index);
        if (round->retry_after_ms == 0)
            round->retry_after_ms = 1; /* it has to be asked who it is: at once */
        if (text[0] != '\0') {
            (void)rd_verdict_fail(text, lock, round->store->setup.url.parts.shown, &err);
            rl_trouble_add(&round->troubles, &err);
        }
        return HF__NO_QUARANTINE;
    }
    if (rd_reply_is(reply, "replica"))
        text = "READONLY";
    if (text[0] != '\0')
        (void)rd_verdict_fail(text, lock, round->store->setup.url.parts.shown, &err);
    else
        (void)rd_nonsense(&round->store->setup.url, lock, &err);
    rl_trouble_add(&round->troubles, &err);
    return HF__NO_UNREACHABLE;
}

enum hf__quorum_no rl_round_missing(const struct rl_round *round, unsigned index)
{
    return round->missing[index] == HF_QUARANTINE ? HF__NO_QUARANTINE : HF__NO_UNREACHABLE;
}

int64_t rl_round_deadline(const struct rl_round *round, int64_t limit_ns)
{
    int64_t end_ns = round->store->base.host->now_ns() + round->store->timeout_ms * HF__NS_PER_MS;

    return end_ns < limit_ns ? end_ns : limit_ns;
}

enum hf__quorum_action rl_round_time_out(const struct rl_round *round, struct hf__quorum *vote)
{
    enum hf__quorum_action action = HF__QUORUM_WAIT;

    for (unsigned i = 0; i < vote->count && action == HF__QUORUM_WAIT; i++)
        action = hf__quorum_on_no(vote, i,
                                  rl_round_coming(round, i) ? HF__NO_UNREACHABLE : HF__NO_ANSWER,
                                  round->store->base.host->now_ns());
    return action;
}
