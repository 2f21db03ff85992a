/* migration.c - prints sections of a migration, with the caller's words in it. */
#include "base/migration.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION "-- @section "

static const struct {
    const char *name;
    size_t name_max; /* longer ones are cut by the server, or refused */
    char quote;      /* around identifiers */
    bool backslash;  /* in a plain literal, a backslash may be an escape */
} dialects[] = {
    [HF__POSTGRES] = {.name = "PostgreSQL", .name_max = 63, .quote = '"', .backslash = true},
    [HF__SQLITE] = {.name = "SQLite", .name_max = HF__SQL_NAME_MAX, .quote = '"'},
    [HF__MARIADB] = {.name = "MariaDB", .name_max = 64, .quote = '`', .backslash = true},
};

bool hf__sql_clean(const char *text, size_t max)
{
    size_t len = strlen(text);

    if (len == 0 || len > max)
        return false;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < ' ' || *c == 0x7f)
            return false;
    return true;
}

enum hf_status hf__sql_name(char out[HF__SQL_QUOTED_SIZE], enum hf__dialect dialect,
                            const char *name, struct hf_error *err)
{
    if (!hf__sql_clean(name, dialects[dialect].name_max))
        return hf__fail(err, HF_INVALID,
                        "a name in %s has 1 to %zu bytes and no control characters",
                        dialects[dialect].name, dialects[dialect].name_max);
    hf__sql_quote(out, dialect, "", name);
    return hf__ok(err);
}

/* Writes text with every quote in it doubled; returns the end. */
static char *put_doubled(char *out, char quote, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == quote)
            *out++ = quote;
        *out++ = *text;
    }
    return out;
}

void hf__sql_quote(char *out, enum hf__dialect dialect, const char *prefix, const char *name)
{
    char quote = dialects[dialect].quote;

    *out++ = quote;
    out = put_doubled(out, quote, prefix);
    out = put_doubled(out, quote, name);
    *out++ = quote;
    *out = '\0';
}

void hf__sql_literal(char *out, size_t size, enum hf__dialect dialect, const char *text)
{
    static const char before[] = "CONVERT(X'";
    static const char after[] = "' USING utf8mb4)";
    bool escapes = dialects[dialect].backslash && strchr(text, '\\') != NULL;
    size_t len = strlen(text);

    assert(2 * len + HF__SQL_LITERAL_EXTRA <= size);
    if (escapes && dialect == HF__MARIADB) {
        memcpy(out, before, sizeof before);
        hf__hex_encode(out + strlen(before), text, len);
        memcpy(out + strlen(before) + 2 * len, after, sizeof after);
        return;
    }
    if (escapes)
        *out++ = 'E';
    *out++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'' || (escapes && *text == '\\'))
            *out++ = *text;
        *out++ = *text;
    }
    *out++ = '\'';
    *out = '\0';
}

/* Writes what the word at the beginning of text stands for; returns its length, 0 if it is none. */
static size_t put_word(FILE *out, const char *text, const struct hf__migration_word *words)
{
    for (; words->word != NULL; words++) {
        size_t len = strlen(words->word);

        if (strncmp(text, words->word, len) == 0) {
            fputs(words->value, out);
            return len;
        }
    }
    return 0;
}

static void put_section(FILE *out, const char *text, const char *end,
                        const struct hf__migration_word *words)
{
    while (text < end) {
        size_t skip = *text == '@' ? put_word(out, text, words) : 0;

        if (skip == 0) {
            fputc(*text, out);
            skip = 1;
        }
        text += skip;
    }
}

static void find_section(FILE *out, const char *text, const char *name,
                         const struct hf__migration_word *words)
{
    char head[64];
    int len = snprintf(head, sizeof head, SECTION "%s\n", name);
    const char *begin = strstr(text, head);
    const char *end;

    if (begin == NULL)
        return;
    begin += len;
    end = strstr(begin, SECTION);
    put_section(out, begin, end != NULL ? end : begin + strlen(begin), words);
}

enum hf_status hf__migration_text(const char *text, const char *const *sections,
                                  const struct hf__migration_word *words, char **out,
                                  struct hf_error *err)
{
    size_t len;
    FILE *stream;
    bool failed;

    *out = NULL;
    stream = open_memstream(out, &len);
    if (stream == NULL)
        return hf__nomem(err);
    for (; *sections != NULL; sections++)
        find_section(stream, text, *sections, words);
    failed = ferror(stream) != 0;
    if (fclose(stream) != 0 || failed) {
        free(*out);
        *out = NULL;
        return hf__nomem(err);
    }
    return hf__ok(err);
}
