/* route.c - which server has a key: a fixed one, one of a cluster, or the one that the sentinels
 * name. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <stdio.h>
#include <string.h>

#define SENTINEL_MS 1000 /* what one sentinel may take to answer */

static enum hf_status ask_sentinels(struct rd_store *store, const struct hf__patience *patience,
                                    struct rd_node **out, struct hf_error *err);
static enum hf_status learn_slots(struct rd_store *store, struct rd_node *node,
                                  const struct hf__patience *patience, struct hf_error *err);

static struct rd_node *node_at(struct rd_store *store, const struct hf__address *address)
{
    struct rd_node *node;

    for (size_t i = 0; i < store->node_count; i++)
        if (hf__address_equal(&store->nodes[i]->pool.address, address))
            return store->nodes[i];
    if (store->node_count == RD_NODES_MAX)
        return NULL;
    node = rd_node_open(&store->setup, address);
    if (node != NULL)
        store->nodes[store->node_count++] = node;
    return node;
}

struct rd_node *rd_route_node(struct rd_store *store, const struct hf__address *address)
{
    struct rd_node *node;

    pthread_mutex_lock(&store->lock);
    node = node_at(store, address);
    pthread_mutex_unlock(&store->lock);
    return node;
}

unsigned rd_route_slot(const struct rd_store *store, const struct rd_keys *keys)
{
    return store->cluster ? rd_slot(keys->lock) : 0;
}

static size_t index_of(const struct rd_store *store, const struct rd_node *node)
{
    size_t i = 0;

    while (i < store->node_count && store->nodes[i] != node)
        i++;
    return i;
}

void rd_route_moved(struct rd_store *store, unsigned slot, struct rd_node *node)
{
    pthread_mutex_lock(&store->lock);
    store->slots[slot % RD_SLOTS] = (uint16_t)(index_of(store, node) + 1);
    pthread_mutex_unlock(&store->lock);
}

void rd_route_forget(struct rd_store *store, const struct rd_node *node)
{
    pthread_mutex_lock(&store->lock);
    if (store->cluster) {
        size_t known_as = index_of(store, node) + 1;

        for (size_t slot = 0; slot < RD_SLOTS; slot++)
            if (store->slots[slot] == known_as)
                store->slots[slot] = 0;
    } else if (store->setup.url.kind == RD_SENTINEL && store->master == node) {
        store->master = NULL;
    }
    pthread_mutex_unlock(&store->lock);
}

bool rd_route_moves(struct rd_store *store)
{
    return store->cluster || store->setup.url.kind == RD_SENTINEL;
}

/* Asks one server of the cluster after the other who has what. */
static enum hf_status learn_cluster(struct rd_store *store, const struct hf__patience *patience,
                                    struct hf_error *err)
{
    enum hf_status status = HF_UNREACHABLE;
    size_t count;

    pthread_mutex_lock(&store->lock);
    count = store->node_count;
    pthread_mutex_unlock(&store->lock);
    for (size_t i = 0; i < count; i++) {
        struct hf__patience brief = *patience;

        if (i + 1 < count)
            brief = hf__patience_until(patience, hf__now_ns() + SENTINEL_MS * HF__NS_PER_MS);
        status = learn_slots(store, store->nodes[i], &brief, err);
        if (status == HF_OK || status == HF_CANCELLED)
            break;
    }
    return status;
}

struct rd_node *rd_route_known(struct rd_store *store)
{
    struct rd_node *node;

    pthread_mutex_lock(&store->lock);
    node = store->cluster ? NULL : store->master;
    pthread_mutex_unlock(&store->lock);
    return node;
}

enum hf_status rd_route(struct rd_store *store, unsigned slot, const struct hf__patience *patience,
                        struct rd_node **out, struct hf_error *err)
{
    enum hf_status status;

    pthread_mutex_lock(&store->lock);
    *out = !store->cluster           ? store->master
           : store->slots[slot] != 0 ? store->nodes[store->slots[slot] - 1]
                                     : NULL;
    pthread_mutex_unlock(&store->lock);
    if (*out != NULL)
        return HF_OK;
    if (!store->cluster)
        return ask_sentinels(store, patience, out, err);
    status = learn_cluster(store, patience, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&store->lock);
    /* A slot that nobody has: let any server say so. */
    *out = store->nodes[store->slots[slot] != 0 ? store->slots[slot] - 1 : 0];
    pthread_mutex_unlock(&store->lock);
    return HF_OK;
}

static bool knows_all_slots(struct rd_store *store)
{
    size_t slot = 0;

    pthread_mutex_lock(&store->lock);
    while (slot < RD_SLOTS && store->slots[slot] != 0)
        slot++;
    pthread_mutex_unlock(&store->lock);
    return slot == RD_SLOTS;
}

enum hf_status rd_route_all(struct rd_store *store, const struct hf__patience *patience,
                            struct rd_node *out[RD_NODES_MAX], size_t *count, struct hf_error *err)
{
    enum hf_status status = HF_OK;
    bool serves[RD_NODES_MAX] = {false};

    *count = 0;
    if (!store->cluster) {
        *count = 1;
        return rd_route(store, 0, patience, out, err);
    }
    /* One that could not be reached was forgotten; it still has what it has. */
    if (!knows_all_slots(store))
        status = learn_cluster(store, patience, err);
    pthread_mutex_lock(&store->lock);
    for (size_t slot = 0; slot < RD_SLOTS; slot++)
        if (store->slots[slot] != 0)
            serves[store->slots[slot] - 1] = true;
    for (size_t i = 0; i < store->node_count; i++)
        if (serves[i])
            out[(*count)++] = store->nodes[i];
    pthread_mutex_unlock(&store->lock);
    return status;
}

/* One server's share of CLUSTER SLOTS: [first, last, [host, port, ...], replicas...]. */
static void take_share(struct rd_store *store, const struct rd_node *asked,
                       const struct rd_reply *share)
{
    int64_t first = rd_reply_number(rd_reply_at(share, 0), -1);
    int64_t last = rd_reply_number(rd_reply_at(share, 1), -1);
    const struct rd_reply *master = rd_reply_at(share, 2);
    const char *host = rd_reply_text(rd_reply_at(master, 0));
    int64_t port = rd_reply_number(rd_reply_at(master, 1), 0);
    struct hf__address address = {.port = (unsigned)port};
    struct rd_node *node;

    if (host[0] == '\0' || host[0] == '?')
        host = asked->pool.address.host;
    if (first < 0 || last < first || last >= RD_SLOTS || port <= 0 || port > 65535 ||
        snprintf(address.host, sizeof address.host, "%s", host) >= (int)sizeof address.host ||
        (node = node_at(store, &address)) == NULL)
        return;
    for (int64_t slot = first; slot <= last; slot++)
        store->slots[slot] = (uint16_t)(index_of(store, node) + 1);
}

static void name_record(struct rd_node *node, unsigned slot, unsigned other_slot)
{
    char tag[RD_TAG_MAX];
    char other[RD_TAG_MAX];

    rd_slot_tag(tag, slot);
    rd_slot_tag(other, other_slot);
    pthread_mutex_lock(&node->lock);
    (void)snprintf(node->handshake_key, sizeof node->handshake_key, "holdfast:inc:{%s}", tag);
    (void)snprintf(node->handshake_copy, sizeof node->handshake_copy, "holdfast:inc:{%s}", other);
    pthread_mutex_unlock(&node->lock);
}

/* A server's own record needs keys that it serves. They are in the first two of its slots, in an
 * order of all slots that is the same for everybody and has nothing to do with their numbers: a
 * move of some slots, from whichever end, hardly ever changes both. */
static void name_records(struct rd_store *store)
{
    enum { STRIDE = 40503 }; /* odd: every slot comes once */
    unsigned first[RD_NODES_MAX];
    unsigned found[RD_NODES_MAX] = {0};

    for (unsigned i = 0; i < RD_SLOTS; i++) {
        unsigned slot = i * STRIDE % RD_SLOTS;
        size_t known_as = store->slots[slot];

        if (known_as == 0 || found[known_as - 1] == 2)
            continue;
        if (found[known_as - 1]++ == 0)
            first[known_as - 1] = slot;
        name_record(store->nodes[known_as - 1], first[known_as - 1], slot);
    }
}

static enum hf_status refused(const struct rd_node *node, const char *error, struct hf_error *err)
{
    char quote[RD_QUOTE_MAX];

    rd_verdict_quote(quote, error);
    return rd_pool_fail(&node->pool, HF_UNREACHABLE, quote, err);
}

static enum hf_status learn_slots(struct rd_store *store, struct rd_node *node,
                                  const struct hf__patience *patience, struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_reply *reply;
    enum hf_status status;

    rd_request_command(&request, (const char *const[]){"CLUSTER", "SLOTS", NULL});
    status = rd_pool_ask(&node->pool, &request, 1, patience, &reply, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    if (reply->type == RD_REPLY_ERROR)
        status = refused(node, reply->text, err);
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; reply->type == RD_REPLY_ARRAY && i < reply->len; i++)
        take_share(store, node, rd_reply_at(reply, i));
    name_records(store);
    pthread_mutex_unlock(&store->lock);
    rd_reply_free(reply);
    return status;
}

enum hf_status rd_route_learn(struct rd_store *store, const struct hf__patience *patience,
                              struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_reply *reply;
    struct rd_node *node;
    enum hf_status status = rd_route(store, 0, patience, &node, err);

    if (status != HF_OK || store->setup.url.kind == RD_SENTINEL)
        return status;
    rd_request_command(&request, (const char *const[]){"INFO", "cluster", NULL});
    status = rd_pool_ask(&node->pool, &request, 1, patience, &reply, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    store->cluster = strstr(rd_reply_text(reply), "cluster_enabled:1") != NULL;
    rd_reply_free(reply);
    return store->cluster ? learn_slots(store, node, patience, err) : HF_OK;
}

/* One command, one answer, which the caller frees. */
static enum hf_status ask_once(struct rd_conn *conn, const char *const *words,
                               const struct hf__patience *patience, struct rd_reply **out)
{
    struct rd_request request = {0};
    enum hf_status status;

    rd_request_command(&request, words);
    status = rd_conn_send(conn, &request, patience);
    rd_request_release(&request);
    return status == HF_OK ? rd_conn_receive(conn, patience, out) : status;
}

/* What sentinels want before they answer anything, if they want it: a password. */
static enum hf_status greet_sentinel(const struct rd_url *url, struct rd_conn *conn,
                                     const struct hf__patience *patience, char why[RD_QUOTE_MAX])
{
    const char *user = url->sentinel_user[0] != '\0' ? url->sentinel_user : "default";
    struct rd_reply *reply;
    enum hf_status status = HF_OK;

    if (url->sentinel_password[0] == '\0')
        return HF_OK;
    status = ask_once(conn, (const char *const[]){"AUTH", user, url->sentinel_password, NULL},
                      patience, &reply);
    if (status != HF_OK)
        return status;
    if (reply->type == RD_REPLY_ERROR) {
        status = HF_DENIED;
        rd_verdict_quote(why, reply->text);
    }
    rd_reply_free(reply);
    return status;
}

/* The master by the word of one sentinel. */
static enum hf_status ask_sentinel(struct rd_store *store, const struct hf__address *sentinel,
                                   const struct hf__patience *patience, struct hf__address *out,
                                   struct hf_error *err)
{
    struct rd_reply *reply = NULL;
    struct rd_conn *conn = NULL;
    char why[160] = "";
    enum hf_status status =
        rd_conn_open(sentinel, store->setup.tls, patience, &conn, why, sizeof why);

    if (status == HF_OK)
        status = greet_sentinel(&store->setup.url, conn, patience, why);
    if (status == HF_OK)
        status = ask_once(conn,
                          (const char *const[]){"SENTINEL", "get-master-addr-by-name",
                                                store->setup.url.master, NULL},
                          patience, &reply);
    if (status != HF_OK && conn != NULL && why[0] == '\0')
        hf__copy_printable(why, sizeof why, conn->why);
    if (status == HF_OK && reply->type == RD_REPLY_ERROR) {
        bool wants_password = rd_verdict(reply->text) == RD_NOAUTH;

        status = wants_password ? HF_DENIED : HF_UNREACHABLE;
        hf__copy_printable(why, sizeof why,
                           wants_password ? "it needs a password: sentinel_password_file="
                                          : reply->text);
    } else if (status == HF_OK && reply->type != RD_REPLY_ARRAY) {
        status = HF_UNREACHABLE;
        hf__copy_printable(why, sizeof why, "it knows no such master");
    }
    if (status == HF_OK) {
        (void)snprintf(out->host, sizeof out->host, "%s", rd_reply_text(rd_reply_at(reply, 0)));
        out->port = (unsigned)rd_reply_number(rd_reply_at(reply, 1), 0);
    } else {
        if (status == HF_UNKNOWN)
            status = HF_UNREACHABLE;
        (void)hf__fail_lock(err, status, NULL, store->setup.url.parts.shown,
                            ": sentinel %.40s:%u: %.60s", sentinel->host, sentinel->port, why);
    }
    rd_reply_free(reply);
    rd_conn_close(conn);
    return status;
}

static enum hf_status ask_sentinels(struct rd_store *store, const struct hf__patience *patience,
                                    struct rd_node **out, struct hf_error *err)
{
    enum hf_status status = HF_UNREACHABLE;
    struct hf__address address = {0};

    for (size_t i = 0; i < store->setup.url.parts.host_count; i++) {
        struct hf__patience brief =
            hf__patience_until(patience, hf__now_ns() + SENTINEL_MS * HF__NS_PER_MS);

        status = ask_sentinel(store, &store->setup.url.parts.hosts[i], &brief, &address, err);
        if (status == HF_CANCELLED)
            return status;
        if (status != HF_OK || address.host[0] == '\0' || address.port == 0)
            continue;
        pthread_mutex_lock(&store->lock);
        *out = store->master = node_at(store, &address);
        pthread_mutex_unlock(&store->lock);
        return *out != NULL ? HF_OK : hf__nomem(err);
    }
    return status;
}
