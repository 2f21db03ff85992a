/* postgres.c - PostgreSQL by libpq. */
#include "base/base.h"
#include "dbs/db.h"

#include <errno.h>
#include <inttypes.h>
#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_SIZE = 48,
    CONNECT_SECONDS_MIN = 2 /* libpq counts less as 2 */,
    CONNECT_SECONDS_MAX = 60
};

struct postgres_db {
    struct hf__db base;
    PGconn *link;
    bool broken;   /* what comes next on it is not the next statement's */
    uint64_t mark; /* in the names of its statements: a pooler may show them to others */
    unsigned statements;
    char shown[HF__URL_MAX];
};

struct postgres_statement {
    struct hf__db_statement base;
    char name[NAME_SIZE];
};

static enum hf_status gone(struct postgres_db *db, enum hf_status status, const char *why,
                           struct hf__db_error *err)
{
    db->broken = true;
    return hf__db_fail(err, status, db->shown, NULL, why);
}

/* Sends what is left and waits until the whole answer is there. */
static enum hf_status wait_for_answer(struct postgres_db *db, const struct hf__patience *patience,
                                      struct hf__db_error *err)
{
    int left = PQflush(db->link);

    while (left != 0 || PQisBusy(db->link)) {
        enum hf__waited waited = left < 0 ? HF__WAITED_READY
                                          : hf__patience_wait(patience, PQsocket(db->link),
                                                              left > 0 ? POLLIN | POLLOUT : POLLIN);

        if (waited == HF__WAITED_CANCELLED)
            return gone(db, HF_CANCELLED, "given up while it was under way", err);
        if (waited == HF__WAITED_TIMEOUT)
            return gone(db, HF_UNKNOWN, "no answer in time; it may have been executed", err);
        if (left < 0 || !PQconsumeInput(db->link))
            return gone(db, HF_UNKNOWN, PQerrorMessage(db->link), err);
        if (left > 0)
            left = PQflush(db->link);
    }
    return HF_OK;
}

static bool is_good(const PGresult *result)
{
    ExecStatusType what = PQresultStatus(result);

    return what == PGRES_COMMAND_OK || what == PGRES_TUPLES_OK || what == PGRES_EMPTY_QUERY;
}

/* A server that ends a session says so, and has done nothing of the statement. */
static enum hf_status refused(struct postgres_db *db, const PGresult *result,
                              struct hf__db_error *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (state == NULL)
        return gone(db, HF_UNKNOWN, PQresultErrorMessage(result), err);
    return hf__db_fail(err, hf__db_status_of(state), db->shown, state, message);
}

/* The answers up to the last; *out, if it is wanted, is the last good one. */
static enum hf_status answer(struct postgres_db *db, const struct hf__patience *patience,
                             PGresult **out, struct hf__db_error *err)
{
    enum hf_status status = hf__db_ok(err);
    PGresult *kept = NULL;

    for (;;) {
        enum hf_status waited = wait_for_answer(db, patience, err);
        PGresult *result = waited == HF_OK ? PQgetResult(db->link) : NULL;

        if (waited != HF_OK)
            status = waited;
        if (result == NULL)
            break;
        if (!is_good(result) && status == HF_OK)
            status = refused(db, result, err);
        PQclear(kept);
        kept = result;
    }
    if (status != HF_OK || out == NULL) {
        PQclear(kept);
        kept = NULL;
    }
    if (out != NULL)
        *out = kept;
    return status;
}

static enum hf_status usable(struct postgres_db *db, struct hf__db_error *err)
{
    if (db->broken || PQstatus(db->link) != CONNECTION_OK)
        return gone(db, HF_UNREACHABLE, "the connection is gone", err);
    return HF_OK;
}

static enum hf_status not_sent(struct postgres_db *db, struct hf__db_error *err)
{
    return gone(db, HF_UNREACHABLE, PQerrorMessage(db->link), err);
}

static enum hf_status postgres_prepare(struct hf__db *base, const char *sql,
                                       const struct hf__patience *patience,
                                       struct hf__db_statement **out, struct hf__db_error *err)
{
    struct postgres_db *db = (struct postgres_db *)base;
    enum hf_status status = usable(db, err);
    struct postgres_statement *statement;

    if (status != HF_OK)
        return status;
    statement = calloc(1, sizeof *statement);
    if (statement == NULL)
        return hf__nomem(&err->said);
    statement->base.db = base;
    (void)snprintf(statement->name, sizeof statement->name, "holdfast_%" PRIx64 "_%u", db->mark,
                   ++db->statements);
    status = PQsendPrepare(db->link, statement->name, sql, 0, NULL)
                 ? answer(db, patience, NULL, err)
                 : not_sent(db, err);
    if (status == HF_OK)
        *out = &statement->base;
    else
        free(statement);
    return status;
}

/* The types that come as bytes and are told as text: pg_type.h. */
enum { INT8 = 20, INT2 = 21, INT4 = 23, UUID = 2950, UUID_BYTES = 16 };

static void add_number(struct hf__db_rows *rows, const unsigned char *bytes, size_t len)
{
    uint64_t number = bytes[0] >= 0x80 ? UINT64_MAX : 0;
    char text[NAME_SIZE];

    for (size_t i = 0; i < len; i++)
        number = number << 8 | bytes[i];
    hf__db_rows_add(rows, text, (size_t)snprintf(text, sizeof text, "%" PRId64, (int64_t)number));
}

static void add_uuid(struct hf__db_rows *rows, const unsigned char *bytes)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * UUID_BYTES + 4];
    size_t used = 0;

    for (size_t i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[used++] = '-';
        text[used++] = digits[bytes[i] >> 4];
        text[used++] = digits[bytes[i] & 15];
    }
    hf__db_rows_add(rows, text, used);
}

static void add_cell(struct hf__db_rows *rows, const PGresult *result, int row, int column)
{
    const char *value = PQgetvalue(result, row, column);
    size_t len = (size_t)PQgetlength(result, row, column);
    Oid type = PQftype(result, column);

    if (PQgetisnull(result, row, column))
        hf__db_rows_add(rows, NULL, 0);
    else if (type == INT8 || type == INT4 || type == INT2)
        add_number(rows, (const unsigned char *)value, len);
    else if (type == UUID && len == UUID_BYTES)
        add_uuid(rows, (const unsigned char *)value);
    else
        hf__db_rows_add(rows, value, len);
}

static void collect(const PGresult *result, struct hf__db_rows *rows)
{
    const char *changed = PQcmdTuples((PGresult *)(uintptr_t)result);
    uint64_t number = 0;

    rows->columns = (size_t)PQnfields(result);
    if (rows->columns == 0 && hf__parse_u64(changed, &number))
        rows->changed = (int64_t)number;
    for (int row = 0; row < PQntuples(result); row++)
        for (int i = 0; i < PQnfields(result); i++)
            add_cell(rows, result, row, i);
}

static enum hf_status collect_answer(struct postgres_db *db, const struct hf__patience *patience,
                                     struct hf__db_rows *rows, struct hf__db_error *err)
{
    PGresult *result;
    enum hf_status status = answer(db, patience, &result, err);

    if (status == HF_OK)
        collect(result, rows);
    PQclear(result);
    return status;
}

static enum hf_status postgres_execute(struct hf__db *base, const char *sql,
                                       const struct hf__patience *patience,
                                       struct hf__db_rows *rows, struct hf__db_error *err)
{
    struct postgres_db *db = (struct postgres_db *)base;
    enum hf_status status = usable(db, err);

    if (status != HF_OK)
        return status;
    if (!PQsendQueryParams(db->link, sql, 0, NULL, NULL, NULL, NULL, 1))
        return not_sent(db, err);
    return collect_answer(db, patience, rows, err);
}

static enum hf_status postgres_run(struct hf__db_statement *base, const struct hf__db_text *params,
                                   size_t count, const struct hf__patience *patience,
                                   struct hf__db_rows *rows, struct hf__db_error *err)
{
    struct postgres_statement *statement = (struct postgres_statement *)base;
    struct postgres_db *db = (struct postgres_db *)base->db;
    const char *values[HF__DB_PARAMS_MAX];
    enum hf_status status = usable(db, err);

    if (status != HF_OK)
        return status;
    if (count > HF__DB_PARAMS_MAX)
        return hf__db_fail(err, HF_INVALID, db->shown, NULL, "too many parameters");
    for (size_t i = 0; i < count; i++) {
        values[i] = params[i].data;
        /* The server's texts have none. */
        if (values[i] != NULL && strlen(values[i]) != params[i].len)
            return hf__db_fail(err, HF_INVALID, db->shown, "22021", "a text with a NUL byte");
    }
    if (!PQsendQueryPrepared(db->link, statement->name, (int)count, values, NULL, NULL, 1))
        return not_sent(db, err);
    return collect_answer(db, patience, rows, err);
}

/* The server forgets it with the session; there is no round trip for it. */
static void postgres_finish(struct hf__db_statement *base)
{
    free((struct postgres_statement *)base);
}

/* libpq would write it to stderr. */
static void drop_notice(void *data, const char *message)
{
    (void)data;
    (void)message;
}

static void postgres_close(struct hf__db *base)
{
    struct postgres_db *db = (struct postgres_db *)base;

    PQfinish(db->link);
    free(db);
}

static enum hf_status postgres_open(const struct hf_host *host, const char *url,
                                    const struct hf__patience *patience, struct hf__db **out,
                                    struct hf__db_error *err);

static const char *const schemes[] = {"postgres", "postgresql", NULL};
static const struct hf__db_ops ops = {.name = "PostgreSQL",
                                      .schemes = schemes,
                                      .open = postgres_open,
                                      .close = postgres_close,
                                      .execute = postgres_execute,
                                      .prepare = postgres_prepare,
                                      .run = postgres_run,
                                      .finish = postgres_finish};

/* How many hosts the URL names: each gets its share of the time. 0: libpq does not understand it.
 */
static int64_t count_hosts(const char *url)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    int64_t most = options != NULL;

    for (PQconninfoOption *at = options; at != NULL && at->keyword != NULL; at++) {
        int64_t here = 1;

        if (at->val == NULL || strncmp(at->keyword, "host", 4) != 0)
            continue;
        for (const char *c = at->val; *c != '\0'; c++)
            here += *c == ',';
        most = here > most ? here : most;
    }
    PQconninfoFree(options);
    return most;
}

/* libpq has no SQLSTATE for a connection that could not be made. */
static enum hf_status status_of_start(const char *message)
{
    static const struct {
        const char *words;
        enum hf_status status;
    } rules[] = {{"authentication failed", HF_DENIED},
                 {"no password supplied", HF_DENIED},
                 {"pg_hba.conf", HF_DENIED},
                 {"permission denied for database", HF_DENIED},
                 {"certificate", HF_DENIED},
                 {"FATAL:  role ", HF_DENIED},
                 {"FATAL:  database ", HF_INVALID},
                 {"invalid ", HF_INVALID},
                 {"missing ", HF_INVALID}};

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strstr(message, rules[i].words) != NULL)
            return rules[i].status;
    return HF_UNREACHABLE;
}

/* What libpq says of a URL that it does not understand quotes the password. */
static enum hf_status not_understood(const char *url, struct hf__db_error *err)
{
    char shown[HF__URL_MAX];

    hf__url_brief(shown, sizeof shown, url);
    return hf__db_fail(err, HF_INVALID, shown, NULL,
                       "not a URI that libpq understands: write "
                       "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full");
}

/* libpq connects to one host after the other with a time limit in whole seconds, but only if it may
 * block for it. */
static enum hf_status postgres_open(const struct hf_host *host, const char *url,
                                    const struct hf__patience *patience, struct hf__db **out,
                                    struct hf__db_error *err)
{
    static const char *const words[] = {"connect_timeout", "fallback_application_name", "dbname",
                                        NULL};
    int64_t hosts = count_hosts(url);
    int64_t seconds = (patience->deadline_ns - hf__now_ns()) / HF__NS_PER_S;
    char limit[NAME_SIZE];
    const char *values[] = {limit, "holdfast", url, NULL};
    struct postgres_db *db;
    enum hf_status status;

    if (hosts == 0)
        return not_understood(url, err);
    db = calloc(1, sizeof *db);
    if (db == NULL)
        return hf__nomem(&err->said);
    db->base = (struct hf__db){.ops = &ops, .host = host};
    hf__random(&db->mark, sizeof db->mark);
    host->redact(db->shown, sizeof db->shown, url);
    seconds /= hosts;
    if (seconds < CONNECT_SECONDS_MIN || seconds > CONNECT_SECONDS_MAX)
        seconds = seconds < CONNECT_SECONDS_MIN ? CONNECT_SECONDS_MIN : CONNECT_SECONDS_MAX;
    (void)snprintf(limit, sizeof limit, "%" PRId64, seconds);
    db->link = PQconnectdbParams(words, values, 1);
    if (PQstatus(db->link) == CONNECTION_OK && PQsetnonblocking(db->link, 1) == 0) {
        (void)PQsetNoticeProcessor(db->link, drop_notice, NULL);
        *out = &db->base;
        return hf__db_ok(err);
    }
    status = status_of_start(PQerrorMessage(db->link));
    status = hf__db_fail(err, status, db->shown, NULL, PQerrorMessage(db->link));
    postgres_close(&db->base);
    return status;
}

HF_API const struct hf__db_plugin *hf_db_plugin(void)
{
    static const struct hf__db_plugin plugin = {HF__DB_ABI, &ops};

    return &plugin;
}
