/* acquire.c - taking a lock, and waiting for it. */
#include "base/base.h"
#include "core/wait.h"
#include "stores/file/errors.h"
#include "stores/file/life.h"
#include "stores/file/queue.h"
#include "stores/file/slot.h"
#include "stores/file/sweep.h"
#include "stores/file/ticket.h"

#include <errno.h>
#include <string.h>

#define TRY_NS (HF__NS_PER_S / 5) /* how long one in the queue tries to lock the page */

static enum hf_status try_once(struct file_attempt *attempt, struct hf_grant *grant,
                               struct hf_error *err);
static enum hf_status wait_in_queue(struct file_attempt *attempt, struct hf_grant *grant,
                                    struct hf_error *err);

enum hf_status hf__file_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                struct hf_grant *grant, struct hf_error *err)
{
    struct file_attempt attempt;
    enum hf_status status;

    memset(&attempt, 0, offsetof(struct file_attempt, bucket.page));
    attempt.store = hf__file_of(base);
    attempt.claim = claim;
    attempt.hash = hf__name_hash(claim->name);
    attempt.patience_ns = claim->deadline_ns - base->host->now_ns();
    attempt.watch_fd = -1;
    if (!claim->detached && hf__life_fd(attempt.store) < 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, attempt.store->shown,
                             ": cannot create a FIFO: %s", strerror(errno));
    hf__sweep_sometimes(attempt.store);
    status = try_once(&attempt, grant, err);
    if (status == HF_BUSY && claim->wait_until_ns != 0)
        status = wait_in_queue(&attempt, grant, err);
    if (status == HF_UNKNOWN) {
        struct hf_claim undo = *claim;

        /* It may be ours all the same, and nobody would ever give it back. */
        undo.deadline_ns = hf__time_add(base->host->now_ns(), attempt.patience_ns);
        (void)hf__file_release(base, &undo, NULL);
    }
    return status;
}

/* It is free, and not for us: the head of the queue may not have heard of it. HF_BUSY. */
static enum hf_status pass_over(struct file_attempt *attempt, uint64_t live, bool lapsed,
                                struct hf_error *err)
{
    struct slot *slot = attempt->slot;
    enum hf_status status = HF_OK;

    if (lapsed || slot->claim_ns == 0 || live != slot->head) {
        slot->expires_ns = 0;
        memset(slot->owner, 0, sizeof slot->owner);
        slot->head = live;
        status = hf__queue_pass(attempt->store, &attempt->bucket, slot,
                                attempt->store->base.host->now_ns(), err);
    } /* else it is reserved for that one already */
    return status == HF_OK ? HF_BUSY : status;
}

/* Takes the lock in its locked page, unless it is held or an older waiter is to have it: HF_BUSY,
 * without a text. ticket: 0 for a newcomer. */
static enum hf_status take(struct file_attempt *attempt, uint64_t ticket, struct hf_grant *grant,
                           struct hf_error *err)
{
    struct file_store *store = attempt->store;
    struct slot *slot = attempt->slot;
    int64_t now_ns = store->base.host->now_ns();
    bool lapsed = slot->claim_ns != 0 && slot->claim_ns <= now_ns;

    if (hf__slot_held(store, slot, now_ns))
        return HF_BUSY;
    if (slot->head != slot->tail && (ticket == 0 || ticket != slot->head)) {
        struct slot from = *slot;
        uint64_t live;

        if (lapsed)
            from.head++; /* the head had its chance and did not come */
        live = hf__ticket_first_live(store, &from, NULL);
        if (live < slot->tail && live != ticket)
            return pass_over(attempt, live, lapsed, err);
        if (ticket == 0 || live == ticket)
            slot->head = live;
    }
    if (ticket != 0 && ticket == slot->head)
        slot->head++;
    return hf__slot_grant(store, &attempt->bucket, slot, attempt->claim, grant, err);
}

/* Without a place in the queue. */
static enum hf_status try_once(struct file_attempt *attempt, struct hf_grant *grant,
                               struct hf_error *err)
{
    struct file_store *store = attempt->store;
    enum hf_status status =
        hf__slot_make(store, attempt->claim, &attempt->bucket, &attempt->slot, err);

    if (status != HF_OK)
        return hf__page_failed(store, &attempt->bucket, status, err);
    status = take(attempt, 0, grant, err);
    if (status == HF_BUSY)
        status = hf__error_busy(store, attempt->slot, attempt->claim->name,
                                store->base.host->now_ns(), err);
    hf__page_unlock(store, &attempt->bucket);
    return status;
}

/* Until when a try may take to lock the page. Who is queued comes back and so tries only for a
 * moment, unless the lock was handed over or the wait is about to end. */
static int64_t try_until_ns(const struct file_attempt *attempt)
{
    int64_t now_ns = attempt->store->base.host->now_ns();
    bool brief = attempt->queued && !attempt->woken && attempt->patience_ns > TRY_NS &&
                 hf__time_add(now_ns, TRY_NS) < attempt->claim->wait_until_ns;

    return now_ns + (brief ? TRY_NS : attempt->patience_ns);
}

/* Takes the lock if it is for us, else makes sure that we are queued. HF_BUSY: wait on. */
static enum hf_status try_queued(struct file_attempt *attempt, struct hf_grant *grant,
                                 struct hf_error *err)
{
    struct file_store *store = attempt->store;
    struct hf_claim request = *attempt->claim;
    bool queued;
    enum hf_status status;

    request.deadline_ns = try_until_ns(attempt);
    status = hf__slot_make(store, &request, &attempt->bucket, &attempt->slot, err);
    if (status != HF_OK)
        return status;
    /* A stopped waiter may have been passed over, or its lock may even have lost its slot. */
    queued = attempt->queued && attempt->ticket >= attempt->slot->head &&
             attempt->ticket < attempt->slot->tail;
    status = take(attempt, queued ? attempt->ticket : 0, grant, err);
    if (status == HF_BUSY) {
        if (!queued || attempt->ticket < attempt->slot->head)
            status = hf__queue_draw(attempt, err);
        if (status == HF_OK || status == HF_BUSY) {
            hf__queue_watch(attempt);
            status = hf__error_busy(store, attempt->slot, attempt->claim->name,
                                    store->base.host->now_ns(), err);
        }
    }
    hf__page_unlock(store, &attempt->bucket);
    return status;
}

/* In the queue, a blocked page only means that nothing happens to the lock meanwhile. */
static struct hf__wait_step next_step(const struct file_attempt *attempt,
                                      struct hf__wait_place *place, enum hf_status status)
{
    const struct hf__wait_answer answer = {.status = status, .look_ns = attempt->check_at_ns};

    struct hf__wait_step step;

    place->ours_until_ns = attempt->queued && attempt->bucket.blocked ? INT64_MAX : 0;
    step = hf__wait_queued(place, &answer, attempt->store->base.host->now_ns(),
                           (uint32_t)hf__hash64(&attempt->ticket, sizeof attempt->ticket, 0));
    if (step.next == HF__WAIT_SLEEP && attempt->check_at_ns == 0)
        step.until_ns = 0; /* at once: see hf__queue_watch */
    return step;
}

static enum hf_status wait_in_queue(struct file_attempt *attempt, struct hf_grant *grant,
                                    struct hf_error *err)
{
    struct file_store *store = attempt->store;
    struct hf__wait_place place;
    struct hf__wait_step step;
    enum hf_status status;

    hf__wait_place_init(&place, attempt->claim->wait_until_ns);
    for (;;) {
        status = try_queued(attempt, grant, err);
        step = next_step(attempt, &place, status);
        if (step.next == HF__WAIT_RETURN) {
            status = hf__page_failed(store, &attempt->bucket, status, err);
            break;
        }
        if (!hf__queue_sleep(attempt, step.until_ns)) {
            status = hf__fail_lock(err, HF_CANCELLED, attempt->claim->name, store->shown,
                                   ": cancelled while waiting");
            break;
        }
    }
    if (status == HF_OK && attempt->queued)
        hf__queue_won(attempt);
    else
        hf__queue_leave(attempt);
    return status;
}
