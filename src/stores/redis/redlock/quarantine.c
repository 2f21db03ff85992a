/* quarantine.c - telling of a quarantine, and ending it by hand at every node that is in one. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_MS 1000 /* what one node may take: nobody is in a hurry here */

/* Who votes, and who will when. */
struct inquiry {
    struct rl_store *store;
    struct rl_round round;
    unsigned votes;
    int64_t left_ms[HF__QUORUM_NODES_MAX]; /* of the nodes in quarantine, in rising order */
    unsigned waiting;
};

struct ending {
    struct rl_store *store;
    const char *label, *reason;
    struct rl_round round;
    unsigned asked, opened, open; /* nodes, as bits */
};

static void inquire_at(struct inquiry *q, unsigned index)
{
    rd_incarnation_inquire(q->store->node[index].node, &q->round.request);
    (void)rl_round_send(&q->round, index);
}

static void hear_inquiry(struct inquiry *q, unsigned index, const struct rd_reply *reply)
{
    struct hf_error said;
    unsigned at = q->waiting;

    switch ((int)rd_incarnation_judge(q->store->node[index].node, reply, &said)) {
    case HF_OK:
        q->votes++;
        return;
    case HF_QUARANTINE:
        for (; at > 0 && q->left_ms[at - 1] > said.retry_after_ms; at--)
            q->left_ms[at] = q->left_ms[at - 1];
        q->left_ms[at] = said.retry_after_ms;
        q->waiting++;
        return;
    default:
        rl_trouble_add(&q->round.troubles, &said);
    }
}

static void inquire_everywhere(struct inquiry *q, int64_t deadline_ns)
{
    struct rd_reply *reply;
    enum rl_event event;
    unsigned index;

    rl_round_begin(&q->round, q->store, false);
    for (unsigned i = 0; i < q->store->count; i++)
        if (q->round.joined[i])
            inquire_at(q, i);
    while ((event = rl_round_next(&q->round, deadline_ns, &index, &reply)) != RL_SILENCE) {
        if (event == RL_JOINED || event == RL_AGAIN)
            inquire_at(q, index);
        else if (event == RL_ANSWER)
            hear_inquiry(q, index, reply);
        rd_reply_free(reply);
    }
    rl_round_end(&q->round, 0, NULL);
}

/* The store grants as soon as a majority votes. */
enum hf_status rl_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err)
{
    struct inquiry q = {.store = (struct rl_store *)base};
    int64_t end_ns = base->host->now_ns() + ANSWER_MS * HF__NS_PER_MS;
    unsigned majority = hf__quorum_majority(q.store->count);
    char left[32];

    inquire_everywhere(&q, end_ns < deadline_ns ? end_ns : deadline_ns);
    if (q.votes >= majority)
        return hf__ok(err);
    if (q.votes + q.waiting < majority)
        return rl_too_few(q.store, NULL, &q.round.troubles, err);
    (void)hf__fail_lock(err, HF_QUARANTINE, NULL, q.store->setup.url.parts.shown,
                        ": %u of %u nodes are new or have restarted, and may have forgotten "
                        "a lock; a majority grants in %s",
                        q.waiting, q.store->count,
                        hf__format_duration(left, sizeof left, q.left_ms[majority - q.votes - 1]));
    if (err != NULL)
        err->retry_after_ms = q.left_ms[majority - q.votes - 1];
    return HF_QUARANTINE;
}

/* To the life that was met last over this connection, or any. */
static void ask_node(struct ending *e, unsigned index)
{
    struct rd_node *node = e->store->node[index].node;
    char id[RD_INCARNATION_LEN + 1];
    char key[sizeof node->handshake_key];

    pthread_mutex_lock(&node->lock);
    memcpy(id, node->incarnation, sizeof id);
    memcpy(key, node->handshake_key, sizeof key);
    pthread_mutex_unlock(&node->lock);
    rd_request_command(&e->round.request,
                       (const char *const[]){"EVALSHA", rd_scripts[RD_SCRIPT_END_QUARANTINE].sha1,
                                             "1", key, id, "", e->label, e->reason, NULL});
    if (rl_round_send(&e->round, index))
        e->asked |= 1u << index;
}

static void take_answer(struct ending *e, unsigned index, const struct rd_reply *reply)
{
    if (rd_reply_is(reply, "opened"))
        e->opened |= 1u << index;
    else if (rd_reply_is(reply, "open"))
        e->open |= 1u << index;
    else
        (void)rl_round_error(&e->round, index, "", reply);
    rl_node_unload(e->store, index); /* whatever it is now has to be asked for */
}

static void ask_all(struct ending *e, int64_t deadline_ns)
{
    struct rd_reply *reply;
    enum rl_event event;
    unsigned index;

    rl_round_begin(&e->round, e->store, false);
    for (unsigned i = 0; i < e->store->count; i++)
        if (e->round.joined[i])
            ask_node(e, i);
    while ((event = rl_round_next(&e->round, deadline_ns, &index, &reply)) != RL_SILENCE) {
        if (event == RL_JOINED || event == RL_AGAIN)
            ask_node(e, index);
        else if (event == RL_ANSWER)
            take_answer(e, index, reply);
        rd_reply_free(reply);
    }
    rl_round_end(&e->round, 0, NULL);
}

/* "h1:p1, h2:p2", as many as there is room for. */
static unsigned name_nodes(const struct ending *e, unsigned nodes, char *out, size_t size)
{
    unsigned count = 0;
    size_t len = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < e->store->count; i++) {
        const struct hf__address *address = &e->store->node[i].node->pool.address;

        if ((nodes & 1u << i) == 0)
            continue;
        if (len < size)
            len += (size_t)snprintf(out + len, size - len, "%s%s:%u", count > 0 ? ", " : "",
                                    address->host, address->port);
        count++;
    }
    return count;
}

enum hf_status rl_end_quarantine(struct hf_store_base *base, const char *label, const char *reason,
                                 int64_t deadline_ns, struct hf_error *report)
{
    struct ending e = {.store = (struct rl_store *)base, .label = label, .reason = reason};
    int64_t end_ns = base->host->now_ns() + ANSWER_MS * HF__NS_PER_MS;
    const char *shown = e.store->setup.url.parts.shown;
    unsigned opened, answered;
    char names[120];

    ask_all(&e, end_ns < deadline_ns ? end_ns : deadline_ns);
    opened = name_nodes(&e, e.opened, names, sizeof names);
    answered = opened + name_nodes(&e, e.open, (char[2]){0}, 2);
    if (answered < hf__quorum_majority(e.store->count))
        return hf__fail_lock(report, e.asked != 0 ? HF_UNKNOWN : HF_UNREACHABLE, NULL, shown,
                             ": %u of %u nodes answered, and it takes %u; %s%.80s", answered,
                             e.store->count, hf__quorum_majority(e.store->count),
                             opened > 0 ? "ended at " : "ended nowhere: ",
                             opened > 0 ? names : rl_trouble_text(e.store, &e.round.troubles));
    if (opened == 0)
        return hf__fail_lock(report, HF_INVALID, NULL, shown,
                             ": no node that answered is in quarantine");
    (void)hf__fail_lock(report, HF_OK, NULL, shown,
                        ": %u of %u nodes answered, and these grant again: %.110s", answered,
                        e.store->count, names);
    return HF_OK;
}
