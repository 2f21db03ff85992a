/* statements.c - a migration as one tool or another wants it: without BEGIN and COMMIT, or as a
 * list of statements.
 *
 * It goes by lines, and knows what our migrations look like: a statement ends with its line; bodies
 * stand between dollars, between BEGIN and END; (SQLite), or behind DELIMITER (MariaDB). Names that
 * a user chose are quoted, and have no line breaks: none can look like such a line, or end one. */
#include "base/migration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a body between dollars begins and ends, at the end of a line. */
static const struct {
    const char *begin;
    const char *end;
} bodies[] = {{" AS $holdfast$", "$holdfast$;"},
              {"DO $holdfast$ BEGIN", "$holdfast$;"},
              {"DO $up$", "$up$;"}};

/* Where we are in the text. */
struct splitter {
    FILE *out;
    const char *end_mark; /* ";", or what DELIMITER says */
    const char *dollars;  /* how the body that we are in ends, or NULL */
    bool body;            /* in a body between BEGIN and END; */
    bool in_statement;
    size_t printed;
};

static bool ends_with(const char *line, const char *end)
{
    size_t line_len = strlen(line);
    size_t end_len = strlen(end);

    return line_len >= end_len && strcmp(line + line_len - end_len, end) == 0;
}

static bool is_transaction(const char *line)
{
    return strcmp(line, "BEGIN;") == 0 || strcmp(line, "COMMIT;") == 0;
}

/* Follows the bodies; true if the statement ends with this line. */
static bool is_last(struct splitter *s, const char *line)
{
    if (s->dollars != NULL) {
        if (!ends_with(line, s->dollars))
            return false;
        s->dollars = NULL;
        return true;
    }
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        if (ends_with(line, bodies[i].begin)) {
            s->dollars = bodies[i].end;
            return false;
        }
    if (s->end_mark[0] == ';' && strcmp(line, "BEGIN") == 0)
        s->body = true;
    if (s->body) {
        s->body = strcmp(line, "END;") != 0;
        return !s->body;
    }
    return ends_with(line, s->end_mark);
}

/* What stands between statements: empty lines, comments, and what only a client understands. */
static bool is_between(struct splitter *s, const char *line)
{
    if (strcmp(line, "DELIMITER //") == 0 || strcmp(line, "DELIMITER ;") == 0) {
        s->end_mark = line[strlen("DELIMITER ")] == ';' ? ";" : "//";
        return true;
    }
    return line[0] == '\0' || strncmp(line, "--", 2) == 0;
}

/* The inside of a JSON string. There are no control characters. */
static void put_json(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\')
            fputc('\\', out);
        fputc(text[i], out);
    }
}

static void split_line(struct splitter *s, const char *line)
{
    size_t len = strlen(line);
    bool last;

    if (!s->in_statement && is_between(s, line))
        return;
    if (s->in_statement)
        fputs("\\n", s->out);
    else
        fputs(s->printed++ == 0 ? "[\n  \"" : ",\n  \"", s->out);
    last = is_last(s, line);
    put_json(s->out, line, last ? len - strlen(s->end_mark) : len);
    if (last)
        fputc('"', s->out);
    s->in_statement = !last;
}

/* A tool with a transaction of its own gets none of ours; a list is for such tools. */
static void put_line(struct splitter *s, const struct hf__migration_form *form, const char *line)
{
    if ((form->no_transaction || form->json) && !s->in_statement && is_transaction(line))
        return;
    if (form->json)
        split_line(s, line);
    else
        fprintf(s->out, "%s\n", line);
}

enum hf_status hf__migration_shape(const struct hf__migration_form *form, char **text,
                                   struct hf_error *err)
{
    struct splitter s = {.end_mark = ";"};
    char *rest = *text;
    char *line;
    char *shaped = NULL;
    size_t len;
    bool failed;

    s.out = open_memstream(&shaped, &len);
    if (s.out == NULL)
        return hf__nomem(err);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (rest != NULL || line[0] != '\0')
            put_line(&s, form, line);
    if (form->json)
        fputs(s.printed > 0 ? "\n]\n" : "[]\n", s.out);
    failed = ferror(s.out) != 0;
    if (fclose(s.out) != 0 || failed) {
        free(shaped);
        return hf__nomem(err);
    }
    free(*text);
    *text = shaped;
    return hf__ok(err);
}
