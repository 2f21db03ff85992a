/* renew_many.c - renewing many holds with one statement. */
#include "base/base.h"
#include "stores/postgres/array.h"
#include "stores/postgres/postgres.h"

#include <string.h>

static const struct pg_statement renew_statement = {
    "SELECT verdict, pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.renew_many($1::pg_catalog.bytea[], $2::pg_catalog.bytea[], $3::bigint[], "
    "$4::integer[], $5::integer)",
    "holdfast_renew_many", 8};

struct arrays {
    struct pg_array names;
    struct pg_array owners;
    struct pg_array tokens;
    struct pg_array ttls;
};

static void arrays_release(struct arrays *arrays)
{
    pg_array_release(&arrays->names);
    pg_array_release(&arrays->owners);
    pg_array_release(&arrays->tokens);
    pg_array_release(&arrays->ttls);
}

/* False: no memory, or an owner that is not valid. */
static bool arrays_init(struct arrays *arrays, const struct hf_claim *claims, size_t count)
{
    *arrays = (struct arrays){0};
    if (!pg_array_init(&arrays->names, PG_OID_BYTEA, count, HF_NAME_MAX) ||
        !pg_array_init(&arrays->owners, PG_OID_BYTEA, count, HF_OWNER_LEN / 2) ||
        !pg_array_init(&arrays->tokens, PG_OID_INT8, count, 8) ||
        !pg_array_init(&arrays->ttls, PG_OID_INT4, count, 4))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!pg_array_owner(&arrays->owners, claims[i].owner))
            return false;
        pg_array_bytes(&arrays->names, claims[i].name, strlen(claims[i].name));
        pg_array_number(&arrays->tokens, claims[i].token, 8);
        pg_array_number(&arrays->ttls, claims[i].ttl_ms, 4);
    }
    return true;
}

static enum hf_status take_in(struct pg_store *store, const struct pg_answer *answer, int row,
                              const struct hf_claim *claim, struct hf_grant *grant,
                              struct hf_error *err)
{
    bool locked;

    grant->sent_at_ns = answer->sent_at_ns;
    if (!pg_row_kept_many(answer->rows, row, &grant->loss, &locked))
        return pg_nonsense(store, claim->name, err);
    if (locked)
        return pg_error_fail(PG_STATE_ROW_LOCKED, "", claim->name, store->url.shown, err);
    if (grant->loss == HF_LOSS_BROKEN)
        return pg_broken(store, claim, grant, err);
    return grant->loss == HF_LOSS_NONE ? HF_OK : pg_lost(store, claim->name, grant->loss, err);
}

static enum hf_status ask(struct pg_store *store, const struct hf_claim *claims, size_t count,
                          struct pg_answer *answer, struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_call call = {.statement = &renew_statement,
                           .params = &params,
                           .patience = {.deadline_ns = HF_NEVER, .cancel_fd = -1},
                           .use = PG_USE_URGENT};
    struct arrays arrays;
    enum hf_status status;

    for (size_t i = 0; i < count; i++) {
        if (claims[i].deadline_ns < call.patience.deadline_ns)
            call.patience.deadline_ns = claims[i].deadline_ns;
        if (claims[i].ttl_ms > store->url.max_ttl_ms)
            return pg_above_max_ttl(store, &claims[i], err);
    }
    if (arrays_init(&arrays, claims, count)) {
        pg_params_array(&params, &arrays.names);
        pg_params_array(&params, &arrays.owners);
        pg_params_array(&params, &arrays.tokens);
        pg_params_array(&params, &arrays.ttls);
        pg_params_number(&params, pg_left_ms(store, call.patience.deadline_ns));
        status = pg_call(store, &call, answer, err);
    } else {
        status = hf__nomem(err);
    }
    arrays_release(&arrays);
    return status;
}

enum hf_status pg_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_answer answer = {0};
    enum hf_status asked = ask(store, claims, count, &answer, err);
    enum hf_status status = asked;

    for (size_t i = 0; i < count; i++) {
        results[i] = asked;
        if (asked == HF_OK)
            results[i] = take_in(store, &answer, (int)i, &claims[i], &grants[i],
                                 status == HF_OK ? err : NULL);
        if (status == HF_OK)
            status = results[i];
    }
    PQclear(answer.rows);
    return status == HF_OK ? hf__ok(err) : status;
}
