/* rows.c - an answer in memory, and errors: what every plugin needs. Linked into each of them. */
#include "base/base.h"
#include "dbs/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_FIRST = 64, BYTES_FIRST = 1024 };

void hf__db_rows_clear(struct hf__db_rows *rows)
{
    rows->count = 0;
    rows->columns = 0;
    rows->changed = 0;
    rows->bytes_used = 0;
    rows->nomem = false;
}

void hf__db_rows_release(struct hf__db_rows *rows)
{
    free(rows->cells);
    free(rows->bytes);
    *rows = (struct hf__db_rows){.count = 0};
}

/* Makes *memory, of *size units, hold at least wanted of them. */
static bool grow(void **memory, size_t *size, size_t wanted, size_t unit, size_t first)
{
    size_t larger = *size > 0 ? *size : first;
    void *moved;

    if (wanted <= *size)
        return true;
    while (larger < wanted)
        larger *= 2;
    moved = realloc(*memory, larger * unit);
    if (moved == NULL)
        return false;
    *memory = moved;
    *size = larger;
    return true;
}

/* The bytes may move while the answer grows, so that cells hold offsets until the end; count is of
 * cells as long. */
void hf__db_rows_add(struct hf__db_rows *rows, const void *data, size_t len)
{
    struct hf__db_text *cell;
    void *cells = rows->cells;
    void *bytes = rows->bytes;
    bool room = !rows->nomem &&
                grow(&cells, &rows->cells_size, rows->count + 1, sizeof *rows->cells, CELLS_FIRST);

    rows->cells = cells;
    room = room && grow(&bytes, &rows->bytes_size, rows->bytes_used + len + 1, 1, BYTES_FIRST);
    rows->bytes = bytes;
    if (!room) {
        rows->nomem = true;
        return;
    }
    cell = &rows->cells[rows->count++];
    *cell = (struct hf__db_text){.data = NULL, .len = 0};
    if (data == NULL)
        return;
    *cell =
        (struct hf__db_text){.data = (const char *)(uintptr_t)(rows->bytes_used + 1), .len = len};
    memcpy(rows->bytes + rows->bytes_used, data, len);
    rows->bytes[rows->bytes_used + len] = '\0';
    rows->bytes_used += len + 1;
}

bool hf__db_rows_end(struct hf__db_rows *rows)
{
    if (rows->nomem)
        return false;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->cells[i].data != NULL)
            rows->cells[i].data = rows->bytes + (uintptr_t)rows->cells[i].data - 1;
    rows->count = rows->columns > 0 ? rows->count / rows->columns : 0;
    return true;
}

const struct hf__db_text *hf__db_cell(const struct hf__db_rows *rows, size_t row, size_t column)
{
    return &rows->cells[row * rows->columns + column];
}

const char *hf__db_string(const struct hf__db_rows *rows, size_t row, size_t column)
{
    const char *data = hf__db_cell(rows, row, column)->data;

    return data != NULL ? data : "";
}

enum hf_status hf__db_fail(struct hf__db_error *err, enum hf_status status, const char *shown,
                           const char *state, const char *message)
{
    char line[HF_ERROR_TEXT_SIZE];

    /* The engine's first line: the others have details and hints, cursors and carets. */
    (void)snprintf(line, sizeof line, "%.*s", message != NULL ? (int)strcspn(message, "\n") : 0,
                   message != NULL ? message : "");
    hf__copy_printable(err->message, sizeof err->message, line);
    (void)snprintf(err->state, sizeof err->state, "%s", state != NULL ? state : "");
    return hf__fail(&err->said, status, "database %.100s: %s", shown,
                    err->message[0] != '\0' ? err->message : "the engine does not say why");
}

enum hf_status hf__db_ok(struct hf__db_error *err)
{
    err->state[0] = '\0';
    err->message[0] = '\0';
    return hf__ok(&err->said);
}

enum hf_status hf__db_status_of(const char *state)
{
    static const struct {
        const char *state; /* what an SQLSTATE starts with */
        enum hf_status status;
    } rules[] = {{"40", HF_BUSY},           {"55P03", HF_BUSY},       {"28", HF_DENIED},
                 {"42501", HF_DENIED},      {"42000", HF_INVALID},    {"08", HF_UNREACHABLE},
                 {"53", HF_UNREACHABLE},    {"57P", HF_UNREACHABLE},  {"57014", HF_BUSY},
                 {"25006", HF_UNREACHABLE}, {"25P03", HF_UNREACHABLE}};

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strncmp(state, rules[i].state, strlen(rules[i].state)) == 0)
            return rules[i].status;
    return HF_INVALID;
}
