/* acquire.c - taking a lock, and waiting for it.
 *
 * One request takes a free lock. Otherwise the same request puts us into the queue, and we sleep in
 * a blocking pop until the one before us hands over, or until it is time to ask again; then the
 * same request once more, which confirms a hand-over, stays in the queue, or takes a lock that
 * expired. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "core/wait.h"
#include "stores/redis/errors.h"

#include <stdio.h>
#include <string.h>

#define LEAVE_MS       2000 /* what undoing an unanswered request may cost */
#define LEAVE_AGAIN_MS 500  /* the same if the undo is on its way already */
#define QUEUE_MS       3000 /* how long the queue keeps a silent waiter: LEASE_MS of queue.lua */
#define BRIEFLY_MS     100  /* the pause before a moving slot is asked for again */

struct attempt {
    struct rd_store *store;
    const struct hf_claim *claim;
    struct rd_keys keys;
    unsigned slot;
    int64_t budget_ns; /* what a single request may take */
    struct rd_request request;
    struct rd_met met;    /* what the last request said of the server */
    bool unmet;           /* the lock has no record, and its slot may be new there */
    struct rd_node *meet; /* who has to be met before the next request: while a slot is on the move,
                           * not the one it is addressed to; NULL: that one */
    bool known;           /* the server may have us in its queue, or as the holder */
    bool undone;          /* what takes it back was sent, and may arrive */
    struct rd_node *node; /* who said busy */
    int64_t again_ns;     /* when to ask again, if nobody wakes us */
    struct hf__wait_place queue;
};

static enum hf_status try_once(struct attempt *a, struct hf_grant *grant, struct hf_error *err);
static enum hf_status sleep_in_queue(struct attempt *a, int64_t until_ns, struct hf_error *err);
static enum hf_status pause_until(struct attempt *a, int64_t until_ns, struct hf_error *err);
static void leave(struct attempt *a);

static bool waits(const struct attempt *a)
{
    return a->claim->wait_until_ns != 0;
}

static uint32_t dice_of(const struct attempt *a)
{
    uint32_t dice;

    a->store->base.host->random(&dice, sizeof dice);
    return dice;
}

static enum hf_status prepare(struct attempt *a, struct rd_store *store,
                              const struct hf_claim *claim, struct hf_error *err)
{
    enum hf_status status = rd_claim_keys(&store->setup.url, claim->name, &a->keys, err);

    if (status != HF_OK)
        return status;
    status = rd_check_ttl(&store->setup.url, claim, err);
    if (status != HF_OK)
        return status;
    a->store = store;
    a->claim = claim;
    a->request = (struct rd_request){0};
    a->met = (struct rd_met){0};
    a->unmet = false;
    a->meet = NULL;
    a->known = false;
    a->undone = false;
    a->node = NULL;
    a->again_ns = 0;
    hf__wait_place_init(&a->queue, claim->wait_until_ns);
    a->slot = rd_route_slot(store, &a->keys);
    a->budget_ns = claim->deadline_ns - store->base.host->now_ns();
    return HF_OK;
}

/* Whether to ask again after that answer, once it is time; else *status is the last word. */
static bool waits_on(struct attempt *a, enum hf_status *status, struct hf_error *err)
{
    struct hf__wait_answer answer = {
        .status = *status, .retry_after_ms = err->retry_after_ms, .look_ns = a->again_ns};
    struct hf__wait_step step =
        hf__wait_queued(&a->queue, &answer, a->store->base.host->now_ns(), dice_of(a));

    if (step.next == HF__WAIT_RETURN)
        return false;
    *status = step.next == HF__WAIT_SLEEP ? sleep_in_queue(a, step.until_ns, err)
                                          : pause_until(a, step.until_ns, err);
    return *status == HF_OK;
}

enum hf_status rd_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct attempt a; /* prepare fills it in; it is too large to be cleared for nothing */
    struct hf_error own;
    enum hf_status status;

    if (err == NULL)
        err = &own;
    status = prepare(&a, (struct rd_store *)base, claim, err);
    if (status != HF_OK)
        return status;
    do {
        status = try_once(&a, grant, err);
    } while (status != HF_OK && waits_on(&a, &status, err));
    if (status != HF_OK && a.known)
        leave(&a);
    rd_request_release(&a.request);
    return status == HF_OK ? hf__ok(err) : status;
}

static struct hf__patience request_patience(const struct attempt *a)
{
    return (struct hf__patience){.deadline_ns = hf__time_add(a->store->base.host->now_ns(),
                                                             a->budget_ns > 0 ? a->budget_ns : 0),
                                 .cancel_fd = waits(a) ? a->claim->cancel_fd : -1};
}

static void build(struct attempt *a)
{
    const struct hf_claim *claim = a->claim;
    const char *label = claim->label != NULL ? claim->label : "";
    char record[HF_LABEL_MAX + HF_OWNER_LEN + 32];
    char ttl[16];
    char *at = record;

    (void)snprintf(ttl, sizeof ttl, "%u", claim->ttl_ms);
    at = stpcpy(at, ttl);
    at = stpcpy(at, claim->detached ? " d " : " - ");
    at = mempcpy(at, claim->owner, HF_OWNER_LEN);
    *at++ = ' ';
    at = mempcpy(at, label, strnlen(label, HF_LABEL_MAX));
    *at = '\0';
    rd_request_clear(&a->request);
    rd_script_begin(&a->request, RD_SCRIPT_ACQUIRE, &a->keys, 6);
    rd_request_word(&a->request, claim->owner);
    rd_request_word(&a->request, ttl);
    rd_request_word(&a->request, a->met.id);
    rd_request_word(&a->request, waits(a) ? "1" : "0");
    rd_request_word(&a->request, record);
    rd_request_word(&a->request, !a->store->cluster        ? ""
                                 : a->met.shape[0] != '\0' ? a->met.shape
                                                           : "-");
}

/* What takes an acquire back, and leaves the queue. */
static void build_leave(void *data, struct rd_request *request)
{
    const struct attempt *a = data;

    rd_script_begin(request, RD_SCRIPT_LEAVE, &a->keys, 2);
    rd_request_word(request, a->claim->owner);
    rd_request_word(request, a->met.id);
}

/* {'busy', ask again in ms, pttl, token, label, kind}: who holds it. */
static enum hf_status busy(struct attempt *a, const struct rd_answer *answer, struct hf_error *err)
{
    const struct rd_reply *reply = answer->reply;
    const char *kind = rd_reply_text(rd_reply_at(reply, 5));
    int64_t left_ms = rd_reply_number(rd_reply_at(reply, 2), -1);
    const char *name = a->claim->name;
    const char *shown = a->store->setup.url.parts.shown;
    char label[HF_LABEL_MAX + 1];
    char left[32] = "unknown time";

    hf__copy_printable(label, sizeof label, rd_reply_text(rd_reply_at(reply, 4)));
    a->node = answer->node;
    a->queue.ours_until_ns = hf__time_add(answer->sent_at_ns, QUEUE_MS * HF__NS_PER_MS);
    a->again_ns = hf__time_add(a->store->base.host->now_ns(),
                               rd_reply_number(rd_reply_at(reply, 1), 1000) * HF__NS_PER_MS);
    if (left_ms >= 0)
        (void)hf__format_duration(left, sizeof left, left_ms);
    if (strcmp(kind, "ours") == 0)
        return hf__fail_lock(err, HF_BUSY, name, shown,
                             " is held by %.60s (token %s), for another %s", label,
                             rd_reply_text(rd_reply_at(reply, 3)), left);
    if (strcmp(kind, "waiter") == 0)
        return hf__fail_lock(err, HF_BUSY, name, shown,
                             " is just being handed to the next in the queue");
    return hf__fail_lock(err, HF_BUSY, name, shown,
                         " is held by a client that is not holdfast, for another %s", left);
}

static enum hf_status granted(struct attempt *a, const struct rd_answer *answer,
                              struct hf_grant *grant, struct hf_error *err)
{
    uint64_t token;

    if (!hf__parse_u64(answer->reply->text, &token) || token == 0 || token > INT64_MAX)
        return rd_nonsense(&a->store->setup.url, a->claim->name, err);
    grant->token = token;
    grant->sent_at_ns = answer->sent_at_ns;
    rd_vouch(a->store, a->claim->owner, token);
    return HF_OK;
}

/* What the script answered. HF_OK with no token: the server is not what we took it
 * for, ask anew. */
static enum hf_status judge(struct attempt *a, const struct rd_answer *answer,
                            struct hf_grant *grant, struct hf_error *err)
{
    if (answer->reply->type == RD_REPLY_STRING)
        return granted(a, answer, grant, err);
    if (rd_reply_is(answer->reply, "busy")) {
        a->known = waits(a);
        return busy(a, answer, err);
    }
    if (rd_reply_is(answer->reply, "new")) {
        rd_incarnation_forget(answer->node, a->met.id);
        a->meet = answer->node;
        return HF_OK;
    }
    if (rd_reply_is(answer->reply, "unmet")) {
        a->unmet = true;
        a->meet = answer->node;
        return HF_OK;
    }
    if (rd_reply_is(answer->reply, "corrupt"))
        return rd_corrupt(&a->store->setup.url, a->claim->name, &a->keys, answer->reply, err);
    return rd_nonsense(&a->store->setup.url, a->claim->name, err);
}

static enum hf_status cancelled(const struct attempt *a, struct hf_error *err)
{
    return hf__fail_lock(err, HF_CANCELLED, a->claim->name, a->store->setup.url.parts.shown,
                         ": cancelled while waiting");
}

/* HF_OK: there is time for another try. */
static enum hf_status pause_briefly(struct attempt *a, const struct hf__patience *patience,
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
    return hf__fail_lock(err, HF_UNREACHABLE, a->claim->name, a->store->setup.url.parts.shown,
                         ": its slot is being moved between two servers");
}

/* Finds the server, and learns of it what the request has to say. */
static enum hf_status meet(struct attempt *a, const struct hf__patience *patience,
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

/* Asks until a server that is what we take it for answers: at the second time, as a rule. */
static enum hf_status try_once(struct attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    enum { TRIES_MAX = 50, QUICK_MAX = 4 };
    struct hf__patience patience = request_patience(a);

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct rd_call call = {.lock = a->claim->name,
                               .slot = a->slot,
                               .patience = patience,
                               .request = &a->request,
                               .undo = build_leave,
                               .data = a};
        struct rd_answer answer;
        enum hf_status status = meet(a, &patience, err);

        if (status != HF_OK)
            return status;
        build(a);
        status = rd_call(a->store, &call, &answer, &a->undone, err);
        if (status != HF_OK) {
            /* What may have been executed has to be taken back. */
            a->known = a->known || status != HF_UNREACHABLE;
            return status;
        }
        status = judge(a, &answer, grant, err);
        rd_answer_release(&answer);
        if (status != HF_OK || grant->token != 0)
            return status;
        /* A slot on the move is asked for at two servers in turn. */
        if (tries >= QUICK_MAX && (status = pause_briefly(a, &patience, err)) != HF_OK)
            return status;
    }
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, a->store->setup.url.parts.shown,
                         ": the server keeps changing while we ask");
}

static enum hf_status pause_until(struct attempt *a, int64_t until_ns, struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = a->claim->wait_until_ns,
                                    .cancel_fd = a->claim->cancel_fd};

    return hf__patience_pause(&patience, until_ns) == HF__WAITED_CANCELLED ? cancelled(a, err)
                                                                           : HF_OK;
}

/* Sleeps until somebody hands over, or until it is time to ask again. */
static enum hf_status sleep_in_queue(struct attempt *a, int64_t until_ns, struct hf_error *err)
{
    int64_t left_ns = until_ns - a->store->base.host->now_ns();
    int64_t sleep_for_ms = left_ns > 0 ? left_ns / HF__NS_PER_MS + 1 : 1;
    struct rd_request request = {0};
    struct hf__patience patience = request_patience(a);
    struct rd_reply *reply = NULL;
    struct rd_conn *conn;
    char wake[RD_SIDE_MAX];
    char seconds[32];
    enum hf_status status;

    rd_keys_wake(wake, &a->keys, a->claim->owner);
    patience.deadline_ns = hf__time_add(patience.deadline_ns, sleep_for_ms * HF__NS_PER_MS);
    (void)snprintf(seconds, sizeof seconds, "%lld.%03lld", (long long)(sleep_for_ms / 1000),
                   (long long)(sleep_for_ms % 1000));
    rd_request_command(&request, (const char *const[]){"BLPOP", wake, seconds, NULL});
    status = rd_pool_take(&a->node->pool, false, &patience, &conn, err);
    if (status == HF_OK) {
        conn->asleep++; /* this answer takes its time */
        status = rd_conn_send(conn, &request, &patience);
        if (status == HF_OK)
            status = rd_conn_receive(conn, &patience, &reply);
        if (status == HF_OK && reply->type == RD_REPLY_ARRAY)
            a->store->base.host->log("redis: woken for lock \"%s\"", a->claim->name);
        rd_pool_give(&a->node->pool, conn);
    }
    rd_request_release(&request);
    if (status == HF_CANCELLED)
        status = cancelled(a, err);
    else if (status == HF_OK && reply->type == RD_REPLY_ERROR &&
             rd_verdict(reply->text) == RD_NOPERM)
        status = rd_verdict_fail(reply->text, a->claim->name, a->store->setup.url.parts.shown, err);
    else if (status != HF_OK || reply->type == RD_REPLY_ERROR)
        status = pause_until(
            a, hf__backoff_failed(&a->queue.backoff, a->store->base.host->now_ns(), dice_of(a)),
            err);
    rd_reply_free(reply);
    return status;
}

/* Also if the undo was sent behind the request: that connection may have died with it. Whichever
 * comes second finds nothing to do, because the owner never comes back; and only the one behind the
 * request is sure not to overtake it. */
static void leave(struct attempt *a)
{
    int64_t limit_ms = a->undone ? LEAVE_AGAIN_MS : LEAVE_MS;
    struct rd_call call = {.lock = a->claim->name,
                           .slot = a->slot,
                           .urgent = true,
                           .patience = request_patience(a),
                           .request = &a->request};
    struct rd_answer answer;

    call.patience = hf__patience_until(&call.patience,
                                       a->store->base.host->now_ns() + limit_ms * HF__NS_PER_MS);
    call.patience.cancel_fd = -1;
    rd_request_clear(&a->request);
    build_leave(a, &a->request);
    if (rd_call(a->store, &call, &answer, NULL, NULL) == HF_OK)
        rd_answer_release(&answer);
}
