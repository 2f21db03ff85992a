/* guard.c - the incarnation guard, our side of it. The decisions are in holdfast.meet, where the
 * server's clock and timeline are. */
#include "base/base.h"
#include "stores/postgres/postgres.h"
#include "stores/postgres/schema.h"

#include <stdio.h>
#include <string.h>

#define MEET_TRIES_MAX 20 /* after serialization failures */

static const struct pg_statement meet_statement = {
    "SELECT " PG_MEET_COLUMNS ", pg_backend_pid() AS pid FROM holdfast.meet($1::bigint)", NULL, 0};

static enum hf_status quarantine(const struct pg_store *store, int64_t left_ms,
                                 struct hf_error *err)
{
    (void)hf__fail(err, HF_QUARANTINE,
                   "store %.100s: the server was promoted or restored and may have forgotten who "
                   "holds what; it grants again in %lld ms",
                   store->url.shown, (long long)left_ms);
    if (err != NULL)
        err->retry_after_ms = left_ms;
    return HF_QUARANTINE;
}

static enum hf_status take_in(struct pg_store *store, const struct pg_met *met,
                              struct hf_error *err)
{
    if (met->version > PG_SCHEMA_VERSION)
        return pg_schema_newer(met->version, store->url.shown, err);
    if (met->verdict == PG_MAX_TTL)
        return hf__fail(
            err, HF_INVALID,
            "store %.100s: its clients agreed on max_ttl=%lldms and you ask for %lldms; "
            "all need the same, see holdfast-postgres(7)",
            store->url.shown, (long long)met->agreed_ms, (long long)store->url.max_ttl_ms);
    if (met->verdict == PG_QUARANTINE)
        return quarantine(store, met->left_ms, err);
    pthread_mutex_lock(&store->lock);
    memcpy(store->id, met->id, sizeof store->id);
    pthread_mutex_unlock(&store->lock);
    return HF_OK;
}

/* One handshake. *stale: the schema is not there, or old. */
static enum hf_status meet(struct pg_store *store, struct pg_conn *conn,
                           const struct pg_patience *patience, bool *stale, struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_outcome outcome;
    struct pg_met met;
    enum hf_status status;

    pg_params_number(&params, store->url.max_ttl_ms);
    for (int tries = 0; tries < MEET_TRIES_MAX; tries++) {
        pg_conn_execute(conn, store->base.host, &meet_statement, &params, patience, &outcome);
        if (outcome.fate != PG_REFUSED || !pg_verdict_again(outcome.state))
            break;
    }
    *stale = false;
    if (outcome.fate == PG_CANCELLED)
        return hf__fail(err, HF_CANCELLED, "store %.120s: cancelled", store->url.shown);
    if (outcome.fate == PG_REFUSED) {
        *stale = pg_verdict_no_schema(outcome.state);
        return pg_verdict_fail(outcome.state, outcome.why, NULL, store->url.shown, err);
    }
    if (outcome.fate != PG_DONE)
        return hf__fail(err, HF_UNREACHABLE, "store %.120s: no answer: %s", store->url.shown,
                        outcome.why);
    if (pg_row_standby(outcome.rows)) {
        status = pg_verdict_fail("25006", "", NULL, store->url.shown, err);
    } else if (!pg_row_met(outcome.rows, &met)) {
        status = pg_nonsense(store, NULL, err);
    } else if (met.version < PG_SCHEMA_VERSION) {
        *stale = true;
        status = HF_UNSUPPORTED;
    } else {
        status = take_in(store, &met, err);
    }
    PQclear(outcome.rows);
    return status;
}

enum hf_status pg_guard_pass(struct pg_store *store, const struct pg_patience *patience,
                             char id[PG_ID_SIZE], struct hf_error *err)
{
    struct pg_conn *conn;
    enum hf_status status;
    bool stale;

    pg_guard_known(store, id);
    if (id[0] != '\0')
        return HF_OK;
    status = pg_pool_take(&store->main, PG_USE_ACQUIRE, false, patience, &conn, err);
    if (status != HF_OK)
        return status;
    status = meet(store, conn, patience, &stale, err);
    if (stale && !conn->broken) {
        status = pg_schema_migrate(conn, patience, store->url.shown, err);
        if (status == HF_OK)
            status = meet(store, conn, patience, &stale, err);
    }
    pg_pool_give(&store->main, conn);
    if (status == HF_OK)
        pg_guard_known(store, id);
    return status;
}

void pg_guard_known(struct pg_store *store, char id[PG_ID_SIZE])
{
    pthread_mutex_lock(&store->lock);
    memcpy(id, store->id, PG_ID_SIZE);
    pthread_mutex_unlock(&store->lock);
}

void pg_guard_forget(struct pg_store *store, const char *id)
{
    pthread_mutex_lock(&store->lock);
    if (strcmp(store->id, id) == 0)
        store->id[0] = '\0';
    pthread_mutex_unlock(&store->lock);
}
