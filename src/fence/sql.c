/* sql.c - prints the migrations of src/fence/sql, with the caller's names quoted into them.
 *
 * A dialect is one file of sections, each starting with a line "-- @section NAME". Names of tables
 * and resources never stand inside a function body, a comment or a client command, only where a
 * quoted identifier or a string literal stands: there every byte but a control character is
 * harmless. */
#include "fence/fence.h"

#include <inttypes.h>
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
    SQL_MAX = 64 * 1024, /* bytes of a migration */
    HASH_SEED = 0x73716c
};

#define SECTION "-- @section "

struct dialect {
    const char *name;
    const char *text;
    size_t name_max;
    char quote;          /* around identifiers                                 */
    bool backslash;      /* in a plain literal, a backslash may be an escape   */
    bool short_triggers; /* trigger names are limited: hash the table's name   */
};

static const char postgres_sql[] =
#include "fence/postgres.inc"
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
    const struct hf_fence_sql *what;
    char table[TABLE_SIZE];
    char table_text[2 * TABLE_SIZE + LITERAL_EXTRA]; /* a literal of what stands in table */
    char resource[RESOURCE_SIZE];
    char resource_text[2 * RESOURCE_SIZE + LITERAL_EXTRA]; /* and in resource */
    char setting[64];
    char *out;
    size_t used;
    bool overflow;
};

static enum hf_status check_names(const struct dialect *dialect, const struct hf_fence_sql *what,
                                  struct hf_error *err);
static void print_sections(struct printer *p);

enum hf_status hf_fence_sql(const struct hf_fence_sql *what, char **out, struct hf_error *err)
{
    struct printer p = {.what = what};
    enum hf_status status;

    *out = NULL;
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
    print_sections(&p);
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

static void put_trigger(struct printer *p, const char *prefix)
{
    char name[QUOTED_SIZE];
    char hash[17];
    const char *table = p->what->table;
    size_t len;

    if (p->dialect->short_triggers) {
        (void)snprintf(hash, sizeof hash, "%016" PRIx64,
                       hf__hash64(table, strlen(table), HASH_SEED));
        table = hash;
    }
    len = quote_name(name, p->dialect->quote, prefix, table);
    put(p, name, len);
}

/* Writes what a placeholder stands for; returns its length in the template, 0 if it is none. */
static size_t put_placeholder(struct printer *p, const char *text)
{
    static const struct {
        const char *word;
        const char *trigger; /* prefix of the trigger's name */
    } words[] = {{"@TABLE@", NULL},
                 {"@TABLE_TEXT@", NULL},
                 {"@RESOURCE@", NULL},
                 {"@RESOURCE_TEXT@", NULL},
                 {"@SETTING@", NULL},
                 {"@TRIGGER_INSERT@", "holdfast_insert_"},
                 {"@TRIGGER_UPDATE@", "holdfast_update_"},
                 {"@TRIGGER_DELETE@", "holdfast_delete_"},
                 {"@TRIGGER_ROW@", "holdfast_row_"}};
    const char *const values[] = {p->table, p->table_text, p->resource, p->resource_text,
                                  p->setting};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i].word);

        if (strncmp(text, words[i].word, len) != 0)
            continue;
        if (words[i].trigger != NULL)
            put_trigger(p, words[i].trigger);
        else
            put(p, values[i], strlen(values[i]));
        return len;
    }
    return 0;
}

/* A section that the dialect has no need for is not in its file. */
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
        size_t plain = strcspn(text, "@");
        size_t skip;

        if (plain > (size_t)(end - text))
            plain = (size_t)(end - text);
        put(p, text, plain);
        text += plain;
        if (text >= end)
            break;
        skip = put_placeholder(p, text);
        if (skip == 0)
            put(p, text, skip = 1);
        text += skip;
    }
}

static void print_sections(struct printer *p)
{
    static const char *const up[] = {"up", "up-schema", "up-shared", "up-table", NULL};
    static const char *const down[] = {"down-table", "down-end", NULL};
    static const char *const last[] = {"down-table", "down-shared", "down-schema", "down-end",
                                       NULL};
    static const char *const row_up[] = {"row-up", "up-schema", "row-table", NULL};
    static const char *const row_down[] = {"row-down", "down-end", NULL};
    static const char *const row_last[] = {"row-down", "row-down-shared", "down-schema", "down-end",
                                           NULL};
    const struct hf_fence_sql *what = p->what;
    const char *const *sections = what->per_row ? row_up : up;
    const char *resource = what->resource != NULL ? what->resource : what->table;
    size_t used = 0;

    if (what->down && what->last)
        sections = what->per_row ? row_last : last;
    else if (what->down)
        sections = what->per_row ? row_down : down;
    if (what->schema != NULL) {
        used = quote_name(p->table, p->dialect->quote, "", what->schema);
        p->table[used++] = '.';
    }
    (void)quote_name(p->table + used, p->dialect->quote, "", what->table);
    quote_literal(p->table_text, sizeof p->table_text, p->dialect, p->table);
    quote_literal(p->resource, sizeof p->resource, p->dialect, resource);
    quote_literal(p->resource_text, sizeof p->resource_text, p->dialect, p->resource);
    (void)snprintf(p->setting, sizeof p->setting, "'holdfast.e_%016" PRIx64 "'",
                   hf__hash64(resource, strlen(resource), HASH_SEED));
    for (; *sections != NULL; sections++)
        print_section(p, *sections);
}
