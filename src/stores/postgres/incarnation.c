/* incarnation.c - which life of the server it is, and whether it grants. The decisions are in
 * holdfast.meet, where the server's clock and timeline are. */
#include "base/base.h"
#include "stores/postgres/postgres.h"
#include "stores/postgres/schema.h"

#include <stdio.h>
#include <string.h>

#define VERSION_COLUMN 1 /* of PG_MEET_COLUMNS: what is read before it is known which they are */

static const struct pg_statement meet_statement = {
    "SELECT " PG_MEET_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM holdfast.meet($1::bigint)",
    NULL, 0};

/* As a URL takes it, and exact: hf__format_duration rounds. */
static const char *max_ttl_text(char out[32], int64_t ms)
{
    (void)snprintf(out, 32, ms % 1000 == 0 ? "%llds" : "%lldms",
                   (long long)(ms % 1000 == 0 ? ms / 1000 : ms));
    return out;
}

static enum hf_status disagree(const struct pg_store *store, const struct pg_met *met,
                               struct hf_error *err)
{
    char theirs[32];
    char ours[32];

    return hf__fail_lock(err, HF_INVALID, NULL, store->url.shown,
                         ": its clients agreed on max_ttl=%s, and you ask for max_ttl=%s; "
                         "all need the same, see holdfast-postgres(7)",
                         max_ttl_text(theirs, met->agreed_ms),
                         max_ttl_text(ours, store->url.max_ttl_ms));
}

static enum hf_status take_in(struct pg_store *store, const struct pg_met *met,
                              struct hf_error *err)
{
    if (met->version > PG_SCHEMA_VERSION)
        return pg_schema_newer(met->version, store->url.shown, err);
    if (met->verdict == PG_MAX_TTL)
        return disagree(store, met, err);
    if (met->verdict == PG_QUARANTINE)
        return pg_quarantine_fail(store, met, err);
    pthread_mutex_lock(&store->lock);
    memcpy(store->id, met->id, sizeof store->id);
    pthread_mutex_unlock(&store->lock);
    return HF_OK;
}

/* One handshake. *stale: the schema is not there, or old. */
static enum hf_status meet(struct pg_store *store, const struct hf__patience *patience,
                           struct pg_met *met, bool *stale, struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_call call = {.statement = &meet_statement,
                           .params = &params,
                           .patience = *patience,
                           .use = PG_USE_ACQUIRE,
                           .only_reads = true}; /* what it writes anybody may write again */
    struct pg_answer answer;
    enum hf_status status;

    pg_params_number(&params, store->url.max_ttl_ms);
    status = pg_call(store, &call, &answer, err);
    *stale = pg_error_no_schema(answer.state);
    if (status != HF_OK)
        return status;
    if (pg_row_number(answer.rows, VERSION_COLUMN, PG_SCHEMA_VERSION) < PG_SCHEMA_VERSION) {
        *stale = true;
        status = HF_UNSUPPORTED;
    } else if (!pg_row_met(answer.rows, met)) {
        status = pg_nonsense(store, NULL, err);
    } else {
        status = take_in(store, met, err);
    }
    PQclear(answer.rows);
    return status;
}

static enum hf_status migrate(struct pg_store *store, const struct hf__patience *patience,
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

enum hf_status pg_incarnation_ask(struct pg_store *store, const struct hf__patience *patience,
                                  struct pg_met *met, struct hf_error *err)
{
    bool stale;
    enum hf_status status = meet(store, patience, met, &stale, err);

    if (stale) {
        status = migrate(store, patience, err);
        if (status == HF_OK)
            status = meet(store, patience, met, &stale, err);
    }
    return status;
}

enum hf_status pg_incarnation_meet(struct pg_store *store, const struct hf__patience *patience,
                                   char id[PG_ID_SIZE], struct hf_error *err)
{
    struct pg_met met;
    enum hf_status status;

    pg_incarnation_known(store, id);
    if (id[0] != '\0')
        return HF_OK;
    status = pg_incarnation_ask(store, patience, &met, err);
    if (status == HF_OK)
        memcpy(id, met.id, sizeof met.id);
    return status;
}

void pg_incarnation_known(struct pg_store *store, char id[PG_ID_SIZE])
{
    pthread_mutex_lock(&store->lock);
    memcpy(id, store->id, PG_ID_SIZE);
    pthread_mutex_unlock(&store->lock);
}

void pg_incarnation_forget(struct pg_store *store, const char *id)
{
    pthread_mutex_lock(&store->lock);
    if (strcmp(store->id, id) == 0)
        store->id[0] = '\0';
    pthread_mutex_unlock(&store->lock);
}
