/* store.c - the redlock store: opening and closing. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEET_MS      1000 /* what opening may spend on one node */
#define RETRY_MIN_MS 50   /* the pause after a node could not be reached */
#define RETRY_MAX_MS 2000 /* and after many times */

static void store_close(struct hf_store_base *base, bool forked);
static uint32_t max_ttl_ms(struct hf_store_base *base);

static const char *const schemes[] = {"redlock", NULL};

static const struct hf_store_ops ops = {
    .size = sizeof ops,
    .schemes = schemes,
    .features = HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL | HF_FEATURE_BREAK,
    .close = store_close,
    .acquire = rl_acquire,
    .renew = rl_renew,
    .release = rl_release,
    .list = rl_list,
    .max_ttl_ms = max_ttl_ms,
    .end_quarantine = rl_end_quarantine,
    .quarantine = rl_quarantine,
    .identity = rl_identity,
    .forget = rl_forget,
    .revoke = rl_revoke,
};

static uint32_t max_ttl_ms(struct hf_store_base *base)
{
    int64_t max_ms = ((struct rl_store *)base)->setup.url.max_ttl_ms;

    return max_ms < HF_TTL_MAX_MS ? (uint32_t)max_ms : HF_TTL_MAX_MS;
}

static enum hf_status check_addresses(const struct rd_url *url, struct hf_error *err)
{
    if (url->parts.host_count < HF__QUORUM_NODES_MIN ||
        url->parts.host_count > HF__QUORUM_NODES_MAX || url->parts.host_count % 2 == 0)
        return hf__fail_lock(err, HF_INVALID, NULL, url->parts.shown,
                             ": a redlock has an odd number of nodes, %d to %d; here are %u",
                             HF__QUORUM_NODES_MIN, HF__QUORUM_NODES_MAX, url->parts.host_count);
    for (size_t i = 0; i < url->parts.host_count; i++)
        for (size_t j = 0; j < i; j++)
            if (hf__address_equal(&url->parts.hosts[i], &url->parts.hosts[j]))
                return hf__fail_lock(err, HF_INVALID, NULL, url->parts.shown,
                                     ": %.60s:%u is listed twice", url->parts.hosts[i].host,
                                     url->parts.hosts[i].port);
    return HF_OK;
}

/* In error texts the first node stands for all of them: a text has no room for fifteen addresses
 * and what is wrong besides. */
static void shorten(struct rd_url *url)
{
    const struct hf__address *first = &url->parts.hosts[0];

    (void)snprintf(url->parts.shown, sizeof url->parts.shown, "redlock://%.60s:%u,(%u more)",
                   first->host, first->port, url->parts.host_count - 1);
}

static enum hf_status add_nodes(struct rl_store *store, struct hf_error *err)
{
    for (size_t i = 0; i < store->setup.url.parts.host_count; i++) {
        struct rl_node *node = &store->node[store->count];

        node->backoff = (struct hf__backoff){.first_ns = RETRY_MIN_MS * HF__NS_PER_MS,
                                             .most_ns = RETRY_MAX_MS * HF__NS_PER_MS};
        node->node = rd_node_open(&store->setup, &store->setup.url.parts.hosts[i]);
        if (node->node == NULL)
            return hf__nomem(err);
        if (pthread_mutex_init(&node->lock, NULL) != 0) {
            rd_node_close(node->node, false);
            return hf__nomem(err);
        }
        store->count++;
    }
    return HF_OK;
}

/* Waits until every node has joined or is missing; once a majority is there, for the rest only as
 * long as for any answer. How many are there; those in quarantine count, since renewals, releases
 * and listings go on. */
static unsigned join_nodes(struct rl_round *round)
{
    struct rl_store *store = round->store;
    int64_t now_ns = store->base.host->now_ns();
    int64_t end_ns = now_ns + store->timeout_ms * HF__NS_PER_MS;
    int64_t soon_ns = now_ns + store->setup.url.node_timeout_ms * HF__NS_PER_MS;

    for (;;) {
        struct rd_reply *reply;
        unsigned met = 0, coming = 0, index;
        bool enough;

        for (unsigned i = 0; i < store->count; i++) {
            met += round->joined[i] || round->missing[i] == HF_QUARANTINE;
            coming += rl_round_coming(round, i);
        }
        enough = met >= hf__quorum_majority(store->count);
        if (coming == 0 ||
            rl_round_next(round, enough ? soon_ns : end_ns, &index, &reply) == RL_SILENCE)
            return met;
    }
}

/* Meets every node, so that a wrong password or one server under two names is told now. */
static enum hf_status meet_nodes(struct rl_store *store, struct hf_error *err)
{
    struct rl_round round;
    unsigned met;

    store->timeout_ms = store->setup.url.node_timeout_ms;
    if (store->timeout_ms < MEET_MS)
        store->timeout_ms = MEET_MS;
    rl_round_begin(&round, store, true);
    met = join_nodes(&round);
    rl_round_end(&round, 0, NULL);
    store->timeout_ms = store->setup.url.node_timeout_ms;
    rl_clocks_warn(store);
    /* A mistake in the URL. Whatever else is wrong with a node costs its vote, and no more. */
    for (unsigned i = 0; i < store->count; i++)
        if (rl_node_alone(store, i, err) != HF_OK)
            return HF_INVALID;
    if (met < hf__quorum_majority(store->count))
        return rl_too_few(store, NULL, &round.troubles, err);
    return hf__ok(err);
}

enum hf_status rl_open(const struct hf_host *host, const char *url, bool readonly,
                       int64_t deadline_ns, struct hf_store_base **out, struct hf_error *err)
{
    struct rl_store *store = calloc(1, sizeof *store);
    enum hf_status status;

    (void)deadline_ns; /* each node has its own */
    if (store == NULL)
        return hf__nomem(err);
    store->base = (struct hf_store_base){.ops = &ops, .host = host};
    store->setup.readonly = readonly;
    status = rd_setup_init(&store->setup, host, url, err);
    if (status == HF_OK)
        status = check_addresses(&store->setup.url, err);
    if (status == HF_OK)
        shorten(&store->setup.url);
    if (status == HF_OK)
        status = add_nodes(store, err);
    if (status == HF_OK)
        status = meet_nodes(store, err);
    if (status != HF_OK) {
        store_close(&store->base, false);
        return status;
    }
    *out = &store->base;
    return hf__ok(err);
}

/* A request that was sent must not be lost with its connection: waits for the answers that are
 * owed. A release that is not done by then falls back to the node. */
static void drain(struct rl_store *store, unsigned index, int64_t deadline_ns)
{
    struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct rl_node *node = &store->node[index];
    struct rl_link *kept = NULL;
    size_t count = 0;

    while (node->idle != NULL || node->silent != NULL) {
        struct rl_link **list = node->idle != NULL ? &node->idle : &node->silent;
        struct rl_link *link = *list;
        struct rd_reply *reply;

        *list = link->next;
        while (link->owed > 0 && rd_conn_receive(link->conn, &patience, &reply) == HF_OK)
            rl_link_past(link, reply);
        if (link->conn->broken) {
            rl_link_drop(store, index, link);
            continue;
        }
        rl_link_return_debts(store, index, link);
        link->next = kept;
        kept = link;
        count++;
    }
    node->idle = kept;
    node->idle_count = count;
}

/* Releases what is still to be released. The last chance: afterwards it is up to the ttl. */
static void settle_debts(struct rl_store *store)
{
    int64_t timeout_ns = store->timeout_ms * HF__NS_PER_MS;
    struct rl_round round;
    size_t debts = 0;

    for (unsigned i = 0; i < store->count; i++) {
        drain(store, i, store->base.host->now_ns() + timeout_ns);
        debts += store->node[i].debts.count;
    }
    if (debts == 0)
        return;
    rl_round_begin(&round, store, false);
    (void)join_nodes(&round);
    rl_round_end(&round, 0, NULL);
    for (unsigned i = 0; i < store->count; i++)
        drain(store, i, store->base.host->now_ns() + timeout_ns);
}

static void close_list(struct rl_link *list, bool forked)
{
    while (list != NULL) {
        struct rl_link *link = list;

        list = link->next;
        rl_link_close(link, forked);
    }
}

static void close_node(struct rl_node *node, bool forked)
{
    close_list(node->idle, forked);
    close_list(node->silent, forked);
    rl_link_close(node->coming, forked);
    rd_node_close(node->node, forked);
    if (!forked)
        pthread_mutex_destroy(&node->lock);
    explicit_bzero(&node->debts, sizeof node->debts);
}

static void store_close(struct hf_store_base *base, bool forked)
{
    struct rl_store *store = (struct rl_store *)base;

    if (!forked)
        settle_debts(store);
    for (unsigned i = 0; i < store->count; i++)
        close_node(&store->node[i], forked);
    rd_setup_release(&store->setup);
    free(store);
}
