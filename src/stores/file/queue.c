/* queue.c - waiting in line.
 *
 * A waiter draws a ticket in the lock's slot and sleeps on a FIFO queue/HASH.TICKET of its own.
 * Whoever gives the lock up reserves it for the first ticket whose FIFO has a reader and writes a
 * byte into that FIFO before it unlocks the bucket; the waiter then takes the lock by itself. A
 * dead waiter has no reader (ENXIO) or no FIFO (ENOENT), and is passed over.
 *
 * Nobody relies on the byte alone. Each waiter also watches the FIFO of the one before it, by
 * holding it open for writing: it turns to POLLERR when that one is gone. The FIFO is kept while
 * its owner holds the lock, so that one release wakes one waiter and nobody else. The first in
 * line watches the holder's alive/ FIFO instead, and the holder's expiry. A slow poll backs it all.
 *
 * Who unlinks: a waiter its own FIFO when it leaves or releases; whoever passes over a dead
 * ticket, that one's; the sweep, the rest. A ticket may be drawn again after its waiter left, so
 * another's FIFO is unlinked only with the bucket locked.
 */
#include "stores/file/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_NEAR_NS (1 * HF__NS_PER_S) /* the slow poll of those near the head */
#define POLL_FAR_NS  (3 * HF__NS_PER_S) /* and of the others                    */
#define NEAR         16                 /* how many are near                    */
#define TRY_NS       (HF__NS_PER_S / 5) /* how long one in line tries to lock   */
#define BLOCKED_NS   (HF__NS_PER_S / 4) /* and how soon it tries again          */

struct waiter {
    uint64_t hash;
    uint64_t ticket;
    struct turn *turn;   /* our own FIFO                          */
    int watch_fd;        /* the one before us, or the holder; -1  */
    int64_t look_at_ns;  /* when to look without being woken      */
    int64_t patience_ns; /* how long a single look may take       */
    bool in_line;        /* the ticket was drawn                  */
    bool woken;          /* by its turn                           */
    bool blocked;        /* the last look found the bucket locked */
    uint32_t blocked_no; /* and this is its page                  */
};

/* Watches the holder, for nobody is before us. Looks again at once if there is none: whoever held
 * the lock, or had it reserved, died since we looked, and nobody is left to wake us. */
static void watch_holder(struct file_store *store, struct waiter *waiter, const struct slot *slot,
                         int64_t now_ns)
{
    int fd = -1;

    if (slot->expires_ns <= now_ns) {
        waiter->look_at_ns = 0;
        return;
    }
    if (slot->expires_ns < waiter->look_at_ns)
        waiter->look_at_ns = slot->expires_ns;
    if (slot->client == 0)
        return;
    fd = hf__life_watch(store, slot->client);
    waiter->watch_fd = fd >= 0 ? fd : -1;
    if (fd == -1)
        waiter->look_at_ns = 0;
}

/* Chooses what to watch, with the bucket locked: the next live ticket before ours, else the holder.
 */
static void choose_watch(struct file_store *store, struct waiter *waiter, const struct slot *slot)
{
    int64_t now_ns = store->base.host->now_ns();
    uint64_t ahead = waiter->ticket - slot->head;
    uint64_t before = waiter->ticket;
    int64_t poll_ns = ahead <= NEAR ? POLL_NEAR_NS : POLL_FAR_NS;

    /* Waiters that came together must not look together. */
    waiter->look_at_ns =
        now_ns + poll_ns + (int64_t)(hf__hash64(&before, sizeof before, 0) % (uint64_t)poll_ns);
    waiter->watch_fd = -1;
    while (before > slot->head) {
        int fd = hf__ticket_open(store, waiter->hash, --before, true);

        if (fd != -1) {
            waiter->watch_fd = fd >= 0 ? fd : -1;
            return;
        }
    }
    watch_holder(store, waiter, slot, now_ns);
}

static void unwatch(struct waiter *waiter)
{
    if (waiter->watch_fd >= 0)
        (void)close(waiter->watch_fd);
    waiter->watch_fd = -1;
}

/* Draws a ticket, with the bucket locked. */
static enum hf_status draw(struct file_store *store, struct waiter *waiter, struct bucket *bucket,
                           struct slot *slot, struct hf_error *err)
{
    char name[FIFO_NAME_SIZE];
    enum hf_status status;

    if (waiter->in_line) {
        /* Passed over: those behind us must not go on watching us. */
        hf__turn_drop(store, waiter->turn);
        waiter->turn = hf__turn_new(store);
        waiter->in_line = false;
    }
    if (waiter->turn == NULL)
        return hf__nomem(err);
    if (slot->tail - slot->head >= TICKETS_MAX)
        return hf__fail(err, HF_UNREACHABLE,
                        "store file:%s: too many came to wait for lock \"%.60s\": try again later",
                        store->shown, slot->name);
    waiter->ticket = slot->tail;
    hf__ticket_name(name, waiter->hash, waiter->ticket);
    if (!hf__turn_place(store, waiter->turn, name))
        return hf__fail(err, HF_UNREACHABLE, "store file:%s: cannot wait for lock \"%.60s\": %s",
                        store->shown, slot->name, strerror(errno));
    slot->tail++;
    status = hf__bucket_write(store, bucket, slot, err);
    if (status == HF_OK) {
        waiter->in_line = true;
    } else {
        /* The ticket is the next one's too: our FIFO goes before the bucket is unlocked. */
        hf__turn_drop(store, waiter->turn);
        waiter->turn = NULL;
    }
    return status;
}

/* Until when a look may try to lock the bucket. Who is in line comes back and so tries only for a
 * moment, unless its turn waits to be taken or its wait is about to end. */
static int64_t try_until_ns(struct file_store *store, const struct waiter *waiter,
                            const struct hf_claim *claim)
{
    int64_t now_ns = store->base.host->now_ns();
    bool brief = waiter->in_line && !waiter->woken && waiter->patience_ns > TRY_NS &&
                 hf__time_add(now_ns, TRY_NS) < claim->wait_until_ns;

    return now_ns + (brief ? TRY_NS : waiter->patience_ns);
}

/* Nothing can be seen, and so nothing watched. */
static void wait_blocked(struct file_store *store, struct waiter *waiter, uint32_t page_no)
{
    uint64_t spread = hf__hash64(&waiter->ticket, sizeof waiter->ticket, 0);

    waiter->blocked_no = page_no;
    waiter->look_at_ns =
        store->base.host->now_ns() + BLOCKED_NS + (int64_t)(spread % (uint64_t)BLOCKED_NS);
}

/* Looks once: takes the lock if it is our turn, else makes sure we are in line. HF_BUSY: wait on.
 */
static enum hf_status look(struct file_store *store, struct waiter *waiter,
                           const struct hf_claim *claim, struct hf_grant *grant,
                           struct hf_error *err)
{
    struct hf_claim request = *claim;
    struct bucket bucket;
    struct slot *slot;
    enum look seen;
    bool in_line;
    enum hf_status status;

    request.deadline_ns = try_until_ns(store, waiter, claim);
    status = hf__take_slot(store, &request, &bucket, &slot, err);
    waiter->blocked = bucket.blocked;
    if (bucket.blocked)
        wait_blocked(store, waiter, bucket.page_no);
    if (status != HF_OK)
        return status;
    /* A stopped waiter may have been passed over, or its lock may even have lost its slot. */
    in_line = waiter->in_line && waiter->ticket >= slot->head && waiter->ticket < slot->tail;
    status = hf__take_look(store, &bucket, slot, &request, in_line ? waiter->ticket : 0, &seen,
                           grant, err);
    if (status == HF_OK && seen != LOOK_TAKEN) {
        in_line = in_line && waiter->ticket >= slot->head;
        if (!in_line)
            status = draw(store, waiter, &bucket, slot, err);
        if (status == HF_OK) {
            choose_watch(store, waiter, slot);
            status = hf__busy(store, slot, claim->name, store->base.host->now_ns(), err);
        }
    }
    hf__bucket_unlock(store, &bucket);
    return status;
}

/* Leaves the line; a turn that came at this very moment is passed on. */
static void leave(struct file_store *store, struct waiter *waiter, const struct hf_claim *claim)
{
    int64_t now_ns = store->base.host->now_ns();
    struct bucket bucket;
    struct slot *slot;
    bool locked =
        waiter->in_line &&
        hf__bucket_lock(store, waiter->hash, now_ns + waiter->patience_ns, &bucket, NULL) == HF_OK;

    if (waiter->turn != NULL)
        hf__turn_drop(store, waiter->turn);
    if (!locked)
        return;
    slot = hf__bucket_find(&bucket, waiter->hash, claim->name);
    if (slot != NULL && slot->head == waiter->ticket && slot->claim_ns != 0) {
        slot->head++;
        (void)hf__ticket_trim(store, slot);
        (void)hf__ticket_pass(store, &bucket, slot, now_ns, NULL);
    } else if (slot != NULL && hf__ticket_trim(store, slot)) {
        (void)hf__bucket_write(store, &bucket, slot, NULL);
    }
    hf__bucket_unlock(store, &bucket);
}

/* Sleeps until something happens. Returns true if the caller cancelled. */
static bool sleep_in_line(struct file_store *store, struct waiter *waiter,
                          const struct hf_claim *claim)
{
    assert(waiter->turn != NULL); /* who is in line has one */
    struct pollfd fds[3] = {{.fd = waiter->turn->fd, .events = POLLIN},
                            {.fd = waiter->watch_fd, .events = 0},
                            {.fd = claim->cancel_fd, .events = POLLIN}};
    int64_t until_ns = waiter->look_at_ns;
    char bytes[8];

    if (claim->wait_until_ns < until_ns)
        until_ns = claim->wait_until_ns;
    (void)hf__poll_until(fds, 3, until_ns);
    waiter->woken = fds[0].revents != 0;
    (void)!read(waiter->turn->fd, bytes, sizeof bytes);
    store->base.host->log("waiter %llu of \"%s\" is woken by %s",
                          (unsigned long long)waiter->ticket, claim->name,
                          fds[0].revents != 0   ? "its turn"
                          : fds[1].revents != 0 ? "the one before"
                          : fds[2].revents != 0 ? "its caller"
                                                : "the clock");
    return fds[2].revents != 0;
}

/* In line, a blocked bucket only means that nothing happens to the lock meanwhile. */
static bool goes_on(const struct waiter *waiter, enum hf_status status)
{
    return status == HF_BUSY || (status == HF_UNREACHABLE && waiter->in_line && waiter->blocked);
}

enum hf_status hf__queue_wait(struct file_store *store, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err)
{
    struct waiter waiter = {
        .hash = hf__name_hash(claim->name), .turn = hf__turn_new(store), .watch_fd = -1};
    enum hf_status status;

    waiter.patience_ns = claim->deadline_ns - store->base.host->now_ns();
    while (goes_on(&waiter, status = look(store, &waiter, claim, grant, err)) &&
           store->base.host->now_ns() < claim->wait_until_ns) {
        bool cancelled = sleep_in_line(store, &waiter, claim);

        unwatch(&waiter);
        if (cancelled) {
            waiter.blocked = false;
            status = hf__fail(err, HF_CANCELLED, "waiting for lock \"%.60s\" was cancelled",
                              claim->name);
            break;
        }
    }
    unwatch(&waiter);
    if (waiter.blocked)
        status = hf__guard_explain(store, waiter.blocked_no, err);
    /* While we hold the lock the FIFO stays, for the next in line to watch. */
    if (status == HF_OK && waiter.in_line)
        hf__turn_keep(store, waiter.turn, claim->owner);
    else
        leave(store, &waiter, claim);
    return status;
}
