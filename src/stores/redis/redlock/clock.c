/* clock.c - how far the clocks of the nodes are from each other. Which of them count is decided by
 * src/core/quorum.c, vote by vote; here they are remembered so that people can be told. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <stdio.h>

#define US_PER_MS 1000

int64_t rl_clocks_apart_us(const struct rl_store *store)
{
    /* After a node forgot its counter, the order of tokens rests on clocks that are closer. */
    return store->setup.url.max_ttl_ms * US_PER_MS / 3;
}

void rl_node_clock(struct rl_store *store, unsigned index, int64_t clock_us)
{
    struct rl_node *node = &store->node[index];
    int64_t offset_us = clock_us - store->base.host->now_ns() / 1000;

    pthread_mutex_lock(&node->lock);
    node->offset_us = offset_us;
    node->clock_known = true;
    pthread_mutex_unlock(&node->lock);
}

/* A node whose clock is not in the largest group, and how far it is ahead of one that is. count:
 * there is none. */
static unsigned find_off(struct rl_store *store, unsigned from, int64_t *ahead_us)
{
    int64_t offset_us[HF__QUORUM_NODES_MAX] = {0};
    unsigned known = 0, close, one = 0;

    for (unsigned i = 0; i < store->count; i++) {
        pthread_mutex_lock(&store->node[i].lock);
        offset_us[i] = store->node[i].offset_us;
        known |= store->node[i].clock_known ? 1u << i : 0;
        pthread_mutex_unlock(&store->node[i].lock);
    }
    close = hf__quorum_clocks(offset_us, known, store->count, rl_clocks_apart_us(store));
    while (one < store->count && (close & 1u << one) == 0)
        one++;
    while (from < store->count && (known & ~close & 1u << from) == 0)
        from++;
    if (from < store->count)
        *ahead_us = offset_us[from] - offset_us[one];
    return from;
}

/* "60s ahead of" */
static void describe(char *out, size_t size, int64_t ahead_us)
{
    char apart[32];
    int64_t ms = (ahead_us < 0 ? -ahead_us : ahead_us) / US_PER_MS;

    (void)hf__format_duration(apart, sizeof apart, ms);
    (void)snprintf(out, size, "%s %s", apart, ahead_us < 0 ? "behind" : "ahead of");
}

void rl_clocks_warn(struct rl_store *store)
{
    int64_t ahead_us = 0;

    for (unsigned i = 0; (i = find_off(store, i, &ahead_us)) < store->count; i++) {
        const struct hf__address *address = &store->node[i].node->pool.address;
        char apart[64];

        describe(apart, sizeof apart, ahead_us);
        store->base.host->log("store %s: the clock of node %s:%u is %s the others'; it has no "
                              "vote where clocks matter",
                              store->setup.url.parts.shown, address->host, address->port, apart);
    }
}

enum hf_status rl_clocks_fail(struct rl_store *store, const char *lock, struct hf_error *err)
{
    int64_t ahead_us = 0;
    unsigned off = find_off(store, 0, &ahead_us);
    char apart[64] = "away from";

    if (off == store->count)
        off = 0; /* it has been set since */
    else
        describe(apart, sizeof apart, ahead_us);
    return hf__fail_lock(err, HF_INVALID, lock, store->setup.url.parts.shown,
                         ": no majority of the nodes' clocks is within "
                         "max_ttl/3; that of %.40s:%u is %s others",
                         store->node[off].node->pool.address.host,
                         store->node[off].node->pool.address.port, apart);
}
