/* sql.c - prints the migrations of src/fence/sql, with the caller's names quoted into them.
 *
 * A dialect is a text of sections, each starting with a line "-- @section NAME", of statements with
 * a line "-- @go" between two. Names of tables and resources never stand inside a function body, a
 * comment or a client command, only where a quoted identifier or a string literal stands: there
 * every byte but a control character is harmless. */
#include "fence/fence.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POSTGRES_NAME_MAX = 63, /* longer ones are cut by the server, and could meet another table */
    MARIADB_NAME_MAX = 64,
    SQLITE_NAME_MAX = 200,
    RESOURCE_MAX = 200,
    QUOTED_SIZE = 2 * SQLITE_NAME_MAX + 40, /* a name with every byte doubled, and a prefix */
    TABLE_SIZE = 2 * QUOTED_SIZE,
    LITERAL_EXTRA = 40, /* around a literal whose every byte is doubled or in hex */
    RESOURCE_SIZE = 2 * RESOURCE_MAX + LITERAL_EXTRA,
    SQL_MAX = 128 * 1024, /* bytes of a migration */
    HASH_SEED = 0x73716c
};

#define SECTION "-- @section "
#define GO      "-- @go\n"

struct dialect {
    const char *name;
    const char *text;
    size_t name_max;
    char quote;          /* around identifiers */
    bool backslash;      /* in a plain literal, a backslash may be an escape */
    bool short_triggers; /* trigger names are limited: hash the table's name */
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
    ;

static const struct dialect dialects[] = {
    [HF_FENCE_POSTGRES] = {.name = "PostgreSQL",
                           .text = postgres_sql,
                           .name_max = POSTGRES_NAME_MAX,
                           .quote = '"',
                           .backslash = true},
    [HF_FENCE_SQLITE] = {.name = "SQLite",
                         .text = sqlite_sql,
                         .name_max = SQLITE_NAME_MAX,
                         .quote = '"'},
    [HF_FENCE_MARIADB] = {.name = "MariaDB",
                          .text = mariadb_sql,
                          .name_max = MARIADB_NAME_MAX,
                          .quote = '`',
                          .backslash = true,
                          .short_triggers = true},
};

/* What stands for the placeholders, and where the text goes. */
struct printer {
    const struct dialect *dialect;
    struct hf_fence_sql what;
    char table[TABLE_SIZE];
    char table_text[2 * TABLE_SIZE + LITERAL_EXTRA]; /* a literal of what stands in table */
    char table_name_text[TABLE_SIZE];                /* and of the bare name */
    char resource[RESOURCE_SIZE];
    char resource_text[2 * RESOURCE_SIZE + LITERAL_EXTRA]; /* and of what stands in resource */
    char key_column[QUOTED_SIZE];
    char key_column_text[TABLE_SIZE];
    char *out;
    size_t used;
    bool in_json;  /* inside a JSON string */
    bool had_item; /* and not the first */
    bool overflow;
};

static enum hf_status check_names(const struct dialect *dialect, const struct hf_fence_sql *what,
                                  struct hf_error *err);
static void put(struct printer *p, const char *text, size_t len);
static void quote_names(struct printer *p);
static void print_sections(struct printer *p);

enum hf_status hf_fence_sql(const struct hf_fence_sql *what, char **out, struct hf_error *err)
{
    struct printer p = {.used = 0};
    enum hf_status status;

    *out = NULL;
    memcpy(&p.what, what, what->size < sizeof p.what ? what->size : sizeof p.what);
    what = &p.what;
    if ((unsigned)what->dialect > HF_FENCE_MARIADB)
        return hf__fail(err, HF_INVALID, "no such SQL dialect");
    p.dialect = &dialects[what->dialect];
    status = check_names(p.dialect, what, err);
    if (status != HF_OK)
        return status;
    p.out = malloc(SQL_MAX);
    if (p.out == NULL)
        return hf__nomem(err);
    p.out[0] = '\0';
    quote_names(&p);
    if (what->json)
        put(&p, "[", 1);
    print_sections(&p);
    if (what->json)
        put(&p, "\n]\n", 3);
    if (p.overflow) {
        free(p.out);
        return hf__fail(err, HF_INVALID, "the migration does not fit into %d bytes", SQL_MAX);
    }
    *out = p.out;
    return hf__ok(err);
}

static bool clean(const char *text, size_t max)
{
    size_t len = strlen(text);

    if (len == 0 || len > max)
        return false;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < ' ' || *c == 0x7f)
            return false;
    return true;
}

static enum hf_status check_names(const struct dialect *dialect, const struct hf_fence_sql *what,
                                  struct hf_error *err)
{
    if (what->table == NULL || !clean(what->table, dialect->name_max) ||
        (what->schema != NULL && !clean(what->schema, dialect->name_max)))
        return hf__fail(err, HF_INVALID,
                        "a name in %s has 1 to %zu bytes and no control characters", dialect->name,
                        dialect->name_max);
    if (what->key_column != NULL && !clean(what->key_column, dialect->name_max))
        return hf__fail(err, HF_INVALID, "a column in %s has 1 to %zu bytes", dialect->name,
                        dialect->name_max);
    if (what->key_column != NULL && what->per_row)
        return hf__fail(err, HF_INVALID, "a table is fenced per key or per row, not both");
    if (what->resource != NULL && !clean(what->resource, RESOURCE_MAX))
        return hf__fail(err, HF_INVALID, "a resource has 1 to %d bytes and no control characters",
                        RESOURCE_MAX);
    if (what->schema != NULL && what->dialect != HF_FENCE_POSTGRES)
        return hf__fail(err, HF_INVALID, "%s: only PostgreSQL has schemas here", dialect->name);
    return HF_OK;
}

/* prefix and name as one identifier: the quote character is doubled. Returns what was written. */
static size_t quote_name(char *out, char quote, const char *prefix, const char *name)
{
    size_t used = 0;

    out[used++] = quote;
    for (const char *part = prefix; part != NULL; part = part == prefix ? name : NULL)
        for (const char *c = part; *c != '\0'; c++) {
            if (*c == quote)
                out[used++] = quote;
            out[used++] = *c;
        }
    out[used++] = quote;
    out[used] = '\0';
    return used;
}

/* A literal that means the same whatever the server thinks of backslashes. */
static void quote_literal(char *out, size_t size, const struct dialect *dialect, const char *text)
{
    bool escapes = dialect->backslash && strchr(text, '\\') != NULL;
    size_t used = 0;

    if (escapes && dialect->short_triggers) {
        char hex[2 * TABLE_SIZE + 1];

        hf__hex_encode(hex, text, strlen(text));
        (void)snprintf(out, size, "CONVERT(X'%s' USING utf8mb4)", hex);
        return;
    }
    if (escapes)
        out[used++] = 'E';
    out[used++] = '\'';
    for (; *text != '\0' && used + 4 < size; text++) {
        if (*text == '\'' || (escapes && *text == '\\'))
            out[used++] = *text;
        out[used++] = *text;
    }
    out[used++] = '\'';
    out[used] = '\0';
}

static void put(struct printer *p, const char *text, size_t len)
{
    if (len >= SQL_MAX - p->used) {
        p->overflow = true;
        return;
    }
    memcpy(p->out + p->used, text, len);
    p->used += len;
    p->out[p->used] = '\0';
}

/* Text of a statement: as it is, or as the inside of a JSON string. */
static void put_text(struct printer *p, const char *text, size_t len)
{
    if (!p->in_json) {
        put(p, text, len);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n')
            put(p, "\\n", 2);
        else if (text[i] == '"' || text[i] == '\\')
            put(p, (const char[]){'\\', text[i]}, 2);
        else
            put(p, text + i, 1);
    }
}

static void put_trigger(struct printer *p, const char *prefix)
{
    char name[QUOTED_SIZE];
    char hash[17];
    const char *table = p->what.table;
    size_t len;

    if (p->dialect->short_triggers) {
        (void)snprintf(hash, sizeof hash, "%016" PRIx64,
                       hf__hash64(table, strlen(table), HASH_SEED));
        table = hash;
    }
    len = quote_name(name, p->dialect->quote, prefix, table);
    put_text(p, name, len);
}

/* Writes what a placeholder stands for; returns its length in the template, 0 if it is none. */
static size_t put_placeholder(struct printer *p, const char *text)
{
    const struct {
        const char *word;
        const char *value;
        const char *trigger; /* or the prefix of a trigger's name */
    } words[] = {{"@TABLE@", p->table, NULL},
                 {"@TABLE_TEXT@", p->table_text, NULL},
                 {"@TABLE_NAME_TEXT@", p->table_name_text, NULL},
                 {"@RESOURCE@", p->resource, NULL},
                 {"@RESOURCE_TEXT@", p->resource_text, NULL},
                 {"@GIVEN_RESOURCE@", p->what.resource != NULL ? p->resource : "NULL", NULL},
                 {"@KEY_COLUMN@", p->key_column, NULL},
                 {"@KEY_COLUMN_TEXT@", p->key_column_text, NULL},
                 {"@TEXT@", "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", NULL},
                 {"@TRIGGER_INSERT@", NULL, "holdfast_insert_"},
                 {"@TRIGGER_UPDATE@", NULL, "holdfast_update_"},
                 {"@TRIGGER_DELETE@", NULL, "holdfast_delete_"},
                 {"@TRIGGER_ROW@", NULL, "holdfast_row_"}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i].word);

        if (strncmp(text, words[i].word, len) != 0)
            continue;
        if (words[i].trigger != NULL)
            put_trigger(p, words[i].trigger);
        else
            put_text(p, words[i].value, strlen(words[i].value));
        return len;
    }
    return 0;
}

static void expand(struct printer *p, const char *text, const char *end)
{
    while (text < end) {
        size_t plain = strcspn(text, "@");
        size_t skip;

        if (plain > (size_t)(end - text))
            plain = (size_t)(end - text);
        put_text(p, text, plain);
        text += plain;
        if (text >= end)
            break;
        skip = put_placeholder(p, text);
        if (skip == 0)
            put_text(p, text, skip = 1);
        text += skip;
    }
}

/* For the mariadb client, which would end a statement at the first semicolon of its body. */
static bool needs_delimiter(const struct printer *p, const char *text, const char *end)
{
    const char *semicolon = memchr(text, ';', (size_t)(end - text));

    while (semicolon != NULL && semicolon[1] != '\n')
        semicolon = memchr(semicolon + 1, ';', (size_t)(end - semicolon - 1));
    return p->dialect->short_triggers && semicolon != NULL && semicolon + 2 < end;
}

/* One statement of the template, with its semicolon and a line break at the end. */
static void print_statement(struct printer *p, const char *text, const char *end)
{
    bool wrapped = !p->what.json && needs_delimiter(p, text, end);
    const char *last = end;

    while (last > text && (last[-1] == '\n' || ((wrapped || p->what.json) && last[-1] == ';')))
        last--;
    if (p->what.json)
        put(p, p->had_item ? ",\n  \"" : "\n  \"", p->had_item ? 5 : 4);
    else if (wrapped)
        put(p, "DELIMITER //\n", 13);
    p->in_json = p->what.json;
    expand(p, text, last);
    p->in_json = false;
    p->had_item = true;
    if (p->what.json)
        put(p, "\"", 1);
    else if (wrapped)
        put(p, "//\nDELIMITER ;\n\n", 16);
    else
        put(p, "\n\n", 2);
}

/* A section that the dialect has no need for is not in its text. */
static void print_section(struct printer *p, const char *name)
{
    char head[64];
    int len = snprintf(head, sizeof head, SECTION "%s\n", name);
    const char *text = strstr(p->dialect->text, head);
    const char *end;

    if (text == NULL)
        return;
    text += len;
    end = strstr(text, SECTION);
    if (end == NULL)
        end = text + strlen(text);
    while (text < end) {
        const char *go = strstr(text, GO);

        if (go == NULL || go > end)
            go = end;
        print_statement(p, text, go);
        text = go < end ? go + strlen(GO) : end;
    }
}

/* Says which sections make the migration; a tool that has a transaction of its own gets none of
 * ours, and no words that only the database's own client understands. */
static void print_sections(struct printer *p)
{
    const struct hf_fence_sql *what = &p->what;
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

    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (sections[i].wanted)
            print_section(p, sections[i].name);
}

static void quote_names(struct printer *p)
{
    const struct hf_fence_sql *what = &p->what;
    const char *resource = what->resource != NULL ? what->resource : what->table;
    char quote = p->dialect->quote;
    size_t used = 0;

    if (what->schema != NULL) {
        used = quote_name(p->table, quote, "", what->schema);
        p->table[used++] = '.';
    }
    (void)quote_name(p->table + used, quote, "", what->table);
    quote_literal(p->table_text, sizeof p->table_text, p->dialect, p->table);
    quote_literal(p->table_name_text, sizeof p->table_name_text, p->dialect, what->table);
    quote_literal(p->resource, sizeof p->resource, p->dialect, resource);
    quote_literal(p->resource_text, sizeof p->resource_text, p->dialect, p->resource);
    (void)snprintf(p->key_column_text, sizeof p->key_column_text, "NULL");
    if (what->key_column == NULL)
        return;
    (void)quote_name(p->key_column, quote, "", what->key_column);
    quote_literal(p->key_column_text, sizeof p->key_column_text, p->dialect, what->key_column);
}
