/* db.c - SQLite. */
#include "dbs/db.h"
#include "base/base.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY_MS = 10000 };

struct hf__db {
    sqlite3 *link;
    char shown[HF__URL_MAX];
};

static enum hf_status status_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return HF_BUSY;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return HF_DENIED;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_FULL:
        return HF_UNREACHABLE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return HF_CORRUPT;
    case SQLITE_NOMEM:
        return HF_NOMEM;
    default:
        return HF_INVALID;
    }
}

static enum hf_status refused(const struct hf__db *db, int code, struct hf_error *err)
{
    const char *said = db->link != NULL ? sqlite3_errmsg(db->link) : sqlite3_errstr(code);
    char why[160];

    hf__copy_printable(why, sizeof why, said);
    if (strncmp(said, "no such table", 13) == 0)
        return hf__fail(err, HF_INVALID,
                        "database %s: %s; run the migration that \"holdfast outbox sql\" prints",
                        db->shown, why);
    return hf__fail(err, status_of(code), "database %s: %s", db->shown, why);
}

static void close_db(struct hf__db *db)
{
    if (db == NULL)
        return;
    (void)sqlite3_close(db->link);
    free(db);
}

/* A file that is not there is a mistake, and not made. */
static enum hf_status open_db(const char *url, int cancel_fd, struct hf__db **out,
                              struct hf_error *err)
{
    const char *path = hf__url_rest(url, "sqlite");
    struct hf__db *db = calloc(1, sizeof *db);
    enum hf_status status = HF_OK;
    int code;

    (void)cancel_fd;
    *out = NULL;
    if (db == NULL)
        return hf__nomem(err);
    (void)snprintf(db->shown, sizeof db->shown, "%s", url);
    if (path == NULL || path[0] == '\0' || path[0] == ':') {
        free(db);
        return hf__fail(err, HF_INVALID, "a database in SQLite is sqlite:FILE");
    }
    code = sqlite3_open_v2(path, &db->link, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_busy_timeout(db->link, BUSY_MS);
    if (code != SQLITE_OK)
        status = refused(db, code, err);
    if (status != HF_OK) {
        close_db(db);
        return status;
    }
    *out = db;
    return HF_OK;
}

static bool read_row(sqlite3_stmt *statement, struct hf__db_answer *answer)
{
    struct hf__db_value values[HF__DB_COLUMNS_MAX];
    int columns = sqlite3_column_count(statement);

    for (int i = 0; i < columns && i < HF__DB_COLUMNS_MAX; i++) {
        bool null = sqlite3_column_type(statement, i) == SQLITE_NULL;

        /* As text also what is a blob: its bytes are the same, and a NUL is put behind them. */
        values[i].bytes = null ? NULL : (const char *)sqlite3_column_text(statement, i);
        values[i].len = (size_t)sqlite3_column_bytes(statement, i);
        if (!null && values[i].bytes == NULL)
            return false;
    }
    return answer->row == NULL || answer->row(values, answer->data);
}

static enum hf_status execute(struct hf__db *db, const char *sql, struct hf__db_answer *answer,
                              struct hf_error *err)
{
    sqlite3_stmt *statement = NULL;
    enum hf_status status = HF_OK;
    int code = sqlite3_prepare_v2(db->link, sql, -1, &statement, NULL);

    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW && !read_row(statement, answer)) {
            (void)sqlite3_finalize(statement);
            return hf__nomem(err);
        }
    }
    if (code != SQLITE_DONE)
        status = refused(db, code, err);
    else if (!sqlite3_stmt_readonly(statement))
        answer->changed = (uint64_t)sqlite3_changes(db->link);
    (void)sqlite3_finalize(statement);
    return status;
}

const struct hf__db_ops *hf__db_plugin(void)
{
    static const struct hf__db_ops ops = {.abi = HF__DB_ABI,
                                          .dialect = HF__SQLITE,
                                          .open = open_db,
                                          .close = close_db,
                                          .execute = execute};

    return &ops;
}
