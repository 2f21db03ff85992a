/* acquire.c - taking a lock, or one of several, and waiting for it.
 *
 * One of several is taken by one statement, and waited for on one connection: a waiter has a row in
 * every queue, and all of them name its channel. */
#include "base/base.h"
#include "core/wait.h"
#include "stores/postgres/array.h"
#include "stores/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

static const struct pg_statement acquire_statement = {
    "SELECT " PG_ACQUIRE_COLUMNS ", pg_catalog.pg_backend_pid() AS pid "
    "FROM holdfast.acquire($1::pg_catalog.bytea, $2::pg_catalog.bytea, $3::integer, "
    "$4::pg_catalog.bytea, $5::boolean, $6::pg_catalog.text, "
    "$7::pg_catalog.text, $8::integer, $9::integer)",
    "holdfast_acquire", 4};
static const struct pg_statement leave_statement = {
    "SELECT holdfast.leave($1::pg_catalog.bytea, $2::pg_catalog.bytea, $3::pg_catalog.text, "
    "$4::integer, $5::integer), pg_catalog.pg_backend_pid() AS pid",
    NULL, 0};
static const struct pg_statement acquire_any_statement = {
    "SELECT " PG_ACQUIRE_ANY_COLUMNS ", pg_catalog.pg_backend_pid() AS pid "
    "FROM holdfast.acquire_any($1::pg_catalog.bytea[], $2::pg_catalog.bytea[], $3::integer, "
    "$4::pg_catalog.bytea, $5::boolean, $6::pg_catalog.text, "
    "$7::pg_catalog.text, $8::integer, $9::integer, $10::integer)",
    "holdfast_acquire_any", 64};
static const struct pg_statement leave_any_statement = {
    "SELECT holdfast.leave_any($1::pg_catalog.bytea[], $2::pg_catalog.bytea[], "
    "$3::pg_catalog.text, $4::integer, $5::integer), pg_catalog.pg_backend_pid() AS pid",
    NULL, 0};

#define QUEUED_MS 3000 /* how long the queue keeps us after a request; see holdfast.acquire */
#define LEAVE_MS  1000 /* what leaving the queue may cost */
#define TRIES_MAX 8    /* of asking a server that turns out to be a new incarnation */

struct attempt {
    struct pg_store *store;
    const struct hf_claim *claim; /* the first of count, which differ in name and owner only */
    size_t count;
    size_t which; /* the one that the last answer was about */
    unsigned char owner[HF_OWNER_LEN / 2];
    int32_t number;        /* tells it from others of the same owner; 0: there are none */
    struct pg_array names; /* of several */
    struct pg_array owners;
    int64_t budget_ns;                /* what a single request may take */
    struct hf__wait_queue wait_queue; /* how the wait goes on */
    struct pg_conn *listener;         /* where we are woken; NULL: we ask every second */
    bool polls;                       /* there was no listener to be had */
    bool known;                       /* the server may know of us, and has to be told to forget */
    int stage;        /* of several: 1, we are in the queues; 2, everybody knows it */
    bool more;        /* granted, and another was handed to us as well */
    bool twice;       /* the owner holds the lock, by another attempt */
    int64_t retry_ms; /* busy: when to ask again */
};

static enum hf_status try_once(struct attempt *a, struct hf_grant *grant, struct hf_error *err);
static enum hf_status wait_after(struct attempt *a, enum hf_status status, struct hf_error *err);
static void leave(struct attempt *a);

static bool waits(const struct attempt *a)
{
    return a->claim->wait_until_ns != 0;
}

static bool several(const struct attempt *a)
{
    return a->count > 1;
}

/* The lock that the last answer was about. */
static const char *its_name(const struct attempt *a)
{
    return a->claim[a->which].name;
}

/* A relay cannot know that nobody sends a client's request a second time. */
static int32_t draw_number(const struct attempt *a)
{
    uint32_t dice;

    if (!a->claim->detached)
        return 0;
    a->store->base.host->random(&dice, sizeof dice);
    return (int32_t)(dice % INT32_MAX) + 1;
}

/* One attempt, from the first request to the last. */
static enum hf_status attempt(struct attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    struct pg_store *store = a->store;
    enum hf_status status;

    a->budget_ns = a->claim->deadline_ns - store->base.host->now_ns();
    a->number = draw_number(a);
    hf__wait_queue_init(&a->wait_queue, a->claim->wait_until_ns);
    do {
        status = try_once(a, grant, err);
    } while (status != HF_OK && !a->twice && (status = wait_after(a, status, err)) == HF_OK);
    if (status == HF_OK)
        atomic_fetch_add(&store->holds, 1);
    else if (a->known)
        leave(a);
    pg_listener_give(store, a->listener);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status pg_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct attempt a = {.store = store, .claim = claim, .count = 1};
    struct hf_error own;

    if (err == NULL)
        err = &own;
    if (claim->ttl_ms > store->url.max_ttl_ms)
        return pg_above_max_ttl(store, claim, err);
    if (!hf__hex_decode(a.owner, sizeof a.owner, claim->owner))
        return pg_nonsense(store, claim->name, err);
    return attempt(&a, grant, err);
}

/* The arrays, of all claims but the one at that index. */
static enum hf_status fill_arrays(struct attempt *a, size_t but, struct hf_error *err)
{
    size_t count = but < a->count ? a->count - 1 : a->count;

    pg_array_release(&a->names);
    pg_array_release(&a->owners);
    if (!pg_array_init(&a->names, PG_OID_BYTEA, count, HF_NAME_MAX) ||
        !pg_array_init(&a->owners, PG_OID_BYTEA, count, HF_OWNER_LEN / 2))
        return hf__nomem(err);
    for (size_t i = 0; i < a->count; i++) {
        if (i == but)
            continue;
        pg_array_bytes(&a->names, a->claim[i].name, strlen(a->claim[i].name));
        if (!pg_array_owner(&a->owners, a->claim[i].owner))
            return pg_nonsense(a->store, a->claim[i].name, err);
    }
    return HF_OK;
}

enum hf_status pg_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct attempt a = {.store = store, .claim = claims, .count = count};
    struct hf_error own;
    enum hf_status status;

    *which = 0;
    if (err == NULL)
        err = &own;
    if (claims->ttl_ms > store->url.max_ttl_ms)
        return pg_above_max_ttl(store, claims, err);
    status = fill_arrays(&a, count, err);
    if (status == HF_OK)
        status = attempt(&a, grant, err);
    /* Another was handed to us in the same instant: to the next who waits for it. */
    if (status == HF_OK && a.more && fill_arrays(&a, a.which, err) == HF_OK)
        leave(&a);
    *which = a.which;
    pg_array_release(&a.names);
    pg_array_release(&a.owners);
    return status;
}

static struct hf__patience request_patience(const struct attempt *a)
{
    return hf__patience_for(a->budget_ns, waits(a) ? a->claim->cancel_fd : -1);
}

/* Names and owners: the first two parameters of every statement. */
static void build_who(const struct attempt *a, struct pg_params *params)
{
    if (several(a)) {
        pg_params_array(params, &a->names);
        pg_params_array(params, &a->owners);
    } else {
        pg_params_bytes(params, a->claim->name, strlen(a->claim->name));
        pg_params_bytes(params, a->owner, sizeof a->owner);
    }
}

static void build_leave(const struct attempt *a, const char *id, struct pg_params *params)
{
    build_who(a, params);
    pg_params_text(params, id);
    pg_params_number(params, LEAVE_MS);
    pg_params_number(params, a->number);
}

static void build(const struct attempt *a, const char *id, const struct hf__patience *patience,
                  struct pg_params *params)
{
    const struct hf_claim *claim = a->claim;
    const char *label = claim->label != NULL ? claim->label : "";

    build_who(a, params);
    pg_params_number(params, claim->ttl_ms);
    pg_params_bytes(params, label, strlen(label));
    pg_params_text(params, claim->detached ? "t" : "f");
    pg_params_text(params, id);
    pg_params_text(params, !waits(a) ? NULL : a->listener != NULL ? a->listener->channel : "");
    pg_params_number(params, pg_left_ms(a->store, patience->deadline_ns));
    if (several(a))
        pg_params_number(params, a->stage);
    pg_params_number(params, a->number);
}

/* Who holds it. */
static enum hf_status busy(struct attempt *a, const struct pg_acquired *said, struct hf_error *err)
{
    const char *name = its_name(a);
    const char *shown = a->store->url.shown;
    char left[32];

    a->retry_ms = said->retry_ms;
    if (!said->held)
        return hf__fail_lock(err, HF_BUSY, name, shown,
                             " is just being handed to the next in the queue");
    (void)hf__format_duration(left, sizeof left, said->left_ms);
    return hf__fail_lock(err, HF_BUSY, name, shown,
                         " is held by %.60s (token %llu), for another %s", said->label,
                         (unsigned long long)said->token, left);
}

/* What the server answered. HF_OK with no token: the incarnation was another one, ask anew. */
static enum hf_status judge(struct attempt *a, const struct pg_answer *answer, const char *id,
                            struct hf_grant *grant, struct hf_error *err)
{
    struct pg_acquired said;

    if (!pg_row_acquired(answer->rows, a->count, &said)) {
        a->known = true; /* it may have granted, whatever it says */
        return pg_nonsense(a->store, its_name(a), err);
    }
    a->which = said.which;
    switch (said.verdict) {
    case PG_GRANTED:
        a->more = said.more;
        grant->token = said.token;
        grant->sent_at_ns = answer->sent_at_ns;
        break;
    case PG_BUSY:
        a->known = waits(a);
        a->stage = !waits(a) ? 0 : said.settled ? 2 : 1;
        a->wait_queue.ours_until_ns = answer->sent_at_ns + QUEUED_MS * HF__NS_PER_MS;
        return busy(a, &said, err);
    case PG_TWICE: /* what the first one was granted is not ours to give back */
        a->twice = true;
        return hf__fail_lock(err, HF_BUSY, its_name(a), a->store->url.shown,
                             " is held by this very attempt: the request came twice");
    case PG_NEW:
        pg_incarnation_forget(a->store, id);
        break;
    }
    return HF_OK;
}

/* Asks until an incarnation that we know answers: at the second time, as a rule. */
static enum hf_status try_once(struct attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    struct hf__patience patience = request_patience(a);
    bool on_listener = a->listener != NULL && a->store->url.listen != PG_LISTEN_URL;

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct pg_params params = {0};
        struct pg_params undo = {0};
        struct pg_call call = {
            .lock = its_name(a),
            .statement = several(a) ? &acquire_any_statement : &acquire_statement,
            .params = &params,
            .patience = patience,
            .use = PG_USE_ACQUIRE,
            .conn = on_listener ? a->listener : NULL,
            .undo_statement = several(a) ? &leave_any_statement : &leave_statement,
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
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, a->store->url.shown,
                         ": the server keeps changing while we ask");
}

static enum hf_status cancelled(const struct attempt *a, struct hf_error *err)
{
    return hf__fail_lock(err, HF_CANCELLED, its_name(a), a->store->url.shown,
                         ": cancelled while waiting");
}

static void drop_listener(struct attempt *a)
{
    pg_listener_give(a->store, a->listener);
    a->listener = NULL;
}

static enum hf_status pause_until(struct attempt *a, int64_t until_ns, struct hf_error *err)
{
    const struct hf__patience pause = {.deadline_ns = until_ns, .cancel_fd = a->claim->cancel_fd};

    return hf__patience_poll(&pause, NULL, 0) == HF__WAITED_CANCELLED ? cancelled(a, err) : HF_OK;
}

/* Queued. The first time, a listener is sought and the lock asked for once more: nobody tells us
 * what was handed over before we listened. */
static enum hf_status sleep_until(struct attempt *a, int64_t until_ns, struct hf_error *err)
{
    const struct hf__patience pause = {.deadline_ns = until_ns, .cancel_fd = a->claim->cancel_fd};

    if (a->listener == NULL && !a->polls) {
        struct hf__patience patience = request_patience(a);

        a->listener = pg_listener_take(a->store, &patience);
        a->polls = a->listener == NULL;
        if (a->listener != NULL)
            return HF_OK;
    }
    if (a->listener == NULL)
        return pause_until(a, until_ns, err);
    switch (pg_conn_listen(a->listener, &pause)) {
    case PG_HEARD_CANCEL:
        return cancelled(a, err);
    case PG_HEARD:
        a->store->base.host->log("postgres: woken for lock \"%s\"", its_name(a));
        break;
    case PG_HEARD_BREAK:
        drop_listener(a);
        break;
    case PG_HEARD_NOTHING:
        break;
    }
    return HF_OK;
}

/* After a try that did not get the lock: HF_OK to try again, else what to return. */
static enum hf_status wait_after(struct attempt *a, enum hf_status status, struct hf_error *err)
{
    int64_t now_ns = a->store->base.host->now_ns();
    const struct hf__wait_answer answer = {.status = status,
                                           .retry_after_ms = err->retry_after_ms,
                                           .look_ns =
                                               hf__time_add(now_ns, a->retry_ms * HF__NS_PER_MS)};
    struct hf__wait_step step;
    struct hf_error own;
    uint32_t dice;

    a->store->base.host->random(&dice, sizeof dice);
    step = hf__wait_queued(&a->wait_queue, &answer, now_ns, dice);
    if (a->listener != NULL && a->listener->broken)
        drop_listener(a);
    if (step.next == HF__WAIT_RETURN)
        return status;
    status = step.next == HF__WAIT_SLEEP ? sleep_until(a, step.until_ns, &own)
                                         : pause_until(a, step.until_ns, &own);
    if (status != HF_OK)
        *err = own;
    return status;
}

static void leave(struct attempt *a)
{
    struct pg_params params = {0};
    struct pg_params quiet = {0};
    int64_t limit_ns = LEAVE_MS * HF__NS_PER_MS;
    struct pg_call call = {
        .lock = its_name(a),
        .statement = several(a) ? &leave_any_statement : &leave_statement,
        .params = &params,
        .quiet = &quiet,
        .patience = hf__patience_for(a->budget_ns < limit_ns ? a->budget_ns : limit_ns, -1),
        .use = PG_USE_URGENT};
    struct pg_answer answer;
    char id[PG_ID_SIZE];

    pg_incarnation_known(a->store, id);
    build_leave(a, id, &params);
    build_leave(a, "", &quiet);
    if (pg_call(a->store, &call, &answer, NULL) == HF_OK)
        PQclear(answer.rows);
}
