/* sqlite.c - SQLite: a file of this machine. */
#include "base/base.h"
#include "dbs/db.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_STEPS = 2000, PAUSE_NS = 5 * 1000 * 1000 };

struct sqlite_db {
    struct hf__db base;
    sqlite3 *link;
    struct hf__patience patience; /* of the call under way */
    char shown[HF__URL_MAX];
};

struct sqlite_statement {
    struct hf__db_statement base;
    sqlite3_stmt *compiled;
};

static bool over(const struct hf__patience *patience)
{
    return hf__patience_cancelled(patience) || hf__now_ns() >= patience->deadline_ns;
}

/* Called by the engine: while a statement runs, and when another connection has the lock. */
static int is_over(void *data)
{
    return over(&((struct sqlite_db *)data)->patience);
}

static int wait_for_lock(void *data, int tries)
{
    struct sqlite_db *db = data;

    (void)tries;
    return hf__patience_pause(&db->patience, hf__now_ns() + PAUSE_NS) == HF__WAITED_READY;
}

static enum hf_status status_of(const struct sqlite_db *db, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
        return hf__patience_cancelled(&db->patience) ? HF_CANCELLED : HF_BUSY;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
        return HF_DENIED;
    case SQLITE_NOMEM:
        return HF_NOMEM;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_FULL:
        return HF_UNREACHABLE;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return HF_CORRUPT;
    default:
        return HF_INVALID;
    }
}

static enum hf_status fail(struct sqlite_db *db, int rc, struct hf__db_error *err)
{
    return hf__db_fail(err, status_of(db, rc), db->shown, NULL, sqlite3_errmsg(db->link));
}

/* "sqlite:PATH", "sqlite:///PATH". */
static const char *path_of(const char *url)
{
    const char *path = url + strlen("sqlite:");

    return strncmp(path, "///", 3) == 0 ? path + 2 : path;
}

static enum hf_status sqlite_open(const struct hf_host *host, const char *url,
                                  const struct hf__patience *patience, struct hf__db **out,
                                  struct hf__db_error *err);

static void sqlite_close(struct hf__db *base)
{
    struct sqlite_db *db = (struct sqlite_db *)base;

    (void)sqlite3_close_v2(db->link);
    free(db);
}

static enum hf_status sqlite_prepare(struct hf__db *base, const char *sql,
                                     const struct hf__patience *patience,
                                     struct hf__db_statement **out, struct hf__db_error *err)
{
    struct sqlite_db *db = (struct sqlite_db *)base;
    struct sqlite_statement *statement = calloc(1, sizeof *statement);
    int rc;

    if (statement == NULL)
        return hf__nomem(&err->said);
    db->patience = *patience;
    rc = sqlite3_prepare_v3(db->link, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement->compiled,
                            NULL);
    if (rc != SQLITE_OK || statement->compiled == NULL) {
        free(statement);
        return rc != SQLITE_OK ? fail(db, rc, err)
                               : hf__db_fail(err, HF_INVALID, db->shown, NULL, "no statement");
    }
    statement->base.db = base;
    *out = &statement->base;
    return hf__db_ok(err);
}

static void collect(sqlite3_stmt *compiled, struct hf__db_rows *rows)
{
    for (int i = 0; i < (int)rows->columns; i++) {
        const void *data = sqlite3_column_type(compiled, i) == SQLITE_BLOB
                               ? sqlite3_column_blob(compiled, i)
                               : (const void *)sqlite3_column_text(compiled, i);
        int len = sqlite3_column_bytes(compiled, i);

        if (data == NULL && sqlite3_column_type(compiled, i) == SQLITE_BLOB)
            data = ""; /* an empty one */
        hf__db_rows_add(rows, data, (size_t)len);
    }
}

static int bind(sqlite3_stmt *compiled, const struct hf__db_text *params, size_t count)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        rc = params[i].data == NULL ? sqlite3_bind_null(compiled, (int)i + 1)
                                    : sqlite3_bind_text(compiled, (int)i + 1, params[i].data,
                                                        (int)params[i].len, SQLITE_STATIC);
    return rc;
}

static enum hf_status sqlite_run(struct hf__db_statement *base, const struct hf__db_text *params,
                                 size_t count, const struct hf__patience *patience,
                                 struct hf__db_rows *rows, struct hf__db_error *err)
{
    struct sqlite_statement *statement = (struct sqlite_statement *)base;
    struct sqlite_db *db = (struct sqlite_db *)base->db;
    sqlite3_stmt *compiled = statement->compiled;
    enum hf_status status;
    int rc;

    db->patience = *patience;
    if (count != (size_t)sqlite3_bind_parameter_count(compiled))
        return hf__db_fail(err, HF_INVALID, db->shown, NULL, "another number of parameters");
    rc = bind(compiled, params, count);
    rows->columns = (size_t)sqlite3_column_count(compiled);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(compiled);
        if (rc == SQLITE_ROW)
            collect(compiled, rows);
    }
    rows->changed = rows->columns == 0 ? sqlite3_changes64(db->link) : 0;
    status = rc == SQLITE_DONE ? hf__db_ok(err) : fail(db, rc, err);
    (void)sqlite3_reset(compiled); /* ends the statement's own transaction */
    (void)sqlite3_clear_bindings(compiled);
    return status;
}

static void sqlite_finish(struct hf__db_statement *base)
{
    struct sqlite_statement *statement = (struct sqlite_statement *)base;

    (void)sqlite3_finalize(statement->compiled);
    free(statement);
}

static enum hf_status sqlite_execute(struct hf__db *base, const char *sql,
                                     const struct hf__patience *patience, struct hf__db_rows *rows,
                                     struct hf__db_error *err)
{
    struct hf__db_statement *statement = NULL;
    enum hf_status status = sqlite_prepare(base, sql, patience, &statement, err);

    if (statement == NULL)
        return status;
    status = sqlite_run(statement, NULL, 0, patience, rows, err);
    sqlite_finish(statement);
    return status;
}

static const char *const schemes[] = {"sqlite", NULL};
static const struct hf__db_ops ops = {.name = "SQLite",
                                      .schemes = schemes,
                                      .open = sqlite_open,
                                      .close = sqlite_close,
                                      .execute = sqlite_execute,
                                      .prepare = sqlite_prepare,
                                      .run = sqlite_run,
                                      .finish = sqlite_finish};

static enum hf_status sqlite_open(const struct hf_host *host, const char *url,
                                  const struct hf__patience *patience, struct hf__db **out,
                                  struct hf__db_error *err)
{
    const char *path = path_of(url);
    struct sqlite_db *db;
    enum hf_status status;
    int rc;

    if (path[0] == '\0' || path[0] == ':')
        return hf__fail(&err->said, HF_INVALID, "a database of SQLite is a file: sqlite:PATH");
    db = calloc(1, sizeof *db);
    if (db == NULL)
        return hf__nomem(&err->said);
    db->base = (struct hf__db){.ops = &ops, .host = host};
    db->patience = *patience;
    host->redact(db->shown, sizeof db->shown, url);
    rc = sqlite3_open_v2(path, &db->link, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_progress_handler(db->link, LOOK_EVERY_STEPS, is_over, db);
        (void)sqlite3_busy_handler(db->link, wait_for_lock, db);
        (void)sqlite3_extended_result_codes(db->link, 1);
        /* The engine opens a file at its first use only. */
        rc = sqlite3_exec(db->link, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        *out = &db->base;
        return hf__db_ok(err);
    }
    status = fail(db, rc, err);
    sqlite_close(&db->base);
    return status;
}

HF_API const struct hf__db_plugin *hf_db_plugin(void)
{
    static const struct hf__db_plugin plugin = {HF__DB_ABI, &ops};

    return &plugin;
}
