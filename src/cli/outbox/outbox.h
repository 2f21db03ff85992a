/* outbox.h - what the parts of `holdfast outbox` share: a database, and how statements reach it. */
#ifndef HF_CLI_OUTBOX_OUTBOX_H
#define HF_CLI_OUTBOX_OUTBOX_H

#include "cli/cli.h"
#include "dbs/db.h"
#include "outbox/outbox.h"

/* The database: database.c */

/* False: there is no memory. */
typedef bool outbox_row_fn(const struct hf__db_text *values, void *data);

struct outbox_answer {
    outbox_row_fn *row; /* for each row; NULL: rows are dropped */
    void *data;
    int64_t changed; /* out: rows that were written, where there are no rows to be read */
};

/* A statement that is prepared once for a connection. */
struct outbox_kept {
    char *sql; /* NULL: none */
    struct hf__db_statement *statement;
};
enum { OUTBOX_KEPT = 4 };

struct outbox_db {
    struct hf__db *link; /* NULL: not connected */
    struct outbox_kept kept[OUTBOX_KEPT];
    bool forgets; /* it does not know what was prepared: a pooler is between us */
    char url[CLI_URL_SIZE];
    char shown[CLI_URL_SIZE];
    struct hf__outbox_names names;
    int cancel_fd; /* -1: none; readable: connecting is given up */
    FILE *stream;  /* the statement that is being written */
    char *text;    /* what is in it */
    size_t text_len;
};

/* Statuses are those of src/dbs/db.h, but HF_UNREACHABLE stands for HF_UNKNOWN, too: the connection
 * is gone and may be opened anew, and what was sent may have been executed. Every statement here
 * can be repeated, and a transaction that was lost is settled again as a whole. */

/* Finds the plugin for db->url, which the caller has set; all else is zero. schema may be NULL.
 * HF_OK; HF_INVALID; HF_UNSUPPORTED; HF_NOMEM. Does not connect. outbox_db_release has to follow.
 */
enum hf_status outbox_db_init(struct outbox_db *db, const char *schema, struct hf_error *err);
void outbox_db_release(struct outbox_db *db);
/* Connects, within a few seconds, and prepares the session. */
enum hf_status outbox_db_open(struct outbox_db *db, struct hf_error *err);
void outbox_db_close(struct outbox_db *db);

/* Begins a statement: what is written to the stream is executed by outbox_db_do, as
 * hf__db_execute has it, within 15s. Memory that is short shows there. */
FILE *outbox_db_say(struct outbox_db *db);
enum hf_status outbox_db_do(struct outbox_db *db, struct outbox_answer *answer,
                            struct hf_error *err);
/* The same for one that is said again and again, with the same words: it is prepared once, and has
 * parameters where params is not NULL. HF_UNSUPPORTED: it has parameters, and db->forgets. */
enum hf_status outbox_db_again(struct outbox_db *db, const struct hf__db_text *params, size_t count,
                               struct outbox_answer *answer, struct hf_error *err);
/* The same for a statement that is a text already. */
enum hf_status outbox_db_run(struct outbox_db *db, const char *sql, struct hf_error *err);
/* Ends a transaction: COMMIT, if status is HF_OK, else ROLLBACK. Returns status, or what became of
 * the COMMIT. */
enum hf_status outbox_db_end(struct outbox_db *db, enum hf_status status, struct hf_error *err);

/* The options that name it. */
#define OUTBOX_SCHEMA_HELP "the schema (postgres); default: holdfast_outbox"
#define OUTBOX_DB_OPTIONS(db, schema)                                                              \
    CLI_DB_OPTION((db)->url, NULL),                                                                \
    {                                                                                              \
        0, "schema", CLI_TEXT, "S", OUTBOX_SCHEMA_HELP, NULL, schema, NULL                         \
    }

/* The commands, in the order of the overview: cmd_outbox.c, cmd_relay.c, people.c */
#define OUTBOX_COMMANDS(each) each(sql) each(relay) each(list) each(retry) each(drop)
#define OUTBOX_DECLARE(name)  extern const struct cli_command command_outbox_##name;
OUTBOX_COMMANDS(OUTBOX_DECLARE)
#undef OUTBOX_DECLARE

#endif /* HF_CLI_OUTBOX_OUTBOX_H */
