/* list.c - what is held, by whom, for how long, and who waits. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

static const struct pg_statement list_statement = {
    "SELECT name, held, token, left_ms, age_ms, waiters, detached, label "
    "FROM holdfast.list($1::bytea, $2::boolean, $3::bytea, $4::integer)",
    NULL, 0};
enum { NAME, HELD, TOKEN, LEFT_MS, AGE_MS, WAITERS, DETACHED, LABEL, COLUMNS };

#define PAGE 500 /* locks per request */

static const char *value(const PGresult *rows, int row, int column)
{
    return PQgetisnull(rows, row, column) ? "" : PQgetvalue(rows, row, column);
}

static uint64_t number(const PGresult *rows, int row, int column)
{
    uint64_t result;

    return hf__parse_u64(value(rows, row, column), &result) && result <= INT64_MAX ? result : 0;
}

/* Bytes written as hex, as a string; false if they are too many or none. */
static bool bytes(char *out, size_t size, const char *hex)
{
    size_t len = strlen(hex) / 2;

    if (len >= size || !hf__hex_decode(out, len, hex))
        return false;
    out[len] = '\0';
    return true;
}

/* Shows one row; false: enough, or *bad. name becomes where the next page begins. */
static bool show(const PGresult *rows, int row, char name[HF_NAME_MAX + 1], hf_list_fn *fn,
                 void *data, bool *bad)
{
    char raw[HF_LABEL_MAX + 1];
    char label[HF_LABEL_MAX + 1];
    struct hf_lock_info info = {.size = sizeof info, .name = name, .label = "", .age_ms = -1};

    if (!bytes(name, HF_NAME_MAX + 1, value(rows, row, NAME)) ||
        !bytes(raw, sizeof raw, value(rows, row, LABEL))) {
        *bad = true;
        return false;
    }
    info.held = value(rows, row, HELD)[0] == 't';
    info.waiters = number(rows, row, WAITERS);
    if (info.held) {
        hf__copy_printable(label, sizeof label, raw);
        info.label = label;
        info.token = number(rows, row, TOKEN);
        info.remaining_ms = (int64_t)number(rows, row, LEFT_MS);
        info.age_ms = (int64_t)number(rows, row, AGE_MS);
        info.detached = value(rows, row, DETACHED)[0] == 't';
    }
    return fn(&info, data);
}

enum hf_status pg_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    char name[HF_NAME_MAX + 1] = "";
    bool more = true;

    while (more) {
        struct pg_params params = {0};
        struct pg_call call = {.lock = query->exact ? query->name : NULL,
                               .statement = &list_statement,
                               .params = &params,
                               .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                               .use = PG_USE_URGENT};
        struct pg_answer answer;
        enum hf_status status;
        bool bad = false;
        int count;

        pg_params_bytes(&params, query->name, strlen(query->name));
        pg_params_text(&params, query->exact ? "t" : "f");
        if (name[0] == '\0')
            pg_params_text(&params, NULL);
        else
            pg_params_bytes(&params, name, strlen(name));
        pg_params_number(&params, PAGE);
        status = pg_call(store, &call, &answer, err);
        if (status != HF_OK)
            return status == HF_UNKNOWN ? HF_UNREACHABLE : status;
        count = PQntuples(answer.rows);
        bad = PQnfields(answer.rows) != COLUMNS;
        more = count == PAGE;
        for (int row = 0; row < count && !bad; row++)
            if (!show(answer.rows, row, name, fn, data, &bad)) {
                more = false;
                break;
            }
        PQclear(answer.rows);
        if (bad)
            return pg_nonsense(store, query->name, err);
    }
    return hf__ok(err);
}
