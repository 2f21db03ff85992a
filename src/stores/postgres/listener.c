/* listener.c - connections on which waiters are woken.
 *
 * A connection listens on a channel of its own, drawn at random when it first listens and kept as
 * long as it lives: the waiter's row names it, and a release notifies nobody else. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

static struct pg_pool *listener_pool(struct pg_store *store)
{
    return store->url.listen == PG_LISTEN_URL ? &store->listen : &store->main;
}

/* What a pooled server is told to listen to does not reach us. */
static bool is_direct(struct pg_store *store, struct pg_conn *conn,
                      const struct hf__patience *patience)
{
    static const struct pg_statement who = {"SELECT pg_catalog.pg_backend_pid() AS pid", NULL, 0};
    struct pg_params none = {0};
    struct pg_outcome outcome;

    if (conn->route == PG_ROUTE_UNKNOWN) {
        pg_conn_execute(conn, store->base.host, &who, &none, patience, &outcome);
        PQclear(outcome.rows);
    }
    if (conn->route == PG_ROUTE_POOLED)
        store->base.host->log("postgres: a pooler is in between: waiters ask every second");
    return conn->route == PG_ROUTE_DIRECT;
}

static bool listens(struct pg_store *store, struct pg_conn *conn,
                    const struct hf__patience *patience)
{
    char sql[PG_CHANNEL_SIZE + 16];
    char name[PG_CHANNEL_SIZE];
    struct pg_statement listen = {.sql = sql};
    struct pg_params none = {0};
    struct pg_outcome outcome;
    unsigned char raw[8];
    char hex[2 * sizeof raw + 1];

    if (conn->channel[0] != '\0')
        return true;
    if (!is_direct(store, conn, patience))
        return false;
    store->base.host->random(raw, sizeof raw);
    hf__hex_encode(hex, raw, sizeof raw);
    (void)snprintf(name, sizeof name, "holdfast_%s", hex);
    (void)snprintf(sql, sizeof sql, "LISTEN %s", name);
    pg_conn_execute(conn, store->base.host, &listen, &none, patience, &outcome);
    PQclear(outcome.rows);
    if (outcome.fate != PG_DONE)
        return false;
    memcpy(conn->channel, name, sizeof name);
    return true;
}

struct pg_conn *pg_listener_take(struct pg_store *store, const struct hf__patience *patience)
{
    struct pg_pool *pool = listener_pool(store);
    struct pg_conn *conn;

    if (store->url.listen == PG_LISTEN_OFF)
        return NULL;
    if (atomic_fetch_add(&store->listeners, 1) >= PG_LISTENERS_MAX ||
        pg_pool_take(pool, PG_USE_LISTENER, atomic_load(&store->holds) > 0, patience, &conn,
                     NULL) != HF_OK) {
        atomic_fetch_sub(&store->listeners, 1);
        return NULL;
    }
    if (listens(store, conn, patience))
        return conn;
    pg_listener_give(store, conn);
    return NULL;
}

void pg_listener_give(struct pg_store *store, struct pg_conn *listener)
{
    if (listener == NULL)
        return;
    pg_pool_give(listener_pool(store), listener);
    atomic_fetch_sub(&store->listeners, 1);
}
