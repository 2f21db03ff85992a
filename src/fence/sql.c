/* sql.c - prints the migrations of src/fence/sql, with the caller's names quoted into them. */
#include "base/migration.h"
#include "fence/fence.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESOURCE_MAX = 200,
    TRIGGER_SIZE = HF__SQL_QUOTED_SIZE + 40, /* with its prefix */
    TABLE_SIZE = 2 * HF__SQL_QUOTED_SIZE,    /* with its schema */
    RESOURCE_SIZE = 2 * RESOURCE_MAX + HF__SQL_LITERAL_EXTRA,
    SECTIONS_MAX = 15,
    HASH_SEED = 0x73716c
};

/* Three files, one text: the shared part goes on from the first to the second. */
static const char postgres_sql[] =
#include "fence/postgres.inc"
#include "fence/postgres_install.inc"
#include "fence/postgres_row.inc"
    ;
static const char sqlite_sql[] =
#include "fence/sqlite.inc"
    ;
static const char mariadb_sql[] =
#include "fence/mariadb.inc"
#include "fence/mariadb_row.inc"
    ;

static const char *const texts[] = {
    [HF__POSTGRES] = postgres_sql, [HF__SQLITE] = sqlite_sql, [HF__MARIADB] = mariadb_sql};
_Static_assert((int)HF_FENCE_POSTGRES == (int)HF__POSTGRES &&
                   (int)HF_FENCE_SQLITE == (int)HF__SQLITE &&
                   (int)HF_FENCE_MARIADB == (int)HF__MARIADB,
               "one order of dialects");

/* What stands for the words of the text. */
struct names {
    char table[TABLE_SIZE];
    char table_text[2 * TABLE_SIZE + HF__SQL_LITERAL_EXTRA]; /* a literal of what stands in table */
    char table_name_text[TABLE_SIZE + HF__SQL_LITERAL_EXTRA]; /* and of the bare name */
    char resource[RESOURCE_SIZE];
    char resource_text[2 * RESOURCE_SIZE + HF__SQL_LITERAL_EXTRA]; /* and of that in resource */
    char key_column[HF__SQL_QUOTED_SIZE];
    char key_column_text[TABLE_SIZE + HF__SQL_LITERAL_EXTRA];
    char insert[TRIGGER_SIZE];
    char update[TRIGGER_SIZE];
    char delete[TRIGGER_SIZE];
    char row[TRIGGER_SIZE];
};

static enum hf_status check(const struct hf_fence_sql *what, struct hf_error *err);
static enum hf_status quote_names(struct names *names, const struct hf_fence_sql *what,
                                  struct hf_error *err);
static enum hf_status print(const struct names *names, const struct hf_fence_sql *what, char **out,
                            struct hf_error *err);

enum hf_status hf_fence_sql(const struct hf_fence_sql *what, char **out, struct hf_error *err)
{
    const struct hf__migration_form list = {.json = true};
    struct hf_fence_sql mine = {.size = 0};
    struct names names;
    enum hf_status status;

    *out = NULL;
    memcpy(&mine, what, what->size < sizeof mine ? what->size : sizeof mine);
    status = check(&mine, err);
    if (status == HF_OK)
        status = quote_names(&names, &mine, err);
    if (status == HF_OK)
        status = print(&names, &mine, out, err);
    if (status == HF_OK && mine.json)
        status = hf__migration_shape(&list, out, err);
    if (status != HF_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

static enum hf_status check(const struct hf_fence_sql *what, struct hf_error *err)
{
    if ((unsigned)what->dialect > HF_FENCE_MARIADB)
        return hf__fail(err, HF_INVALID, "no such SQL dialect");
    if (what->table == NULL)
        return hf__fail(err, HF_INVALID, "the table is missing");
    if (what->key_column != NULL && what->per_row)
        return hf__fail(err, HF_INVALID, "a table is fenced per key or per row, not both");
    if (what->resource != NULL && !hf__sql_clean(what->resource, RESOURCE_MAX))
        return hf__fail(err, HF_INVALID, "a resource has 1 to %d bytes and no control characters",
                        RESOURCE_MAX);
    if (what->schema != NULL && what->dialect != HF_FENCE_POSTGRES)
        return hf__fail(err, HF_INVALID, "only PostgreSQL has schemas here");
    return HF_OK;
}

/* MariaDB's names of triggers are short: a hash of the table's. */
static void quote_triggers(struct names *names, enum hf__dialect dialect, const char *table)
{
    char hash[17];

    if (dialect == HF__MARIADB) {
        (void)snprintf(hash, sizeof hash, "%016" PRIx64,
                       hf__hash64(table, strlen(table), HASH_SEED));
        table = hash;
    }
    hf__sql_quote(names->insert, dialect, "holdfast_insert_", table);
    hf__sql_quote(names->update, dialect, "holdfast_update_", table);
    hf__sql_quote(names->delete, dialect, "holdfast_delete_", table);
    hf__sql_quote(names->row, dialect, "holdfast_row_", table);
}

/* The table, with its schema. */
static enum hf_status quote_table(struct names *names, const struct hf_fence_sql *what,
                                  struct hf_error *err)
{
    enum hf__dialect dialect = (enum hf__dialect)what->dialect;
    enum hf_status status = HF_OK;
    size_t used = 0;

    if (what->schema != NULL) {
        status = hf__sql_name(names->table, dialect, what->schema, err);
        if (status != HF_OK)
            return status;
        used = strlen(names->table);
        names->table[used++] = '.';
    }
    return hf__sql_name(names->table + used, dialect, what->table, err);
}

static enum hf_status quote_names(struct names *names, const struct hf_fence_sql *what,
                                  struct hf_error *err)
{
    enum hf__dialect dialect = (enum hf__dialect)what->dialect;
    const char *resource = what->resource != NULL ? what->resource : what->table;
    enum hf_status status = quote_table(names, what, err);

    if (status == HF_OK && what->key_column != NULL)
        status = hf__sql_name(names->key_column, dialect, what->key_column, err);
    if (status != HF_OK)
        return status;
    hf__sql_literal(names->table_text, sizeof names->table_text, dialect, names->table);
    hf__sql_literal(names->table_name_text, sizeof names->table_name_text, dialect, what->table);
    hf__sql_literal(names->resource, sizeof names->resource, dialect, resource);
    hf__sql_literal(names->resource_text, sizeof names->resource_text, dialect, names->resource);
    quote_triggers(names, dialect, what->table);
    if (what->key_column == NULL) {
        names->key_column[0] = '\0';
        (void)snprintf(names->key_column_text, sizeof names->key_column_text, "NULL");
    } else {
        hf__sql_literal(names->key_column_text, sizeof names->key_column_text, dialect,
                        what->key_column);
    }
    return HF_OK;
}

/* Says which sections make the migration; a tool that has a transaction of its own gets none of
 * ours, and no words that only the database's own client understands. */
static void choose_sections(const struct hf_fence_sql *what, const char **out)
{
    bool alone = !what->no_transaction && !what->json;
    const struct {
        const char *name;
        bool wanted;
    } sections[] = {
        {"up", !what->down && !what->per_row && !what->json},
        {"row-up", !what->down && what->per_row && !what->json},
        {"up-begin", !what->down && alone},
        {"row-schema", !what->down && what->per_row},
        {"up-shared", !what->down && !what->per_row},
        {what->key_column != NULL ? "up-key-table" : "up-table", !what->down && !what->per_row},
        {"row-table", !what->down && what->per_row},
        {what->per_row ? "down-end" : "up-end", !what->down && alone},
        {"down-bail", what->down && what->last && alone},
        {"down-begin", what->down && alone},
        {"down-check", what->down && what->last && !what->per_row},
        {what->per_row ? "row-down" : "down-table", what->down},
        {what->per_row ? "row-down-shared" : "down-shared", what->down && what->last},
        {"down-schema", what->down && what->last},
        {"down-end", what->down && alone},
    };

    _Static_assert(sizeof sections / sizeof sections[0] == SECTIONS_MAX, "room for all");
    for (size_t i = 0; i < SECTIONS_MAX; i++)
        if (sections[i].wanted)
            *out++ = sections[i].name;
    *out = NULL;
}

static enum hf_status print(const struct names *names, const struct hf_fence_sql *what, char **out,
                            struct hf_error *err)
{
    const struct hf__migration_word words[] = {
        {"@TABLE@", names->table},
        {"@TABLE_TEXT@", names->table_text},
        {"@TABLE_NAME_TEXT@", names->table_name_text},
        {"@RESOURCE@", names->resource},
        {"@RESOURCE_TEXT@", names->resource_text},
        {"@GIVEN_RESOURCE@", what->resource != NULL ? names->resource : "NULL"},
        {"@KEY_COLUMN@", names->key_column},
        {"@KEY_COLUMN_TEXT@", names->key_column_text},
        {"@TEXT@", "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"},
        {"@TRIGGER_INSERT@", names->insert},
        {"@TRIGGER_UPDATE@", names->update},
        {"@TRIGGER_DELETE@", names->delete},
        {"@TRIGGER_ROW@", names->row},
        {NULL, NULL}};
    const char *sections[SECTIONS_MAX + 1];

    choose_sections(what, sections);
    return hf__migration_text(texts[what->dialect], sections, words, out, err);
}
