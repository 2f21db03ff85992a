/* acquire.c - taking a lock, and waiting for it. */
#include "base/base.h"
#include "core/wait.h"
#include "stores/file/client.h"
#include "stores/file/errors.h"
#include "stores/file/hold.h"
#include "stores/file/life.h"
#include "stores/file/location.h"
#include "stores/file/operations.h"
#include "stores/file/queue.h"
#include "stores/file/quick.h"
#include "stores/file/slot.h"
#include "stores/file/sweep.h"
#include "stores/file/ticket.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define TRY_NS (HF__NS_PER_S / 5) /* how long one in the queue tries to lock the page */

static enum hf_status try_once(struct file_attempt *attempt, struct hf_grant *grant,
                               struct hf_error *err);
static enum hf_status wait_in_queues(struct file_attempt *attempts, size_t count, size_t *which,
                                     struct hf_grant *grant, struct hf_error *err);

static void begin(struct file_attempt *attempt, struct file_store *store,
                  const struct hf_claim *claim, int64_t now_ns, struct bucket *bucket)
{
    *attempt = (struct file_attempt){.store = store,
                                     .claim = claim,
                                     .hash = hf__name_hash(claim->name),
                                     .patience_ns = claim->deadline_ns - now_ns,
                                     .bucket = bucket,
                                     .watch_fd = -1};
}

/* What every claim needs, whichever lock it is about. */
static enum hf_status get_ready(struct file_store *store, const struct hf_claim *claim,
                                struct hf_error *err)
{
    if (!claim->detached && hf__life_fd(store) < 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown, ": cannot create a FIFO: %s",
                             strerror(errno));
    if (!claim->detached)
        hf__client_prepare(store, claim->deadline_ns);
    hf__sweep_sometimes(store);
    return HF_OK;
}

/* It may be ours all the same, and nobody would ever give it back. */
static void take_back(const struct file_attempt *attempt)
{
    struct hf_claim undo = *attempt->claim;

    undo.deadline_ns = hf__time_add(attempt->store->base.host->now_ns(), attempt->patience_ns);
    (void)hf__hold_release(attempt->store, &undo, NULL);
}

/* Without its page's lock, if it is free and was used before. HF_STALE: the long way. */
static enum hf_status take_quickly(struct file_attempt *attempt, int64_t now_ns,
                                   struct hf_grant *grant, struct hf_error *err)
{
    struct quick quick = {.claim = attempt->claim, .hash = attempt->hash, .now_ns = now_ns};
    enum hf_status status = hf__quick_begin(attempt->store, &quick, err);

    if (status == HF_OK)
        status = hf__location_check_at(attempt->store, now_ns, err);
    return status == HF_OK ? hf__quick_take(attempt->store, &quick, grant, err) : status;
}

enum hf_status hf__file_acquire_free(struct hf_store_base *base, const struct hf_claim *claim,
                                     struct hf_grant *grant, struct hf_error *err)
{
    struct file_attempt attempt;
    enum hf_status status = get_ready(hf__file_of(base), claim, err);
    int64_t now_ns;

    if (status != HF_OK)
        return status;
    now_ns = base->host->now_ns();
    begin(&attempt, hf__file_of(base), claim, now_ns, NULL);
    status = take_quickly(&attempt, now_ns, grant, err);
    if (status == HF_UNKNOWN)
        take_back(&attempt);
    return status == HF_STALE ? HF_UNSUPPORTED : status;
}

enum hf_status hf__file_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                struct hf_grant *grant, struct hf_error *err)
{
    struct bucket bucket;
    struct file_attempt attempt;
    enum hf_status status = get_ready(hf__file_of(base), claim, err);
    int64_t now_ns;
    size_t which;

    if (status != HF_OK)
        return status;
    now_ns = base->host->now_ns();
    begin(&attempt, hf__file_of(base), claim, now_ns, &bucket);
    status = take_quickly(&attempt, now_ns, grant, err);
    if (status == HF_STALE)
        status = try_once(&attempt, grant, err);
    if (status == HF_BUSY && claim->wait_until_ns != 0)
        status = wait_in_queues(&attempt, 1, &which, grant, err);
    if (status == HF_UNKNOWN)
        take_back(&attempt);
    return status;
}

/* One of several. */
struct choice {
    struct file_store *store;
    const struct hf_claim *claims;
    size_t count;
    int64_t now_ns; /* when it began */
    struct bucket bucket;
    struct file_attempt attempts[HF_SEVERAL_MAX];
};

static struct file_attempt *begin_one(struct choice *c, size_t i)
{
    begin(&c->attempts[i], c->store, &c->claims[i], c->now_ns, &c->bucket);
    return &c->attempts[i];
}

/* Tries them in their order; plain: without those that others hold at a glance, whether or not
 * these live. HF_BUSY: none is to be had; the error is about the first, unless that was left out.
 */
static enum hf_status try_each(struct choice *c, bool plain, size_t *which, struct hf_grant *grant,
                               struct hf_error *err)
{
    struct hf_error other;

    for (size_t i = 0; i < c->count; i++) {
        struct file_attempt *attempt;
        enum hf_status status;

        if (plain && hf__quick_taken(c->store, c->claims[i].name, c->now_ns))
            continue;
        attempt = begin_one(c, i);
        status = take_quickly(attempt, c->store->base.host->now_ns(), grant, &other);
        if (status == HF_STALE)
            status = try_once(attempt, grant, &other);
        if (err != NULL && (status != HF_BUSY || i == 0))
            *err = other;
        if (status == HF_BUSY)
            continue;
        *which = i;
        return status;
    }
    return HF_BUSY;
}

static enum hf_status choose(struct choice *c, size_t *which, struct hf_grant *grant,
                             struct hf_error *err)
{
    bool waits = c->claims->wait_until_ns != 0;
    enum hf_status status = try_each(c, true, which, grant, err);

    if (status == HF_BUSY && !waits)
        return try_each(c, false, which, grant, err);
    if (status != HF_BUSY)
        return status;
    for (size_t i = 0; i < c->count; i++)
        (void)begin_one(c, i);
    return wait_in_queues(c->attempts, c->count, which, grant, err);
}

enum hf_status hf__file_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                                    size_t count, size_t *which, struct hf_grant *grant,
                                    struct hf_error *err)
{
    struct choice c; /* too large to be cleared for nothing */
    enum hf_status status = get_ready(hf__file_of(base), claims, err);

    assert(count > 0 && count <= HF_SEVERAL_MAX);
    *which = 0;
    if (status != HF_OK)
        return status;
    c.store = hf__file_of(base);
    c.claims = claims;
    c.count = count;
    c.now_ns = base->host->now_ns();
    status = choose(&c, which, grant, err);
    if (status == HF_UNKNOWN)
        take_back(&c.attempts[*which]);
    return status;
}

/* It is free, and not for us: the head of the queue may not have heard of it. HF_BUSY. */
static enum hf_status pass_over(struct file_attempt *attempt, uint64_t live, bool lapsed,
                                struct hf_error *err)
{
    struct view *view = &attempt->view;
    enum hf_status status = HF_OK;

    if (lapsed || view->reserved_until_ns == 0 || live != view->head) {
        status = hf__slot_set_queue(attempt->store, view, live, view->tail, err);
        if (status == HF_OK)
            status = hf__queue_pass(attempt->store, view, err);
    } /* else it is reserved for that one already */
    return status == HF_OK ? HF_BUSY : status;
}

/* Takes the lock in its locked page, unless it is held or an older waiter is to have it: HF_BUSY,
 * without a text. ticket: 0 for a newcomer. HF_STALE: look again. */
static enum hf_status take(struct file_attempt *attempt, uint64_t ticket, struct hf_grant *grant,
                           struct hf_error *err)
{
    struct file_store *store = attempt->store;
    struct view *view = &attempt->view;
    int64_t now_ns = store->base.host->now_ns();
    bool lapsed = view->reserved_until_ns != 0 && view->reserved_until_ns <= now_ns;
    uint64_t head = view->head;

    if (hf__slot_held(store, view, now_ns))
        return HF_BUSY;
    if (head != view->tail && (ticket == 0 || ticket != head)) {
        struct view from = *view;
        uint64_t live;

        if (lapsed)
            from.head++; /* the head had its chance and did not come */
        live = hf__ticket_first_live(store, &from, NULL);
        if (live < view->tail && live != ticket)
            return pass_over(attempt, live, lapsed, err);
        if (ticket == 0 || live == ticket)
            head = live;
    }
    if (ticket != 0 && ticket == head)
        head++;
    return hf__slot_grant(store, view, attempt->claim, head, grant, err);
}

/* Sees the lock again, in its page that is still locked. */
static enum hf_status look_again(struct file_attempt *attempt, struct hf_error *err)
{
    struct view *found;
    enum hf_status status = hf__slot_see(attempt->store, attempt->bucket, attempt->claim->name,
                                         &attempt->view, &found, err);

    assert(status != HF_OK || found != NULL); /* nobody else takes its slot away */
    return status;
}

static enum hf_status say_busy(const struct file_attempt *attempt, struct hf_error *err)
{
    return hf__error_busy(attempt->store, &attempt->view, attempt->claim->name,
                          attempt->store->base.host->now_ns(), err);
}

/* Without a place in the queue. */
static enum hf_status try_once(struct file_attempt *attempt, struct hf_grant *grant,
                               struct hf_error *err)
{
    struct file_store *store = attempt->store;
    enum hf_status status =
        hf__slot_make(store, attempt->claim, attempt->bucket, &attempt->view, err);

    if (status != HF_OK)
        return hf__page_failed(store, attempt->bucket, status, err);
    while ((status = take(attempt, 0, grant, err)) == HF_STALE) {
        status = look_again(attempt, err);
        if (status != HF_OK)
            break;
    }
    if (status == HF_BUSY)
        status = say_busy(attempt, err);
    hf__page_unlock(store, attempt->bucket);
    return status;
}

/* Until when a try may take to lock the page. A queued waiter comes back and so tries only for a
 * moment, unless the lock was handed over or the wait is about to end. */
static int64_t try_until_ns(const struct file_attempt *attempt)
{
    int64_t now_ns = attempt->store->base.host->now_ns();
    bool brief = attempt->queued && !attempt->woken && attempt->patience_ns > TRY_NS &&
                 hf__time_add(now_ns, TRY_NS) < attempt->claim->wait_until_ns;

    return now_ns + (brief ? TRY_NS : attempt->patience_ns);
}

/* Takes the lock if it is for us, else makes sure that we are queued, and that its holder knows.
 * HF_BUSY: wait on. HF_STALE: look again. */
static enum hf_status take_or_queue(struct file_attempt *attempt, struct hf_grant *grant,
                                    struct hf_error *err)
{
    const struct view *view = &attempt->view;
    /* A stopped waiter may have been passed over, or its lock may even have lost its slot. */
    bool queued = attempt->queued && attempt->ticket >= view->head && attempt->ticket < view->tail;
    enum hf_status status = take(attempt, queued ? attempt->ticket : 0, grant, err);

    if (status != HF_BUSY)
        return status;
    if (!queued || attempt->ticket < view->head)
        status = hf__queue_draw(attempt, err);
    if (status == HF_OK || status == HF_BUSY)
        status = hf__queue_tell(attempt, err);
    return status == HF_OK ? HF_BUSY : status;
}

static enum hf_status try_queued(struct file_attempt *attempt, struct hf_grant *grant,
                                 struct hf_error *err)
{
    struct file_store *store = attempt->store;
    struct hf_claim request = *attempt->claim;
    enum hf_status status;

    request.deadline_ns = try_until_ns(attempt);
    status = hf__slot_make(store, &request, attempt->bucket, &attempt->view, err);
    if (status != HF_OK)
        return status;
    while ((status = take_or_queue(attempt, grant, err)) == HF_STALE) {
        status = look_again(attempt, err);
        if (status != HF_OK)
            break;
    }
    if (status == HF_BUSY) {
        hf__queue_watch(attempt);
        status = say_busy(attempt, err);
    }
    hf__page_unlock(store, attempt->bucket);
    return status;
}

/* In the queue, a blocked page only means that nothing happens to the lock meanwhile. */
static struct hf__wait_step next_step(const struct file_attempt *attempt,
                                      struct hf__wait_queue *wait_queue, enum hf_status status)
{
    const struct hf__wait_answer answer = {.status = status, .look_ns = attempt->check_at_ns};

    struct hf__wait_step step;

    wait_queue->ours_until_ns = attempt->queued && attempt->bucket->blocked ? INT64_MAX : 0;
    step = hf__wait_queued(wait_queue, &answer, attempt->store->base.host->now_ns(),
                           (uint32_t)hf__hash64(&attempt->ticket, sizeof attempt->ticket, 0));
    if (step.next == HF__WAIT_SLEEP && attempt->check_at_ns == 0)
        step.until_ns = 0; /* at once: see hf__queue_watch */
    return step;
}

/* Tries those whose time has come. HF_BUSY: all of them sleep on. */
static enum hf_status try_due(struct file_attempt *attempts, size_t count,
                              struct hf__wait_queue *wait_queue, size_t *which,
                              struct hf_grant *grant, struct hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct file_attempt *attempt = &attempts[i];
        struct hf__wait_step step;
        enum hf_status status;

        if (attempt->until_ns != 0)
            continue;
        *which = i;
        status = try_queued(attempt, grant, err);
        step = next_step(attempt, wait_queue, status);
        if (step.next == HF__WAIT_RETURN)
            return hf__page_failed(attempt->store, attempt->bucket, status, err);
        attempt->until_ns = step.until_ns;
    }
    return HF_BUSY;
}

/* HF_BUSY with the wait over, or what ended it. */
static enum hf_status wait_for_one(struct file_attempt *attempts, size_t count, size_t *which,
                                   struct hf_grant *grant, struct hf_error *err)
{
    const struct hf_claim *claim = attempts->claim;
    struct hf__wait_queue wait_queue;

    hf__wait_queue_init(&wait_queue, claim->wait_until_ns);
    for (;;) {
        enum hf_status status = try_due(attempts, count, &wait_queue, which, grant, err);

        if (status != HF_BUSY || attempts->store->base.host->now_ns() >= claim->wait_until_ns)
            return status;
        if (!hf__queue_sleep(attempts, count)) {
            *which = 0;
            return hf__fail_lock(err, HF_CANCELLED, claim->name, attempts->store->shown,
                                 ": cancelled while waiting");
        }
    }
}

/* Queues that are not needed any more are left; what was handed to us there goes to the next. */
static enum hf_status wait_in_queues(struct file_attempt *attempts, size_t count, size_t *which,
                                     struct hf_grant *grant, struct hf_error *err)
{
    enum hf_status status = wait_for_one(attempts, count, which, grant, err);

    for (size_t i = 0; i < count; i++)
        if (status == HF_OK && i == *which && attempts[i].queued)
            hf__queue_won(&attempts[i]);
        else
            hf__queue_leave(&attempts[i]);
    return status;
}
