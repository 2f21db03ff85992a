/* acquire.c - taking a lock, or one of several, and waiting for it.
 *
 * One request takes a free lock. Otherwise the same request puts us into the queue of each, and we
 * sleep in a blocking pop until somebody hands over, or until it is time to ask again; then the
 * same request once more, which confirms a hand-over, stays in the queues, or takes a lock that
 * expired. */
#include "base/base.h"
#include "stores/redis/attempt.h"
#include "stores/redis/errors.h"

#include <stdio.h>
#include <string.h>

#define LEAVE_MS       2000 /* what undoing an unanswered request may cost */
#define LEAVE_AGAIN_MS 500  /* the same if the undo is on its way already */
#define BRIEFLY_MS     100  /* the pause before a moving slot is asked for again */

static enum hf_status try_once(struct rd_attempt *a, struct hf_grant *grant, struct hf_error *err);
static enum hf_status sleep_in_queue(struct rd_attempt *a, int64_t until_ns, struct hf_error *err);
static enum hf_status pause_until(struct rd_attempt *a, int64_t until_ns, struct hf_error *err);
static void leave(struct rd_attempt *a);

static uint32_t dice_of(const struct rd_attempt *a)
{
    uint32_t dice;

    a->store->base.host->random(&dice, sizeof dice);
    return dice;
}

/* A relay cannot know that nobody sends a client's request a second time. */
static void name_attempt(struct rd_attempt *a)
{
    if (a->claims->detached)
        (void)snprintf(a->flags, sizeof a->flags, "d%u", dice_of(a));
    else
        (void)stpcpy(a->flags, "-");
}

/* The keys of all of them, if their names will do. */
static enum hf_status find_keys(struct rd_attempt *a, const struct rd_url *url,
                                const struct hf_claim *claims, size_t count, struct hf_error *err)
{
    struct rd_keys keys;
    enum hf_status status = rd_claim_keys(url, claims[0].name, &a->keys, err);

    a->which = 0;
    a->others = (struct rd_request){0};
    for (size_t i = 1; status == HF_OK && i < count; i++) {
        a->which = i;
        status = rd_claim_keys(url, claims[i].name, &keys, err);
        if (status != HF_OK)
            break;
        rd_request_raw(&a->others, keys.lock, strlen(keys.lock) + 1);
        rd_request_raw(&a->others, keys.counter, strlen(keys.counter) + 1);
    }
    return status == HF_OK && a->others.failed ? hf__nomem(err) : status;
}

enum hf_status rd_attempt_prepare(struct rd_attempt *a, struct rd_store *store,
                                  const struct hf_claim *claims, size_t count, struct hf_error *err)
{
    enum hf_status status = find_keys(a, &store->setup.url, claims, count, err);

    if (status != HF_OK)
        return status;
    a->which = 0;
    status = rd_check_ttl(&store->setup.url, claims, err);
    if (status != HF_OK)
        return status;
    a->store = store;
    a->claims = claims;
    a->count = count;
    a->request = (struct rd_request){0};
    a->met = (struct rd_met){0};
    a->unmet = false;
    a->meet = NULL;
    a->known = false;
    a->undone = false;
    a->twice = false;
    a->refused = false;
    a->node = NULL;
    a->again_ns = 0;
    a->sent.conn = NULL;
    hf__wait_queue_init(&a->wait_queue, claims->wait_until_ns);
    name_attempt(a);
    a->slot = rd_route_slot(store, &a->keys);
    a->budget_ns = claims->deadline_ns - store->base.host->now_ns();
    return HF_OK;
}

/* Whether to ask again after that answer, once it is time; else *status is the last word. */
static bool waits_on(struct rd_attempt *a, enum hf_status *status, struct hf_error *err)
{
    struct hf__wait_answer answer = {
        .status = *status, .retry_after_ms = err->retry_after_ms, .look_ns = a->again_ns};
    struct hf__wait_step step =
        hf__wait_queued(&a->wait_queue, &answer, a->store->base.host->now_ns(), dice_of(a));

    if (step.next == HF__WAIT_RETURN)
        return false;
    *status = step.next == HF__WAIT_SLEEP ? sleep_in_queue(a, step.until_ns, err)
                                          : pause_until(a, step.until_ns, err);
    return *status == HF_OK;
}

enum hf_status rd_attempt_carry_out(struct rd_attempt *a, struct hf_grant *grant,
                                    struct hf_error *err)
{
    enum hf_status status;

    do {
        status = try_once(a, grant, err);
    } while (status != HF_OK && !a->twice && waits_on(a, &status, err));
    if (status != HF_OK && a->known)
        leave(a);
    rd_request_release(&a->request);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status rd_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct rd_attempt a; /* it is filled in; it is too large to be cleared for nothing */
    struct hf_error own;
    enum hf_status status;

    if (err == NULL)
        err = &own;
    status = rd_attempt_prepare(&a, (struct rd_store *)base, claim, 1, err);
    return status == HF_OK ? rd_attempt_carry_out(&a, grant, err) : status;
}

/* Do the owners differ in their last two digits only? */
static bool are_party(const struct hf_claim *claims, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (memcmp(claims[i].owner, claims[0].owner, RD_PARTY_LEN) != 0)
            return false;
    return true;
}

/* The server refuses a request about several locks as a whole, and does not say for which. A look
 * at each alone, which changes nothing, tells; if none is refused, we do not know. */
static void find_refused(struct rd_attempt *a, struct hf_error *err)
{
    struct hf_store_base *base = &a->store->base;
    int64_t until_ns = hf__time_add(base->host->now_ns(), LEAVE_MS * HF__NS_PER_MS);
    struct hf_error said = *err;

    for (size_t i = 0; i < a->count; i++) {
        struct hf_claim look = a->claims[i];
        struct hf_grant grant = {0};

        look.token = 1; /* nobody's */
        look.ttl_ms = 0;
        look.deadline_ns = until_ns;
        look.cancel_fd = -1;
        if (rd_renew(base, &look, &grant, err) == HF_DENIED) {
            a->which = i;
            return;
        }
    }
    (void)hf__fail(err, HF_DENIED, "%.*s; or for another of the %zu locks",
                   (int)sizeof said.text - 40, said.text, a->count);
}

enum hf_status rd_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_attempt a;
    struct hf_error own;
    enum hf_status status;

    *which = 0;
    if (err == NULL)
        err = &own;
    if (store->cluster)
        return hf__fail_lock(err, HF_UNSUPPORTED, claims[0].name, store->setup.url.parts.shown,
                             ": in a cluster each lock may live on another server");
    if (!are_party(claims, count))
        return hf__fail_lock(err, HF_UNSUPPORTED, claims[0].name, store->setup.url.parts.shown,
                             ": the owners of these claims have nothing in common");
    status = rd_attempt_prepare(&a, store, claims, count, err);
    if (status == HF_OK)
        status = rd_attempt_carry_out(&a, grant, err);
    if (status == HF_DENIED && a.refused)
        find_refused(&a, err);
    *which = a.which;
    rd_request_release(&a.others);
    return status;
}

static struct hf__patience request_patience(const struct rd_attempt *a)
{
    return (struct hf__patience){.deadline_ns = hf__time_add(a->store->base.host->now_ns(),
                                                             a->budget_ns > 0 ? a->budget_ns : 0),
                                 .cancel_fd = rd_attempt_waits(a) ? a->claims->cancel_fd : -1};
}

static enum hf_status cancelled(const struct rd_attempt *a, struct hf_error *err)
{
    return hf__fail_lock(err, HF_CANCELLED, a->claims->name, a->store->setup.url.parts.shown,
                         ": cancelled while waiting");
}

/* HF_OK: there is time for another try. */
static enum hf_status pause_briefly(struct rd_attempt *a, const struct hf__patience *patience,
                                    struct hf_error *err)
{
    int64_t until_ns = a->store->base.host->now_ns() + BRIEFLY_MS * HF__NS_PER_MS;

    switch (hf__patience_pause(patience, until_ns)) {
    case HF__WAITED_READY:
        return HF_OK;
    case HF__WAITED_CANCELLED:
        return cancelled(a, err);
    case HF__WAITED_TIMEOUT:
        break;
    }
    return hf__fail_lock(err, HF_UNREACHABLE, a->claims->name, a->store->setup.url.parts.shown,
                         ": its slot is being moved between two servers");
}

/* Finds the server, and learns of it what the request has to say. */
static enum hf_status meet(struct rd_attempt *a, const struct hf__patience *patience,
                           struct hf_error *err)
{
    enum hf_status status = HF_OK;

    for (bool again = true;; again = false) {
        struct rd_node *node = a->meet;

        a->meet = NULL;
        if (node == NULL)
            status = rd_route(a->store, a->slot, patience, &node, err);
        if (status != HF_OK)
            return status;
        status = a->unmet ? rd_incarnation_meet(node, (int)a->slot, patience, &a->met, err)
                          : rd_incarnation_pass(node, patience, &a->met, err);
        if (status != HF_UNREACHABLE)
            break;
        rd_route_forget(a->store, node);
        /* Nothing was asked of it yet: another may have its slots by now. */
        if (!again || !(a->met.moved || rd_route_moves(a->store)))
            break;
    }
    a->unmet = false;
    return status;
}

struct rd_call rd_attempt_call(struct rd_attempt *a)
{
    return (struct rd_call){.lock = a->claims->name,
                            .slot = a->slot,
                            .patience = request_patience(a),
                            .request = &a->request,
                            .undo = rd_ask_build_leave,
                            .data = a,
                            .sent = &a->sent};
}

/* Asks until a server that is what we take it for answers: at the second time, as a rule. */
static enum hf_status try_once(struct rd_attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    enum { TRIES_MAX = 50, QUICK_MAX = 4 };
    const struct rd_call call = rd_attempt_call(a);

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct rd_answer answer;
        enum hf_status status = HF_OK;

        if (a->sent.conn == NULL) {
            status = meet(a, &call.patience, err);
            if (status != HF_OK)
                return status;
            rd_ask_build(a);
        }
        status = rd_call(a->store, &call, &answer, &a->undone, err);
        if (status != HF_OK) {
            /* What may have been executed has to be taken back. */
            a->known = a->known || status != HF_UNREACHABLE;
            a->refused = status == HF_DENIED;
            return status;
        }
        status = rd_ask_judge(a, &answer, grant, err);
        rd_answer_release(&answer);
        if (status != HF_OK || grant->token != 0)
            return status;
        /* A slot on the move is asked for at two servers in turn. */
        if (tries >= QUICK_MAX && (status = pause_briefly(a, &call.patience, err)) != HF_OK)
            return status;
    }
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, a->store->setup.url.parts.shown,
                         ": the server keeps changing while we ask");
}

static enum hf_status pause_until(struct rd_attempt *a, int64_t until_ns, struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = a->claims->wait_until_ns,
                                    .cancel_fd = a->claims->cancel_fd};

    return hf__patience_pause(&patience, until_ns) == HF__WAITED_CANCELLED ? cancelled(a, err)
                                                                           : HF_OK;
}

/* The blocking pop failed. It says nothing about the lock. */
static enum hf_status pause_unheard(struct rd_attempt *a, struct hf_error *err)
{
    struct hf__wait_step step =
        hf__wait_unheard(&a->wait_queue, a->store->base.host->now_ns(), dice_of(a));

    return pause_until(a, step.until_ns, err);
}

/* Sleeps until somebody hands over, or until it is time to ask again. */
static enum hf_status sleep_in_queue(struct rd_attempt *a, int64_t until_ns, struct hf_error *err)
{
    int64_t left_ns = until_ns - a->store->base.host->now_ns();
    int64_t sleep_for_ms = left_ns > 0 ? left_ns / HF__NS_PER_MS + 1 : 1;
    struct rd_request request = {0};
    struct hf__patience patience = request_patience(a);
    struct rd_reply *reply = NULL;
    struct rd_conn *conn;
    enum hf_status status;

    patience.deadline_ns = hf__time_add(patience.deadline_ns, sleep_for_ms * HF__NS_PER_MS);
    rd_ask_build_sleep(a, sleep_for_ms, &request);
    status = rd_pool_take(&a->node->pool, false, &patience, &conn, err);
    if (status == HF_OK) {
        conn->asleep++; /* this answer takes its time */
        status = rd_conn_send(conn, &request, &patience);
        if (status == HF_OK)
            status = rd_conn_receive(conn, &patience, &reply);
        if (status == HF_OK && reply->type == RD_REPLY_ARRAY)
            a->store->base.host->log("redis: woken for lock \"%s\"", a->claims->name);
        rd_pool_give(&a->node->pool, conn);
    }
    rd_request_release(&request);
    if (status == HF_CANCELLED)
        status = cancelled(a, err);
    else if (status == HF_OK && reply->type == RD_REPLY_ERROR &&
             rd_verdict(reply->text) == RD_NOPERM)
        status =
            rd_verdict_fail(reply->text, a->claims->name, a->store->setup.url.parts.shown, err);
    else if (status != HF_OK || reply->type == RD_REPLY_ERROR)
        status = pause_unheard(a, err);
    rd_reply_free(reply);
    return status;
}

/* Also if the undo was sent behind the request: that connection may have died with it. Whichever
 * comes second finds nothing to do, because the owner never comes back; and only the one behind the
 * request is sure not to overtake it. */
static void leave(struct rd_attempt *a)
{
    int64_t limit_ms = a->undone ? LEAVE_AGAIN_MS : LEAVE_MS;
    struct rd_call call = {.lock = a->claims->name,
                           .slot = a->slot,
                           .urgent = true,
                           .patience = request_patience(a),
                           .request = &a->request};
    struct rd_answer answer;

    call.patience = hf__patience_until(&call.patience,
                                       a->store->base.host->now_ns() + limit_ms * HF__NS_PER_MS);
    call.patience.cancel_fd = -1;
    rd_request_clear(&a->request);
    rd_ask_build_leave(a, &a->request);
    if (rd_call(a->store, &call, &answer, NULL, NULL) == HF_OK)
        rd_answer_release(&answer);
}
