/* mariadb.c - MariaDB by its C connector, whose calls can be made to wait where we say. */
#include "base/base.h"
#include "dbs/db.h"
#include "dbs/mariadb/url.h"

#include <fcntl.h>
#include <mariadb/mysql.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_FIRST = 1024 };

struct mariadb_db {
    struct hf__db base;
    MYSQL *link; /* NULL: gone */
    char shown[HF__URL_MAX];
};

struct mariadb_statement {
    struct hf__db_statement base;
    MYSQL_STMT *prepared;
};

/* A call that is given up half-way leaves the connector in the middle of it: nothing but closing is
 * allowed then, and not a word to the server, which would have to be waited for. Statements outlive
 * their link. */
static void abandon(struct mariadb_db *db)
{
    if (db->link == NULL)
        return;
    (void)mariadb_cancel(db->link);
    mysql_close(db->link);
    db->link = NULL;
}

static enum hf_status gone(struct mariadb_db *db, enum hf_status status, const char *why,
                           struct hf__db_error *err)
{
    status = hf__db_fail(err, status, db->shown, NULL, why);
    abandon(db);
    return status;
}

/* Errors of the connector itself (2000 and up) are about the connection. */
static enum hf_status refused(struct mariadb_db *db, unsigned number, const char *state,
                              const char *message, struct hf__db_error *err)
{
    static const struct {
        unsigned number;
        enum hf_status status;
    } rules[] = {
        {1020, HF_BUSY},    {1021, HF_UNREACHABLE}, {1040, HF_UNREACHABLE}, {1044, HF_DENIED},
        {1045, HF_DENIED},  {1049, HF_INVALID},     {1053, HF_UNREACHABLE}, {1114, HF_UNREACHABLE},
        {1142, HF_DENIED},  {1143, HF_DENIED},      {1203, HF_UNREACHABLE}, {1205, HF_BUSY},
        {1206, HF_BUSY},    {1213, HF_BUSY},        {1227, HF_DENIED},      {1290, HF_UNREACHABLE},
        {1317, HF_BUSY},    {1370, HF_DENIED},      {1698, HF_DENIED},      {1836, HF_UNREACHABLE},
        {1927, HF_UNKNOWN}, {1969, HF_BUSY}};

    if (number >= 2000 && number < 3000)
        return gone(db, HF_UNKNOWN, message, err);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].number == number)
            return hf__db_fail(err, rules[i].status, db->shown, state, message);
    return hf__db_fail(err, hf__db_status_of(state), db->shown, state, message);
}

static enum hf_status refused_statement(struct mariadb_db *db, MYSQL_STMT *prepared,
                                        struct hf__db_error *err)
{
    return refused(db, mysql_stmt_errno(prepared), mysql_stmt_sqlstate(prepared),
                   mysql_stmt_error(prepared), err);
}

static enum hf_status refused_link(struct mariadb_db *db, struct hf__db_error *err)
{
    return refused(db, mysql_errno(db->link), mysql_sqlstate(db->link), mysql_error(db->link), err);
}

/* Waits for what the connector waits for. What happened, for its next step; 0 after an error: then
 * the call is given up where it stands. */
static int wait_for(struct mariadb_db *db, int wanted, const struct hf__patience *patience,
                    struct hf__db_error *err)
{
    short events = (short)((wanted & MYSQL_WAIT_READ ? POLLIN : 0) |
                           (wanted & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
                           (wanted & MYSQL_WAIT_EXCEPT ? POLLPRI : 0));

    switch (hf__patience_wait(patience, mysql_get_socket(db->link), events)) {
    case HF__WAITED_CANCELLED:
        (void)gone(db, HF_CANCELLED, "given up while it was under way", err);
        return 0;
    case HF__WAITED_TIMEOUT:
        (void)gone(db, HF_UNKNOWN, "no answer in time; it may have been executed", err);
        return 0;
    case HF__WAITED_READY:
        break;
    }
    return wanted & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE | MYSQL_WAIT_EXCEPT);
}

/* The connector's calls come in two parts, of which the second is repeated until it is done. */
#define DRIVE(db, patience, err, start, cont)                                                      \
    do {                                                                                           \
        int wanted_ = (start);                                                                     \
        while (wanted_ != 0) {                                                                     \
            int ready_ = wait_for(db, wanted_, patience, err);                                     \
            if (ready_ == 0)                                                                       \
                return (err)->said.code;                                                           \
            wanted_ = (cont);                                                                      \
        }                                                                                          \
    } while (0)

static enum hf_status usable(struct mariadb_db *db, struct hf__db_error *err)
{
    return db->link == NULL ? gone(db, HF_UNREACHABLE, "the connection is gone", err) : HF_OK;
}

static void collect_result(MYSQL_RES *result, struct hf__db_rows *rows)
{
    MYSQL_ROW row;

    rows->columns = mysql_num_fields(result);
    while ((row = mysql_fetch_row(result)) != NULL) {
        const unsigned long *lengths = mysql_fetch_lengths(result);

        for (size_t i = 0; i < rows->columns; i++)
            hf__db_rows_add(rows, row[i], lengths[i]);
    }
}

static enum hf_status mariadb_execute(struct hf__db *base, const char *sql,
                                      const struct hf__patience *patience, struct hf__db_rows *rows,
                                      struct hf__db_error *err)
{
    struct mariadb_db *db = (struct mariadb_db *)base;
    enum hf_status status = usable(db, err);
    MYSQL_RES *result = NULL;
    int rc = 0;

    if (status != HF_OK)
        return status;
    DRIVE(db, patience, err, mysql_real_query_start(&rc, db->link, sql, strlen(sql)),
          mysql_real_query_cont(&rc, db->link, ready_));
    if (rc != 0)
        return refused_link(db, err);
    DRIVE(db, patience, err, mysql_store_result_start(&result, db->link),
          mysql_store_result_cont(&result, db->link, ready_));
    if (mysql_errno(db->link) != 0)
        return refused_link(db, err);
    if (result == NULL)
        rows->changed = (int64_t)mysql_affected_rows(db->link);
    else
        collect_result(result, rows);
    mysql_free_result(result);
    return hf__db_ok(err);
}

static void mariadb_finish(struct hf__db_statement *base)
{
    struct mariadb_statement *statement = (struct mariadb_statement *)base;

    (void)mysql_stmt_close(statement->prepared);
    free(statement);
}

static enum hf_status prepare(struct mariadb_db *db, MYSQL_STMT *prepared, const char *sql,
                              const struct hf__patience *patience, struct hf__db_error *err)
{
    const bool yes = true;
    int rc = 0;

    DRIVE(db, patience, err, mysql_stmt_prepare_start(&rc, prepared, sql, strlen(sql)),
          mysql_stmt_prepare_cont(&rc, prepared, ready_));
    if (rc != 0)
        return refused_statement(db, prepared, err);
    /* So that an answer says how long its longest cells are. */
    (void)mysql_stmt_attr_set(prepared, STMT_ATTR_UPDATE_MAX_LENGTH, &yes);
    return hf__db_ok(err);
}

static enum hf_status mariadb_prepare(struct hf__db *base, const char *sql,
                                      const struct hf__patience *patience,
                                      struct hf__db_statement **out, struct hf__db_error *err)
{
    struct mariadb_db *db = (struct mariadb_db *)base;
    enum hf_status status = usable(db, err);
    struct mariadb_statement *statement;

    if (status != HF_OK)
        return status;
    statement = calloc(1, sizeof *statement);
    if (statement == NULL)
        return hf__nomem(&err->said);
    statement->base.db = base;
    statement->prepared = mysql_stmt_init(db->link);
    if (statement->prepared == NULL) {
        free(statement);
        return hf__nomem(&err->said);
    }
    status = prepare(db, statement->prepared, sql, patience, err);
    if (status == HF_OK)
        *out = &statement->base;
    else
        mariadb_finish(&statement->base);
    return status;
}

/* The connector writes a row into buffers that are bound before; every column as text. */
struct cells {
    MYSQL_BIND *binds;
    unsigned long *lengths;
    my_bool *nulls;
    char *bytes;
};

static void cells_release(struct cells *cells)
{
    free(cells->binds);
    free(cells->lengths);
    free(cells->nulls);
    free(cells->bytes);
}

static bool cells_init(struct cells *cells, MYSQL_STMT *prepared, unsigned columns)
{
    MYSQL_RES *about = mysql_stmt_result_metadata(prepared);
    size_t total = 0;
    size_t at = 0;

    *cells = (struct cells){.binds = calloc(columns, sizeof *cells->binds),
                            .lengths = calloc(columns, sizeof *cells->lengths),
                            .nulls = calloc(columns, sizeof *cells->nulls)};
    for (unsigned i = 0; about != NULL && i < columns; i++)
        total += mysql_fetch_field_direct(about, i)->max_length + CELL_FIRST;
    cells->bytes = malloc(total + 1);
    if (about == NULL || cells->binds == NULL || cells->lengths == NULL || cells->nulls == NULL ||
        cells->bytes == NULL) {
        mysql_free_result(about);
        return false;
    }
    for (unsigned i = 0; i < columns; i++) {
        size_t room = mysql_fetch_field_direct(about, i)->max_length + CELL_FIRST;

        cells->binds[i] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
                                       .buffer = cells->bytes + at,
                                       .buffer_length = room,
                                       .length = &cells->lengths[i],
                                       .is_null = &cells->nulls[i]};
        at += room;
    }
    mysql_free_result(about);
    return mysql_stmt_bind_result(prepared, cells->binds) == 0;
}

/* The rows are in memory already. */
static enum hf_status collect(struct mariadb_db *db, MYSQL_STMT *prepared, struct hf__db_rows *rows,
                              struct hf__db_error *err)
{
    struct cells cells;
    enum hf_status status = hf__db_ok(err);
    int rc = 0;

    rows->columns = mysql_stmt_field_count(prepared);
    if (!cells_init(&cells, prepared, (unsigned)rows->columns))
        status = hf__nomem(&err->said);
    while (status == HF_OK && (rc = mysql_stmt_fetch(prepared)) == 0)
        for (size_t i = 0; i < rows->columns; i++)
            hf__db_rows_add(rows, cells.nulls[i] ? NULL : cells.binds[i].buffer, cells.lengths[i]);
    if (status == HF_OK && rc != MYSQL_NO_DATA)
        status = rc == MYSQL_DATA_TRUNCATED
                     ? hf__db_fail(err, HF_INVALID, db->shown, NULL, "a cell that was cut")
                     : refused_statement(db, prepared, err);
    cells_release(&cells);
    return status;
}

static enum hf_status fetch_answer(struct mariadb_db *db, MYSQL_STMT *prepared,
                                   const struct hf__patience *patience, struct hf__db_rows *rows,
                                   struct hf__db_error *err)
{
    enum hf_status status;
    int rc = 0;

    if (mysql_stmt_field_count(prepared) == 0) {
        rows->changed = (int64_t)mysql_stmt_affected_rows(prepared);
        return hf__db_ok(err);
    }
    DRIVE(db, patience, err, mysql_stmt_store_result_start(&rc, prepared),
          mysql_stmt_store_result_cont(&rc, prepared, ready_));
    if (rc != 0)
        return refused_statement(db, prepared, err);
    status = collect(db, prepared, rows, err);
    (void)mysql_stmt_free_result(prepared);
    return status;
}

/* CALL answers with the procedure's rows and then with a result of its own. */
static enum hf_status drop_rest(struct mariadb_db *db, MYSQL_STMT *prepared,
                                const struct hf__patience *patience, struct hf__db_error *err)
{
    int rc = 0;

    while (mysql_stmt_more_results(prepared)) {
        DRIVE(db, patience, err, mysql_stmt_next_result_start(&rc, prepared),
              mysql_stmt_next_result_cont(&rc, prepared, ready_));
        if (rc > 0)
            return refused_statement(db, prepared, err);
        (void)mysql_stmt_free_result(prepared);
    }
    return hf__db_ok(err);
}

static enum hf_status mariadb_run(struct hf__db_statement *base, const struct hf__db_text *params,
                                  size_t count, const struct hf__patience *patience,
                                  struct hf__db_rows *rows, struct hf__db_error *err)
{
    struct mariadb_db *db = (struct mariadb_db *)base->db;
    MYSQL_STMT *prepared = ((struct mariadb_statement *)base)->prepared;
    MYSQL_BIND binds[HF__DB_PARAMS_MAX] = {0};
    enum hf_status status = usable(db, err);
    int rc = 0;

    if (status != HF_OK)
        return status;
    if (count > HF__DB_PARAMS_MAX || count != mysql_stmt_param_count(prepared))
        return hf__db_fail(err, HF_INVALID, db->shown, NULL, "another number of parameters");
    for (size_t i = 0; i < count; i++) {
        binds[i].buffer_type = params[i].data == NULL ? MYSQL_TYPE_NULL : MYSQL_TYPE_STRING;
        binds[i].buffer = (void *)(uintptr_t)params[i].data;
        binds[i].buffer_length = params[i].len;
    }
    if (count > 0 && mysql_stmt_bind_param(prepared, binds) != 0)
        return refused_statement(db, prepared, err);
    DRIVE(db, patience, err, mysql_stmt_execute_start(&rc, prepared),
          mysql_stmt_execute_cont(&rc, prepared, ready_));
    if (rc != 0)
        return refused_statement(db, prepared, err);
    status = fetch_answer(db, prepared, patience, rows, err);
    return status == HF_OK ? drop_rest(db, prepared, patience, err) : status;
}

static void mariadb_close(struct hf__db *base)
{
    struct mariadb_db *db = (struct mariadb_db *)base;

    if (db->link != NULL)
        mysql_close(db->link);
    free(db);
}

static enum hf_status mariadb_open(const struct hf_host *host, const char *url,
                                   const struct hf__patience *patience, struct hf__db **out,
                                   struct hf__db_error *err);

static const char *const schemes[] = {"mariadb", "mysql", NULL};
static const struct hf__db_ops ops = {.name = "MariaDB",
                                      .schemes = schemes,
                                      .open = mariadb_open,
                                      .close = mariadb_close,
                                      .execute = mariadb_execute,
                                      .prepare = mariadb_prepare,
                                      .run = mariadb_run,
                                      .finish = mariadb_finish};

static enum hf_status connect_to(struct mariadb_db *db, const struct mariadb_url *url,
                                 const struct hf__patience *patience, struct hf__db_error *err)
{
    const struct hf__url *to = &url->common;
    const char *host = to->host_count > 0 ? to->hosts[0].host : NULL;
    unsigned port = to->host_count > 0 ? to->hosts[0].port : 0;
    const char *user = to->user[0] != '\0' ? to->user : NULL;
    const char *file = url->socket[0] != '\0' ? url->socket : NULL;
    MYSQL *done = NULL;

    (void)mysql_optionsv(db->link, MYSQL_OPT_NONBLOCK, NULL);
    (void)mysql_optionsv(db->link, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (url->ca[0] != '\0') {
        const my_bool yes = 1;

        (void)mysql_optionsv(db->link, MYSQL_OPT_SSL_CA, url->ca);
        (void)mysql_optionsv(db->link, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
    }
    DRIVE(db, patience, err,
          mysql_real_connect_start(&done, db->link, host, user, to->password, url->database, port,
                                   file, 0),
          mysql_real_connect_cont(&done, db->link, ready_));
    if (done == NULL)
        return refused_link(db, err);
    /* A command that we start must not inherit it. */
    (void)fcntl(mysql_get_socket(db->link), F_SETFD, FD_CLOEXEC);
    return hf__db_ok(err);
}

static enum hf_status mariadb_open(const struct hf_host *host, const char *url,
                                   const struct hf__patience *patience, struct hf__db **out,
                                   struct hf__db_error *err)
{
    struct mariadb_url parsed = {.socket = ""};
    enum hf_status status = mariadb_url_read(url, &parsed, &err->said);
    struct mariadb_db *db;

    if (status != HF_OK)
        return status;
    db = calloc(1, sizeof *db);
    if (db == NULL)
        return hf__nomem(&err->said);
    db->base = (struct hf__db){.ops = &ops, .host = host};
    host->redact(db->shown, sizeof db->shown, url);
    db->link = mysql_init(NULL);
    status = db->link != NULL ? connect_to(db, &parsed, patience, err) : hf__nomem(&err->said);
    explicit_bzero(&parsed, sizeof parsed);
    if (status == HF_OK) {
        *out = &db->base;
        return status;
    }
    mariadb_close(&db->base);
    /* Nothing was asked for yet. */
    return status == HF_UNKNOWN ? (err->said.code = HF_UNREACHABLE) : status;
}

HF_API const struct hf__db_plugin *hf_db_plugin(void)
{
    static const struct hf__db_plugin plugin = {HF__DB_ABI, &ops};

    return &plugin;
}
