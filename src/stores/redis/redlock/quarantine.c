/* quarantine.c - telling of a quarantine, and ending it by hand at every node that is in one. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_MS 1000 /* what one node may take: nobody is in a hurry here */

/* One question to every node, and what is done with each answer. */
struct survey {
    struct rl_store *store;
    struct rl_round round;
    void (*ask)(struct survey *survey, unsigned index);
    void (*hear)(struct survey *survey, unsigned index, const struct rd_reply *reply);
};

/* Who votes, and who will when. */
struct inquiry {
    struct survey survey;
    unsigned votes;
    int64_t left_ms[HF__QUORUM_NODES_MAX]; /* of the nodes in quarantine, in rising order */
    unsigned waiting;
};

struct ending {
    struct survey survey;
    const char *label, *reason;
    unsigned asked, opened, open; /* nodes, as bits */
};

static void ask_everywhere(struct survey *s, int64_t deadline_ns)
{
    int64_t end_ns = s->store->base.host->now_ns() + ANSWER_MS * HF__NS_PER_MS;
    struct rd_reply *reply;
    enum rl_event event;
    unsigned index;

    if (end_ns > deadline_ns)
        end_ns = deadline_ns;
    rl_round_begin(&s->round, s->store, false);
    for (unsigned i = 0; i < s->store->count; i++)
        if (s->round.joined[i])
            s->ask(s, i);
    while ((event = rl_round_next(&s->round, end_ns, &index, &reply)) != RL_SILENCE) {
        if (event == RL_JOINED || event == RL_AGAIN)
            s->ask(s, index);
        else if (event == RL_ANSWER)
            s->hear(s, index, reply);
        rd_reply_free(reply);
    }
    rl_round_end(&s->round, 0, NULL);
}

static void inquire_at(struct survey *s, unsigned index)
{
    rd_incarnation_inquire(s->store->node[index].node, &s->round.request);
    (void)rl_round_send(&s->round, index);
}

static void hear_inquiry(struct survey *s, unsigned index, const struct rd_reply *reply)
{
    struct inquiry *q = (struct inquiry *)s;
    struct hf_error said;
    unsigned at = q->waiting;

    switch ((int)rd_incarnation_judge(s->store->node[index].node, reply, &said)) {
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
        rl_trouble_add(&s->round.troubles, &said);
    }
}

/* The store grants as soon as a majority votes. */
enum hf_status rl_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err)
{
    struct rl_store *store = (struct rl_store *)base;
    struct inquiry q = {.survey = {.store = store, .ask = inquire_at, .hear = hear_inquiry}};
    unsigned majority = hf__quorum_majority(store->count);
    char left[32];

    ask_everywhere(&q.survey, deadline_ns);
    if (q.votes >= majority)
        return hf__ok(err);
    if (q.votes + q.waiting < majority)
        return rl_too_few(store, NULL, &q.survey.round.troubles, err);
    (void)hf__fail_lock(err, HF_QUARANTINE, NULL, store->setup.url.parts.shown,
                        ": %u of %u nodes are new or have restarted, and may have forgotten "
                        "a lock; a majority grants in %s",
                        q.waiting, store->count,
                        hf__format_duration(left, sizeof left, q.left_ms[majority - q.votes - 1]));
    if (err != NULL)
        err->retry_after_ms = q.left_ms[majority - q.votes - 1];
    return HF_QUARANTINE;
}

/* To the life that was met last over this connection, or any. */
static void ask_node(struct survey *s, unsigned index)
{
    struct ending *e = (struct ending *)s;
    struct rd_node *node = s->store->node[index].node;
    char id[RD_INCARNATION_LEN + 1];
    char key[sizeof node->handshake_key];

    pthread_mutex_lock(&node->lock);
    memcpy(id, node->incarnation, sizeof id);
    memcpy(key, node->handshake_key, sizeof key);
    pthread_mutex_unlock(&node->lock);
    rd_request_command(&s->round.request,
                       (const char *const[]){"EVALSHA", rd_scripts[RD_SCRIPT_END_QUARANTINE].sha1,
                                             "1", key, id, "", e->label, e->reason, NULL});
    if (rl_round_send(&s->round, index))
        e->asked |= 1u << index;
}

static void take_answer(struct survey *s, unsigned index, const struct rd_reply *reply)
{
    struct ending *e = (struct ending *)s;

    if (rd_reply_is(reply, "opened"))
        e->opened |= 1u << index;
    else if (rd_reply_is(reply, "open"))
        e->open |= 1u << index;
    else
        (void)rl_round_error(&s->round, index, "", reply);
    rl_node_unload(s->store, index); /* whatever it is now has to be asked for */
}

/* "h1:p1, h2:p2", as many as there is room for. */
static unsigned name_nodes(const struct ending *e, unsigned nodes, char *out, size_t size)
{
    unsigned count = 0;
    size_t len = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < e->survey.store->count; i++) {
        const struct hf__address *address = &e->survey.store->node[i].node->pool.address;

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
    struct rl_store *store = (struct rl_store *)base;
    struct ending e = {.survey = {.store = store, .ask = ask_node, .hear = take_answer},
                       .label = label,
                       .reason = reason};
    const char *shown = store->setup.url.parts.shown;
    unsigned opened, answered;
    char names[120];

    ask_everywhere(&e.survey, deadline_ns);
    opened = name_nodes(&e, e.opened, names, sizeof names);
    answered = opened + name_nodes(&e, e.open, (char[2]){0}, 2);
    if (answered < hf__quorum_majority(store->count))
        return hf__fail_lock(report, e.asked != 0 ? HF_UNKNOWN : HF_UNREACHABLE, NULL, shown,
                             ": %u of %u nodes answered, and it takes %u; %s%.80s", answered,
                             store->count, hf__quorum_majority(store->count),
                             opened > 0 ? "ended at " : "ended nowhere: ",
                             opened > 0 ? names : rl_trouble_text(store, &e.survey.round.troubles));
    if (opened == 0)
        return hf__fail_lock(report, HF_INVALID, NULL, shown,
                             ": no node that answered is in quarantine");
    (void)hf__fail_lock(report, HF_OK, NULL, shown,
                        ": %u of %u nodes answered, and these grant again: %.110s", answered,
                        store->count, names);
    return HF_OK;
}
