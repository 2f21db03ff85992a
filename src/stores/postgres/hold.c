/* hold.c - renewing and releasing what is held. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

static const struct pg_statement renew_statement = {
    "SELECT verdict, left_ms, ttl_ms, pg_backend_pid() AS pid FROM holdfast.renew($1::bytea, "
    "$2::bytea, $3::bigint, $4::integer, $5::integer)",
    "holdfast_renew", 1};
static const struct pg_statement release_statement = {
    "SELECT holdfast.release($1::bytea, $2::bytea, $3::bigint, $4::text, $5::integer), "
    "pg_backend_pid() AS pid",
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

static enum hf_status lost(const struct pg_store *store, const char *name, const char *verdict,
                           struct hf_grant *grant, struct hf_error *err)
{
    enum hf_loss loss;

    if (strcmp(verdict, "taken") == 0)
        loss = HF_LOSS_TAKEN;
    else if (strcmp(verdict, "expired") == 0)
        loss = HF_LOSS_EXPIRED;
    else if (strcmp(verdict, "forgotten") == 0)
        loss = HF_LOSS_FORGOTTEN;
    else
        return pg_nonsense(store, name, err);
    if (grant != NULL)
        grant->loss = loss;
    return hf__fail(err, HF_LOST, "lock \"%.80s\" in store %.90s is not held any more: %s", name,
                    store->url.shown, hf_loss_text(loss));
}

/* A look changes nothing, so that "may have taken effect" is no news. */
static enum hf_status no_answer(const struct hf_claim *claim, enum hf_status status,
                                struct hf_error *err)
{
    if (claim->ttl_ms != 0 || status != HF_UNKNOWN)
        return status;
    if (err != NULL)
        err->code = HF_UNREACHABLE;
    return HF_UNREACHABLE;
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
                           .columns = 3};
    enum hf_status status;

    if (claim->ttl_ms > store->url.max_ttl_ms)
        return hf__fail(err, HF_INVALID, "lock \"%.60s\" in store %.80s: a ttl above max_ttl",
                        claim->name, store->url.shown);
    if (!identify(&params, claim, &identity))
        return pg_nonsense(store, claim->name, err);
    pg_params_number(&params, claim->ttl_ms);
    pg_params_number(&params, pg_left_ms(store, claim->deadline_ns));
    status = pg_call(store, &call, &answer, err);
    if (status != HF_OK)
        return no_answer(claim, status, err);
    grant->sent_at_ns = answer.sent_at_ns;
    if (strcmp(pg_text(answer.rows, 0), "held") == 0) {
        grant->remaining_ms = pg_number(answer.rows, 1, 0);
        grant->ttl_ms = (uint32_t)pg_number(answer.rows, 2, 0);
        status = hf__ok(err);
    } else {
        status = lost(store, claim->name, pg_text(answer.rows, 0), grant, err);
    }
    PQclear(answer.rows);
    return status;
}

static void count_out(struct pg_store *store)
{
    unsigned holds = atomic_load(&store->holds);

    /* A lease that was adopted was not counted in. */
    while (holds > 0 && !atomic_compare_exchange_weak(&store->holds, &holds, holds - 1))
        ;
}

enum hf_status pg_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct identity identity;
    struct pg_answer answer;
    char id[PG_ID_SIZE];
    struct pg_call call = {.lock = claim->name,
                           .statement = &release_statement,
                           .params = &params,
                           .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT,
                           .columns = 1};
    enum hf_status status;

    count_out(store);
    if (!identify(&params, claim, &identity))
        return pg_nonsense(store, claim->name, err);
    pg_guard_known(store, id);
    pg_params_text(&params, id);
    pg_params_number(&params, pg_left_ms(store, claim->deadline_ns));
    status = pg_call(store, &call, &answer, err);
    if (status != HF_OK)
        return status;
    status = strcmp(pg_text(answer.rows, 0), "released") == 0
                 ? hf__ok(err)
                 : lost(store, claim->name, pg_text(answer.rows, 0), NULL, err);
    PQclear(answer.rows);
    return status;
}
