/* hold.c - renewing and releasing what is held. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

static const struct pg_statement renew_statement = {
    "SELECT " PG_RENEW_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.renew($1::pg_catalog.bytea, $2::pg_catalog.bytea, "
    "$3::bigint, $4::integer, $5::integer)",
    "holdfast_renew", 1};
static const struct pg_statement release_statement = {
    "SELECT holdfast.release($1::pg_catalog.bytea, $2::pg_catalog.bytea, $3::bigint, "
    "$4::pg_catalog.text, $5::integer), "
    "pg_catalog.pg_backend_pid() AS pid",
    "holdfast_release", 2};

struct identity {
    unsigned char owner[HF_OWNER_LEN / 2];
};

static bool identify(struct pg_params *params, const struct hf_claim *claim,
                     struct identity *identity)
{
    if (!hf__hex_decode(identity->owner, sizeof identity->owner, claim->owner))
        return false;
    pg_params_bytes(params, claim->name, strlen(claim->name));
    pg_params_bytes(params, identity->owner, sizeof identity->owner);
    pg_params_number(params, (int64_t)claim->token);
    return true;
}

enum hf_status pg_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct identity identity;
    struct pg_answer answer;
    struct pg_call call = {.lock = claim->name,
                           .statement = &renew_statement,
                           .params = &params,
                           .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT,
                           .only_reads = claim->ttl_ms == 0};
    struct pg_kept kept = {.loss = HF_LOSS_NONE};
    enum hf_status status;

    if (claim->ttl_ms > store->url.max_ttl_ms)
        return pg_above_max_ttl(store, claim, err);
    if (!identify(&params, claim, &identity))
        return pg_nonsense(store, claim->name, err);
    pg_params_number(&params, claim->ttl_ms);
    pg_params_number(&params, pg_left_ms(store, claim->deadline_ns));
    status = pg_call(store, &call, &answer, err);
    if (status != HF_OK)
        return status;
    grant->sent_at_ns = answer.sent_at_ns;
    if (pg_row_kept(answer.rows, &kept)) {
        grant->loss = kept.loss;
        grant->remaining_ms = kept.left_ms;
        grant->ttl_ms = kept.ttl_ms;
        if (kept.revoked || kept.loss == HF_LOSS_BROKEN)
            status = pg_broken(store, claim, grant, err);
        else if (kept.loss != HF_LOSS_NONE)
            status = pg_lost(store, claim->name, kept.loss, err);
    } else {
        status = pg_nonsense(store, claim->name, err);
    }
    PQclear(answer.rows);
    return status == HF_OK || kept.revoked ? hf__ok(err) : status;
}

static void count_out(struct pg_store *store)
{
    unsigned holds = atomic_load(&store->holds);

    /* A lease that was adopted was not counted in. */
    while (holds > 0 && !atomic_compare_exchange_weak(&store->holds, &holds, holds - 1))
        ;
}

/* id "": the lock is freed and not passed on; the next in the queue finds it when it asks again. */
static bool build_release(const struct pg_store *store, const struct hf_claim *claim,
                          const char *id, struct pg_params *params, struct identity *identity)
{
    if (!identify(params, claim, identity))
        return false;
    pg_params_text(params, id);
    pg_params_number(params, pg_left_ms(store, claim->deadline_ns));
    return true;
}

enum hf_status pg_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_params quiet = {0};
    struct identity identity;
    struct pg_answer answer;
    char id[PG_ID_SIZE];
    struct pg_call call = {.lock = claim->name,
                           .statement = &release_statement,
                           .params = &params,
                           .quiet = &quiet,
                           .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT};
    enum hf_loss loss;
    enum hf_status status;

    count_out(store);
    pg_incarnation_known(store, id);
    if (!build_release(store, claim, id, &params, &identity) ||
        !build_release(store, claim, "", &quiet, &identity))
        return pg_nonsense(store, claim->name, err);
    status = pg_call(store, &call, &answer, err);
    if (status != HF_OK)
        return status;
    if (!pg_row_released(answer.rows, &loss))
        status = pg_nonsense(store, claim->name, err);
    else if (loss == HF_LOSS_BROKEN)
        status = pg_broken(store, claim, NULL, err);
    else
        status = loss == HF_LOSS_NONE ? hf__ok(err) : pg_lost(store, claim->name, loss, err);
    PQclear(answer.rows);
    return status;
}
