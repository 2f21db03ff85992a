/* tool_db.c - asks a database through its plugin, for tests.
 *
 *     tool_db URL LIMIT WORD...
 *
 * LIMIT is how long each call may take, in milliseconds. A word is a statement to be executed,
 * after "!" one whose answer is shown, or after "?" one to be prepared; then "=TEXT", "NULL" and
 * "long" N (that many bytes) are its parameters, and "run" runs it. An answer is a line per row,
 * cells apart by "|", NULL as "(null)", bytes that are not printable as \\xx; "changed N" if there
 * are no rows to show. An error is a line "STATUS STATE text", and the next word follows, so that
 * what comes after it can be seen. */
#include "base/base.h"
#include "dbs/db.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct talk {
    struct hf__db *db;
    struct hf__db_statement *statement;
    struct hf__db_text params[HF__DB_PARAMS_MAX];
    size_t count;
    char *made[HF__DB_PARAMS_MAX]; /* parameters that are ours to free */
    size_t made_count;
    int64_t limit_ns;
    struct hf__db_rows rows;
};

static void show(enum hf_status status, const struct hf__db_error *err)
{
    if (status != HF_OK)
        printf("%s %s %s\n", hf_status_name(status), err->state[0] != '\0' ? err->state : "-",
               err->said.text);
}

static void show_cell(const struct hf__db_text *cell)
{
    if (cell->data == NULL) {
        printf("(null)");
    } else if (cell->len > 1000) {
        printf("%zu bytes, %zu of them x", cell->len, strspn(cell->data, "x"));
    } else {
        for (size_t i = 0; i < cell->len; i++) {
            unsigned char c = (unsigned char)cell->data[i];

            printf(isprint(c) ? "%c" : "\\%02x", c);
        }
    }
}

static void show_answer(const struct talk *talk, enum hf_status status,
                        const struct hf__db_error *err)
{
    show(status, err);
    if (status == HF_OK && talk->rows.columns == 0)
        printf("changed %lld\n", (long long)talk->rows.changed);
    for (size_t row = 0; status == HF_OK && row < talk->rows.count; row++)
        for (size_t i = 0; i < talk->rows.columns; i++) {
            show_cell(hf__db_cell(&talk->rows, row, i));
            putchar(i + 1 < talk->rows.columns ? '|' : '\n');
        }
}

static void run(struct talk *talk)
{
    struct hf__patience patience = hf__patience_for(talk->limit_ns, -1);
    struct hf__db_error err;
    enum hf_status status =
        hf__db_run(talk->statement, talk->params, talk->count, &patience, &talk->rows, &err);

    talk->count = 0;
    show_answer(talk, status, &err);
}

static char *many(const char *count)
{
    size_t len = strtoul(count, NULL, 10);
    char *text = malloc(len + 1);

    if (text == NULL)
        abort();
    memset(text, 'x', len);
    text[len] = '\0';
    return text;
}

static void word(struct talk *talk, char **words, int *at)
{
    struct hf__patience patience = hf__patience_for(talk->limit_ns, -1);
    struct hf__db_error err;
    const char *text = words[*at];

    if (strcmp(text, "?") == 0) {
        hf__db_finish(talk->statement);
        show(hf__db_prepare(talk->db, words[++*at], &patience, &talk->statement, &err), &err);
    } else if (strcmp(text, "!") == 0) {
        enum hf_status status =
            hf__db_execute(talk->db, words[++*at], &patience, &talk->rows, &err);

        show_answer(talk, status, &err);
    } else if (strcmp(text, "NULL") == 0) {
        talk->params[talk->count++] = (struct hf__db_text){NULL, 0};
    } else if (text[0] == '=') {
        talk->params[talk->count++] = (struct hf__db_text){text + 1, strlen(text + 1)};
    } else if (strcmp(text, "long") == 0) {
        char *value = many(words[++*at]);

        talk->made[talk->made_count++] = value;
        talk->params[talk->count++] = (struct hf__db_text){value, strlen(value)};
    } else if (strcmp(text, "run") != 0) {
        show(hf__db_execute(talk->db, text, &patience, NULL, &err), &err);
    } else if (talk->statement != NULL) {
        run(talk);
    }
}

int main(int argc, char **argv)
{
    struct talk talk = {.limit_ns = strtoll(argc > 2 ? argv[2] : "0", NULL, 10) * HF__NS_PER_MS};
    struct hf__patience patience = hf__patience_for(talk.limit_ns, -1);
    struct hf__db_error err;
    enum hf_status status;

    if (argc < 3)
        return 64;
    status = hf__db_open(argv[1], &patience, &talk.db, &err);
    show(status, &err);
    if (status != HF_OK)
        return 1;
    for (int i = 3; i < argc; i++)
        word(&talk, argv, &i);
    hf__db_finish(talk.statement);
    hf__db_close(talk.db);
    hf__db_rows_release(&talk.rows);
    while (talk.made_count > 0)
        free(talk.made[--talk.made_count]);
    return 0;
}
