/* node.c - one node of a redlock: who it is, whether it votes, what is owed to it. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define ASK_AGAIN_MS 1000 /* how often a node that does not vote is asked why */

static int64_t now_of(const struct rl_store *store)
{
    return store->base.host->now_ns();
}

enum hf_status rl_node_vote(struct rl_store *store, unsigned index, char id[RD_INCARNATION_LEN + 1],
                            struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    int64_t now_ns = now_of(store);
    enum hf_status status = HF_UNKNOWN;

    rd_incarnation_known(node->node, id);
    pthread_mutex_lock(&node->lock);
    if (now_ns < node->ask_at_ns) {
        status = node->no.code;
        *err = node->no;
        if (status == HF_QUARANTINE)
            err->retry_after_ms = (node->open_at_ns - now_ns) / HF__NS_PER_MS + 1;
    } else if (node->no.code == HF_OK && node->ask_at_ns != 0) {
        status = HF_OK;
    }
    pthread_mutex_unlock(&node->lock);
    return status == HF_OK && id[0] == '\0' ? HF_UNKNOWN : status;
}

enum hf_status rl_node_alone(struct rl_store *store, unsigned index, struct hf_error *err)
{
    const struct hf__address *mine = &store->node[index].node->pool.address;
    char run_id[RL_RUN_ID_MAX];

    pthread_mutex_lock(&store->node[index].lock);
    memcpy(run_id, store->node[index].run_id, sizeof run_id);
    pthread_mutex_unlock(&store->node[index].lock);
    for (unsigned i = 0; i < store->count && run_id[0] != '\0'; i++) {
        struct rl_node *other = &store->node[i];
        const struct hf__address *its = &other->node->pool.address;
        bool same;

        if (i == index)
            continue;
        pthread_mutex_lock(&other->lock);
        same = strcmp(other->run_id, run_id) == 0;
        pthread_mutex_unlock(&other->lock);
        if (same)
            return hf__fail_lock(err, HF_INVALID, NULL, store->setup.url.parts.shown,
                                 ": %.40s:%u and %.40s:%u are one server; a redlock needs "
                                 "independent ones",
                                 its->host, its->port, mine->host, mine->port);
    }
    return HF_OK;
}

/* Who it is and what time it has, from INFO server and TIME. */
static enum hf_status identify(struct rl_store *store, unsigned index,
                               struct rd_reply *const *replies, bool late, struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    const char *at = strstr(rd_reply_text(replies[0]), "run_id:");
    int64_t clock_us = rd_reply_number(rd_reply_at(replies[1], 0), 0) * 1000000 +
                       rd_reply_number(rd_reply_at(replies[1], 1), 0);

    if (at == NULL)
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->setup.url.parts.shown,
                             ": %.40s:%u does not report its run_id", node->node->pool.address.host,
                             node->node->pool.address.port);
    pthread_mutex_lock(&node->lock);
    (void)snprintf(node->run_id, sizeof node->run_id, "%.*s", (int)strcspn(at + 7, "\r\n"), at + 7);
    pthread_mutex_unlock(&node->lock);
    if (!late)
        rl_node_clock(store, index, clock_us);
    return rl_node_alone(store, index, err);
}

/* A node that somebody has to mend is told of once, not with every question. */
static bool is_news(const struct hf_error *before, const struct hf_error *now)
{
    return now->code != HF_OK && now->code != HF_QUARANTINE && now->code != HF_UNREACHABLE &&
           strcmp(before->text, now->text) != 0;
}

static void set_verdict(struct rl_store *store, unsigned index, const struct hf_error *no)
{
    struct rl_node *node = &store->node[index];
    int64_t pause_ms = no->code == HF_OK ? 0 : ASK_AGAIN_MS;
    int64_t now_ns = now_of(store);
    bool news;

    if (no->code == HF_QUARANTINE && no->retry_after_ms < pause_ms)
        pause_ms = no->retry_after_ms > 0 ? no->retry_after_ms : 1;
    pthread_mutex_lock(&node->lock);
    news = is_news(&node->no, no);
    node->no = *no;
    node->ask_at_ns = now_ns + pause_ms * HF__NS_PER_MS;
    node->open_at_ns = now_ns + no->retry_after_ms * HF__NS_PER_MS;
    pthread_mutex_unlock(&node->lock);
    if (news)
        store->base.host->log("%s; it has no vote", no->text);
}

/* What is said of a server is said of this node: the store's name does not tell which. */
static void name_node(const struct rl_store *store, unsigned index, struct hf_error *err)
{
    const struct hf__address *address = &store->node[index].node->pool.address;
    struct hf_error said = *err;

    (void)hf__fail_lock(err, said.code, NULL, store->setup.url.parts.shown,
                        ": node %.40s:%u: %.110s", address->host, address->port,
                        rl_without_store(store, said.text));
    err->retry_after_ms = said.retry_after_ms;
}

void rl_node_met(struct rl_store *store, unsigned index, struct rd_reply *const *replies, bool late)
{
    struct rd_node *node = store->node[index].node;
    struct hf_error err = {0}, stranger = {0};

    if (rd_incarnation_hear(node, replies, &err) != HF_OK)
        name_node(store, index, &err);
    if (identify(store, index, replies + RD_MEETING_REPLIES, late, &stranger) != HF_OK)
        err = stranger;
    set_verdict(store, index, &err);
}

void rl_node_unload(struct rl_store *store, unsigned index)
{
    struct rl_node *node = &store->node[index];
    char id[RD_INCARNATION_LEN + 1];

    pthread_mutex_lock(&node->lock);
    node->ask_at_ns = 0;
    pthread_mutex_unlock(&node->lock);
    rd_incarnation_known(node->node, id);
    if (id[0] != '\0')
        rd_incarnation_forget(node->node, id);
}

void rl_node_reached(struct rl_store *store, unsigned index, bool reached)
{
    struct rl_node *node = &store->node[index];
    uint32_t dice;

    store->base.host->random(&dice, sizeof dice);
    pthread_mutex_lock(&node->lock);
    if (reached)
        hf__backoff_worked(&node->backoff);
    else
        (void)hf__backoff_failed(&node->backoff, now_of(store), dice);
    pthread_mutex_unlock(&node->lock);
}

void rl_debts_add(struct rl_debts *debts, const struct rl_debt *debt)
{
    if (debts->count == RL_DEBTS_MAX)
        memmove(debts->items, debts->items + 1, --debts->count * sizeof *debts->items);
    debts->items[debts->count++] = *debt;
}

void rl_node_owe(struct rl_store *store, unsigned index, const struct rl_debt *debt)
{
    struct rl_node *node = &store->node[index];

    pthread_mutex_lock(&node->lock);
    rl_debts_add(&node->debts, debt);
    pthread_mutex_unlock(&node->lock);
}

void rl_node_take_debts(struct rl_store *store, unsigned index, struct rl_debts *out)
{
    struct rl_node *node = &store->node[index];

    pthread_mutex_lock(&node->lock);
    out->count = node->debts.count;
    memcpy(out->items, node->debts.items, out->count * sizeof *out->items);
    node->debts.count = 0;
    pthread_mutex_unlock(&node->lock);
}
