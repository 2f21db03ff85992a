/* execute.c - one statement on a connection, and what became of it. */
#include "stores/postgres/conn.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define CANCEL_GRACE_MS 100 /* for an answer that is on its way when the caller loses patience */
#define FOLLOW_MS       20  /* what sending a statement behind another may cost */

static const char out_of_step[] = "the server's answers are out of step";

static void add(struct pg_params *params, const char *value, size_t len, int format)
{
    if (params->count == PG_PARAMS_MAX)
        return; /* a statement without its parameters is refused by the server */
    params->values[params->count] = value;
    params->lengths[params->count] = (int)len;
    params->formats[params->count++] = format;
}

void pg_params_text(struct pg_params *params, const char *text)
{
    add(params, text, 0, 0);
}

void pg_params_number(struct pg_params *params, int64_t number)
{
    char *text = params->numbers[params->count < PG_PARAMS_MAX ? params->count : 0];

    (void)snprintf(text, sizeof params->numbers[0], "%lld", (long long)number);
    add(params, text, 0, 0);
}

void pg_params_bytes(struct pg_params *params, const void *bytes, size_t len)
{
    add(params, bytes, len, 1);
}

/* Waits until the link can be read, or (if it has something to send) written. When the caller
 * cancels, an answer that is nearly there is still taken. */
static enum hf__waited wait_link(struct pg_conn *conn, bool sending, struct hf__patience *patience,
                                 bool *cancelled)
{
    enum hf__waited waited = hf__patience_wait(patience, PQsocket(conn->link),
                                               (short)(POLLIN | (sending ? POLLOUT : 0)));

    if (waited != HF__WAITED_CANCELLED)
        return waited;
    *cancelled = true;
    *patience = hf__patience_until(patience, hf__now_ns() + CANCEL_GRACE_MS * HF__NS_PER_MS);
    patience->cancel_fd = -1;
    return HF__WAITED_READY;
}

/* Sends what is buffered; reads meanwhile, so that neither side waits for the other. */
static bool flush(struct pg_conn *conn, struct hf__patience *patience, bool *cancelled)
{
    int left;

    while ((left = PQflush(conn->link)) == 1)
        if (wait_link(conn, true, patience, cancelled) == HF__WAITED_TIMEOUT ||
            PQconsumeInput(conn->link) != 1)
            return false;
    return left == 0;
}

/* The next result, once it is complete; false if it does not come. *result may be NULL. */
static bool next_result(struct pg_conn *conn, struct hf__patience *patience, bool *cancelled,
                        PGresult **result)
{
    while (PQisBusy(conn->link))
        if (wait_link(conn, false, patience, cancelled) == HF__WAITED_TIMEOUT ||
            PQconsumeInput(conn->link) != 1)
            return false;
    *result = PQgetResult(conn->link);
    return true;
}

static void note_error(const PGresult *result, struct pg_outcome *outcome)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    (void)snprintf(outcome->state, sizeof outcome->state, "%s", state != NULL ? state : "");
    pg_one_line(outcome->why, text != NULL ? text : PQresultErrorMessage(result));
}

/* An ERROR ends the statement and leaves the connection. FATAL ends the connection, and may do so
 * after a commit whose answer was on its way. */
static bool is_plain_error(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    return severity != NULL && strcmp(severity, "ERROR") == 0 && state != NULL &&
           strncmp(state, "08", 2) != 0;
}

/* Takes in one result. False: nothing after it is to be waited for. */
static bool take_in(struct pg_conn *conn, PGresult *result, bool pipeline,
                    struct pg_outcome *outcome)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        /* Prepared is prepared, whatever becomes of the rest. */
        conn->prepared |= conn->preparing;
        conn->preparing = 0;
        PQclear(outcome->rows);
        outcome->rows = result;
        return true;
    }
    if (status == PGRES_PIPELINE_ABORTED) { /* skipped, because what came before it failed */
        PQclear(result);
        return true;
    }
    if (status == PGRES_PIPELINE_SYNC) {
        PQclear(result);
        return false;
    }
    outcome->fate = is_plain_error(result) ? PG_REFUSED : PG_LOST;
    note_error(result, outcome);
    PQclear(result);
    /* The commit failed, after the rows had come. libpq takes that for the end of the pipeline, and
     * does not see the real one any more. */
    if (pipeline && outcome->rows != NULL && PQresultStatus(outcome->rows) == PGRES_TUPLES_OK)
        conn->broken = true;
    return outcome->fate == PG_REFUSED && !conn->broken;
}

static void lose(struct pg_outcome *outcome, const char *why)
{
    outcome->fate = PG_LOST;
    if (outcome->why[0] == '\0')
        (void)snprintf(outcome->why, sizeof outcome->why, "%s", why);
}

/* Collects results up to the end of the statement: PGRES_PIPELINE_SYNC in a pipeline, NULL outside.
 */
static void collect(struct pg_conn *conn, struct hf__patience *patience, bool pipeline,
                    bool *cancelled, struct pg_outcome *outcome)
{
    bool between = false; /* two statements of a pipeline */

    outcome->fate = PG_DONE;
    for (;;) {
        PGresult *result;

        if (!next_result(conn, patience, cancelled, &result)) {
            outcome->silent = PQstatus(conn->link) == CONNECTION_OK;
            lose(outcome, outcome->silent ? "no answer in time" : "the connection was lost");
            return;
        }
        if (PQstatus(conn->link) != CONNECTION_OK) {
            PQclear(result);
            lose(outcome, "the connection was lost");
            return;
        }
        if (result == NULL) {
            if (!pipeline)
                return;
            if (between) { /* nothing comes any more, and the end never came */
                lose(outcome, out_of_step);
                return;
            }
            between = true;
            continue;
        }
        between = false;
        if (!take_in(conn, result, pipeline, outcome))
            return;
    }
}

static void finish(struct pg_conn *conn, bool cancelled, struct pg_outcome *outcome)
{
    if (outcome->fate == PG_DONE && conn->warned) {
        outcome->fate = PG_LOST;
        (void)snprintf(outcome->why, sizeof outcome->why,
                       "the wait for the synchronous standby was cancelled");
    } else if (outcome->fate == PG_LOST || outcome->fate == PG_UNSENT) {
        conn->broken = true;
    }
    if (cancelled && outcome->fate == PG_LOST)
        outcome->fate = PG_CANCELLED;
    outcome->silent = outcome->silent && outcome->fate == PG_LOST;
    if (outcome->fate != PG_DONE) {
        PQclear(outcome->rows);
        outcome->rows = NULL;
    }
}

/* Puts the statement on its way, and remembers it in the session if that is ours alone. */
static bool send(struct pg_conn *conn, const struct pg_statement *statement,
                 const struct pg_params *params)
{
    if (statement->name == NULL || conn->route != PG_ROUTE_DIRECT)
        return PQsendQueryParams(conn->link, statement->sql, params->count, NULL, params->values,
                                 params->lengths, params->formats, 0) == 1;
    if ((conn->prepared & statement->bit) == 0) {
        conn->preparing = statement->bit;
        if (PQsendPrepare(conn->link, statement->name, statement->sql, 0, NULL) != 1)
            return false;
    }
    return PQsendQueryPrepared(conn->link, statement->name, params->count, params->values,
                               params->lengths, params->formats, 0) == 1;
}

static void note_route(struct pg_conn *conn, const struct pg_outcome *outcome)
{
    int column;
    uint64_t pid;

    if (outcome->fate != PG_DONE) {
        /* No such statement, or one too many: somebody shares the session after all. */
        if (outcome->fate == PG_REFUSED &&
            (strcmp(outcome->state, "26000") == 0 || strcmp(outcome->state, "42P05") == 0))
            conn->route = PG_ROUTE_POOLED;
        return;
    }
    column = PQfnumber(outcome->rows, "pid");
    if (conn->route != PG_ROUTE_UNKNOWN || column < 0 || PQntuples(outcome->rows) == 0)
        return;
    conn->route = hf__parse_u64(PQgetvalue(outcome->rows, 0, column), &pid) &&
                          pid == (uint64_t)PQbackendPID(conn->link)
                      ? PG_ROUTE_DIRECT
                      : PG_ROUTE_POOLED;
}

void pg_conn_execute(struct pg_conn *conn, const struct hf_host *host,
                     const struct pg_statement *statement, const struct pg_params *params,
                     const struct hf__patience *given, struct pg_outcome *outcome)
{
    struct hf__patience patience = *given;
    bool cancelled = false;

    *outcome = (struct pg_outcome){.fate = PG_UNSENT};
    conn->warned = false;
    conn->preparing = 0;
    outcome->sent_at_ns = host->now_ns();
    if (conn->broken) {
        (void)snprintf(outcome->why, sizeof outcome->why, "%s", out_of_step);
    } else if (!send(conn, statement, params)) {
        pg_one_line(outcome->why, PQerrorMessage(conn->link));
    } else {
        outcome->fate = PG_LOST;
        if (PQpipelineSync(conn->link) == 1 && flush(conn, &patience, &cancelled))
            collect(conn, &patience, true, &cancelled, outcome);
        else
            lose(outcome, "the request could not be sent");
    }
    finish(conn, cancelled, outcome);
    note_route(conn, outcome);
}

bool pg_conn_follow(struct pg_conn *conn, const struct pg_statement *statement,
                    const struct pg_params *params)
{
    struct hf__patience soon = hf__patience_for(FOLLOW_MS * HF__NS_PER_MS, -1);
    bool cancelled = false;

    return PQstatus(conn->link) == CONNECTION_OK && send(conn, statement, params) &&
           PQpipelineSync(conn->link) == 1 && flush(conn, &soon, &cancelled);
}

void pg_conn_script(struct pg_conn *conn, const char *sql, const struct hf__patience *given,
                    struct pg_outcome *outcome)
{
    struct hf__patience patience = *given;
    bool cancelled = false;

    *outcome = (struct pg_outcome){.fate = PG_UNSENT};
    conn->warned = false;
    if (!conn->broken && PQexitPipelineMode(conn->link) == 1 && PQsendQuery(conn->link, sql) == 1) {
        outcome->fate = PG_LOST;
        if (flush(conn, &patience, &cancelled))
            collect(conn, &patience, false, &cancelled, outcome);
        if (!conn->broken && outcome->fate != PG_LOST && PQenterPipelineMode(conn->link) != 1)
            conn->broken = true;
    }
    finish(conn, cancelled, outcome);
}
