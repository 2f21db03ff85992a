/* migration.c - prints a migration as a text for the database's own client, or as a list of
 * statements.
 *
 * It goes by lines, and knows what our migrations look like: a statement ends with its line; bodies
 * stand between $holdfast$, between BEGIN and END; (SQLite), or behind DELIMITER (MariaDB). Names
 * that a user chose are quoted, and have no line breaks: none can look like such a line. */
#include "cli/migration.h"

#include <stdlib.h>
#include <string.h>

const char *const cli_statements[] = {"text", "json", NULL};
const char *const cli_dialects[] = {"postgres", "sqlite", "mariadb", NULL};

/* Where we are in the text. */
struct splitter {
    const char *end_mark; /* ";", or what DELIMITER says */
    bool dollars;         /* in a body between $holdfast$ */
    bool body;            /* in a body between BEGIN and END; */
    FILE *statement;      /* the one that has begun, or NULL */
    char *words;
    size_t words_len;
    size_t printed;
    bool failed;
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
    if (s->dollars) {
        s->dollars = !ends_with(line, "$holdfast$;");
        return !s->dollars;
    }
    if (ends_with(line, " AS $holdfast$") || strcmp(line, "DO $holdfast$ BEGIN") == 0) {
        s->dollars = true;
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

static void end_statement(struct splitter *s)
{
    s->failed |= fclose(s->statement) != 0;
    s->statement = NULL;
    if (!s->failed) {
        s->words[strlen(s->words) - 1 - strlen(s->end_mark)] = '\0'; /* and the line break */
        fputs(s->printed++ == 0 ? "[\n  " : ",\n  ", stdout);
        cli_json_string(stdout, s->words);
    }
    free(s->words);
    s->words = NULL;
}

static void split_line(struct splitter *s, const char *line)
{
    if (s->statement == NULL) {
        if (strcmp(line, "DELIMITER //") == 0 || strcmp(line, "DELIMITER ;") == 0) {
            s->end_mark = line[strlen("DELIMITER ")] == ';' ? ";" : "//";
            return;
        }
        if (line[0] == '\0' || strncmp(line, "--", 2) == 0)
            return;
        s->statement = open_memstream(&s->words, &s->words_len);
        if (s->statement == NULL) {
            s->failed = true;
            return;
        }
    }
    fprintf(s->statement, "%s\n", line);
    if (is_last(s, line))
        end_statement(s);
}

int cli_print_migration(const struct cli_migration *how, char *text)
{
    struct splitter s = {.end_mark = ";"};
    bool json = how->statements == CLI_STATEMENTS_JSON;
    char *rest = text;
    char *line;

    while ((line = strsep(&rest, "\n")) != NULL && !s.failed) {
        if (rest == NULL && line[0] == '\0')
            break;
        if (how->no_transaction && s.statement == NULL && is_transaction(line))
            continue;
        if (json)
            split_line(&s, line);
        else
            puts(line);
    }
    if (json)
        puts(s.printed > 0 ? "\n]" : "[]");
    free(text);
    if (fflush(stdout) != 0 || s.failed) {
        cli_error("cannot write the migration");
        return EXIT_HF_UNAVAILABLE;
    }
    return 0;
}
