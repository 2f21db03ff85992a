/* queue.c - those who wait for one lock, in order.
 *
 * A waiter draws a ticket in the lock's slot and sleeps on a FIFO queue/HASH.TICKET of its own.
 * Whoever gives the lock up finds the first ticket whose FIFO has a reader, writes a byte into that
 * FIFO, and reserves the lock for it before the page is unlocked; the waiter then takes it by
 * itself. A dead waiter has no reader (ENXIO) or no FIFO (ENOENT), and is passed over.
 *
 * Nobody relies on the byte alone. Each waiter also watches the FIFO of the one before it, by
 * holding it open for writing: it turns to POLLERR when that one is gone. The FIFO is kept while
 * its owner holds the lock, so that one release wakes one waiter and nobody else. The first in
 * the queue watches the holder's alive/ FIFO instead, and the holder's expiry. A slow poll backs
 * it all.
 *
 * Who unlinks: a waiter its own FIFO when it leaves or releases; whoever passes over a dead
 * ticket, that one's; the sweep, the rest. A ticket may be drawn again after its waiter left, so
 * another's FIFO is unlinked only with the page locked. */
#include "stores/file/queue.h"
#include "base/base.h"
#include "base/patience.h"
#include "stores/file/fifo.h"
#include "stores/file/life.h"
#include "stores/file/slot.h"
#include "stores/file/step.h"
#include "stores/file/ticket.h"
#include "stores/file/word.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLAIM_NS     HF__NS_PER_S       /* how long a hand-over waits for its waiter */
#define POLL_NEAR_NS (1 * HF__NS_PER_S) /* the slow poll of those near the head */
#define POLL_FAR_NS  (3 * HF__NS_PER_S) /* and of the others */
#define NEAR         16                 /* how many are near */

_Static_assert(2 * HF_SEVERAL_MAX <= HF__PATIENCE_FDS_MAX, "one poll for all queues of a waiter");

/* Watches the holder, because nobody is before us. Checks again at once if there is none: whoever
 * held the lock, or had it reserved, died since we checked, and nobody is left to wake us. */
static void watch_holder(struct file_attempt *attempt, int64_t now_ns)
{
    const struct view *view = &attempt->view;
    int fd = -1;

    if (view->expires_ns <= now_ns) {
        attempt->check_at_ns = 0;
        return;
    }
    if (view->expires_ns < attempt->check_at_ns)
        attempt->check_at_ns = view->expires_ns;
    if (view->details.client == 0)
        return;
    fd = hf__life_watch(attempt->store, view->details.client);
    attempt->watch_fd = fd >= 0 ? fd : -1;
    if (fd == -1)
        attempt->check_at_ns = 0;
}

void hf__queue_watch(struct file_attempt *attempt)
{
    const struct view *view = &attempt->view;
    int64_t now_ns = attempt->store->base.host->now_ns();
    uint64_t ahead = attempt->ticket - view->head;
    uint64_t before = attempt->ticket;
    int64_t poll_ns = ahead <= NEAR ? POLL_NEAR_NS : POLL_FAR_NS;

    /* Waiters that came together must not check together. */
    attempt->check_at_ns =
        now_ns + poll_ns + (int64_t)(hf__hash64(&before, sizeof before, 0) % (uint64_t)poll_ns);
    while (before > view->head) {
        int fd = hf__ticket_open(attempt->store, attempt->hash, --before, true);

        if (fd != -1) {
            attempt->watch_fd = fd >= 0 ? fd : -1;
            return;
        }
    }
    watch_holder(attempt, now_ns);
}

static void unwatch(struct file_attempt *attempt)
{
    if (attempt->watch_fd >= 0)
        (void)close(attempt->watch_fd);
    attempt->watch_fd = -1;
}

static enum hf_status refuse(const struct file_attempt *attempt, const char *why,
                             struct hf_error *err)
{
    return hf__fail_lock(err, HF_UNREACHABLE, attempt->claim->name, attempt->store->shown,
                         ": cannot wait: %s", why);
}

/* Passed over: those behind us must not go on watching us. */
static void drop_ticket(struct file_attempt *attempt)
{
    hf__fifo_drop(attempt->store, attempt->fifo);
    attempt->fifo = NULL;
    attempt->queued = false;
}

enum hf_status hf__queue_draw(struct file_attempt *attempt, struct hf_error *err)
{
    struct file_store *store = attempt->store;
    struct view *view = &attempt->view;
    char name[FIFO_NAME_SIZE];
    enum hf_status status;

    if (attempt->queued)
        drop_ticket(attempt);
    if (attempt->fifo == NULL && (attempt->fifo = hf__fifo_new(store)) == NULL)
        return hf__nomem(err);
    if (view->tail - view->head >= TICKETS_MAX)
        return refuse(attempt, "too many are waiting; try again later", err);
    attempt->ticket = view->tail;
    hf__ticket_name(name, attempt->hash, attempt->ticket);
    if (!hf__fifo_place(store, attempt->fifo, name))
        return refuse(attempt, strerror(errno), err);
    HF__STEP(wait_fifo);
    status = hf__slot_set_queue(store, view, view->head, view->tail + 1, err);
    HF__STEP(wait_tail);
    if (status == HF_OK)
        attempt->queued = true;
    else
        drop_ticket(attempt); /* the next one's too: it goes before the page is unlocked */
    return status;
}

enum hf_status hf__queue_tell(struct file_attempt *attempt, struct hf_error *err)
{
    struct view *view = &attempt->view;
    enum hf_status status = HF_OK;

    if (!hf__word_is(view->word, WORD_WAITED))
        status = hf__slot_swap(attempt->store, view, hf__word_with(view->word, WORD_WAITED), err);
    HF__STEP(wait_told);
    return status;
}

/* What poll found out about one of them. */
static void wake_up(struct file_attempt *attempt, const struct pollfd fds[2], bool cancelled)
{
    bool in_time = attempt->until_ns > attempt->store->base.host->now_ns();
    char bytes[8];

    attempt->woken = fds[0].revents != 0;
    if (in_time && !cancelled && !attempt->woken && fds[1].revents == 0)
        return; /* it is another's turn */
    (void)!read(attempt->fifo->fd, bytes, sizeof bytes);
    attempt->store->base.host->log("waiter %llu of \"%s\" is woken by %s",
                                   (unsigned long long)attempt->ticket, attempt->claim->name,
                                   cancelled             ? "its caller"
                                   : attempt->woken      ? "a hand-over"
                                   : fds[1].revents != 0 ? "the one before"
                                                         : "the clock");
    unwatch(attempt);
    attempt->until_ns = 0;
}

bool hf__queue_sleep(struct file_attempt *attempts, size_t count)
{
    struct hf__patience patience = {.deadline_ns = HF_NEVER,
                                    .cancel_fd = attempts->claim->cancel_fd};
    struct pollfd fds[2 * HF_SEVERAL_MAX];
    bool cancelled;

    assert(count <= HF_SEVERAL_MAX);
    for (size_t i = 0; i < count; i++) {
        assert(attempts[i].fifo != NULL); /* whoever is queued has one */
        patience = hf__patience_until(&patience, attempts[i].until_ns);
        fds[2 * i] = (struct pollfd){.fd = attempts[i].fifo->fd, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = attempts[i].watch_fd, .events = 0};
    }
    cancelled = hf__patience_poll(&patience, fds, 2 * count) == HF__WAITED_CANCELLED;
    for (size_t i = 0; i < count; i++)
        wake_up(&attempts[i], fds + 2 * i, cancelled);
    return !cancelled;
}

void hf__queue_won(struct file_attempt *attempt)
{
    unwatch(attempt);
    hf__fifo_keep(attempt->store, attempt->fifo, attempt->claim->owner);
    attempt->fifo = NULL;
}

enum hf_status hf__queue_pass(struct file_store *store, struct view *view, struct hf_error *err)
{
    int64_t until_ns = hf__time_add(store->base.host->now_ns(), CLAIM_NS);
    struct hf__pair to = {view->token, 0};
    uint64_t head = view->head;
    enum hf_status status;
    int fd = -1;

    if (head != view->tail)
        head = hf__ticket_first_live(store, view, &fd);
    status = hf__slot_set_queue(store, view, head, view->tail, err);
    HF__STEP(pass_head);
    if (head != view->tail)
        to.high = hf__word_state(until_ns, DETAILS_SLOT, WORD_RESERVED | WORD_WAITED);
    /* Before the swap: a process that dies between the two has woken a waiter in vain, which cannot
     * look before the page is unlocked. The other way round nobody would be woken. */
    if (status == HF_OK && fd >= 0)
        hf__fifo_wake(fd);
    HF__STEP(pass_woken);
    if (status == HF_OK)
        status = hf__slot_swap(store, view, to, err);
    HF__STEP(pass_swapped);
    if (status == HF_OK) {
        view->expires_ns = 0;
        view->reserved_until_ns = hf__word_expiry_ns(to);
        memset(&view->details, 0, sizeof view->details);
    }
    if (fd >= 0)
        (void)close(fd);
    return status;
}

/* Leaves the queue; what was handed to us at this very moment goes on to the next. */
static enum hf_status step_out(struct file_attempt *attempt)
{
    struct file_store *store = attempt->store;
    struct view *view;
    uint64_t head, tail;
    bool ours;
    enum hf_status status =
        hf__slot_see(store, attempt->bucket, attempt->claim->name, &attempt->view, &view, NULL);

    if (status != HF_OK || view == NULL)
        return status;
    ours = view->head == attempt->ticket && view->reserved_until_ns != 0;
    tail = hf__ticket_trim(store, view);
    head = view->head + (ours && view->head < tail);
    status = hf__slot_set_queue(store, view, head, tail, NULL);
    HF__STEP(leave_queue);
    return status == HF_OK && ours ? hf__queue_pass(store, view, NULL) : status;
}

void hf__queue_leave(struct file_attempt *attempt)
{
    struct file_store *store = attempt->store;
    int64_t until_ns = store->base.host->now_ns() + attempt->patience_ns;
    bool locked = attempt->queued &&
                  hf__page_lock(store, attempt->hash, until_ns, attempt->bucket, NULL) == HF_OK;

    unwatch(attempt);
    if (attempt->fifo != NULL)
        hf__fifo_drop(store, attempt->fifo);
    attempt->fifo = NULL;
    if (!locked)
        return;
    while (step_out(attempt) == HF_STALE)
        continue;
    hf__page_unlock(store, attempt->bucket);
}

void hf__queue_sweep(struct file_store *store, const char *name)
{
    struct bucket bucket;
    uint64_t hash;
    uint64_t ticket;
    int fd;

    if (sscanf(name, "queue/%16" SCNx64 ".%" SCNu64, &hash, &ticket) != 2 ||
        hf__page_lock(store, hash, 0, &bucket, NULL) != HF_OK)
        return;
    fd = hf__ticket_open(store, hash, ticket, true);
    if (fd >= 0)
        (void)close(fd);
    hf__page_unlock(store, &bucket);
}
