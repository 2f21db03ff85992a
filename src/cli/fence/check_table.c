/* check_table.c - `fence check --db`: asks the database itself, by the queries of
 * src/fence/sql/check_*.sql. Each answers what it found. */
#include "cli/fence/fence.h"

#include "base/base.h"
#include "dbs/db.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT_MS = 20000, NAME_MAX_BYTES = 200, COMMAND_SIZE = 1024, PARAMS = 4 };

#define SECTION "-- @section "

static const char postgres_sql[] =
#include "fence/check_postgres.inc"
    ;
static const char sqlite_sql[] =
#include "fence/check_sqlite.inc"
    ;
static const char mariadb_sql[] =
#include "fence/check_mariadb.inc"
    ;

static const struct engine {
    const char *name; /* as the plugin says it */
    const char *dialect;
    const char *client; /* what the migration is piped into */
    const char *sql;
    bool quoted; /* the table is given as it stands in SQL */
} engines[] = {
    {"PostgreSQL", "postgres", "psql -v ON_ERROR_STOP=1", postgres_sql, true},
    {"SQLite", "sqlite", "sqlite3 -bail FILE", sqlite_sql, false},
    {"MariaDB", "mariadb", "mariadb DATABASE", mariadb_sql, false},
};

struct inspection {
    struct hf__db *db;
    const struct engine *engine;
    char table[4 * NAME_MAX_BYTES + 8];
    char again[COMMAND_SIZE]; /* how the migration is run */
    struct hf__db_text params[PARAMS];
    struct hf__db_rows rows;
    struct hf__patience patience;
};

/* As an identifier, or as a word of the shell. inside: what stands for a mark in the text. */
static size_t put_quoted(char *out, const char *text, char mark, const char *inside)
{
    size_t used = 0;

    out[used++] = mark;
    for (; *text != '\0'; text++) {
        if (*text == mark) {
            memcpy(out + used, inside, strlen(inside));
            used += strlen(inside);
        } else {
            out[used++] = *text;
        }
    }
    out[used++] = mark;
    out[used] = '\0';
    return used;
}

static void say_again(struct inspection *inspection, const struct fence_target *what)
{
    char word[4 * NAME_MAX_BYTES + 8];
    char schema[4 * NAME_MAX_BYTES + 20] = "";
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

    if (what->table[strspn(what->table, plain)] == '\0')
        (void)snprintf(word, sizeof word, "%s", what->table);
    else
        (void)put_quoted(word, what->table, '\'', "'\\''");
    if (what->schema != NULL) {
        memcpy(schema, " --schema ", sizeof " --schema ");
        (void)put_quoted(schema + strlen(schema), what->schema, '\'', "'\\''");
    }
    (void)snprintf(inspection->again, sizeof inspection->again,
                   "run its migration: holdfast fence sql --dialect %s%s --table %.400s | %s",
                   inspection->engine->dialect, schema, word, inspection->engine->client);
}

static void name_table(struct inspection *inspection, const struct fence_target *what)
{
    size_t used = 0;

    if (!inspection->engine->quoted) {
        (void)snprintf(inspection->table, sizeof inspection->table, "%s", what->table);
        return;
    }
    if (what->schema != NULL) {
        used = put_quoted(inspection->table, what->schema, '"', "\"\"");
        inspection->table[used++] = '.';
    }
    (void)put_quoted(inspection->table + used, what->table, '"', "\"\"");
}

/* The next section: its query, to be freed, and *at behind it. NULL: there is none, or no memory.
 */
static char *next_query(const char **at)
{
    const char *text = strstr(*at, SECTION);
    const char *end;

    if (text == NULL)
        return NULL;
    text = strchr(text, '\n') + 1;
    end = strstr(text, SECTION);
    if (end == NULL)
        end = text + strlen(text);
    *at = end;
    return strndup(text, (size_t)(end - text));
}

/* True: what comes next would find nothing to look at. */
static bool report_rows(const struct hf__db_rows *rows, struct fence_report *report)
{
    bool stop = false;

    for (size_t row = 0; row < rows->count && rows->columns == 4; row++) {
        const char *level = hf__db_string(rows, row, 0);
        bool note = strcmp(level, "note") == 0 || strcmp(level, "stop-note") == 0;

        fence_found(report, note ? FENCE_NOTE : FENCE_PROBLEM, hf__db_string(rows, row, 1),
                    hf__db_string(rows, row, 2), hf__db_string(rows, row, 3));
        stop = stop || strncmp(level, "stop", 4) == 0;
    }
    return stop;
}

static enum hf_status ask(struct inspection *inspection, const char *sql, struct hf__db_error *err)
{
    struct hf__db_statement *statement;
    enum hf_status status =
        hf__db_prepare(inspection->db, sql, &inspection->patience, &statement, err);

    if (status == HF_OK)
        status = hf__db_run(statement, inspection->params, PARAMS, &inspection->patience,
                            &inspection->rows, err);
    hf__db_finish(statement);
    return status;
}

/* What we may not see, or what is too damaged to be asked, is not in order. */
static int not_answered(const struct inspection *inspection, const struct hf__db_error *err,
                        struct fence_report *report)
{
    if (err->said.code == HF_DENIED)
        fence_found(report, FENCE_PROBLEM, "installed", err->message,
                    "this could not be examined: run the check as the owner of the fence");
    else if (err->said.code == HF_INVALID)
        fence_found(report, FENCE_PROBLEM, "version", err->message, inspection->again);
    else
        return fence_failed(report, &err->said);
    return 0;
}

static int inspect(struct inspection *inspection, struct fence_report *report)
{
    const char *at = inspection->engine->sql;
    int exit_code = 0;
    bool stop = false;
    char *sql;

    while (!stop && exit_code == 0 && (sql = next_query(&at)) != NULL) {
        struct hf__db_error err;

        if (ask(inspection, sql, &err) == HF_OK)
            stop = report_rows(&inspection->rows, report);
        else
            exit_code = not_answered(inspection, &err, report);
        free(sql);
    }
    return exit_code;
}

static bool name_fits(const char *name)
{
    return name == NULL || (name[0] != '\0' && strlen(name) <= NAME_MAX_BYTES);
}

int fence_inspect_table(const struct fence_target *what, const struct fence_words *issuer,
                        struct fence_report *report)
{
    int64_t limit_ms = report->limit_ms > 0 ? report->limit_ms : LIMIT_MS;
    const char *identity = issuer->issuer != NULL ? issuer->issuer : "";
    const struct hf__patience patience = hf__patience_for(limit_ms * HF__NS_PER_MS, -1);
    struct inspection inspection = {.patience = patience};
    struct hf__db_error err;
    int exit_code;

    if (!name_fits(what->table) || !name_fits(what->schema)) {
        (void)hf__fail(&err.said, HF_INVALID, "a table's name has 1 to %d bytes", NAME_MAX_BYTES);
        return fence_failed(report, &err.said);
    }
    if (hf__db_open(what->db_url, &patience, &inspection.db, &err) != HF_OK)
        return fence_failed(report, &err.said);
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (strcmp(engines[i].name, inspection.db->ops->name) == 0)
            inspection.engine = &engines[i];
    name_table(&inspection, what);
    say_again(&inspection, what);
    inspection.params[0] = (struct hf__db_text){inspection.table, strlen(inspection.table)};
    inspection.params[1] = (struct hf__db_text){inspection.again, strlen(inspection.again)};
    inspection.params[2] = (struct hf__db_text){identity, strlen(identity)};
    inspection.params[3] = (struct hf__db_text){issuer->issuer_url, strlen(issuer->issuer_url)};
    exit_code = inspect(&inspection, report);
    hf__db_close(inspection.db);
    hf__db_rows_release(&inspection.rows);
    return exit_code;
}
