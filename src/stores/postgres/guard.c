/* guard.c - the incarnation guard, our side of it. The decisions are in holdfast.meet, where the
 * server's clock and timeline are. */
#include "base/base.h"
#include "stores/postgres/postgres.h"
#include "stores/postgres/schema.h"

#include <stdio.h>
#include <string.h>

static const struct pg_statement meet_statement = {
    "SELECT " PG_MEET_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM holdfast.meet($1::bigint)",
    NULL, 0};

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
static enum hf_status meet(struct pg_store *store, const struct pg_patience *patience, bool *stale,
                           struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_call call = {.statement = &meet_statement,
                           .params = &params,
                           .patience = *patience,
                           .use = PG_USE_ACQUIRE,
                           .only_looks = true}; /* what it writes anybody may write again */
    struct pg_answer answer;
    struct pg_met met;
    enum hf_status status;

    pg_params_number(&params, store->url.max_ttl_ms);
    status = pg_call(store, &call, &answer, err);
    *stale = pg_verdict_no_schema(answer.state);
    if (status != HF_OK)
        return status;
    if (!pg_row_met(answer.rows, &met)) {
        status = pg_nonsense(store, NULL, err);
    } else if (met.version < PG_SCHEMA_VERSION) {
        *stale = true;
        status = HF_UNSUPPORTED;
    } else {
        status = take_in(store, &met, err);
    }
    PQclear(answer.rows);
    return status;
}

static enum hf_status migrate(struct pg_store *store, const struct pg_patience *patience,
                              struct hf_error *err)
{
    struct pg_conn *conn;
    enum hf_status status = pg_pool_take(&store->main, PG_USE_ACQUIRE, false, patience, &conn, err);

    if (status != HF_OK)
        return status;
    status = pg_schema_migrate(conn, patience, store->url.shown, err);
    pg_pool_give(&store->main, conn);
    return status;
}

enum hf_status pg_guard_pass(struct pg_store *store, const struct pg_patience *patience,
                             char id[PG_ID_SIZE], struct hf_error *err)
{
    enum hf_status status;
    bool stale;

    pg_guard_known(store, id);
    if (id[0] != '\0')
        return HF_OK;
    status = meet(store, patience, &stale, err);
    if (stale) {
        status = migrate(store, patience, err);
        if (status == HF_OK)
            status = meet(store, patience, &stale, err);
    }
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
