/* break.c - breaking a hold, and telling its holder by whom. The decisions are in
 * holdfast.revoke. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

static const struct pg_statement revoke_statement = {
    "SELECT " PG_REVOKE_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.revoke($1::pg_catalog.bytea, $2::bigint, $3::pg_catalog.bytea, "
    "$4::pg_catalog.bytea, $5::boolean, $6::pg_catalog.text, $7::integer)",
    NULL, 0};
static const struct pg_statement who_statement = {
    "SELECT " PG_WHO_COLUMNS ", pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.who_broke($1::pg_catalog.bytea, $2::bigint)",
    NULL, 0};

static const struct pg_statement last_statement = {"SELECT " PG_WHO_COLUMNS
                                                   ", pg_catalog.pg_backend_pid() AS pid FROM "
                                                   "holdfast.last_break($1::pg_catalog.bytea)",
                                                   NULL, 0};

#define WHO_MAX_NS     HF__NS_PER_S /* for the name of who broke it: the news itself is there */
#define STATE_NO_RIGHT "42501"

/* id "": the lock is freed and not passed on. */
static void build(const struct pg_store *store, const struct hf_revoke *revoke, const char *id,
                  struct pg_params *params)
{
    pg_params_bytes(params, revoke->name, strlen(revoke->name));
    pg_params_number(params, (int64_t)revoke->token);
    pg_params_bytes(params, revoke->by, strlen(revoke->by));
    pg_params_bytes(params, revoke->reason, strlen(revoke->reason));
    pg_params_text(params, revoke->now ? "t" : "f");
    pg_params_text(params, id);
    pg_params_number(params, pg_left_ms(store, revoke->deadline_ns));
}

static enum hf_status judge(const struct pg_store *store, const struct hf_revoke *revoke,
                            const PGresult *rows, struct hf_broken *out, struct hf_error *err)
{
    static const enum hf__not_broken why[] = {
        [PG_NOT_HELD] = HF__NOT_HELD,
        [PG_HANDED] = HF__HANDED_OVER,
        [PG_OTHER_TOKEN] = HF__HELD_WITH_OTHER_TOKEN,
    };
    enum pg_revoke_verdict verdict;

    if (!pg_row_revoked(rows, &verdict, out))
        return pg_nonsense(store, revoke->name, err);
    if (verdict != PG_REVOKED)
        return hf__fail_not_broken(err, revoke->name, store->url.shown, revoke->token,
                                   why[verdict]);
    return hf__ok(err);
}

enum hf_status pg_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_params quiet = {0};
    struct pg_call call = {.lock = revoke->name,
                           .statement = &revoke_statement,
                           .params = &params,
                           .quiet = &quiet,
                           .patience = {.deadline_ns = revoke->deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT};
    struct pg_answer answer;
    char id[PG_ID_SIZE];
    enum hf_status status;

    pg_incarnation_known(store, id);
    build(store, revoke, id, &params);
    build(store, revoke, "", &quiet);
    status = pg_call(store, &call, &answer, err);
    if (strcmp(answer.state, STATE_NO_RIGHT) == 0)
        return hf__fail_lock(err, HF_DENIED, revoke->name, store->url.shown,
                             ": this role may not break locks; the owner of the schema grants that "
                             "with GRANT EXECUTE ON FUNCTION holdfast.revoke TO the role");
    if (status != HF_OK)
        return status;
    status = judge(store, revoke, answer.rows, out, err);
    PQclear(answer.rows);
    return status;
}

static void who_broke(struct pg_store *store, const struct hf_claim *claim,
                      struct hf_revocation *out)
{
    struct pg_params params = {0};
    int64_t until_ns = hf__time_add(store->base.host->now_ns(), WHO_MAX_NS);
    struct pg_call call = {
        .lock = claim->name,
        .statement = &who_statement,
        .params = &params,
        .patience = {.deadline_ns = until_ns < claim->deadline_ns ? until_ns : claim->deadline_ns,
                     .cancel_fd = -1},
        .use = PG_USE_URGENT,
        .only_reads = true};
    struct pg_answer answer;

    *out = (struct hf_revocation){.by = ""};
    pg_params_bytes(&params, claim->name, strlen(claim->name));
    pg_params_number(&params, (int64_t)claim->token);
    if (pg_call(store, &call, &answer, NULL) != HF_OK)
        return;
    if (!pg_row_revocation(answer.rows, out))
        *out = (struct hf_revocation){.by = ""};
    PQclear(answer.rows);
}

enum hf_status pg_broken(struct pg_store *store, const struct hf_claim *claim,
                         struct hf_grant *grant, struct hf_error *err)
{
    struct hf_revocation revocation;

    who_broke(store, claim, &revocation);
    if (grant != NULL)
        grant->loss = HF_LOSS_BROKEN;
    if (grant != NULL && grant->revocation != NULL)
        *grant->revocation = revocation;
    return hf__fail_broken(err, claim->name, store->url.shown, &revocation);
}

enum hf_status pg_last_break(struct hf_store_base *base, const struct hf_query *query,
                             struct hf_revocation *out, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_asked asked = {&last_statement, &params, "of breaks that are over"};
    struct pg_answer answer;
    enum hf_status status;

    if (store->absent)
        return hf__ok(err);
    pg_params_bytes(&params, query->name, strlen(query->name));
    status = pg_ask(store, query, &asked, &answer, err);
    if (status != HF_OK)
        return status;
    if (!pg_row_revocation(answer.rows, out))
        status = pg_nonsense(store, query->name, err);
    PQclear(answer.rows);
    return status == HF_OK ? hf__ok(err) : status;
}
