/* pool.c - connections to a server.
 *
 * Whoever talks to the server has a connection to itself meanwhile, so that a waiting acquire never
 * delays a renewal. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_FIRST_NS (50 * HF__NS_PER_MS) /* after the first failure to connect */
#define BACKOFF_MOST_NS  (2 * HF__NS_PER_S)   /* the longest pause between two tries */

void pg_pool_init(struct pg_pool *pool, const struct hf_host *host, const char *uri,
                  const char *shown)
{
    *pool = (struct pg_pool){.uri = uri,
                             .shown = shown,
                             .host = host,
                             .backoff = {.first_ns = BACKOFF_FIRST_NS, .most_ns = BACKOFF_MOST_NS}};
    pthread_mutex_init(&pool->lock, NULL);
}

static void close_all(struct pg_conn *conn, bool forked)
{
    while (conn != NULL) {
        struct pg_conn *next = conn->next;

        pg_conn_close(conn, forked);
        conn = next;
    }
}

void pg_pool_release(struct pg_pool *pool, bool forked)
{
    close_all(pool->idle, forked);
    close_all(pool->lingering, forked);
    if (!forked)
        pthread_mutex_destroy(&pool->lock);
}

/* An idle connection that is still good, or NULL. */
static struct pg_conn *take_idle(struct pg_pool *pool, bool leave_one)
{
    for (;;) {
        struct pg_conn *conn = NULL;

        pthread_mutex_lock(&pool->lock);
        if (pool->idle_count > (leave_one ? 1 : 0)) {
            conn = pool->idle;
            pool->idle = conn->next;
            pool->idle_count--;
        }
        pthread_mutex_unlock(&pool->lock);
        if (conn == NULL || pg_conn_is_quiet(conn))
            return conn;
        conn->broken = true;
        pg_pool_give(pool, conn);
    }
}

static enum hf_status fail(const struct pg_pool *pool, enum hf_status status, const char *why,
                           struct hf_error *err)
{
    return hf__fail_lock(err, status, NULL, pool->shown, ": %s", why);
}

/* Waits out the back-off. */
static enum hf_status wait_out(struct pg_pool *pool, const struct hf__patience *patience,
                               struct hf_error *err)
{
    enum hf_status status = HF_OK;
    int64_t not_before_ns;

    pthread_mutex_lock(&pool->lock);
    not_before_ns = pool->backoff.not_before_ns;
    pthread_mutex_unlock(&pool->lock);
    if (not_before_ns <= pool->host->now_ns())
        return HF_OK;
    switch (hf__patience_pause(patience, not_before_ns)) {
    case HF__WAITED_CANCELLED:
        return fail(pool, HF_CANCELLED, "cancelled", err);
    case HF__WAITED_TIMEOUT:
        pthread_mutex_lock(&pool->lock);
        status = pool->last.code;
        if (err != NULL)
            *err = pool->last;
        pthread_mutex_unlock(&pool->lock);
        break;
    case HF__WAITED_READY:
        break;
    }
    return status;
}

/* Remembers how connecting went; failed is NULL if it did. */
static void note_outcome(struct pg_pool *pool, const struct hf_error *failed)
{
    uint32_t dice;

    pool->host->random(&dice, sizeof dice);
    pthread_mutex_lock(&pool->lock);
    if (failed == NULL) {
        hf__backoff_worked(&pool->backoff);
    } else {
        pool->last = *failed;
        (void)hf__backoff_failed(&pool->backoff, pool->host->now_ns(), dice);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Counts a connection in, unless there are too many. */
static bool count_in(struct pg_pool *pool, bool urgent)
{
    bool room;

    pthread_mutex_lock(&pool->lock);
    room = pool->conn_count < PG_CONNS_MAX + (urgent ? PG_SPARE : 0);
    if (room)
        pool->conn_count++;
    pthread_mutex_unlock(&pool->lock);
    return room;
}

static enum hf_status connect_new(struct pg_pool *pool, const struct hf__patience *patience,
                                  struct pg_conn **out, struct hf_error *err)
{
    struct pg_outcome outcome;
    struct hf_error failed;
    enum hf_status status = wait_out(pool, patience, err);

    if (status != HF_OK)
        return status;
    switch (pg_conn_open(pool->uri, &pool->first_host, patience, out, &outcome)) {
    case PG_DONE:
        note_outcome(pool, NULL);
        if (pg_conn_at_risk(*out))
            atomic_store(&pool->at_risk, true);
        return HF_OK;
    case PG_CANCELLED:
        return fail(pool, HF_CANCELLED, "cancelled", err);
    case PG_UNSENT:
        return hf__nomem(err);
    case PG_REFUSED:
    case PG_LOST:
        break;
    }
    status = pg_error_fail(outcome.state, outcome.why, NULL, pool->shown, &failed);
    note_outcome(pool, &failed);
    if (err != NULL)
        *err = failed;
    return status;
}

enum hf_status pg_pool_take(struct pg_pool *pool, enum pg_use use, bool leave_one,
                            const struct hf__patience *patience, struct pg_conn **out,
                            struct hf_error *err)
{
    enum hf_status status;

    *out = take_idle(pool, leave_one);
    if (*out != NULL)
        return HF_OK;
    if (!count_in(pool, use == PG_USE_URGENT))
        return fail(pool, HF_UNREACHABLE, "too many acquires at once in this process", err);
    status = connect_new(pool, patience, out, err);
    if (status != HF_OK) {
        pthread_mutex_lock(&pool->lock);
        pool->conn_count--;
        pthread_mutex_unlock(&pool->lock);
    }
    return status;
}

/* A server that cannot send its answer does not read on either. So a connection on which something
 * was sent behind an unanswered request is kept open for a while; the oldest has to go when there
 * are too many. Lock held; returns those to be closed. */
static struct pg_conn *linger(struct pg_pool *pool, struct pg_conn *conn)
{
    int64_t now_ns = pool->host->now_ns();
    struct pg_conn **at = &pool->lingering;
    struct pg_conn *over;

    conn->next = pool->lingering;
    pool->lingering = conn;
    for (int i = 0; *at != NULL && i < PG_LINGER_MAX && (*at)->linger_until_ns > now_ns; i++)
        at = &(*at)->next;
    over = *at; /* newest first: all behind it are older */
    *at = NULL;
    return over;
}

void pg_pool_give(struct pg_pool *pool, struct pg_conn *conn)
{
    if (conn == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    if (!conn->broken && pool->idle_count < PG_IDLE_MAX) {
        conn->heard_at_ns = pool->host->now_ns();
        conn->next = pool->idle;
        pool->idle = conn;
        pool->idle_count++;
        conn = NULL;
    } else {
        pool->conn_count--;
        if (conn->linger_until_ns != 0)
            conn = linger(pool, conn);
        else
            conn->next = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    close_all(conn, false);
}

void pg_pool_doubt(struct pg_pool *pool, int64_t sent_at_ns)
{
    struct pg_conn *dead = NULL;
    struct pg_conn **at = &pool->idle;

    pthread_mutex_lock(&pool->lock);
    while (*at != NULL) {
        struct pg_conn *conn = *at;

        if (conn->heard_at_ns > sent_at_ns) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        conn->next = dead;
        dead = conn;
        pool->idle_count--;
        pool->conn_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    close_all(dead, false);
}
