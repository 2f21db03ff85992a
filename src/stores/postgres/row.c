/* row.c - what the server's answers say. */
#include "stores/postgres/row.h"
#include "base/base.h"

#include <string.h>

static const char *text_at(const PGresult *rows, int row, int column)
{
    return PQgetisnull(rows, row, column) ? "" : PQgetvalue(rows, row, column);
}

static int64_t number_at(const PGresult *rows, int row, int column, int64_t otherwise)
{
    uint64_t number;

    return hf__parse_u64(text_at(rows, row, column), &number) && number <= INT64_MAX
               ? (int64_t)number
               : otherwise;
}

static bool row_says(const PGresult *rows, int row, int column, const char *word)
{
    return strcmp(text_at(rows, row, column), word) == 0;
}

static bool says(const PGresult *rows, int column, const char *word)
{
    return row_says(rows, 0, column, word);
}

/* A word that the server says, and what it means to us. */
struct word {
    const char *text; /* NULL ends a list */
    int value;
};

/* False, and *value untouched, for a word that is not in the list. */
static bool word_at(const PGresult *rows, int row, int column, const struct word *words, int *value)
{
    for (; words->text != NULL; words++)
        if (row_says(rows, row, column, words->text)) {
            *value = words->value;
            return true;
        }
    return false;
}

/* One row of that many columns, and the pid. */
static bool has_shape(const PGresult *rows, int columns)
{
    return PQntuples(rows) == 1 && PQnfields(rows) == columns + 1;
}

/* Bytes written as hex, as a string; false if they are too many or no hex. */
static bool hex_at(const PGresult *rows, int row, int column, char *out, size_t size)
{
    const char *hex = text_at(rows, row, column);
    size_t len = strlen(hex) / 2;

    if (len >= size || !hf__hex_decode(out, len, hex))
        return false;
    out[len] = '\0';
    return true;
}

_Static_assert(HF_REASON_MAX == HF_LABEL_MAX, "a reason is read as a label is");

static bool label_at(const PGresult *rows, int row, int column, char out[HF_LABEL_MAX + 1])
{
    char raw[HF_LABEL_MAX + 1];

    if (!hex_at(rows, row, column, raw, sizeof raw))
        return false;
    hf__copy_printable(out, sizeof raw, raw);
    return true;
}

int64_t pg_row_number(const PGresult *rows, int column, int64_t otherwise)
{
    return PQntuples(rows) > 0 && column < PQnfields(rows) ? number_at(rows, 0, column, otherwise)
                                                           : otherwise;
}

bool pg_row_standby(const PGresult *rows)
{
    return PQntuples(rows) > 0 && PQnfields(rows) > 0 && says(rows, 0, "standby");
}

/* Which of several an answer is about. */
static bool which_at(const PGresult *rows, size_t count, struct pg_acquired *out)
{
    enum { WHICH = PG_ACQUIRE_COUNT, MORE, SETTLED };
    uint64_t which = (uint64_t)number_at(rows, 0, WHICH, 0);

    if (which < 1 || which > count)
        return false;
    out->which = (size_t)which - 1;
    out->more = says(rows, MORE, "t");
    out->settled = says(rows, SETTLED, "t");
    return true;
}

bool pg_row_acquired(const PGresult *rows, size_t count, struct pg_acquired *out)
{
    enum { VERDICT, TOKEN, RETRY_MS, LEFT_MS, HOLDER, LABEL };
    static const struct word verdicts[] = {{"granted", PG_GRANTED},
                                           {"busy", PG_BUSY},
                                           {"twice", PG_TWICE},
                                           {"new", PG_NEW},
                                           {NULL, 0}};
    int verdict;

    *out = (struct pg_acquired){.verdict = PG_NEW};
    if (!has_shape(rows, count > 1 ? PG_ACQUIRE_ANY_COUNT : PG_ACQUIRE_COUNT) ||
        !word_at(rows, 0, VERDICT, verdicts, &verdict))
        return false;
    out->verdict = (enum pg_acquire_verdict)verdict;
    if (out->verdict == PG_NEW)
        return true;
    if (count > 1 && !which_at(rows, count, out))
        return false;
    if (out->verdict == PG_TWICE)
        return true;
    out->token = (uint64_t)number_at(rows, 0, TOKEN, 0);
    if (out->verdict == PG_GRANTED)
        return out->token != 0;
    out->retry_ms = number_at(rows, 0, RETRY_MS, 1000);
    if (out->retry_ms < 1 || out->retry_ms > HF_TTL_MAX_MS)
        out->retry_ms = 1;
    out->left_ms = number_at(rows, 0, LEFT_MS, 0);
    out->held = says(rows, HOLDER, "held");
    return label_at(rows, 0, LABEL, out->label);
}

/* Why it is not held any more. */
static bool loss_at(const PGresult *rows, int row, int column, enum hf_loss *out)
{
    static const struct word losses[] = {{"taken", HF_LOSS_TAKEN},
                                         {"expired", HF_LOSS_EXPIRED},
                                         {"forgotten", HF_LOSS_FORGOTTEN},
                                         {"broken", HF_LOSS_BROKEN},
                                         {NULL, 0}};
    int loss;

    if (!word_at(rows, row, column, losses, &loss))
        return false;
    *out = (enum hf_loss)loss;
    return true;
}

bool pg_row_kept(const PGresult *rows, struct pg_kept *out)
{
    enum { VERDICT, LEFT_MS, TTL_MS };
    int64_t ttl_ms;

    *out = (struct pg_kept){.loss = HF_LOSS_NONE};
    if (!has_shape(rows, PG_RENEW_COUNT))
        return false;
    out->revoked = says(rows, VERDICT, "revoked");
    if (!out->revoked && !says(rows, VERDICT, "held"))
        return loss_at(rows, 0, VERDICT, &out->loss);
    ttl_ms = number_at(rows, 0, TTL_MS, 0);
    out->left_ms = number_at(rows, 0, LEFT_MS, 0);
    if (ttl_ms > HF_TTL_MAX_MS || out->left_ms > ttl_ms)
        return false;
    out->ttl_ms = (uint32_t)ttl_ms;
    return true;
}

bool pg_row_kept_many(const PGresult *rows, int row, enum hf_loss *loss, bool *locked)
{
    *loss = HF_LOSS_NONE;
    *locked = false;
    if (row >= PQntuples(rows) || PQnfields(rows) < 1)
        return false;
    *locked = row_says(rows, row, 0, "locked");
    return *locked || row_says(rows, row, 0, "held") || loss_at(rows, row, 0, loss);
}

bool pg_row_released(const PGresult *rows, enum hf_loss *out)
{
    *out = HF_LOSS_NONE;
    return has_shape(rows, 1) && (says(rows, 0, "released") || loss_at(rows, 0, 0, out));
}

bool pg_row_revoked(const PGresult *rows, enum pg_revoke_verdict *verdict, struct hf_broken *out)
{
    enum { VERDICT, LEFT_MS, AGAIN, DETACHED, LABEL };
    static const struct word verdicts[] = {{"revoked", PG_REVOKED},
                                           {"free", PG_NOT_HELD},
                                           {"handed", PG_HANDED},
                                           {"other", PG_OTHER_TOKEN},
                                           {NULL, 0}};
    int found;

    if (!has_shape(rows, PG_REVOKE_COUNT) || !word_at(rows, 0, VERDICT, verdicts, &found))
        return false;
    *verdict = (enum pg_revoke_verdict)found;
    if (*verdict != PG_REVOKED)
        return true;
    out->remaining_ms = number_at(rows, 0, LEFT_MS, -1);
    out->again = text_at(rows, 0, AGAIN)[0] == 't';
    out->detached = text_at(rows, 0, DETACHED)[0] == 't';
    return label_at(rows, 0, LABEL, out->label);
}

/* From that column on: when, by whom and why. */
static bool revocation_at(const PGresult *rows, int row, int column, struct hf_revocation *out)
{
    out->at_ms = number_at(rows, row, column, 0);
    return label_at(rows, row, column + 1, out->by) && label_at(rows, row, column + 2, out->reason);
}

bool pg_row_revocation(const PGresult *rows, struct hf_revocation *out)
{
    *out = (struct hf_revocation){.by = ""};
    return has_shape(rows, PG_WHO_COUNT) && revocation_at(rows, 0, 1, out);
}

bool pg_row_met(const PGresult *rows, struct pg_met *out)
{
    enum { VERDICT, VERSION, ID, LEFT_MS, AGREED_MS, WHY };
    static const struct word verdicts[] = {
        {"open", PG_OPEN}, {"quarantine", PG_QUARANTINE}, {"max_ttl", PG_MAX_TTL}, {NULL, 0}};
    static const struct word reasons[] = {
        {"promoted", PG_WHY_PROMOTED}, {"moved", PG_WHY_MOVED}, {"unmet", PG_WHY_UNMET}, {NULL, 0}};
    int verdict;
    int why = PG_WHY_PROMOTED; /* also what an earlier version gave no reason for */
    const char *id;

    *out = (struct pg_met){.verdict = PG_OPEN};
    if (!has_shape(rows, PG_MEET_COUNT) || !word_at(rows, 0, VERDICT, verdicts, &verdict))
        return false;
    (void)word_at(rows, 0, WHY, reasons, &why);
    out->verdict = (enum pg_meet_verdict)verdict;
    out->why = (enum pg_why)why;
    out->version = number_at(rows, 0, VERSION, 0);
    out->left_ms = number_at(rows, 0, LEFT_MS, 1);
    out->agreed_ms = number_at(rows, 0, AGREED_MS, 0);
    if (out->verdict == PG_MAX_TTL)
        return true;
    id = text_at(rows, 0, ID);
    if (id[0] == '\0' || strlen(id) >= sizeof out->id)
        return false;
    memcpy(out->id, id, strlen(id) + 1);
    return out->verdict == PG_OPEN || (out->left_ms >= 1 && out->left_ms <= HF_TTL_MAX_MS);
}

bool pg_row_opened(const PGresult *rows, struct pg_opened *out)
{
    enum { VERDICT, LEFT_MS };
    static const struct word verdicts[] = {
        {"opened", PG_WAS_OPENED}, {"open", PG_WAS_OPEN}, {"new", PG_WAS_ANOTHER}, {NULL, 0}};
    int verdict;

    *out = (struct pg_opened){.verdict = PG_WAS_OPENED};
    if (!has_shape(rows, PG_OPENED_COUNT) || !word_at(rows, 0, VERDICT, verdicts, &verdict))
        return false;
    out->verdict = (enum pg_open_verdict)verdict;
    out->left_ms = number_at(rows, 0, LEFT_MS, 0);
    return true;
}

bool pg_row_written(const PGresult *rows, bool *stale, enum hf_loss *loss)
{
    *loss = HF_LOSS_NONE;
    *stale = false;
    if (!has_shape(rows, 1))
        return false;
    *stale = says(rows, 0, "stale");
    return *stale || says(rows, 0, "written") || loss_at(rows, 0, 0, loss);
}

enum { RECORD_VERDICT, RECORD_NOW, RECORD_KEY, RECORD_TOKEN, RECORD_NUMBER, RECORD_WRITTEN };
enum { RECORD_UNTIL = RECORD_WRITTEN + 1, RECORD_VALUE };

int64_t pg_row_record_clock(const PGresult *rows)
{
    return PQnfields(rows) == PG_RECORD_COUNT + 1 ? pg_row_number(rows, RECORD_NOW, -1) : -1;
}

enum pg_record_verdict pg_row_record(const PGresult *rows, int row, struct pg_record *out)
{
    struct hf_record *record = &out->public;

    if (PQnfields(rows) != PG_RECORD_COUNT + 1)
        return PG_RECORD_NONSENSE;
    if (row_says(rows, row, RECORD_VERDICT, "none"))
        return PG_RECORD_NONE;
    if (!row_says(rows, row, RECORD_VERDICT, "record") ||
        !hex_at(rows, row, RECORD_KEY, out->key, sizeof out->key) || out->key[0] == '\0')
        return PG_RECORD_NONSENSE;
    *record = (struct hf_record){
        .size = sizeof *record,
        .key = out->key,
        .value = out->value,
        .value_len = strlen(text_at(rows, row, RECORD_VALUE)) / 2,
        .token = (uint64_t)number_at(rows, row, RECORD_TOKEN, 0),
        .number = (uint64_t)number_at(rows, row, RECORD_NUMBER, 0),
        .written_ms = number_at(rows, row, RECORD_WRITTEN, -1),
        .until_ms = number_at(rows, row, RECORD_UNTIL, -1),
    };
    if (record->token == 0 || record->number == 0 || record->written_ms < 0 ||
        record->until_ms < 0 || !hex_at(rows, row, RECORD_VALUE, out->value, sizeof out->value))
        return PG_RECORD_DAMAGED;
    return PG_RECORD_READ;
}

enum { LIST_NAME, LIST_HELD, LIST_TOKEN, LIST_LEFT, LIST_AGE, LIST_WAITERS, LIST_DETACHED };
enum { LIST_LABEL = LIST_DETACHED + 1, LIST_N, LIST_BROKEN, LIST_TTL = LIST_BROKEN + 3 };

int64_t pg_row_scanned(const PGresult *rows)
{
    int last = PQntuples(rows) - 1;

    return last < 0 || PQnfields(rows) != PG_LIST_COUNT ? 0 : number_at(rows, last, LIST_N, 0);
}

/* 0: it does not tell. */
static uint32_t ttl_at(const PGresult *rows, int row)
{
    int64_t ttl_ms = number_at(rows, row, LIST_TTL, 0);

    return ttl_ms <= HF_TTL_MAX_MS ? (uint32_t)ttl_ms : 0;
}

bool pg_row_lock(const PGresult *rows, int row, struct pg_lock *out)
{
    struct hf_lock_info *info = &out->info;

    *info =
        (struct hf_lock_info){.size = sizeof *info, .name = out->name, .label = "", .age_ms = -1};
    if (PQnfields(rows) != PG_LIST_COUNT ||
        !hex_at(rows, row, LIST_NAME, out->name, sizeof out->name) ||
        !label_at(rows, row, LIST_LABEL, out->label) ||
        !revocation_at(rows, row, LIST_BROKEN, &out->revocation))
        return false;
    info->held = text_at(rows, row, LIST_HELD)[0] == 't';
    info->waiters = (uint64_t)number_at(rows, row, LIST_WAITERS, 0);
    if (info->held) {
        info->label = out->label;
        info->token = (uint64_t)number_at(rows, row, LIST_TOKEN, 0);
        info->remaining_ms = number_at(rows, row, LIST_LEFT, 0);
        info->ttl_ms = ttl_at(rows, row);
        info->age_ms = number_at(rows, row, LIST_AGE, 0);
        info->detached = text_at(rows, row, LIST_DETACHED)[0] == 't';
        info->revocation = out->revocation.at_ms != 0 ? &out->revocation : NULL;
    }
    return true;
}

bool pg_row_waiter(const PGresult *rows, int row, char label[HF_LABEL_MAX + 1], int64_t *waited_ms)
{
    if (PQnfields(rows) != 2 || !label_at(rows, row, 0, label))
        return false;
    *waited_ms = number_at(rows, row, 1, -1);
    return true;
}

void pg_one_line(char out[PG_WHY_SIZE], const char *text)
{
    size_t len = strcspn(text, "\n");

    while (len > 0 && text[len - 1] == ' ')
        len--;
    hf__copy_printable(out, len + 1 < PG_WHY_SIZE ? len + 1 : PG_WHY_SIZE, text);
}

void pg_connect_error(const char *text, char state[PG_STATE_SIZE], char why[PG_WHY_SIZE])
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *line = text;
    const char *failed = strstr(text, "failed: ");

    state[0] = '\0';
    /* 'connection to server at "HOST", port N failed: why': the store's URL says where. */
    if (failed != NULL)
        line = failed + strlen("failed: ");
    /* "FATAL:  28P01: password authentication ...\nLOCATION: ...", once for each host. If one of
     * them has no room or is about to start, that is what matters: it passes. */
    for (const char *at = strstr(text, ":  "); at != NULL; at = strstr(at + 3, ":  ")) {
        const char *code = at + 3;
        bool passes = strncmp(code, "53", 2) == 0 || strncmp(code, "57", 2) == 0;

        if (strspn(code, digits) != PG_STATE_SIZE - 1 || code[PG_STATE_SIZE - 1] != ':' ||
            (state[0] != '\0' && !passes))
            continue;
        memcpy(state, code, PG_STATE_SIZE - 1);
        state[PG_STATE_SIZE - 1] = '\0';
        line = code + PG_STATE_SIZE;
        line += strspn(line, " ");
        if (passes)
            break;
    }
    pg_one_line(why, line);
}
