/* schema.c - making and changing the schema. */
#include "stores/postgres/schema.h"
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

/* READ COMMITTED, whatever a client's default is: the version has to be read after the lock was
 * had. The number is "holdfast" in ASCII. */
#define BEGIN_SQL                                                                                  \
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"                                             \
    "SET LOCAL search_path = pg_catalog, pg_temp;"                                                 \
    "SET LOCAL lock_timeout = '5s'; SET LOCAL synchronous_commit = on;"                            \
    "SET LOCAL client_min_messages = warning;"                                                     \
    "SELECT pg_advisory_xact_lock(7525352680829580148)"
#define VERSION_SQL "SELECT version FROM holdfast.version"
#define EXISTS_SQL                                                                                 \
    "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "               \
    "WHERE n.nspname = 'holdfast' AND c.relname = 'version'"

static enum hf_status fail(const struct pg_outcome *outcome, const char *shown,
                           struct hf_error *err)
{
    if (outcome->fate == PG_REFUSED && strcmp(outcome->state, "42501") == 0)
        return hf__fail_lock(err, HF_DENIED, NULL, shown,
                             ": %.70s; let a role that may create the schema holdfast use the "
                             "store once",
                             outcome->why);
    if (outcome->fate == PG_REFUSED)
        return pg_error_fail(outcome->state, outcome->why, NULL, shown, err);
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, shown, ": the schema could not be created: %s",
                         outcome->why);
}

/* Runs sql; *number is the value of the last row's first column, if there is one. */
static bool run(struct pg_conn *conn, const char *sql, const struct hf__patience *patience,
                int64_t *number, struct pg_outcome *outcome)
{
    pg_conn_script(conn, sql, patience, outcome);
    if (outcome->fate == PG_DONE && number != NULL)
        *number = pg_row_number(outcome->rows, 0, -1);
    PQclear(outcome->rows);
    outcome->rows = NULL;
    return outcome->fate == PG_DONE;
}

static bool take_steps(struct pg_conn *conn, int64_t from, const struct hf__patience *patience,
                       struct pg_outcome *outcome)
{
    char sql[80];

    for (size_t i = 0; i < pg_step_count; i++) {
        if (pg_steps[i].version <= from)
            continue;
        (void)snprintf(sql, sizeof sql, "UPDATE holdfast.version SET version = %d",
                       pg_steps[i].version);
        if (!run(conn, pg_steps[i].sql, patience, NULL, outcome) ||
            !run(conn, sql, patience, NULL, outcome))
            return false;
    }
    return true;
}

enum hf_status pg_schema_newer(int64_t version, const char *shown, struct hf_error *err)
{
    return hf__fail_lock(err, HF_UNSUPPORTED, NULL, shown,
                         ": its schema has version %lld, this client speaks %d: upgrade "
                         "holdfast here",
                         (long long)version, PG_SCHEMA_VERSION);
}

enum hf_status pg_schema_exists(struct pg_conn *conn, const struct hf__patience *patience,
                                const char *shown, bool *out, struct hf_error *err)
{
    struct pg_outcome outcome;
    int64_t there = 0;

    if (!run(conn, EXISTS_SQL, patience, &there, &outcome))
        return fail(&outcome, shown, err);
    *out = there == 1;
    return HF_OK;
}

enum hf_status pg_schema_migrate(struct pg_conn *conn, const struct hf__patience *patience,
                                 const char *shown, struct hf_error *err)
{
    struct pg_outcome outcome;
    enum hf_status status = HF_OK;
    int64_t there = 0;
    bool done;
    int64_t version = 0;

    done = run(conn, BEGIN_SQL, patience, NULL, &outcome) &&
           run(conn, EXISTS_SQL, patience, &there, &outcome) &&
           (there != 1 || run(conn, VERSION_SQL, patience, &version, &outcome));
    if (done && version > PG_SCHEMA_VERSION)
        status = pg_schema_newer(version, shown, err);
    else if (!done || !take_steps(conn, version, patience, &outcome))
        status = fail(&outcome, shown, err);
    if (conn->broken)
        return status;
    if (!run(conn, status == HF_OK ? "COMMIT" : "ROLLBACK", patience, NULL, &outcome)) {
        conn->broken = true;
        if (status == HF_OK)
            status = fail(&outcome, shown, err);
    }
    return status;
}
