/* pool.c - connections to one server.
 *
 * Whoever talks to the server has a connection to itself meanwhile, so that a waiting acquire never
 * delays a renewal. */
#include "stores/redis/wire/pool.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MIN_MS 50                   /* after the first failure to connect */
#define BACKOFF_MAX_MS 2000                 /* the longest pause between two tries */
#define TRUST_NS       (10 * HF__NS_PER_MS) /* a connection used so lately is not checked again */

bool rd_pool_init(struct rd_pool *pool, const struct rd_setup *setup,
                  const struct hf__address *address)
{
    *pool = (struct rd_pool){.address = *address,
                             .setup = setup,
                             .backoff = {.first_ns = BACKOFF_MIN_MS * HF__NS_PER_MS,
                                         .most_ns = BACKOFF_MAX_MS * HF__NS_PER_MS}};
    return pthread_mutex_init(&pool->lock, NULL) == 0;
}

void rd_pool_release(struct rd_pool *pool, bool forked)
{
    while (pool->idle != NULL) {
        struct rd_conn *conn = pool->idle;

        pool->idle = conn->next;
        conn->shared = forked;
        rd_conn_close(conn);
    }
    if (!forked)
        pthread_mutex_destroy(&pool->lock);
}

enum hf_status rd_pool_fail(const struct rd_pool *pool, enum hf_status status, const char *why,
                            struct hf_error *err)
{
    if (status == HF_NOMEM)
        return hf__nomem(err);
    if (pool->address.host[0] == '/' || pool->setup->url.kind == RD_DIRECT)
        return hf__fail_lock(err, status, NULL, pool->setup->url.parts.shown, ": %s", why);
    return hf__fail_lock(err, status, NULL, pool->setup->url.parts.shown, ": server %.40s:%u: %s",
                         pool->address.host, pool->address.port, why);
}

struct rd_conn *rd_pool_take_idle(struct rd_pool *pool)
{
    for (;;) {
        struct rd_conn *conn;

        pthread_mutex_lock(&pool->lock);
        conn = pool->idle;
        if (conn != NULL) {
            pool->idle = conn->next;
            pool->idle_count--;
        }
        pthread_mutex_unlock(&pool->lock);
        if (conn == NULL || pool->setup->host->now_ns() - conn->used_ns < TRUST_NS ||
            rd_conn_is_quiet(conn))
            return conn;
        conn->broken = true;
        rd_pool_give(pool, conn);
    }
}

/* Waits out the back-off. */
static enum hf_status wait_turn(struct rd_pool *pool, const struct hf__patience *patience,
                                struct hf_error *err)
{
    int64_t not_before_ns;

    pthread_mutex_lock(&pool->lock);
    not_before_ns = pool->backoff.not_before_ns;
    pthread_mutex_unlock(&pool->lock);
    if (not_before_ns <= pool->setup->host->now_ns())
        return HF_OK;
    switch (hf__patience_pause(patience, not_before_ns)) {
    case HF__WAITED_READY:
        return HF_OK;
    case HF__WAITED_CANCELLED:
        return rd_pool_fail(pool, HF_CANCELLED, "cancelled", err);
    case HF__WAITED_TIMEOUT:
        break;
    }
    return rd_pool_fail(pool, HF_UNREACHABLE, "it could not be reached a moment ago", err);
}

/* Remembers how connecting went. */
static void note_outcome(struct rd_pool *pool, bool connected)
{
    uint32_t dice;

    pool->setup->host->random(&dice, sizeof dice);
    pthread_mutex_lock(&pool->lock);
    if (connected)
        hf__backoff_worked(&pool->backoff);
    else
        (void)hf__backoff_failed(&pool->backoff, pool->setup->host->now_ns(), dice);
    pthread_mutex_unlock(&pool->lock);
}

/* Counts a connection in, unless there are too many. */
static bool count_in(struct rd_pool *pool, bool urgent)
{
    bool room;

    pthread_mutex_lock(&pool->lock);
    room = pool->conn_count < RD_CONNS_MAX + (urgent ? RD_CONNS_SPARE : 0);
    if (room)
        pool->conn_count++;
    pthread_mutex_unlock(&pool->lock);
    return room;
}

static void count_out(struct rd_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->conn_count--;
    pthread_mutex_unlock(&pool->lock);
}

enum hf_status rd_pool_take(struct rd_pool *pool, bool urgent, const struct hf__patience *patience,
                            struct rd_conn **out, struct hf_error *err)
{
    struct rd_conn *conn = rd_pool_take_idle(pool);
    enum hf_status status;
    char why[160];

    if (conn != NULL) {
        *out = conn;
        return HF_OK;
    }
    if (!count_in(pool, urgent))
        return rd_pool_fail(pool, HF_UNREACHABLE, "too many acquires wait at once in this process",
                            err);
    status = wait_turn(pool, patience, err);
    if (status == HF_OK) {
        status = rd_conn_open(&pool->address, pool->setup->tls, patience, &conn, why, sizeof why);
        if (status != HF_OK)
            (void)rd_pool_fail(pool, status, why, err);
        else
            status = rd_greet(pool, conn, patience, err);
        if (status != HF_CANCELLED)
            note_outcome(pool, status == HF_OK);
    }
    if (status != HF_OK) {
        rd_conn_close(conn);
        count_out(pool);
        return status;
    }
    *out = conn;
    return HF_OK;
}

/* The idle connections that were used last before the time. Pool's lock held. */
static struct rd_conn *pick_older(struct rd_pool *pool, int64_t than_ns)
{
    struct rd_conn **at = &pool->idle;
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
        pool->idle_count--;
        pool->conn_count--;
    }
    return older;
}

/* A request was met with silence. What swallowed it (a firewall that lost its state, a machine that
 * is gone) may have swallowed every connection from before: each of them would cost one more
 * request all of its time. */
static void drop_older(struct rd_pool *pool, int64_t than_ns)
{
    struct rd_conn *older;

    pthread_mutex_lock(&pool->lock);
    older = pick_older(pool, than_ns);
    pthread_mutex_unlock(&pool->lock);
    while (older != NULL) {
        struct rd_conn *conn = older;

        older = conn->next;
        rd_conn_close(conn);
    }
}

void rd_pool_give(struct rd_pool *pool, struct rd_conn *conn)
{
    if (conn == NULL)
        return;
    if (conn->silent)
        drop_older(pool, conn->sent_ns);
    conn->used_ns = pool->setup->host->now_ns();
    pthread_mutex_lock(&pool->lock);
    if (!conn->broken && pool->idle_count < RD_IDLE_MAX) {
        conn->next = pool->idle;
        pool->idle = conn;
        pool->idle_count++;
        conn = NULL;
    } else {
        pool->conn_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    rd_conn_close(conn);
}

enum hf_status rd_pool_ask(struct rd_pool *pool, const struct rd_request *request, size_t count,
                           const struct hf__patience *patience, struct rd_reply **replies,
                           struct hf_error *err)
{
    struct rd_conn *conn;
    enum hf_status status = rd_pool_take(pool, true, patience, &conn, err);
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
        (void)rd_pool_fail(pool, status, conn->why, err);
        while (done > 0)
            rd_reply_free(replies[--done]);
    }
    rd_pool_give(pool, conn);
    return status;
}
