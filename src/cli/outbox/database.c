/* database.c - the database of an outbox: statements to it, through src/dbs. */
#include "cli/outbox/outbox.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { CONNECT_MS = 5000, ANSWER_MS = 15000 };

enum hf_status outbox_db_init(struct outbox_db *db, const char *schema, struct hf_error *err)
{
    enum hf__dialect dialect;
    enum hf_status status;

    db->cancel_fd = -1;
    hf__url_redact(db->shown, sizeof db->shown, db->url);
    status = hf__db_find(db->url, &dialect, err);
    if (status == HF_OK)
        status = hf__outbox_names(&db->names, dialect, schema, err);
    if (status != HF_OK)
        return status;
    db->stream = open_memstream(&db->text, &db->text_len);
    return db->stream != NULL ? HF_OK : hf__nomem(err);
}

void outbox_db_release(struct outbox_db *db)
{
    outbox_db_close(db);
    if (db->stream != NULL)
        (void)fclose(db->stream);
    free(db->text);
    explicit_bzero(db->url, sizeof db->url);
}

/* What the engines say of a table, a column or a schema that is not there. */
static bool is_missing(const struct hf__db_error *err)
{
    static const char *const states[] = {"42P01", "42703", "3F000", "42S02", "42S22"};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(err->state, states[i]) == 0)
            return true;
    return strncmp(err->message, "no such table", strlen("no such table")) == 0 ||
           strncmp(err->message, "no such column", strlen("no such column")) == 0;
}

static enum hf_status told(enum hf_status status, const struct hf__db_error *said,
                           const struct outbox_db *db, struct hf_error *err)
{
    *err = said->said;
    if (status == HF_UNKNOWN)
        err->code = HF_UNREACHABLE;
    if (status == HF_INVALID && is_missing(said))
        return hf__fail(
            err, HF_INVALID,
            "database %.100s: %s; run the migration that \"holdfast outbox sql\" prints", db->shown,
            said->message);
    return err->code;
}

enum hf_status outbox_db_open(struct outbox_db *db, struct hf_error *err)
{
    const char *const *session = hf__outbox_session(db->names.dialect);
    struct hf__patience patience = hf__patience_for(CONNECT_MS * HF__NS_PER_MS, db->cancel_fd);
    struct hf__db_error said;
    enum hf_status status = told(hf__db_open(db->url, &patience, &db->link, &said), &said, db, err);

    for (; status == HF_OK && *session != NULL; session++)
        status = outbox_db_run(db, *session, err);
    if (status != HF_OK)
        outbox_db_close(db);
    return status;
}

static void forget_kept(struct outbox_db *db)
{
    for (size_t i = 0; i < OUTBOX_KEPT; i++) {
        hf__db_finish(db->kept[i].statement);
        free(db->kept[i].sql);
        db->kept[i] = (struct outbox_kept){.sql = NULL};
    }
}

void outbox_db_close(struct outbox_db *db)
{
    forget_kept(db);
    hf__db_close(db->link);
    db->link = NULL;
}

FILE *outbox_db_say(struct outbox_db *db)
{
    rewind(db->stream);
    return db->stream;
}

/* Not cancelled half-way: what was answered is to be settled even when we are told to stop. */
static enum hf_status execute(struct outbox_db *db, const char *sql, struct hf__db_rows *rows,
                              struct hf_error *err)
{
    struct hf__patience patience = hf__patience_for(ANSWER_MS * HF__NS_PER_MS, -1);
    struct hf__db_error said;

    return told(hf__db_execute(db->link, sql, &patience, rows, &said), &said, db, err);
}

/* What was written to the stream, whole. */
static enum hf_status end_text(struct outbox_db *db, struct hf_error *err)
{
    if (fputc('\0', db->stream) == EOF || fflush(db->stream) != 0 || ferror(db->stream) != 0)
        return hf__nomem(err);
    return HF_OK;
}

static enum hf_status hand_out(struct hf__db_rows *rows, enum hf_status status,
                               struct outbox_answer *answer, struct hf_error *err)
{
    if (answer != NULL)
        answer->changed = rows->changed;
    if (answer != NULL && answer->row != NULL)
        for (size_t row = 0; row < rows->count && status == HF_OK; row++)
            if (!answer->row(hf__db_cell(rows, row, 0), answer->data))
                status = hf__nomem(err);
    hf__db_rows_release(rows);
    return status;
}

enum hf_status outbox_db_do(struct outbox_db *db, struct outbox_answer *answer,
                            struct hf_error *err)
{
    struct hf__db_rows rows = {.count = 0};
    enum hf_status status = end_text(db, err);

    if (status == HF_OK)
        status = execute(db, db->text, &rows, err);
    return hand_out(&rows, status, answer, err);
}

/* The prepared statement for db->text, made if need be; the oldest, in the first place, goes. */
static enum hf_status find_kept(struct outbox_db *db, const struct hf__patience *patience,
                                struct hf__db_statement **out, struct hf__db_error *said)
{
    struct outbox_kept *last = &db->kept[OUTBOX_KEPT - 1];
    enum hf_status status;

    for (size_t i = 0; i < OUTBOX_KEPT; i++)
        if (db->kept[i].sql != NULL && strcmp(db->kept[i].sql, db->text) == 0) {
            *out = db->kept[i].statement;
            return hf__db_ok(said);
        }
    status = hf__db_prepare(db->link, db->text, patience, out, said);
    if (status != HF_OK)
        return status;
    hf__db_finish(db->kept[0].statement);
    free(db->kept[0].sql);
    memmove(db->kept, db->kept + 1, sizeof db->kept - sizeof *last);
    *last = (struct outbox_kept){.sql = strdup(db->text), .statement = *out};
    return HF_OK;
}

/* Through a pooler that shares sessions the next statement may reach another server process. */
static bool is_forgotten(const struct hf__db_error *said)
{
    return strcmp(said->state, "26000") == 0;
}

/* A column has another type than when it was prepared. */
static bool is_outdated(const struct hf__db_error *said)
{
    return strcmp(said->state, "0A000") == 0;
}

static enum hf_status run_kept(struct outbox_db *db, const struct hf__db_text *params, size_t count,
                               struct hf__db_rows *rows, struct hf__db_error *said)
{
    struct hf__patience patience = hf__patience_for(ANSWER_MS * HF__NS_PER_MS, -1);
    struct hf__db_statement *statement;
    enum hf_status status = find_kept(db, &patience, &statement, said);

    return status == HF_OK ? hf__db_run(statement, params, count, &patience, rows, said) : status;
}

/* Both refusals come before anything was executed. */
enum hf_status outbox_db_again(struct outbox_db *db, const struct hf__db_text *params, size_t count,
                               struct outbox_answer *answer, struct hf_error *err)
{
    struct hf__db_rows rows = {.count = 0};
    struct hf__db_error said;
    enum hf_status status = end_text(db, err);

    if (status != HF_OK)
        return status;
    if (!db->forgets) {
        status = run_kept(db, params, count, &rows, &said);
        if (status == HF_INVALID && is_outdated(&said)) {
            forget_kept(db);
            status = run_kept(db, params, count, &rows, &said);
        }
        db->forgets = status == HF_INVALID && is_forgotten(&said);
        status = told(status, &said, db, err);
    }
    if (db->forgets)
        status = params == NULL ? execute(db, db->text, &rows, err)
                                : hf__fail(err, HF_UNSUPPORTED, "nothing is kept");
    return hand_out(&rows, status, answer, err);
}

enum hf_status outbox_db_run(struct outbox_db *db, const char *sql, struct hf_error *err)
{
    return execute(db, sql, NULL, err);
}

enum hf_status outbox_db_end(struct outbox_db *db, enum hf_status status, struct hf_error *err)
{
    struct hf_error dropped;

    if (status == HF_OK)
        status = outbox_db_run(db, "COMMIT", err);
    if (status == HF_OK || status == HF_UNREACHABLE)
        return status;
    /* If even that fails, the end of the connection rolls it back. */
    if (outbox_db_run(db, "ROLLBACK", &dropped) != HF_OK)
        outbox_db_close(db);
    return status;
}
