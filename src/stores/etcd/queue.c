/* queue.c - waiting for a lock, or for one of several, in the order of those who came.
 *
 * A waiter puts its key behind the others, on a short lease that it keeps alive itself, and watches
 * the key right in front of it. When that one is gone and nobody else is before it, it confirms: a
 * transaction that puts its key on the lease of its ttl, if it is still there and the first. Only
 * that makes it the holder. Every few seconds it reads the queue, in case a watch says nothing.
 *
 * A waiter for one of several does the same in all queues at once, on one lease and with one
 * watch. The confirmation in one queue deletes the keys in the others: so there is never a second
 * grant, and those behind it hear of it at once. */
#include "base/base.h"
#include "stores/etcd/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_NS    (1200 * HF__NS_PER_MS) /* how often the waiter's lease is kept alive */
#define INSPECT_NS (5 * HF__NS_PER_S)     /* how often the queue is read, whatever is heard */
#define PER_KEY    4096                   /* bytes of a request, for each queue */

/* From which state to which. Trouble on the way takes whoever is inside back to EC_INSIDE. */
static const bool allowed[EC_STATES][EC_STATES] = {
    [EC_OUTSIDE] = {[EC_INSIDE] = true, [EC_UNCERTAIN] = true, [EC_TWICE] = true},
    [EC_UNCERTAIN] = {[EC_INSIDE] = true, [EC_UNCERTAIN] = true, [EC_TWICE] = true},
    [EC_INSIDE] = {[EC_INSIDE] = true,
                   [EC_BEHIND] = true,
                   [EC_FIRST] = true,
                   [EC_OUTSIDE] = true,
                   [EC_ROBBED] = true},
    [EC_BEHIND] = {[EC_INSIDE] = true, [EC_FIRST] = true},
    [EC_FIRST] = {[EC_INSIDE] = true,
                  [EC_BEHIND] = true,
                  [EC_FIRST] = true,
                  [EC_OUTSIDE] = true,
                  [EC_HOLDING] = true},
};

static enum hf_status leave(struct ec_queue *q, enum hf_status why);
static enum hf_status step(struct ec_queue *q);

/* What has to be so in each state. */
static bool consistent(const struct ec_queue *q)
{
    switch (q->state) {
    case EC_OUTSIDE:
    case EC_UNCERTAIN:
    case EC_TWICE:
        return q->own.create_revision == 0 && q->watch.http == NULL;
    case EC_INSIDE:
    case EC_FIRST:
    case EC_ROBBED:
        return q->own.create_revision != 0 && q->grant->token == 0;
    case EC_BEHIND:
        return q->own.create_revision != 0 && q->before[0].key_len > 0 && q->inspect_ns > 0;
    case EC_HOLDING:
        return q->grant->token == q->own.create_revision && q->grant->token != 0;
    case EC_STATES:
        break;
    }
    return false;
}

void ec_queue_move(struct ec_queue *q, enum ec_queue_state to)
{
    assert(allowed[q->state][to]);
    q->state = to;
    assert(consistent(q));
}

static void end_watch(struct ec_queue *q)
{
    if (q->watch.http != NULL)
        ec_watch_close(q->attempt->store, &q->watch);
}

/* A step went wrong. Whoever has a key in the queue, or may have, goes on after a moment: etcd's
 * leases do not run while nobody leads, and reading tells whether ours has ended. HF_OK: go on. */
static enum hf_status endure(struct ec_queue *q, enum hf_status status)
{
    const struct hf_host *host = q->attempt->store->base.host;
    struct hf__patience patience = {.deadline_ns = q->attempt->claim->wait_until_ns,
                                    .cancel_fd = q->attempt->claim->cancel_fd};
    struct hf__wait_answer answer = {.status = status, .asked_ns = q->asked_ns};
    struct hf__wait_step next;
    uint32_t dice;

    host->random(&dice, sizeof dice);
    q->wait_queue.ours_until_ns = q->state == EC_OUTSIDE ? 0 : INT64_MAX;
    next = hf__wait_queued(&q->wait_queue, &answer, host->now_ns(), dice);
    if (next.next ==
        HF__WAIT_RETURN) /* what is not known is our key's fate: leave() sees to that */
        return status == HF_UNKNOWN ? HF_UNREACHABLE : status;
    (void)hf__patience_pause(&patience, next.until_ns);
    return HF_OK;
}

/* Until we hold one of the locks, or the wait is over. */
static enum hf_status wait_for_one(struct ec_queue *q)
{
    const struct ec_attempt *a = q->attempt;
    enum hf_status status = HF_OK;

    while (status == HF_OK && q->state != EC_HOLDING) {
        if (hf__patience_cancelled(&a->patience))
            status = HF_CANCELLED;
        else if (hf__wait_over(&q->wait_queue, a->store->base.host->now_ns()))
            status = q->trouble == HF_OK ? HF_BUSY : HF_UNREACHABLE;
        else
            status = step(q);
    }
    end_watch(q);
    return status == HF_OK ? HF_OK : leave(q, status);
}

enum hf_status ec_queue_wait(struct ec_attempt *attempts, size_t count, size_t *which,
                             struct hf_grant *grant)
{
    struct ec_queue q = {.attempt = attempts, .count = count, .grant = grant};
    enum hf_status status;

    q.before = calloc(count, sizeof *q.before);
    if (count > 1) {
        q.buffer_size = count * PER_KEY;
        q.buffer = malloc(q.buffer_size);
    }
    hf__wait_queue_init(&q.wait_queue, attempts->claim->wait_until_ns);
    q.wait_queue.settles = true;
    for (size_t i = 0; i < count; i++)
        ec_keys_use(&attempts[i].keys, true);
    if (q.before == NULL || (count > 1 && q.buffer == NULL))
        status = hf__nomem(attempts->err);
    else
        status = wait_for_one(&q);
    *which = q.which;
    free(q.before);
    free(q.buffer);
    return status;
}

/* What the queues are like now. */
static void note_queue(struct ec_queue *q, const struct ec_reading *found)
{
    hf__wait_worked(&q->wait_queue);
    if (found->moved)
        end_watch(q);
    if (found->own_count < q->count) {
        end_watch(q);
        memset(&q->own, 0, sizeof q->own);
        ec_queue_move(q, EC_OUTSIDE); /* our lease has ended: to the end of the queue */
        return;
    }
    q->own = found->own;
    q->lease = found->own.lease;
    if (q->watch.http == NULL)
        q->seen = found->revision;
    q->inspect_ns = q->attempt->store->base.host->now_ns() + INSPECT_NS;
    q->which = found->first < q->count ? found->first : 0;
    ec_queue_move(q, found->first < q->count ? EC_FIRST : EC_BEHIND);
}

/* EC_INSIDE */
static enum hf_status inspect(struct ec_queue *q)
{
    struct ec_reading found;
    enum hf_status status = ec_party_inspect(q, &found);

    if (status != HF_OK)
        return status;
    if (found.own_count > 0 && found.own_count < q->count) {
        ec_queue_move(q, EC_ROBBED);
        return ec_fail(q->attempt->claim->name, q->attempt->store->url.common.shown, HF_UNREACHABLE,
                       "somebody deleted our place in a queue", q->attempt->err);
    }
    note_queue(q, &found);
    return HF_OK;
}

/* Sleeps until the one before us is gone, or it is time to do something else. False: nothing can be
 * heard. */
static bool hear(struct ec_queue *q)
{
    struct ec_store *store = q->attempt->store;
    const struct hf_claim *claim = q->attempt->claim;
    struct hf__patience patience = {.deadline_ns = store->base.host->now_ns() + KEEP_NS,
                                    .cancel_fd = claim->cancel_fd};
    struct ec_watch_keys keys = {.at = q->before,
                                 .count = q->count,
                                 .from_revision = q->seen + 1,
                                 .buffer = q->buffer,
                                 .buffer_size = q->buffer_size,
                                 .fn = q->count > 1 ? ec_party_hear : NULL,
                                 .data = q};
    enum ec_heard heard = EC_HEARD_BROKEN;

    if (patience.deadline_ns > claim->wait_until_ns)
        patience.deadline_ns = claim->wait_until_ns;
    if (patience.deadline_ns > q->inspect_ns)
        patience.deadline_ns = q->inspect_ns;
    if (q->watch.http != NULL || ec_watch_open(store, &q->watch, &keys))
        heard = ec_watch_listen(&q->watch, &patience);
    if (heard == EC_HEARD_NOTHING)
        return true;
    /* First, as a rule; the confirmation finds out. With several queues it has to be read in which,
     * unless it was the holder of one who left. */
    ec_queue_move(q, heard == EC_HEARD_EVENT && (q->count == 1 || q->free) ? EC_FIRST : EC_INSIDE);
    q->free = false;
    if (heard == EC_HEARD_BROKEN)
        ec_turn_away(store, q->watch.endpoint);
    end_watch(q);
    return heard != EC_HEARD_BROKEN;
}

/* EC_BEHIND */
static enum hf_status wait_behind(struct ec_queue *q)
{
    enum hf_status status;

    if (q->attempt->store->base.host->now_ns() >= q->inspect_ns) {
        ec_queue_move(q, EC_INSIDE);
        return HF_OK;
    }
    status = ec_queue_keep_alive(q);
    if (status == HF_OK && q->state == EC_BEHIND && !hear(q))
        (void)endure(q, HF_UNREACHABLE); /* the queue is read after a pause */
    return status;
}

/* Nobody answered our confirmation. *confirmed tells whether it was executed. */
static enum hf_status settle(struct ec_queue *q, const struct ec_lease *lease, bool *confirmed)
{
    struct ec_request request = ec_queue_request(q);
    struct ec_inspection found;
    enum hf_status status;

    q->confirming = lease->id;
    status = ec_inspect(&request, &q->attempt[q->which].keys, q->own.create_revision, &found);
    if (status != HF_OK)
        return status;
    *confirmed = found.own_there && found.own.create_revision == q->own.create_revision &&
                 found.own.lease == lease->id && !found.before_there;
    return HF_OK;
}

/* EC_FIRST: makes us the holder. */
static enum hf_status confirm(struct ec_queue *q)
{
    struct ec_attempt *a = &q->attempt[q->which];
    struct ec_request request = ec_queue_request(q);
    char value[EC_VALUE_MAX];
    struct ec_move to = {.keys = &a->keys,
                         .seen = &q->own,
                         .at_head = true,
                         .value = value,
                         .others = q->attempt,
                         .other_count = q->count,
                         .buffer = q->buffer,
                         .buffer_size = q->buffer_size};
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
        if (q->which > 0) /* under whose name our keys were known */
            (void)ec_hold_forget(a->store, q->attempt->claim->owner);
        ec_queue_move(q, EC_HOLDING);
    } else {
        ec_queue_move(q, EC_INSIDE); /* it was not to be: something has changed */
    }
    return HF_OK;
}

/* One step of the wait. HF_OK: go on, or it is over because we hold. */
static enum hf_status step(struct ec_queue *q)
{
    q->asked_ns = q->attempt->store->base.host->now_ns();
    assert(q->state < EC_HOLDING);
    switch (q->state) {
    case EC_OUTSIDE:
    case EC_UNCERTAIN:
        q->trouble = ec_queue_enter(q);
        break;
    case EC_INSIDE:
        q->trouble = inspect(q);
        break;
    case EC_BEHIND:
        q->trouble = wait_behind(q);
        break;
    case EC_FIRST:
        q->trouble = confirm(q);
        break;
    case EC_HOLDING:
    case EC_TWICE:
    case EC_ROBBED:
    case EC_STATES:
        break;
    }
    if (q->trouble == HF_OK || q->state > EC_HOLDING)
        return q->trouble;
    if (q->state != EC_OUTSIDE && q->state != EC_UNCERTAIN)
        ec_queue_move(q, EC_INSIDE);
    return endure(q, q->trouble);
}

/* Takes our key back. */
static enum hf_status withdraw(struct ec_queue *q, const struct hf__patience *patience)
{
    struct ec_attempt *a = q->attempt;
    struct hf_error ignored;
    struct ec_request request = {
        .store = a->store, .lock = a->claim->name, .patience = *patience, .err = &ignored};
    enum hf_status status = HF_OK;

    if (q->state != EC_OUTSIDE)
        status = ec_party_delete(q, &request);
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
static enum hf_status leave(struct ec_queue *q, enum hf_status why)
{
    struct ec_attempt *a = q->attempt;
    struct hf__patience patience = {
        .deadline_ns = a->store->base.host->now_ns() + EC_UNDO_MS * HF__NS_PER_MS, .cancel_fd = -1};
    enum hf_status status;

    if (q->state == EC_TWICE)
        return hf__fail_lock(a->err, HF_BUSY, a->claim->name, a->store->url.common.shown,
                             " is waited for by this very attempt: the request came twice");
    status = withdraw(q, &patience);
    /* If a waiter's key stays behind, it ends in seconds; a hold would last longer. */
    if (status != HF_OK && q->confirming != 0)
        return ec_perhaps_taken(a->claim->name, a->store->url.common.shown, a->err);
    if (why == HF_BUSY)
        return ec_busy(a);
    if (why == HF_CANCELLED)
        return ec_fail(a->claim->name, a->store->url.common.shown, HF_CANCELLED, "cancelled",
                       a->err);
    return why;
}
