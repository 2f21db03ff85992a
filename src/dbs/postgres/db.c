/* db.c - PostgreSQL, through libpq. How one connects is the store's business, and done with its
 * code (src/stores/postgres). */
#include "dbs/db.h"
#include "base/base.h"
#include "stores/postgres/conn.h"
#include "stores/postgres/url.h"

#include <stdlib.h>
#include <string.h>

enum { CONNECT_MS = 5000 };

struct hf__db {
    struct pg_conn *conn;
    int cancel_fd;
    char shown[HF__URL_MAX];
};

static enum hf_status status_of(const char *state)
{
    static const struct {
        const char *begins;
        enum hf_status status;
    } rows[] = {{"40", HF_BUSY},           /* a deadlock, a serialization failure */
                {"55P03", HF_BUSY},        /* somebody has it locked */
                {"25P03", HF_UNREACHABLE}, /* we were idle, frozen for instance */
                {"08", HF_UNREACHABLE},    {"53", HF_UNREACHABLE}, {"57", HF_UNREACHABLE},
                {"25006", HF_UNREACHABLE}, /* a standby, which may be promoted */
                {"28", HF_DENIED},         {"42501", HF_DENIED},   {"XX", HF_CORRUPT}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(state, rows[i].begins, strlen(rows[i].begins)) == 0)
            return rows[i].status;
    return state[0] == '\0' ? HF_UNREACHABLE : HF_INVALID;
}

/* Of a URL that makes no sense libpq quotes the password. */
static enum hf_status check_url(const char *url, const char *shown, struct hf_error *err)
{
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &why);
    bool good = options != NULL;

    PQfreemem(why);
    PQconninfoFree(options);
    if (good)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "database %s: not a URI that libpq understands: write "
                    "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full",
                    shown);
}

static enum hf_status connect_to(struct hf__db *db, const char *url, struct hf_error *err)
{
    struct hf__patience patience = hf__patience_for(CONNECT_MS * HF__NS_PER_MS, db->cancel_fd);
    struct pg_outcome outcome;
    atomic_uint first = 0;
    enum pg_fate fate = pg_conn_open(url, &first, &patience, &db->conn, &outcome);

    if (fate == PG_CANCELLED)
        return hf__fail(err, HF_CANCELLED, "database %s: cancelled", db->shown);
    if (fate == PG_UNSENT)
        return hf__nomem(err);
    if (fate != PG_DONE)
        return hf__fail(err, fate == PG_LOST ? HF_UNREACHABLE : status_of(outcome.state),
                        "database %s: %s", db->shown, outcome.why);
    /* The store's way to talk is another. */
    if (PQexitPipelineMode(db->conn->link) != 1)
        return hf__fail(err, HF_UNREACHABLE, "database %s: the connection is gone", db->shown);
    return HF_OK;
}

static void close_db(struct hf__db *db)
{
    if (db == NULL)
        return;
    pg_conn_close(db->conn, false);
    free(db);
}

static enum hf_status open_db(const char *url, int cancel_fd, struct hf__db **out,
                              struct hf_error *err)
{
    struct hf__db *db = calloc(1, sizeof *db);
    enum hf_status status;

    *out = NULL;
    if (db == NULL)
        return hf__nomem(err);
    db->cancel_fd = cancel_fd;
    hf__url_brief(db->shown, sizeof db->shown, url);
    status = check_url(url, db->shown, err);
    if (status == HF_OK) {
        hf__url_redact(db->shown, sizeof db->shown, url);
        status = connect_to(db, url, err);
    }
    if (status != HF_OK) {
        close_db(db);
        return status;
    }
    *out = db;
    return HF_OK;
}

/* True once nothing blocks PQgetResult. */
static bool await_result(struct hf__db *db, const struct hf__patience *patience)
{
    PGconn *link = db->conn->link;
    int unsent = PQflush(link);

    while (unsent == 1 || PQisBusy(link)) {
        short events = unsent == 1 ? POLLIN | POLLOUT : POLLIN;

        if (hf__patience_wait(patience, PQsocket(link), events) != HF__WAITED_READY ||
            PQconsumeInput(link) != 1)
            return false;
        unsent = PQflush(link);
        if (unsent < 0)
            return false;
    }
    return unsent == 0;
}

static bool read_rows(const PGresult *result, struct hf__db_answer *answer)
{
    struct hf__db_value values[HF__DB_COLUMNS_MAX];
    int columns = PQnfields(result);

    for (int row = 0; row < PQntuples(result) && answer->row != NULL; row++) {
        for (int i = 0; i < columns && i < HF__DB_COLUMNS_MAX; i++) {
            bool null = PQgetisnull(result, row, i) == 1;

            values[i].bytes = null ? NULL : PQgetvalue(result, row, i);
            values[i].len = (size_t)PQgetlength(result, row, i);
        }
        if (!answer->row(values, answer->data))
            return false;
    }
    return true;
}

static enum hf_status refused(struct hf__db *db, const PGresult *result, struct hf_error *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    enum hf_status status = status_of(state != NULL ? state : "");
    char why[PG_WHY_SIZE];

    pg_one_line(why, said != NULL ? said : "the connection is gone");
    if (state != NULL &&
        (strcmp(state, "42P01") == 0 || strcmp(state, "3F000") == 0 || strcmp(state, "42703") == 0))
        return hf__fail(err, HF_INVALID,
                        "database %s: %s; run the migration that \"holdfast outbox sql\" prints",
                        db->shown, why);
    return hf__fail(err, status, "database %s: %s", db->shown, why);
}

/* Columns come as they are, not as text: whatever is no text was made one by the statement. */
static enum hf_status execute(struct hf__db *db, const char *sql, struct hf__db_answer *answer,
                              struct hf_error *err)
{
    struct hf__patience patience = hf__patience_for(HF__DB_ANSWER_MS * HF__NS_PER_MS, -1);
    PGconn *link = db->conn->link;
    enum hf_status status = HF_OK;
    PGresult *result;

    if (PQsendQueryParams(link, sql, 0, NULL, NULL, NULL, NULL, 1) != 1)
        return hf__fail(err, HF_UNREACHABLE, "database %s: the connection is gone", db->shown);
    while (await_result(db, &patience) && (result = PQgetResult(link)) != NULL) {
        ExecStatusType kind = PQresultStatus(result);

        if (kind != PGRES_TUPLES_OK && kind != PGRES_COMMAND_OK)
            status = refused(db, result, err);
        else if (!read_rows(result, answer))
            status = hf__nomem(err);
        answer->changed = strtoull(PQcmdTuples(result), NULL, 10);
        PQclear(result);
    }
    if (PQstatus(link) != CONNECTION_OK || PQtransactionStatus(link) == PQTRANS_ACTIVE)
        return hf__fail(err, HF_UNREACHABLE,
                        "database %s: the connection is gone, or no answer came", db->shown);
    return status;
}

const struct hf__db_ops *hf__db_plugin(void)
{
    static const struct hf__db_ops ops = {.abi = HF__DB_ABI,
                                          .dialect = HF__POSTGRES,
                                          .open = open_db,
                                          .close = close_db,
                                          .execute = execute};

    return &ops;
}
