/* queue.c - those who wait for one lock, in order.
 *
 * A waiter draws a ticket in the lock's slot and sleeps on a FIFO queue/HASH.TICKET of its own.
 * Whoever gives the lock up reserves it for the first ticket whose FIFO has a reader and writes a
 * byte into that FIFO before it unlocks the page; the waiter then takes the lock by itself. A
 * dead waiter has no reader (ENXIO) or no FIFO (ENOENT), and is passed over.
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
#include "stores/file/ticket.h"

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

/* Watches the holder, for nobody is before us. Checks again at once if there is none: whoever held
 * the lock, or had it reserved, died since we checked, and nobody is left to wake us. */
static void watch_holder(struct file_attempt *attempt, int64_t now_ns)
{
    const struct slot *slot = attempt->slot;
    int fd = -1;

    if (slot->expires_ns <= now_ns) {
        attempt->check_at_ns = 0;
        return;
    }
    if (slot->expires_ns < attempt->check_at_ns)
        attempt->check_at_ns = slot->expires_ns;
    if (slot->client == 0)
        return;
    fd = hf__life_watch(attempt->store, slot->client);
    attempt->watch_fd = fd >= 0 ? fd : -1;
    if (fd == -1)
        attempt->check_at_ns = 0;
}

void hf__queue_watch(struct file_attempt *attempt)
{
    const struct slot *slot = attempt->slot;
    int64_t now_ns = attempt->store->base.host->now_ns();
    uint64_t ahead = attempt->ticket - slot->head;
    uint64_t before = attempt->ticket;
    int64_t poll_ns = ahead <= NEAR ? POLL_NEAR_NS : POLL_FAR_NS;

    /* Waiters that came together must not check together. */
    attempt->check_at_ns =
        now_ns + poll_ns + (int64_t)(hf__hash64(&before, sizeof before, 0) % (uint64_t)poll_ns);
    while (before > slot->head) {
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

enum hf_status hf__queue_draw(struct file_attempt *attempt, struct hf_error *err)
{
    struct file_store *store = attempt->store;
    struct slot *slot = attempt->slot;
    char name[FIFO_NAME_SIZE];
    enum hf_status status;

    if (attempt->queued) {
        /* Passed over: those behind us must not go on watching us. */
        hf__fifo_drop(store, attempt->fifo);
        attempt->fifo = NULL;
        attempt->queued = false;
    }
    if (attempt->fifo == NULL && (attempt->fifo = hf__fifo_new(store)) == NULL)
        return hf__nomem(err);
    if (slot->tail - slot->head >= TICKETS_MAX)
        return refuse(attempt, "too many are waiting; try again later", err);
    attempt->ticket = slot->tail;
    hf__ticket_name(name, attempt->hash, attempt->ticket);
    if (!hf__fifo_place(store, attempt->fifo, name))
        return refuse(attempt, strerror(errno), err);
    slot->tail++;
    status = hf__page_write(store, attempt->bucket, slot, err);
    if (status == HF_OK) {
        attempt->queued = true;
    } else {
        /* The ticket is the next one's too: our FIFO goes before the page is unlocked. */
        hf__fifo_drop(store, attempt->fifo);
        attempt->fifo = NULL;
    }
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
        assert(attempts[i].fifo != NULL); /* who is queued has one */
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

enum hf_status hf__queue_pass(struct file_store *store, struct bucket *bucket, struct slot *slot,
                              int64_t now_ns, struct hf_error *err)
{
    enum hf_status status;
    int fd = -1;

    slot->claim_ns = 0;
    if (slot->head != slot->tail) {
        slot->head = hf__ticket_first_live(store, slot, &fd);
        if (slot->head != slot->tail)
            slot->claim_ns = hf__time_add(now_ns, CLAIM_NS);
    }
    status = hf__page_write(store, bucket, slot, err);
    if (fd >= 0) {
        if (status == HF_OK)
            hf__fifo_wake(fd);
        (void)close(fd);
    }
    return status;
}

void hf__queue_leave(struct file_attempt *attempt)
{
    struct file_store *store = attempt->store;
    int64_t now_ns = store->base.host->now_ns();
    bool locked =
        attempt->queued && hf__page_lock(store, attempt->hash, now_ns + attempt->patience_ns,
                                         attempt->bucket, NULL) == HF_OK;
    struct slot *slot;

    unwatch(attempt);
    if (attempt->fifo != NULL)
        hf__fifo_drop(store, attempt->fifo);
    attempt->fifo = NULL;
    if (!locked)
        return;
    slot = hf__slot_find(attempt->bucket, attempt->hash, attempt->claim->name);
    if (slot != NULL && slot->head == attempt->ticket && slot->claim_ns != 0) {
        slot->head++;
        (void)hf__ticket_trim(store, slot);
        (void)hf__queue_pass(store, attempt->bucket, slot, now_ns, NULL);
    } else if (slot != NULL && hf__ticket_trim(store, slot)) {
        (void)hf__page_write(store, attempt->bucket, slot, NULL);
    }
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
