/* record.c - what holders leave behind: statements to write, to read, and for a page of a list. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>

static const struct pg_statement put_statement = {
    "SELECT holdfast.record_put($1::pg_catalog.bytea, $2::pg_catalog.bytea, $3::bigint, "
    "$4::bigint, $5::pg_catalog.bytea, $6::pg_catalog.bytea, $7::bigint, $8::integer), "
    "pg_catalog.pg_backend_pid() AS pid",
    "holdfast_record_put", 16};
static const struct pg_statement get_statement = {
    "SELECT " PG_RECORD_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.record_get($1::pg_catalog.bytea, $2::pg_catalog.bytea)",
    "holdfast_record_get", 32};
static const struct pg_statement list_statement = {
    "SELECT " PG_RECORD_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.record_list($1::pg_catalog.bytea, $2::pg_catalog.bytea, $3::pg_catalog.bytea, "
    "$4::integer, $5::integer)",
    NULL, 0};
/* What record_get would say if there were no record; for a database without the functions. */
static const struct pg_statement clock_statement = {
    "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'standby' ELSE 'none' END AS verdict, "
    "pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()) "
    "OPERATOR(pg_catalog.*) 1000)::bigint AS now_ms, NULL, NULL, NULL, NULL, NULL, NULL, "
    "pg_catalog.pg_backend_pid() AS pid",
    NULL, 0};

enum { PAGE_ROWS = 1000, PAGE_BYTES = 1 << 20 };

static enum hf_status judge_put(const struct pg_store *store, const struct hf_record_write *write,
                                const PGresult *rows, struct hf_error *err)
{
    enum hf_loss loss;
    bool stale;

    if (!pg_row_written(rows, &stale, &loss))
        return pg_nonsense(store, write->name, err);
    if (stale)
        return hf__fail_old_record(err, write->name, store->url.shown, write->key);
    return loss == HF_LOSS_NONE ? hf__ok(err) : pg_lost(store, write->name, loss, err);
}

enum hf_status pg_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    unsigned char owner[HF_OWNER_LEN / 2];
    struct pg_params params = {0};
    struct pg_call call = {.lock = write->name,
                           .statement = &put_statement,
                           .params = &params,
                           .patience = {.deadline_ns = write->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT};
    struct pg_answer answer;
    enum hf_status status;

    if (!hf__hex_decode(owner, sizeof owner, write->owner))
        return pg_nonsense(store, write->name, err);
    pg_params_bytes(&params, write->name, strlen(write->name));
    pg_params_bytes(&params, owner, sizeof owner);
    pg_params_number(&params, (int64_t)write->token);
    pg_params_number(&params, (int64_t)write->number);
    pg_params_bytes(&params, write->key, strlen(write->key));
    pg_params_bytes(&params, write->value, write->value_len);
    pg_params_number(&params, write->keep_ms);
    pg_params_number(&params, pg_left_ms(store, write->deadline_ns));
    status = pg_call(store, &call, &answer, err);
    if (status != HF_OK)
        return status;
    status = judge_put(store, write, answer.rows, err);
    PQclear(answer.rows);
    return status;
}

/* A question about records under way. */
struct reading {
    struct pg_store *store;
    const struct hf_record_query *query;
    hf_record_fn *fn;
    void *data;
    bool stopped;
    struct hf_error bad;     /* of a record that is damaged: the others are shown all the same */
    struct pg_record record; /* the last one that was shown */
};

static struct reading *begin(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data)
{
    struct reading *r = calloc(1, sizeof *r);

    if (r != NULL) {
        r->store = (struct pg_store *)base;
        r->query = query;
        r->fn = fn;
        r->data = data;
    }
    return r;
}

static enum hf_status end(struct reading *r, enum hf_status status, struct hf_error *err)
{
    if (status == HF_OK) {
        status = r->bad.code;
        if (err != NULL)
            *err = r->bad;
    }
    free(r);
    return status;
}

static enum hf_status ask(struct reading *r, const struct pg_statement *statement,
                          const struct pg_params *params, struct pg_answer *answer,
                          struct hf_error *err)
{
    struct pg_call call = {.lock = r->query->name,
                           .statement = statement,
                           .params = params,
                           .patience = {.deadline_ns = r->query->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT,
                           .only_reads = true};

    return pg_call(r->store, &call, answer, err);
}

/* Shows what a row has. False: not even its key can be told. */
static bool show(struct reading *r, const PGresult *rows, int row)
{
    char key[HF_RECORD_KEY_MAX + 1];

    switch (pg_row_record(rows, row, &r->record)) {
    case PG_RECORD_NONE:
        return true;
    case PG_RECORD_READ:
        r->stopped = !r->fn(&r->record.public, r->data);
        return true;
    case PG_RECORD_DAMAGED:
        hf__copy_printable(key, sizeof key, r->record.key);
        (void)hf__fail_lock(&r->bad, HF_CORRUPT, r->query->name, r->store->url.shown,
                            ": its record \"%s\" is damaged; delete its row in holdfast.record",
                            key);
        return true;
    case PG_RECORD_NONSENSE:
        break;
    }
    return false;
}

/* A reader may find a database without the functions: there are no records then. */
static enum hf_status get_row(struct reading *r, struct pg_answer *answer, struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_params none = {0};

    pg_params_bytes(&params, r->query->name, strlen(r->query->name));
    pg_params_bytes(&params, r->query->key, strlen(r->query->key));
    if (!r->store->absent) {
        enum hf_status status = ask(r, &get_statement, &params, answer, err);

        if (!pg_error_no_schema(answer->state))
            return status;
    }
    return ask(r, &clock_statement, &none, answer, err);
}

enum hf_status pg_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err)
{
    struct reading *r = begin(base, query, fn, data);
    struct pg_answer answer = {0};
    enum hf_status status;

    if (r == NULL)
        return hf__nomem(err);
    status = get_row(r, &answer, err);
    if (status == HF_OK) {
        int64_t clock_ms = pg_row_record_clock(answer.rows);

        if (clock_ms < 0 || !show(r, answer.rows, 0))
            status = pg_nonsense(r->store, query->name, err);
        else if (now_ms != NULL)
            *now_ms = clock_ms;
        PQclear(answer.rows);
    }
    return end(r, status, err);
}

/* Shows the page behind r->record.key. *more: there may be another. */
static enum hf_status show_page(struct reading *r, bool *more, struct hf_error *err)
{
    const char *after = r->record.key;
    struct pg_params params = {0};
    struct pg_answer answer;
    enum hf_status status;
    size_t bytes = 0;
    int count;

    *more = false;
    pg_params_bytes(&params, r->query->name, strlen(r->query->name));
    pg_params_bytes(&params, r->query->key, strlen(r->query->key));
    if (after[0] == '\0')
        pg_params_text(&params, NULL);
    else
        pg_params_bytes(&params, after, strlen(after));
    pg_params_number(&params, PAGE_ROWS);
    pg_params_number(&params, PAGE_BYTES);
    status = ask(r, &list_statement, &params, &answer, err);
    if (pg_error_no_schema(answer.state))
        return HF_OK;
    if (status != HF_OK)
        return status;
    count = PQntuples(answer.rows);
    for (int row = 0; row < count && status == HF_OK && !r->stopped; row++) {
        if (!show(r, answer.rows, row))
            status = pg_nonsense(r->store, r->query->name, err);
        bytes += r->record.public.value_len;
    }
    *more = !r->stopped && (count == PAGE_ROWS || bytes >= PAGE_BYTES);
    PQclear(answer.rows);
    return status;
}

enum hf_status pg_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err)
{
    struct reading *r = begin(base, query, fn, data);
    enum hf_status status = HF_OK;
    bool more;

    if (r == NULL)
        return hf__nomem(err);
    more = !r->store->absent;
    while (more && status == HF_OK)
        status = show_page(r, &more, err);
    return end(r, status, err);
}
