/* queue.h - those who wait for one lock, in order. */
#ifndef HF_STORES_FILE_QUEUE_H
#define HF_STORES_FILE_QUEUE_H

#include "stores/file/page.h"
#include "stores/file/view.h"

/* One try to take a lock, with one owner; it may wait in the queue, beside others of one call. */
struct file_attempt {
    struct file_store *store;
    const struct hf_claim *claim;
    uint64_t hash;
    int64_t patience_ns;   /* how long a single request may take */
    struct bucket *bucket; /* where its page is read to; shared by the attempts of one call */
    struct view view;      /* while the bucket is locked */
    bool queued;           /* the ticket was drawn */
    bool woken;            /* by whoever gave the lock up */
    uint64_t ticket;
    struct fifo *fifo;   /* our own */
    int watch_fd;        /* the one before us, or the holder; -1: nobody */
    int64_t check_at_ns; /* when to check without being woken */
    int64_t until_ns;    /* when to try again, at the latest */
};

/* Draws a ticket, with the page locked. One that was drawn before is given up. */
enum hf_status hf__queue_draw(struct file_attempt *attempt, struct hf_error *err);
/* Tells the hold that was seen that somebody waits, with the page locked and the ticket drawn:
 * whoever releases it from now on hands it over. HF_STALE: it is another one by now, or gone. */
enum hf_status hf__queue_tell(struct file_attempt *attempt, struct hf_error *err);
/* Chooses what to watch and check_at_ns, with the page locked: the next live ticket before ours,
 * else the holder. */
void hf__queue_watch(struct file_attempt *attempt);
/* Sleeps until something happens to one of them, until_ns of the first at the latest; those that
 * are to try again then have an until_ns of 0. False: the caller cancelled. */
bool hf__queue_sleep(struct file_attempt *attempts, size_t count);
/* The lock is ours: while we hold it the FIFO stays, for the next in the queue to watch. */
void hf__queue_won(struct file_attempt *attempt);
/* Leaves the queue; a lock that was handed to us at this very moment is passed on. */
void hf__queue_leave(struct file_attempt *attempt);

/* Ends what was seen: after a release, a leave or a lapse. Reserves the lock for the first live
 * waiter from view->head on and wakes it; without one the lock is free. The page is locked.
 * HF_STALE: it is not what was seen any more. */
enum hf_status hf__queue_pass(struct file_store *store, struct view *view, struct hf_error *err);
/* Removes the FIFO queue/HASH.TICKET if its waiter is dead; leaves it if the page is in use. */
void hf__queue_sweep(struct file_store *store, const char *name);

#endif /* HF_STORES_FILE_QUEUE_H */
