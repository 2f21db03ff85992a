/* pool.c - connections to one server.
 *
 * Whoever talks to the server has a connection to itself meanwhile, so that a waiting acquire never
 * delays a renewal. */
#include "stores/redis/redis.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MIN_MS 50                   /* after the first failure to connect         */
#define BACKOFF_MAX_MS 2000                 /* the longest pause between two tries        */
#define TRUST_NS       (10 * HF__NS_PER_MS) /* a connection used so lately is not checked again */

struct rd_node *rd_node_open(const struct rd_store *store, const struct rd_address *address)
{
    struct rd_node *node = calloc(1, sizeof *node);

    if (node == NULL)
        return NULL;
    node->address = *address;
    node->url = &store->url;
    node->tls = store->tls;
    node->host = store->base.host;
    node->backoff = (struct hf__backoff){.first_ns = BACKOFF_MIN_MS * HF__NS_PER_MS,
                                         .most_ns = BACKOFF_MAX_MS * HF__NS_PER_MS};
    (void)snprintf(node->handshake_key, sizeof node->handshake_key, "holdfast:inc");
    if (pthread_mutex_init(&node->lock, NULL) != 0) {
        free(node);
        return NULL;
    }
    return node;
}

void rd_node_close(struct rd_node *node, bool forked)
{
    while (node->idle != NULL) {
        struct rd_conn *conn = node->idle;

        node->idle = conn->next;
        conn->shared = forked;
        rd_conn_close(conn);
    }
    if (!forked)
        (void)pthread_mutex_destroy(&node->lock);
    free(node);
}

enum hf_status rd_node_fail(const struct rd_node *node, enum hf_status status, const char *why,
                            struct hf_error *err)
{
    if (status == HF_NOMEM)
        return hf__nomem(err);
    if (node->address.host[0] == '/' || node->url->kind == RD_DIRECT)
        return hf__fail(err, status, "store %.160s: %s", node->url->shown, why);
    return hf__fail(err, status, "store %.140s: server %.40s:%u: %s", node->url->shown,
                    node->address.host, node->address.port, why);
}

/* An idle connection that is still good, or NULL. */
static struct rd_conn *take_idle(struct rd_node *node)
{
    for (;;) {
        struct rd_conn *conn;

        pthread_mutex_lock(&node->lock);
        conn = node->idle;
        if (conn != NULL) {
            node->idle = conn->next;
            node->idle_count--;
        }
        pthread_mutex_unlock(&node->lock);
        if (conn == NULL || node->host->now_ns() - conn->used_ns < TRUST_NS ||
            rd_conn_is_quiet(conn))
            return conn;
        conn->broken = true;
        rd_node_give(node, conn);
    }
}

/* Waits out the back-off. */
static enum hf_status wait_turn(struct rd_node *node, const struct hf__patience *patience,
                                struct hf_error *err)
{
    int64_t not_before_ns;

    pthread_mutex_lock(&node->lock);
    not_before_ns = node->backoff.not_before_ns;
    pthread_mutex_unlock(&node->lock);
    if (not_before_ns <= node->host->now_ns())
        return HF_OK;
    switch (hf__patience_pause(patience, not_before_ns)) {
    case HF__WAITED_READY:
        return HF_OK;
    case HF__WAITED_CANCELLED:
        return rd_node_fail(node, HF_CANCELLED, "cancelled", err);
    case HF__WAITED_TIMEOUT:
        break;
    }
    return rd_node_fail(node, HF_UNREACHABLE, "it could not be reached a moment ago", err);
}

/* Remembers how connecting went. */
static void note_outcome(struct rd_node *node, bool connected)
{
    uint32_t dice;

    node->host->random(&dice, sizeof dice);
    pthread_mutex_lock(&node->lock);
    if (connected)
        hf__backoff_worked(&node->backoff);
    else
        (void)hf__backoff_failed(&node->backoff, node->host->now_ns(), dice);
    pthread_mutex_unlock(&node->lock);
}

/* Counts a connection in, unless there are too many. */
static bool count_in(struct rd_node *node, bool urgent)
{
    bool room;

    pthread_mutex_lock(&node->lock);
    room = node->conn_count < RD_CONNS_MAX + (urgent ? RD_CONNS_SPARE : 0);
    if (room)
        node->conn_count++;
    pthread_mutex_unlock(&node->lock);
    return room;
}

static void count_out(struct rd_node *node)
{
    pthread_mutex_lock(&node->lock);
    node->conn_count--;
    pthread_mutex_unlock(&node->lock);
}

enum hf_status rd_node_take(struct rd_node *node, bool urgent, const struct hf__patience *patience,
                            struct rd_conn **out, struct hf_error *err)
{
    struct rd_conn *conn = take_idle(node);
    enum hf_status status;
    char why[160];

    if (conn != NULL) {
        *out = conn;
        return HF_OK;
    }
    if (!count_in(node, urgent))
        return rd_node_fail(node, HF_UNREACHABLE, "too many acquires wait at once in this process",
                            err);
    status = wait_turn(node, patience, err);
    if (status == HF_OK) {
        status = rd_conn_open(&node->address, node->tls, patience, &conn, why, sizeof why);
        if (status != HF_OK)
            (void)rd_node_fail(node, status, why, err);
        else
            status = rd_greet(node, conn, patience, err);
        if (status != HF_CANCELLED)
            note_outcome(node, status == HF_OK);
    }
    if (status != HF_OK) {
        rd_conn_close(conn);
        count_out(node);
        return status;
    }
    *out = conn;
    return HF_OK;
}

/* The idle connections that were used last before the time. Node's lock held. */
static struct rd_conn *pick_older(struct rd_node *node, int64_t than_ns)
{
    struct rd_conn **at = &node->idle;
    struct rd_conn *older = NULL;

    while (*at != NULL) {
        struct rd_conn *conn = *at;

        if (conn->used_ns >= than_ns) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        conn->next = older;
        older = conn;
        node->idle_count--;
        node->conn_count--;
    }
    return older;
}

/* A request was met with silence. What swallowed it (a firewall that lost its state, a machine that
 * is gone) may have swallowed every connection from before: each of them would cost one more
 * request all of its time. */
static void drop_older(struct rd_node *node, int64_t than_ns)
{
    struct rd_conn *older;

    pthread_mutex_lock(&node->lock);
    older = pick_older(node, than_ns);
    pthread_mutex_unlock(&node->lock);
    while (older != NULL) {
        struct rd_conn *conn = older;

        older = conn->next;
        rd_conn_close(conn);
    }
}

void rd_node_give(struct rd_node *node, struct rd_conn *conn)
{
    if (conn == NULL)
        return;
    if (conn->silent)
        drop_older(node, conn->sent_ns);
    conn->used_ns = node->host->now_ns();
    pthread_mutex_lock(&node->lock);
    if (!conn->broken && node->idle_count < RD_IDLE_MAX) {
        conn->next = node->idle;
        node->idle = conn;
        node->idle_count++;
        conn = NULL;
    } else {
        node->conn_count--;
    }
    pthread_mutex_unlock(&node->lock);
    rd_conn_close(conn);
}

enum hf_status rd_node_ask(struct rd_node *node, const struct rd_request *request, size_t count,
                           const struct hf__patience *patience, struct rd_reply **replies,
                           struct hf_error *err)
{
    struct rd_conn *conn;
    enum hf_status status = rd_node_take(node, true, patience, &conn, err);
    size_t done = 0;

    if (status != HF_OK)
        return status;
    status = rd_conn_send(conn, request, patience);
    while (status == HF_OK && done < count) {
        status = rd_conn_receive(conn, patience, &replies[done]);
        done += status == HF_OK;
    }
    if (status != HF_OK) {
        if (status == HF_UNKNOWN)
            status = HF_UNREACHABLE;
        (void)rd_node_fail(node, status, conn->why, err);
        while (done > 0)
            rd_reply_free(replies[--done]);
    }
    rd_node_give(node, conn);
    return status;
}
