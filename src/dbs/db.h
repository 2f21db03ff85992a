/* db.h - the databases of our user, for the commands that look into them or write to them.
 *
 * Holdfast itself links libc only, so an engine is a plugin: db-postgres.so, db-sqlite.so,
 * db-mariadb.so, looked for where stores are. A plugin is part of this tree, not an interface for
 * others; both sides are built together.
 *
 *     postgres://...                                        any libpq URI
 *     sqlite:PATH                                           must be there; it is not made
 *     mariadb://[user[:password]@][host[:port]]/database    also ?socket=PATH, ?password_file=PATH,
 *                                                           ?ca=PATH; password: $MYSQL_PWD
 *
 * A connection and its statements belong to one thread at a time. SQL is the engine's own, with its
 * own placeholders ($1 in PostgreSQL, ? elsewhere); transactions are BEGIN and COMMIT. What goes in
 * and what comes out is text with a length; data NULL is SQL's NULL.
 *
 * Every call ends by its patience. One that ran out of it, or was cancelled, after something was
 * sent leaves a broken connection behind: whatever comes next is HF_UNREACHABLE, and the caller
 * opens another. Statuses:
 *
 *   HF_OK
 *   HF_INVALID      the engine refused the statement, or the URL is wrong; state says why
 *   HF_DENIED       no such user, a wrong password, no right to do it
 *   HF_BUSY         rolled back because of others: a lock that was not to be had in time, a
 *                   deadlock, a serialization failure. End the transaction by ROLLBACK. SQLite: or
 *                   its time was over, and nothing was done.
 *   HF_UNREACHABLE  not executed: no connection, or none any more
 *   HF_UNKNOWN      no answer: it may have been executed
 *   HF_CANCELLED    the same, because of the cancel descriptor
 *   HF_CORRUPT      SQLite: the file is damaged, or no database
 *   HF_UNSUPPORTED  no plugin for this URL
 *   HF_NOMEM        it may have been executed
 */
#ifndef HF_DBS_DB_H
#define HF_DBS_DB_H

#include "base/migration.h"
#include "base/patience.h"
#include <holdfast/store.h>

enum { HF__DB_ABI = 1, HF__DB_STATE_SIZE = 6, HF__DB_PARAMS_MAX = 16 };

struct hf__db_text {
    const char *data; /* NULL: SQL's NULL. Else data[len] is a NUL byte, going in and coming out. */
    size_t len;
};

struct hf__db_error {
    struct hf_error said;
    /* The SQLSTATE, "" if nobody said one. SQLite has none: what a trigger raises is in message. */
    char state[HF__DB_STATE_SIZE];
    char message[HF_ERROR_TEXT_SIZE]; /* the engine's own words, one line; "" if there are none */
};

/* An answer: rows.c. Zeroed before its first use; every run clears it first. */
struct hf__db_rows {
    size_t count;    /* of rows */
    size_t columns;  /* 0: the statement answers no rows */
    int64_t changed; /* rows that were written, if there is no answer of rows */
    /* Inside: count * columns cells, whose data are offsets + 1 into bytes until rows_end. */
    struct hf__db_text *cells;
    size_t cells_size;
    char *bytes;
    size_t bytes_used, bytes_size;
    bool nomem;
};

const struct hf__db_text *hf__db_cell(const struct hf__db_rows *rows, size_t row, size_t column);
/* The same as a string: "" for NULL. */
const char *hf__db_string(const struct hf__db_rows *rows, size_t row, size_t column);
void hf__db_rows_release(struct hf__db_rows *rows);

/* What an implementation embeds as its first member. */
struct hf__db {
    const struct hf__db_ops *ops;
    const struct hf_host *host;
};
struct hf__db_statement {
    struct hf__db *db;
};

/* The slots are called through the functions below, which say what they do. */
struct hf__db_ops {
    const char *name; /* "PostgreSQL" */
    const char *const *schemes;
    enum hf_status (*open)(const struct hf_host *host, const char *url,
                           const struct hf__patience *patience, struct hf__db **out,
                           struct hf__db_error *err);
    void (*close)(struct hf__db *db);
    enum hf_status (*execute)(struct hf__db *db, const char *sql,
                              const struct hf__patience *patience, struct hf__db_rows *rows,
                              struct hf__db_error *err);
    enum hf_status (*prepare)(struct hf__db *db, const char *sql,
                              const struct hf__patience *patience, struct hf__db_statement **out,
                              struct hf__db_error *err);
    enum hf_status (*run)(struct hf__db_statement *statement, const struct hf__db_text *params,
                          size_t count, const struct hf__patience *patience,
                          struct hf__db_rows *rows, struct hf__db_error *err);
    void (*finish)(struct hf__db_statement *statement);
};

struct hf__db_plugin {
    unsigned abi; /* HF__DB_ABI */
    const struct hf__db_ops *ops;
};
/* The one symbol a plugin exports. */
HF_API const struct hf__db_plugin *hf_db_plugin(void);

/* Whose a URL is, and whether its plugin can be loaded: HF_OK, HF_INVALID, HF_UNSUPPORTED. Does not
 * connect. */
enum hf_status hf__db_find(const char *url, enum hf__dialect *out, struct hf_error *err);
/* Connects. *out is closed by hf__db_close. Errors name the URL without its password. */
enum hf_status hf__db_open(const char *url, const struct hf__patience *patience,
                           struct hf__db **out, struct hf__db_error *err);
/* Takes NULL. Its statements are finished before. */
void hf__db_close(struct hf__db *db);
/* One statement without parameters, run once: BEGIN, COMMIT, SET, or one that is put together each
 * time. *rows as in hf__db_run. */
enum hf_status hf__db_execute(struct hf__db *db, const char *sql,
                              const struct hf__patience *patience, struct hf__db_rows *rows,
                              struct hf__db_error *err);
/* Prepared once, run as often as one likes. */
enum hf_status hf__db_prepare(struct hf__db *db, const char *sql,
                              const struct hf__patience *patience, struct hf__db_statement **out,
                              struct hf__db_error *err);
/* params may be NULL with count 0; at most HF__DB_PARAMS_MAX, and as many as the statement has.
 * *rows gets the whole answer (on failure: none) and is good until its next use; NULL: it is not
 * wanted. PostgreSQL sends values as it has them: a bytea is its bytes, whole numbers and uuids are
 * made text here, and the statement has to make text of everything else. */
enum hf_status hf__db_run(struct hf__db_statement *statement, const struct hf__db_text *params,
                          size_t count, const struct hf__patience *patience,
                          struct hf__db_rows *rows, struct hf__db_error *err);
/* Takes NULL. */
void hf__db_finish(struct hf__db_statement *statement);

/* For plugins: rows.c. A row is columns cells in order; rows_end says whether they all fitted. */
void hf__db_rows_clear(struct hf__db_rows *rows);
void hf__db_rows_add(struct hf__db_rows *rows, const void *data, size_t len); /* NULL: NULL */
bool hf__db_rows_end(struct hf__db_rows *rows);
/* Fills in *err and returns status: "database SHOWN: message", which may be NULL, as may state. */
enum hf_status hf__db_fail(struct hf__db_error *err, enum hf_status status, const char *shown,
                           const char *state, const char *message);
enum hf_status hf__db_ok(struct hf__db_error *err);
/* What an SQLSTATE means. */
enum hf_status hf__db_status_of(const char *state);

#endif /* HF_DBS_DB_H */
