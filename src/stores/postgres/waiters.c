/* waiters.c - who waits, in order. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

static const struct pg_statement waiters_statement = {
    "SELECT label, waited_ms FROM holdfast.waiters($1::pg_catalog.bytea, $2::integer)", NULL, 0};

static enum hf_status tell(const struct pg_store *store, const PGresult *rows, hf_waiter_fn *fn,
                           void *data, struct hf_error *err)
{
    int count = PQntuples(rows);
    bool more = true;

    for (int row = 0; row < count && more; row++) {
        char label[HF_LABEL_MAX + 1];
        struct hf_waiter waiter = {.size = sizeof waiter, .label = label};

        if (!pg_row_waiter(rows, row, label, &waiter.waited_ms))
            return pg_nonsense(store, NULL, err);
        more = fn(&waiter, data);
    }
    return hf__ok(err);
}

enum hf_status pg_ask(struct pg_store *store, const struct hf_query *query,
                      const struct pg_asked *asked, struct pg_answer *out, struct hf_error *err)
{
    struct pg_call call = {.lock = query->name,
                           .statement = asked->statement,
                           .params = asked->params,
                           .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT,
                           .only_reads = true};
    enum hf_status status = pg_call(store, &call, out, err);

    if (pg_error_no_schema(out->state)) /* an older one, which those who only look leave alone */
        return hf__fail_lock(err, HF_UNSUPPORTED, query->name, store->url.shown,
                             ": its schema is older and does not tell %s", asked->what);
    return status;
}

enum hf_status pg_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_asked asked = {&waiters_statement, &params, "who waits"};
    struct pg_answer answer;
    enum hf_status status;

    if (store->absent)
        return hf__ok(err);
    pg_params_bytes(&params, query->name, strlen(query->name));
    pg_params_number(&params, HF_WAITERS_MAX);
    status = pg_ask(store, query, &asked, &answer, err);
    if (status != HF_OK)
        return status;
    status = tell(store, answer.rows, fn, data, err);
    PQclear(answer.rows);
    return status;
}
