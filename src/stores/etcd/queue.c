/* queue.c - waiting for a lock, in the order of those who came.
 *
 * A waiter puts its key behind the others, on a short lease that it keeps alive itself, and watches
 * the key right in front of it. When that one is gone and nobody else is before it, it confirms: a
 * transaction that puts its key on the lease of its ttl, if it is still there and the first. Only
 * that makes it the holder. Every few seconds it reads the queue, in case a watch says nothing. */
#include "base/base.h"
#include "stores/etcd/etcd.h"
#include "stores/etcd/watch.h"

#include <assert.h>
#include <string.h>

#define KEEP_NS    (1200 * HF__NS_PER_MS) /* how often the waiter's lease is kept alive     */
#define INSPECT_NS (5 * HF__NS_PER_S)     /* how often the queue is read, whatever is heard */
#define PAUSE_NS   (200 * HF__NS_PER_MS)  /* after something failed                         */

enum state {
    OUTSIDE,   /* no key of ours is in the queue: enter it                       */
    UNCERTAIN, /* one may be, or may come, that we do not know of: enter it      */
    INSIDE,    /* our key is in the queue, and who is before us has to be read   */
    BEHIND,    /* somebody is before us: keep our lease alive, and hear him leave */
    FIRST,     /* nobody is, as far as we know: confirm                          */
    HOLDING,
    STATES
};

/* From which state to which. Trouble on the way takes whoever is inside back to INSIDE. */
static const bool allowed[STATES][STATES] = {
    [OUTSIDE] = {[INSIDE] = true, [UNCERTAIN] = true},
    [UNCERTAIN] = {[INSIDE] = true, [UNCERTAIN] = true},
    [INSIDE] = {[INSIDE] = true, [BEHIND] = true, [FIRST] = true, [OUTSIDE] = true},
    [BEHIND] = {[INSIDE] = true, [FIRST] = true},
    [FIRST] =
        {[INSIDE] = true, [BEHIND] = true, [FIRST] = true, [OUTSIDE] = true, [HOLDING] = true},
};

struct queue {
    struct ec_attempt *attempt;
    enum state state;
    struct ec_kv own;    /* key and revisions                                        */
    struct ec_kv before; /* BEHIND: whom we wait for                                 */
    int64_t lease;       /* that our key is on, or is to be                          */
    int64_t confirming;  /* a lease that a confirmation of unknown fate names; or 0  */
    uint64_t seen;       /* the revision at which `before` was there                 */
    int64_t inspect_ns;  /* BEHIND: when to read next                                */
    struct ec_watch watch;
    struct hf_grant *grant;
    enum hf_status trouble; /* of the last step */
};

static enum hf_status leave(struct queue *q, enum hf_status why);
static enum hf_status step(struct queue *q);

/* What has to be so in each state. */
static bool consistent(const struct queue *q)
{
    switch (q->state) {
    case OUTSIDE:
    case UNCERTAIN:
        return q->own.create_revision == 0 && q->watch.http == NULL;
    case INSIDE:
    case FIRST:
        return q->own.create_revision != 0 && q->grant->token == 0;
    case BEHIND:
        return q->own.create_revision != 0 && q->before.key_len > 0 && q->inspect_ns > 0;
    case HOLDING:
        return q->grant->token == q->own.create_revision && q->grant->token != 0;
    case STATES:
        break;
    }
    return false;
}

static void move(struct queue *q, enum state to)
{
    assert(allowed[q->state][to]);
    q->state = to;
    assert(consistent(q));
}

static void end_watch(struct queue *q)
{
    if (q->watch.http != NULL)
        ec_watch_close(q->attempt->store, &q->watch);
}

/* For one request of the many that a wait takes. */
static struct ec_request new_request(const struct queue *q)
{
    const struct ec_attempt *a = q->attempt;

    return (struct ec_request){
        .store = a->store,
        .lock = a->claim->name,
        .patience = {.deadline_ns = hf__time_add(a->store->base.host->now_ns(), a->budget_ns),
                     .cancel_fd = a->claim->cancel_fd},
        .err = a->err};
}

/* Worth going on: the servers may come back. */
static bool passing(enum hf_status status)
{
    return status == HF_UNREACHABLE || status == HF_UNKNOWN;
}

/* A moment's rest, so that trouble is no busy loop. */
static void pause_for(const struct queue *q)
{
    const struct hf_claim *claim = q->attempt->claim;
    struct pollfd cancel = {.fd = claim->cancel_fd, .events = POLLIN};
    int64_t until_ns = q->attempt->store->base.host->now_ns() + PAUSE_NS;

    (void)hf__poll_until(&cancel, 1,
                         until_ns < claim->wait_until_ns ? until_ns : claim->wait_until_ns);
}

enum hf_status ec_queue_wait(struct ec_attempt *a, struct hf_grant *grant)
{
    struct queue q = {.attempt = a, .grant = grant};
    enum hf_status status = HF_OK;

    ec_keys_use(&a->keys, true);
    while (status == HF_OK && q.state != HOLDING) {
        if (ec_cancelled(&a->patience))
            status = HF_CANCELLED;
        else if (a->store->base.host->now_ns() >= a->claim->wait_until_ns)
            status = q.trouble == HF_OK ? HF_BUSY : HF_UNREACHABLE;
        else
            status = step(&q);
    }
    end_watch(&q);
    return status == HF_OK ? HF_OK : leave(&q, status);
}

/* What the queue is like now. */
static void note_queue(struct queue *q, const struct ec_inspection *found)
{
    struct ec_attempt *a = q->attempt;
    bool same = found->before_there && q->before.key_len == found->before.key_len &&
                memcmp(q->before.key, found->before.key, found->before.key_len) == 0;

    if (found->head_there)
        ec_note_holder(a, &found->head);
    if (!same)
        end_watch(q);
    if (!found->own_there || found->own.create_revision != q->own.create_revision) {
        end_watch(q);
        memset(&q->own, 0, sizeof q->own);
        move(q, OUTSIDE); /* our lease has ended: to the end of the queue */
        return;
    }
    q->own = found->own;
    q->lease = found->own.lease;
    if (q->watch.http == NULL)
        q->seen = found->revision;
    q->before = found->before;
    q->inspect_ns = a->store->base.host->now_ns() + INSPECT_NS;
    move(q, found->before_there ? BEHIND : FIRST);
}

/* INSIDE */
static enum hf_status inspect(struct queue *q)
{
    struct ec_request request = new_request(q);
    struct ec_inspection found;
    enum hf_status status = ec_inspect(&request, &q->attempt->keys, q->own.create_revision, &found);

    if (status == HF_OK)
        note_queue(q, &found);
    return status;
}

/* Our key was put, or so it seems: what is its revision? */
static enum hf_status find_own(struct queue *q)
{
    struct ec_attempt *a = q->attempt;
    struct ec_request request = new_request(q);
    struct ec_inspection found;

    request.patience.cancel_fd = -1;
    if (ec_inspect(&request, &a->keys, 0, &found) == HF_OK && found.own_there) {
        q->own = found.own;
        q->lease = found.own.lease;
        move(q, INSIDE);
        return HF_OK;
    }
    ec_lease_retire(a->store, q->lease);
    move(q, UNCERTAIN);
    return ec_fail(a->claim->name, a->store->url.shown, HF_UNREACHABLE,
                   "etcd did not answer, and there is no place in the queue", a->err);
}

/* Our key in the queue is on that lease, which was alive at alive_ns. */
static void note_alive(struct queue *q, int64_t lease, int64_t alive_ns)
{
    struct ec_hold_news news = {
        .waited = true, .lease = lease, .until_ns = alive_ns + EC_WAIT_TTL_MS * HF__NS_PER_MS};

    ec_hold_note(q->attempt->store, &q->attempt->spare, q->attempt->claim->owner, &news);
}

/* Puts our key at the end of the queue, on that lease. */
static enum hf_status put_last(struct queue *q, const struct ec_request *request,
                               const struct ec_lease *lease, struct ec_answer *answer,
                               enum ec_verdict *verdict)
{
    struct ec_attempt *a = q->attempt;
    struct ec_range own = ec_keys_own(&a->keys);
    struct ec_text body;
    struct ec_call call = {
        .lock = request->lock, .path = "/v3/kv/txn", .body = &body, .patience = request->patience};
    char value[EC_VALUE_MAX];

    ec_value(a->store, a->claim, EC_KIND_WAITING, value);
    ec_txn_begin(&body);
    ec_txn_compare(&body, &own, "CREATE", "EQUAL", 0);
    ec_txn_then(&body);
    ec_txn_put(&body, &own, value, lease->id);
    ec_txn_end(&body);
    return ec_call(a->store, &call, answer, verdict, request->err);
}

/* OUTSIDE, UNCERTAIN */
static enum hf_status enter(struct queue *q)
{
    struct ec_attempt *a = q->attempt;
    struct ec_request request = new_request(q);
    struct ec_lease lease;
    struct ec_answer answer;
    enum ec_verdict verdict;
    bool there;
    enum hf_status status = ec_lease_class(&request, 0, EC_USE_WAITING, &lease);

    if (status != HF_OK)
        return status;
    q->lease = lease.id;
    status = put_last(q, &request, &lease, &answer, &verdict);
    if (status == HF_UNKNOWN)
        return find_own(q);
    if (verdict == EC_NO_LEASE) {
        ec_lease_retire(a->store, lease.id);
        return hf__ok(a->err);
    }
    if (status != HF_OK)
        return status;
    there = !ec_answer_succeeded(answer.json);
    if (!there)
        q->own.create_revision = q->own.mod_revision = ec_answer_revision(answer.json);
    ec_answer_release(&answer);
    if (there || q->own.create_revision == 0)
        return find_own(q); /* a request that was given up has come through after all */
    move(q, INSIDE);
    note_alive(q, lease.id, lease.sent_at_ns);
    return HF_OK;
}

/* Keeps our key alive, on another lease if ours is not the one in use any more. */
static enum hf_status keep_alive(struct queue *q)
{
    struct ec_attempt *a = q->attempt;
    struct ec_request request = new_request(q);
    char value[EC_VALUE_MAX];
    struct ec_move to = {.keys = &a->keys, .seen = &q->own, .value = value};
    struct ec_lease lease;
    enum hf_status status;

    /* We are alive, so our key is no reason to let the lease go. */
    note_alive(q, q->lease, a->store->base.host->now_ns());
    status = ec_lease_class(&request, 0, EC_USE_WAITING, &lease);
    if (status != HF_OK || lease.id == q->lease)
        return status;
    ec_value(a->store, a->claim, EC_KIND_WAITING, value);
    /* From now on it may be on either, and nobody keeps the old one alive. */
    q->lease = to.lease = lease.id;
    status = ec_move(&request, &to);
    move(q, INSIDE);
    if (to.verdict == EC_NO_LEASE) {
        ec_lease_retire(a->store, lease.id);
        return hf__ok(a->err);
    }
    if (status == HF_OK && to.moved)
        q->own.mod_revision = to.mod_revision; /* else the next inspection tells */
    return status;
}

/* Sleeps until the one before us is gone, or it is time to do something else. */
static void hear(struct queue *q)
{
    struct ec_store *store = q->attempt->store;
    const struct hf_claim *claim = q->attempt->claim;
    struct ec_patience patience = {.deadline_ns = store->base.host->now_ns() + KEEP_NS,
                                   .cancel_fd = claim->cancel_fd};
    enum ec_heard heard = EC_HEARD_BROKEN;

    if (patience.deadline_ns > claim->wait_until_ns)
        patience.deadline_ns = claim->wait_until_ns;
    if (patience.deadline_ns > q->inspect_ns)
        patience.deadline_ns = q->inspect_ns;
    if (q->watch.http != NULL || ec_watch_open(store, &q->watch, &q->before, q->seen + 1))
        heard = ec_watch_listen(&q->watch, &patience);
    if (heard == EC_HEARD_NOTHING)
        return;
    /* First, as a rule; the confirmation finds out. */
    move(q, heard == EC_HEARD_DELETED ? FIRST : INSIDE);
    if (heard == EC_HEARD_BROKEN) {
        ec_turn_away(store, q->watch.endpoint);
        pause_for(q);
    }
    end_watch(q);
}

/* BEHIND */
static enum hf_status wait_behind(struct queue *q)
{
    enum hf_status status;

    if (q->attempt->store->base.host->now_ns() >= q->inspect_ns) {
        move(q, INSIDE);
        return HF_OK;
    }
    status = keep_alive(q);
    if (status == HF_OK && q->state == BEHIND)
        hear(q);
    return status;
}

/* Nobody answered our confirmation. *confirmed tells whether it was executed. */
static enum hf_status settle(struct queue *q, const struct ec_lease *lease, bool *confirmed)
{
    struct ec_request request = new_request(q);
    struct ec_inspection found;
    enum hf_status status;

    q->confirming = lease->id;
    status = ec_inspect(&request, &q->attempt->keys, q->own.create_revision, &found);
    if (status != HF_OK)
        return status;
    *confirmed = found.own_there && found.own.create_revision == q->own.create_revision &&
                 found.own.lease == lease->id && !found.before_there;
    if (!*confirmed)
        note_queue(q, &found);
    return HF_OK;
}

/* FIRST: makes us the holder. */
static enum hf_status confirm(struct queue *q)
{
    struct ec_attempt *a = q->attempt;
    struct ec_request request = new_request(q);
    char value[EC_VALUE_MAX];
    struct ec_move to = {.keys = &a->keys, .seen = &q->own, .at_head = true, .value = value};
    struct ec_lease lease;
    enum hf_status status = ec_attempt_lease(a, &request, &lease);

    if (status != HF_OK)
        return status;
    /* No sooner than we ask: what was promised to the one before us is over by then. */
    ec_value(a->store, a->claim, ec_kind(a->claim), value);
    to.lease = lease.id;
    status = ec_move(&request, &to);
    if (to.verdict == EC_NO_LEASE) {
        ec_lease_retire(a->store, lease.id);
        return hf__ok(a->err);
    }
    if (status == HF_UNKNOWN)
        status = settle(q, &lease, &to.moved);
    if (status != HF_OK)
        return status;
    if (to.moved) {
        ec_attempt_granted(a, &lease, q->own.create_revision, q->grant);
        move(q, HOLDING);
    } else if (q->state != OUTSIDE) {
        move(q, INSIDE); /* it was not to be: something has changed */
    }
    return HF_OK;
}

/* One step of the wait. HF_OK: go on, or it is over because we hold. */
static enum hf_status step(struct queue *q)
{
    switch (q->state) {
    case OUTSIDE:
    case UNCERTAIN:
        q->trouble = enter(q);
        break;
    case INSIDE:
        q->trouble = inspect(q);
        break;
    case BEHIND:
        q->trouble = wait_behind(q);
        break;
    case FIRST:
        q->trouble = confirm(q);
        break;
    case HOLDING:
    case STATES:
        break;
    }
    if (!passing(q->trouble))
        return q->trouble;
    if (q->state != OUTSIDE && q->state != UNCERTAIN)
        move(q, INSIDE);
    pause_for(q);
    return HF_OK;
}

/* Takes our key back. */
static enum hf_status withdraw(struct queue *q, const struct ec_patience *patience)
{
    struct ec_attempt *a = q->attempt;
    struct hf_error ignored;
    struct ec_request request = {
        .store = a->store, .lock = a->claim->name, .patience = *patience, .err = &ignored};
    struct ec_deletion deletion = {
        .keys = &a->keys, .token = q->own.create_revision, .for_good = true};
    enum hf_status status = HF_OK;

    if (q->state != OUTSIDE)
        status = ec_delete(&request, &deletion);
    (void)ec_hold_forget(a->store, a->claim->owner);
    if (status != HF_OK || q->own.create_revision == 0) {
        ec_lease_retire(a->store, q->lease);
        ec_lease_retire(a->store, q->confirming);
    }
    if (q->confirming != 0 && !ec_is_kept(a->claim))
        ec_lease_revoke(a->store, q->confirming, patience);
    return status;
}

/* Out of the queue, for whatever reason. */
static enum hf_status leave(struct queue *q, enum hf_status why)
{
    struct ec_attempt *a = q->attempt;
    struct ec_patience patience = {
        .deadline_ns = a->store->base.host->now_ns() + EC_UNDO_MS * HF__NS_PER_MS, .cancel_fd = -1};
    enum hf_status status = withdraw(q, &patience);

    /* A waiter's key that stays behind ends in seconds; a hold that may, not so soon. */
    if (status != HF_OK && q->confirming != 0)
        return ec_perhaps_taken(a->claim->name, a->store->url.shown, a->err);
    if (why == HF_BUSY)
        return ec_busy(a);
    if (why == HF_CANCELLED)
        return ec_fail(a->claim->name, a->store->url.shown, HF_CANCELLED, "cancelled", a->err);
    return why;
}
