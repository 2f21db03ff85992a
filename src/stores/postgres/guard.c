/* guard.c - the incarnation guard, our side of it. The decisions are in holdfast.meet, where the
 * server's clock and timeline are. */
#include "base/base.h"
#include "stores/postgres/postgres.h"
#include "stores/postgres/schema.h"

#include <stdio.h>
#include <string.h>

#define VERSION_COLUMN 1 /* of PG_MEET_COLUMNS: what is read before it is known which they are */

static const struct pg_statement meet_statement = {
    "SELECT " PG_MEET_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM holdfast.meet($1::bigint)",
    NULL, 0};

static const struct pg_statement quarantine_statement = {
    "SELECT " PG_MEET_COLUMNS
    ", pg_catalog.pg_backend_pid() AS pid FROM holdfast.quarantine($1::bigint)",
    NULL, 0};

static const struct pg_statement open_statement = {
    "SELECT " PG_OPENED_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.end_quarantine($1::pg_catalog.text, $2::pg_catalog.bytea, $3::pg_catalog.bytea)",
    NULL, 0};

static enum hf_status fail_closed(const struct pg_store *store, const struct pg_met *met,
                                  struct hf_error *err)
{
    static const char *const why[] = {
        [PG_WHY_PROMOTED] = "the server was promoted or restored",
        [PG_WHY_MOVED] = "its data came from another server",
        [PG_WHY_UNMET] = "the server was promoted or restored, and never met holdfast",
    };
    char left[32];

    (void)hf__fail(err, HF_QUARANTINE,
                   "store %.90s: %s; it may have forgotten who holds what, and grants again in %s",
                   store->url.shown, why[met->why],
                   hf__format_duration(left, sizeof left, met->left_ms));
    if (err != NULL)
        err->retry_after_ms = met->left_ms;
    return HF_QUARANTINE;
}

/* As a URL takes it. */
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

    return hf__fail(err, HF_INVALID,
                    "store %.100s: its clients agreed on max_ttl=%s and you ask for max_ttl=%s; "
                    "all need the same, see holdfast-postgres(7)",
                    store->url.shown, max_ttl_text(theirs, met->agreed_ms),
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
        return fail_closed(store, met, err);
    pthread_mutex_lock(&store->lock);
    memcpy(store->id, met->id, sizeof store->id);
    pthread_mutex_unlock(&store->lock);
    return HF_OK;
}

/* One handshake. *stale: the schema is not there, or old. */
static enum hf_status meet(struct pg_store *store, const struct pg_patience *patience,
                           struct pg_met *met, bool *stale, struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_call call = {.statement = &meet_statement,
                           .params = &params,
                           .patience = *patience,
                           .use = PG_USE_ACQUIRE,
                           .only_looks = true}; /* what it writes anybody may write again */
    struct pg_answer answer;
    enum hf_status status;

    pg_params_number(&params, store->url.max_ttl_ms);
    status = pg_call(store, &call, &answer, err);
    *stale = pg_verdict_no_schema(answer.state);
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

/* Meets the server, and makes the schema if need be. */
static enum hf_status introduce(struct pg_store *store, const struct pg_patience *patience,
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

enum hf_status pg_guard_pass(struct pg_store *store, const struct pg_patience *patience,
                             char id[PG_ID_SIZE], struct hf_error *err)
{
    struct pg_met met;
    enum hf_status status;

    pg_guard_known(store, id);
    if (id[0] != '\0')
        return HF_OK;
    status = introduce(store, patience, &met, err);
    if (status == HF_OK)
        memcpy(id, met.id, sizeof met.id);
    return status;
}

/* A schema that is not there, or that the next client to take a lock brings up to date, is left as
 * it is: who only looks changes nothing. */
enum hf_status pg_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_call call = {.statement = &quarantine_statement,
                           .params = &params,
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_ACQUIRE,
                           .only_looks = true};
    struct pg_answer answer;
    struct pg_met met;
    enum hf_status status;

    if (store->absent)
        return hf__ok(err);
    pg_params_number(&params, store->url.max_ttl_ms);
    status = pg_call(store, &call, &answer, err);
    if (pg_verdict_no_schema(answer.state))
        return hf__fail(err, HF_UNSUPPORTED,
                        "store %.120s: its schema is older than this client, which cannot tell "
                        "whether it is in quarantine",
                        store->url.shown);
    if (status != HF_OK)
        return status;
    if (!pg_row_met(answer.rows, &met))
        status = pg_nonsense(store, NULL, err);
    else
        status = met.verdict == PG_QUARANTINE ? fail_closed(store, &met, err) : hf__ok(err);
    PQclear(answer.rows);
    return status;
}

static enum hf_status report_opened(const struct pg_store *store, const struct pg_opened *opened,
                                    const char *id, struct hf_error *report)
{
    char left[32];

    switch (opened->verdict) {
    case PG_WAS_OPENED:
        (void)hf__format_duration(left, sizeof left, opened->left_ms);
        return hf__fail(report, HF_OK,
                        "store %.100s: the quarantine of incarnation %s was ended %s before its "
                        "time",
                        store->url.shown, id, left);
    case PG_WAS_OPEN:
        return hf__fail(report, HF_INVALID, "store %.150s is in no quarantine", store->url.shown);
    case PG_WAS_ANOTHER:
        break;
    }
    return hf__fail(report, HF_UNREACHABLE,
                    "store %.100s: the server has changed meanwhile; look again before you open it",
                    store->url.shown);
}

/* Of the incarnation that is there when we look, and of no other: that one is told to the server
 * again with the order to open. */
enum hf_status pg_end_quarantine(struct hf_store_base *base, const char *label, const char *reason,
                                 int64_t deadline_ns, struct hf_error *report)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct pg_call call = {.statement = &open_statement,
                           .params = &params,
                           .patience = patience,
                           .use = PG_USE_ACQUIRE};
    struct pg_opened opened = {.verdict = PG_WAS_OPEN};
    struct pg_answer answer;
    struct pg_met met;
    enum hf_status status = introduce(store, &patience, &met, report);

    if (status == HF_OK)
        return report_opened(store, &opened, "", report);
    if (status != HF_QUARANTINE)
        return status;
    pg_params_text(&params, met.id);
    pg_params_bytes(&params, label, strlen(label));
    pg_params_bytes(&params, reason, strlen(reason));
    status = pg_call(store, &call, &answer, report);
    if (status != HF_OK)
        return status;
    status = pg_row_opened(answer.rows, &opened) ? report_opened(store, &opened, met.id, report)
                                                 : pg_nonsense(store, NULL, report);
    PQclear(answer.rows);
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
