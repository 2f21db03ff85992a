/* quarantine.c - a server that grants nothing yet: what is said of it, and ending that by hand. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

static const struct pg_statement quarantine_statement = {
    "SELECT " PG_MEET_COLUMNS
    ", pg_catalog.pg_backend_pid() AS pid FROM holdfast.quarantine($1::bigint)",
    NULL, 0};

static const struct pg_statement open_statement = {
    "SELECT " PG_OPENED_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.end_quarantine($1::pg_catalog.text, $2::pg_catalog.bytea, $3::pg_catalog.bytea)",
    NULL, 0};

enum hf_status pg_quarantine_fail(const struct pg_store *store, const struct pg_met *met,
                                  struct hf_error *err)
{
    static const char *const why[] = {
        [PG_WHY_PROMOTED] = "the server was promoted or restored",
        [PG_WHY_MOVED] = "its data came from another server",
        [PG_WHY_UNMET] = "the server was promoted or restored, and never met holdfast",
    };
    char left[32];

    (void)hf__fail_lock(err, HF_QUARANTINE, NULL, store->url.shown,
                        ": %s; it may have forgotten who holds what, and grants again in %s",
                        why[met->why], hf__format_duration(left, sizeof left, met->left_ms));
    if (err != NULL)
        err->retry_after_ms = met->left_ms;
    return HF_QUARANTINE;
}

/* A schema that is not there, or that the next client to take a lock brings up to date, is left as
 * it is: a client that only reads changes nothing. */
enum hf_status pg_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_call call = {.statement = &quarantine_statement,
                           .params = &params,
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_ACQUIRE,
                           .only_reads = true};
    struct pg_answer answer;
    struct pg_met met;
    enum hf_status status;

    if (store->absent)
        return hf__ok(err);
    pg_params_number(&params, store->url.max_ttl_ms);
    status = pg_call(store, &call, &answer, err);
    if (pg_error_no_schema(answer.state))
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->url.shown,
                             ": its schema is older than this client, which cannot tell "
                             "whether it is in quarantine");
    if (status != HF_OK)
        return status;
    if (!pg_row_met(answer.rows, &met))
        status = pg_nonsense(store, NULL, err);
    else
        status = met.verdict == PG_QUARANTINE ? pg_quarantine_fail(store, &met, err) : hf__ok(err);
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
        return hf__fail_lock(report, HF_OK, NULL, store->url.shown,
                             ": the quarantine of incarnation %s was ended %s before its "
                             "time",
                             id, left);
    case PG_WAS_OPEN:
        return hf__fail_lock(report, HF_INVALID, NULL, store->url.shown, " is not in quarantine");
    case PG_WAS_ANOTHER:
        break;
    }
    return hf__fail_lock(
        report, HF_UNREACHABLE, NULL, store->url.shown,
        ": the server has changed in the meantime; check again before you open it");
}

/* Of the incarnation that is there when we ask, and of no other: that one is told to the server
 * again with the order to open. */
enum hf_status pg_end_quarantine(struct hf_store_base *base, const char *label, const char *reason,
                                 int64_t deadline_ns, struct hf_error *report)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct pg_call call = {.statement = &open_statement,
                           .params = &params,
                           .patience = patience,
                           .use = PG_USE_ACQUIRE};
    struct pg_opened opened = {.verdict = PG_WAS_OPEN};
    struct pg_answer answer;
    struct pg_met met;
    enum hf_status status = pg_incarnation_ask(store, &patience, &met, report);

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
