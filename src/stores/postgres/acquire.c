/* acquire.c - taking a lock, and waiting for it. */
#include "base/base.h"
#include "stores/postgres/postgres.h"
#include "stores/postgres/wire.h"

#include <stdio.h>
#include <string.h>

static const struct pg_statement acquire_statement = {
    "SELECT " PG_ACQUIRE_COLUMNS ", pg_catalog.pg_backend_pid() AS pid "
    "FROM holdfast.acquire($1::pg_catalog.bytea, $2::pg_catalog.bytea, $3::integer, "
    "$4::pg_catalog.bytea, $5::boolean, $6::pg_catalog.text, "
    "$7::pg_catalog.text, $8::integer)",
    "holdfast_acquire", 4};
static const struct pg_statement leave_statement = {
    "SELECT holdfast.leave($1::pg_catalog.bytea, $2::pg_catalog.bytea, $3::pg_catalog.text, "
    "$4::integer), pg_catalog.pg_backend_pid() AS pid",
    NULL, 0};

#define UNREACHABLE_MS 200  /* between two tries to reach a server, while we are queued */
#define QUEUED_MS      3000 /* how long the queue keeps us after a request; see holdfast.acquire */
#define LEAVE_MS       1000 /* what leaving the queue may cost                        */
#define TRIES_MAX      8    /* of asking a server that turns out to be a new incarnation */

struct attempt {
    struct pg_store *store;
    const struct hf_claim *claim;
    unsigned char owner[HF_OWNER_LEN / 2];
    int64_t budget_ns;        /* what a single request may take                       */
    struct pg_conn *listener; /* where we are woken; NULL: we ask every second        */
    bool polls;               /* there was no listener to be had                      */
    bool known;               /* the server may know of us, and has to be told to forget */
    int64_t queued_until_ns;  /* the queue keeps us so long without another request; 0: not in it */
    int64_t retry_ms;         /* when to ask again                                    */
};

static enum hf_status try_once(struct attempt *a, struct hf_grant *grant, struct hf_error *err);
static enum hf_status pause_after(struct attempt *a, enum hf_status status, struct hf_error *err);
static void leave(struct attempt *a);

static bool waits(const struct attempt *a)
{
    return a->claim->wait_until_ns != 0;
}

enum hf_status pg_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct attempt a = {.store = store, .claim = claim};
    struct hf_error own;
    enum hf_status status;

    if (err == NULL)
        err = &own;
    if (claim->ttl_ms > store->url.max_ttl_ms)
        return pg_above_max_ttl(store, claim, err);
    if (!hf__hex_decode(a.owner, sizeof a.owner, claim->owner))
        return pg_nonsense(store, claim->name, err);
    a.budget_ns = claim->deadline_ns - store->base.host->now_ns();
    do {
        status = try_once(&a, grant, err);
        if (status == HF_OK || !waits(&a))
            break;
        status = pause_after(&a, status, err);
    } while (status == HF_OK);
    if (status == HF_OK)
        atomic_fetch_add(&store->holds, 1);
    else if (a.known)
        leave(&a);
    pg_listener_give(store, a.listener);
    return status == HF_OK ? hf__ok(err) : status;
}

static struct pg_patience request_patience(const struct attempt *a)
{
    return (struct pg_patience){.deadline_ns = hf__time_add(a->store->base.host->now_ns(),
                                                            a->budget_ns > 0 ? a->budget_ns : 0),
                                .cancel_fd = waits(a) ? a->claim->cancel_fd : -1};
}

static void build_leave(const struct attempt *a, const char *id, struct pg_params *params)
{
    pg_params_bytes(params, a->claim->name, strlen(a->claim->name));
    pg_params_bytes(params, a->owner, sizeof a->owner);
    pg_params_text(params, id);
    pg_params_number(params, LEAVE_MS);
}

static void build(const struct attempt *a, const char *id, const struct pg_patience *patience,
                  struct pg_params *params)
{
    const struct hf_claim *claim = a->claim;
    const char *label = claim->label != NULL ? claim->label : "";

    pg_params_bytes(params, claim->name, strlen(claim->name));
    pg_params_bytes(params, a->owner, sizeof a->owner);
    pg_params_number(params, claim->ttl_ms);
    pg_params_bytes(params, label, strlen(label));
    pg_params_text(params, claim->detached ? "t" : "f");
    pg_params_text(params, id);
    pg_params_text(params, !waits(a) ? NULL : a->listener != NULL ? a->listener->channel : "");
    pg_params_number(params, pg_left_ms(a->store, patience->deadline_ns));
}

/* Who holds it. */
static enum hf_status busy(struct attempt *a, const struct pg_acquired *said, struct hf_error *err)
{
    const char *name = a->claim->name;
    const char *shown = a->store->url.shown;
    char left[32];

    a->retry_ms = said->retry_ms;
    if (!said->held)
        return hf__fail(
            err, HF_BUSY,
            "lock \"%.60s\" in store %.80s is just being handed to the next in the queue", name,
            shown);
    (void)hf__format_duration(left, sizeof left, said->left_ms);
    return hf__fail(err, HF_BUSY,
                    "lock \"%.60s\" in store %.60s is held by %.60s (token %llu), for another %s",
                    name, shown, said->label, (unsigned long long)said->token, left);
}

/* What the server answered. HF_OK with no token: the incarnation was another one, ask anew. */
static enum hf_status judge(struct attempt *a, const struct pg_answer *answer, const char *id,
                            struct hf_grant *grant, struct hf_error *err)
{
    struct pg_acquired said;

    if (!pg_row_acquired(answer->rows, &said)) {
        a->known = true; /* it may have granted, whatever it says */
        return pg_nonsense(a->store, a->claim->name, err);
    }
    switch (said.verdict) {
    case PG_GRANTED:
        grant->token = said.token;
        grant->sent_at_ns = answer->sent_at_ns;
        break;
    case PG_BUSY:
        a->known = waits(a);
        a->queued_until_ns = answer->sent_at_ns + QUEUED_MS * HF__NS_PER_MS;
        return busy(a, &said, err);
    case PG_NEW:
        pg_incarnation_forget(a->store, id);
        break;
    }
    return HF_OK;
}

/* Asks until an incarnation that we know answers: at the second time, as a rule. */
static enum hf_status try_once(struct attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    struct pg_patience patience = request_patience(a);
    bool on_listener = a->listener != NULL && a->store->url.listen != PG_LISTEN_URL;

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct pg_params params = {0};
        struct pg_params undo = {0};
        struct pg_call call = {.lock = a->claim->name,
                               .statement = &acquire_statement,
                               .params = &params,
                               .patience = patience,
                               .use = PG_USE_ACQUIRE,
                               .conn = on_listener ? a->listener : NULL,
                               .undo_statement = &leave_statement,
                               .undo = &undo};
        struct pg_answer answer;
        char id[PG_ID_SIZE];
        enum hf_status status = pg_incarnation_meet(a->store, &patience, id, err);

        if (status != HF_OK)
            return status;
        build(a, id, &patience, &params);
        build_leave(a, id, &undo);
        status = pg_call(a->store, &call, &answer, err);
        if (status != HF_OK) {
            /* Not executed, or taken back already; anything else has to be taken back. */
            if (status == HF_UNKNOWN || status == HF_CANCELLED)
                a->known = !answer.undone;
            return status;
        }
        status = judge(a, &answer, id, grant, err);
        PQclear(answer.rows);
        if (status != HF_OK || grant->token != 0)
            return status;
    }
    return hf__fail(err, HF_UNREACHABLE, "store %.150s: the server changes faster than we can ask",
                    a->store->url.shown);
}

static enum hf_status cancelled(const struct attempt *a, struct hf_error *err)
{
    return hf__fail(err, HF_CANCELLED, "lock \"%.60s\" in store %.80s: cancelled while waiting",
                    a->claim->name, a->store->url.shown);
}

/* Sleeps for ms or to the end of the wait; a notification ends it too. */
static enum hf_status sleep_ms(struct attempt *a, int64_t ms, bool listening, struct hf_error *err)
{
    int64_t until_ns = hf__time_add(a->store->base.host->now_ns(), ms * HF__NS_PER_MS);
    struct pg_patience pause = {.cancel_fd = a->claim->cancel_fd};

    pause.deadline_ns = until_ns < a->claim->wait_until_ns ? until_ns : a->claim->wait_until_ns;
    if (listening && a->listener != NULL) {
        switch ((int)pg_conn_listen(a->listener, &pause)) {
        case HF_CANCELLED:
            return cancelled(a, err);
        case HF_OK:
            a->store->base.host->log("postgres: woken for lock \"%s\"", a->claim->name);
            return HF_OK;
        case HF_UNREACHABLE:
            pg_listener_give(a->store, a->listener);
            a->listener = NULL;
            return HF_OK;
        default:
            return HF_OK;
        }
    }
    return pg_wait(-1, 0, &pause) == PG_WAIT_CANCELLED ? cancelled(a, err) : HF_OK;
}

/* Queued. The first time, a listener is sought and the lock asked for once more: what was handed
 * over before we listened, nobody tells us. */
static enum hf_status sleep_in_queue(struct attempt *a, struct hf_error *err)
{
    if (a->listener == NULL && !a->polls) {
        struct pg_patience patience = request_patience(a);

        a->listener = pg_listener_take(a->store, &patience);
        a->polls = a->listener == NULL;
        if (a->listener != NULL)
            return HF_OK;
    }
    return sleep_ms(a, a->retry_ms, true, err);
}

/* After a try that did not get the lock: HF_OK to try again, else what to return. A server that
 * cannot be reached is tried again here only as long as the queue keeps us; after that,
 * and in a quarantine, whoever waits begins anew. */
static enum hf_status pause_after(struct attempt *a, enum hf_status status, struct hf_error *err)
{
    int64_t now_ns = a->store->base.host->now_ns();
    struct hf_error own;
    enum hf_status next;

    if (now_ns >= a->claim->wait_until_ns)
        return status;
    if (a->listener != NULL && a->listener->broken) {
        pg_listener_give(a->store, a->listener);
        a->listener = NULL;
    }
    switch ((int)status) {
    case HF_BUSY:
        next = sleep_in_queue(a, &own);
        break;
    case HF_UNREACHABLE:
        if (now_ns >= a->queued_until_ns)
            return status;
        next = sleep_ms(a, UNREACHABLE_MS, false, &own);
        break;
    default:
        return status;
    }
    if (next != HF_OK)
        *err = own;
    return next;
}

static void leave(struct attempt *a)
{
    struct pg_params params = {0};
    struct pg_params quiet = {0};
    struct pg_patience patience = request_patience(a);
    struct pg_call call = {.lock = a->claim->name,
                           .statement = &leave_statement,
                           .params = &params,
                           .quiet = &quiet,
                           .patience = patience,
                           .use = PG_USE_URGENT};
    int64_t limit_ns = a->store->base.host->now_ns() + LEAVE_MS * HF__NS_PER_MS;
    struct pg_answer answer;
    char id[PG_ID_SIZE];

    if (limit_ns < call.patience.deadline_ns)
        call.patience.deadline_ns = limit_ns;
    call.patience.cancel_fd = -1;
    pg_incarnation_known(a->store, id);
    build_leave(a, id, &params);
    build_leave(a, "", &quiet);
    if (pg_call(a->store, &call, &answer, NULL) == HF_OK)
        PQclear(answer.rows);
}
