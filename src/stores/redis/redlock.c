/* redlock.c - the redlock store: opening and closing. */
#include "stores/redis/redlock.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define MEET_MS 1000 /* what opening may spend on one node */

static void store_close(struct hf_store_base *base, bool forked);

static const char *const schemes[] = {"redlock", NULL};

static const struct hf_store_ops ops = {
    .size = sizeof ops,
    .schemes = schemes,
    .features = HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL,
    .close = store_close,
    .acquire = rl_acquire,
    .renew = rl_renew,
    .release = rl_release,
    .list = rl_list,
};

static enum hf_status check_addresses(const struct rd_url *url, struct hf_error *err)
{
    if (url->address_count < HF__QUORUM_NODES_MIN || url->address_count > HF__QUORUM_NODES_MAX ||
        url->address_count % 2 == 0)
        return hf__fail(
            err, HF_INVALID,
            "store %.120s: a redlock has an odd number of nodes, %d to %d; here are %zu",
            url->shown, HF__QUORUM_NODES_MIN, HF__QUORUM_NODES_MAX, url->address_count);
    for (size_t i = 0; i < url->address_count; i++)
        for (size_t j = 0; j < i; j++)
            if (rd_address_equal(&url->addresses[i], &url->addresses[j]))
                return hf__fail(err, HF_INVALID, "store %.120s: %.60s:%u is listed twice",
                                url->shown, url->addresses[i].host, url->addresses[i].port);
    return HF_OK;
}

static enum hf_status add_nodes(struct rl_store *store, struct hf_error *err)
{
    for (size_t i = 0; i < store->rd.url.address_count; i++) {
        struct rl_node *node = &store->node[store->count];

        node->node = rd_node_open(&store->rd, &store->rd.url.addresses[i]);
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

/* Meets every node, so that a wrong password or one server under two names is told now. A majority
 * must be there; those in quarantine count, since renewals, releases and listings go on. */
static enum hf_status meet_nodes(struct rl_store *store, struct hf_error *err)
{
    int64_t timeout_ms = store->rd.url.node_timeout_ms;
    struct hf_error trouble = {0};
    unsigned met = 0;

    if (timeout_ms < MEET_MS)
        store->rd.url.node_timeout_ms = MEET_MS;
    for (unsigned i = 0; i < store->count; i++) {
        char id[RD_INCARNATION_LEN + 1];
        struct rd_conn *conn = NULL;
        struct hf_error why;
        enum hf_status status = rl_node_take(store, i, true, &conn, id, &why);

        if (status == HF_OK)
            rl_node_give(store, i, conn);
        else if (trouble.code == HF_OK || status == HF_INVALID)
            trouble = why;
        met += status == HF_OK || status == HF_QUARANTINE;
    }
    store->rd.url.node_timeout_ms = timeout_ms;
    if (trouble.code == HF_INVALID ||
        (met < hf__quorum_majority(store->count) && trouble.code != HF_UNREACHABLE)) {
        if (err != NULL)
            *err = trouble;
        return trouble.code;
    }
    if (met < hf__quorum_majority(store->count))
        return hf__fail(
            err, HF_UNREACHABLE, "store %.80s: fewer than %u of %u nodes can be reached: %.90s",
            store->rd.url.shown, hf__quorum_majority(store->count), store->count, trouble.text);
    return hf__ok(err);
}

enum hf_status rl_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                       struct hf_store_base **out, struct hf_error *err)
{
    struct rl_store *store = calloc(1, sizeof *store);
    enum hf_status status;

    (void)deadline_ns; /* each node has its own */
    if (store == NULL)
        return hf__nomem(err);
    store->rd.base = (struct hf_store_base){.ops = &ops, .host = host};
    if (pthread_mutex_init(&store->rd.lock, NULL) != 0) {
        free(store);
        return hf__nomem(err);
    }
    status = rd_url_parse(url, &store->rd.url, err);
    if (status == HF_OK)
        status = check_addresses(&store->rd.url, err);
    if (status == HF_OK)
        status = rd_url_find_password(&store->rd.url, err);
    if (status == HF_OK && store->rd.url.tls)
        status = rd_tls_config_open(&store->rd.url, &store->rd.tls, err);
    if (status == HF_OK)
        status = add_nodes(store, err);
    if (status == HF_OK)
        status = meet_nodes(store, err);
    if (status != HF_OK) {
        store_close(&store->rd.base, false);
        return status;
    }
    *out = &store->rd.base;
    return hf__ok(err);
}

static void store_close(struct hf_store_base *base, bool forked)
{
    struct rl_store *store = (struct rl_store *)base;
    int64_t end_ns = base->host->now_ns() + store->rd.url.node_timeout_ms * HF__NS_PER_MS;

    for (unsigned i = 0; i < store->count; i++) {
        struct rl_node *node = &store->node[i];

        if (!forked)
            rl_node_settle(store, i, end_ns);
        while (node->idle != NULL) {
            struct rd_conn *conn = node->idle;

            node->idle = conn->next;
            conn->shared = forked;
            rd_conn_close(conn);
        }
        rd_node_close(node->node, forked);
        if (!forked)
            (void)pthread_mutex_destroy(&node->lock);
    }
    rd_tls_config_close(store->rd.tls);
    if (!forked)
        (void)pthread_mutex_destroy(&store->rd.lock);
    explicit_bzero(&store->rd.url, sizeof store->rd.url);
    free(store);
}
