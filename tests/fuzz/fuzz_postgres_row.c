/* fuzz_postgres_row.c - anything a server may answer, as rows or as the text of a refusal. Built by
 * fuzz.sh. The input's lines are cells; the first two bytes say how many columns and rows there
 * are. */
#include "stores/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 12, ROWS_MAX = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

/* A cell that is a tab is null. */
static PGresult *make_rows(int columns, int rows, char *text)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc names[COLUMNS_MAX];
    char name[] = "column";

    memset(names, 0, sizeof names);
    for (int i = 0; i < COLUMNS_MAX; i++)
        names[i].name = name;
    must(result != NULL && (columns == 0 || PQsetResultAttrs(result, columns, names) != 0));
    for (int cell = 0; cell < columns * rows; cell++) {
        char *next = strchr(text, '\n');

        if (next != NULL)
            *next++ = '\0';
        must(PQsetvalue(result, cell / columns, cell % columns,
                        strcmp(text, "\t") == 0 ? NULL : text, (int)strlen(text)) != 0);
        text = next != NULL ? next : text + strlen(text);
    }
    return result;
}

static void read_rows(const PGresult *rows)
{
    struct pg_acquired acquired;
    struct pg_kept kept;
    struct pg_met met;
    struct pg_opened opened;
    struct hf_revocation revocation;
    struct hf_broken broken;
    enum pg_revoke_verdict verdict;
    static struct pg_record record;
    enum hf_loss loss;
    bool locked;
    bool stale;

    (void)pg_row_standby(rows);
    (void)pg_row_number(rows, 0, -1);
    if (pg_row_acquired(rows, &acquired)) {
        must(acquired.verdict != PG_GRANTED || (acquired.token > 0 && acquired.token <= INT64_MAX));
        must(acquired.verdict != PG_BUSY || acquired.retry_ms > 0);
        must(strlen(acquired.label) <= HF_LABEL_MAX);
    }
    if (pg_row_kept(rows, &kept))
        must(kept.left_ms >= 0 && kept.left_ms <= kept.ttl_ms && kept.ttl_ms <= HF_TTL_MAX_MS);
    if (pg_row_met(rows, &met))
        must((met.verdict == PG_MAX_TTL) == (met.id[0] == '\0') && strlen(met.id) < PG_ID_SIZE);
    if (pg_row_released(rows, &loss))
        must(strlen(hf_loss_text(loss)) > 0);
    if (pg_row_opened(rows, &opened))
        must(opened.left_ms >= 0);
    if (pg_row_revoked(rows, &verdict, &broken) && verdict == PG_REVOKED)
        must(broken.remaining_ms >= -1 && strlen(broken.label) <= HF_LABEL_MAX);
    if (pg_row_revocation(rows, &revocation))
        must(revocation.at_ms >= 0 && strlen(revocation.by) <= HF_LABEL_MAX);
    if (pg_row_written(rows, &stale, &loss))
        must(!stale || loss == HF_LOSS_NONE);
    must(pg_row_record_clock(rows) >= -1);
    must(pg_row_scanned(rows) >= 0);
    must(!pg_row_kept_many(rows, PQntuples(rows), &loss, &locked));
    for (int row = 0; row < PQntuples(rows); row++) {
        struct pg_lock lock;

        if (pg_row_kept_many(rows, row, &loss, &locked))
            must(!locked || loss == HF_LOSS_NONE);
        if (pg_row_lock(rows, row, &lock))
            must(strlen(lock.info.name) <= HF_NAME_MAX && strlen(lock.info.label) <= HF_LABEL_MAX &&
                 lock.info.remaining_ms >= 0 &&
                 (lock.info.revocation == NULL || lock.info.revocation->at_ms > 0));
        if (pg_row_record(rows, row, &record) == PG_RECORD_READ)
            must(record.public.value_len <= HF_RECORD_VALUE_MAX && record.key[0] != '\0' &&
                 record.public.token != 0 && record.public.until_ms >= 0 &&
                 record.value[record.public.value_len] == '\0');
    }
}

static void read_refusal(const char *text)
{
    char state[PG_STATE_SIZE];
    char why[PG_WHY_SIZE];
    struct hf_error err;

    pg_connect_error(text, state, why);
    must(strchr(why, '\n') == NULL);
    must(pg_error_fail(state, why, "lock", "postgres://host", &err) != HF_OK);
    (void)pg_error_again(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = size >= 2 ? malloc(size - 1) : NULL;
    PGresult *rows;

    if (text == NULL)
        return 0;
    memcpy(text, data + 2, size - 2);
    text[size - 2] = '\0';
    read_refusal(text);
    rows = make_rows(data[0] % (COLUMNS_MAX + 1), data[1] % (ROWS_MAX + 1), text);
    read_rows(rows);
    PQclear(rows);
    free(text);
    return 0;
}
