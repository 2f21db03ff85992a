/* list.c - what is held, by whom, for how long, and who waits. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

#define FROM                                                                                       \
    " FROM holdfast.list($1::pg_catalog.bytea, $2::boolean, $3::pg_catalog.bytea, $4::integer)"

/* Ours, and of older schemas, for those who only read and leave them as they are: they tell no ttl,
 * or know no breaks either. */
static const struct pg_statement statements[] = {
    {"SELECT " PG_LIST_COLUMNS FROM, NULL, 0},
    {"SELECT " PG_LIST_COLUMNS_23 ", NULL" FROM, NULL, 0},
    {"SELECT " PG_LIST_COLUMNS_7 ", NULL, NULL, NULL, NULL" FROM, NULL, 0}};

#define OLDEST (sizeof statements / sizeof *statements - 1)
#define PAGE   2000 /* rows that one request looks at */

static void build(const struct hf_query *query, const char *after, struct pg_params *params)
{
    pg_params_bytes(params, query->name, strlen(query->name));
    pg_params_text(params, query->exact ? "t" : "f");
    if (after[0] == '\0')
        pg_params_text(params, NULL);
    else
        pg_params_bytes(params, after, strlen(after));
    pg_params_number(params, PAGE);
}

struct listing {
    hf_list_fn *fn;
    void *data;
    struct pg_lock last; /* behind which the next page begins */
    size_t schema;       /* which of the statements it understands */
    bool more;           /* there is one, and fn wants it */
};

/* A grant or a renewal makes a hold last its ttl: what is gone of that is how long ago it was. */
static void tell_renewal(const struct pg_store *store, struct hf_lock_info *info)
{
    if (info->held && info->ttl_ms > 0 && info->remaining_ms <= info->ttl_ms)
        info->renewed_ms = store->base.host->wall_us() / 1000 - (info->ttl_ms - info->remaining_ms);
}

/* Shows one page. */
static enum hf_status show(struct listing *listing, const struct pg_store *store,
                           const PGresult *rows, struct hf_error *err)
{
    int count = PQntuples(rows);

    listing->more = pg_row_scanned(rows) == PAGE;
    for (int row = 0; row < count; row++) {
        const struct hf_lock_info *info = &listing->last.info;

        if (!pg_row_lock(rows, row, &listing->last))
            return pg_nonsense(store, NULL, err);
        tell_renewal(store, &listing->last.info);
        if ((info->held || info->waiters > 0) && !listing->fn(info, listing->data)) {
            listing->more = false;
            break;
        }
    }
    return HF_OK;
}

static enum hf_status ask(struct listing *listing, struct pg_store *store,
                          const struct hf_query *query, struct pg_answer *answer,
                          struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_call call = {.lock = query->exact ? query->name : NULL,
                           .params = &params,
                           .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT,
                           .only_reads = true};
    enum hf_status status;

    build(query, listing->last.name, &params);
    for (;; listing->schema++) {
        call.statement = &statements[listing->schema];
        status = pg_call(store, &call, answer, err);
        if (listing->schema == OLDEST || !pg_error_no_schema(answer->state))
            return status;
    }
}

enum hf_status pg_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct listing listing = {.fn = fn, .data = data, .more = true};

    if (store->absent)
        return hf__ok(err);
    while (listing.more) {
        struct pg_answer answer;
        enum hf_status status = ask(&listing, store, query, &answer, err);

        if (status != HF_OK)
            return status;
        status = show(&listing, store, answer.rows, err);
        PQclear(answer.rows);
        if (status != HF_OK)
            return status;
    }
    return hf__ok(err);
}
