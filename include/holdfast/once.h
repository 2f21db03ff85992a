/* holdfast/once.h - work that should succeed once, or once per period, on any number of machines.
 *
 * What `holdfast once` does for a command, for a program that does the work itself. Rules and
 * records are the same: a job that one began and the other finds is the same job.
 *
 * The lock is key. Beside it the store keeps a record of each slot: of each day, hour or week of a
 * period, or of the single slot "ever" if there is none. The record says who is working on it, or
 * how it ended. A turn looks at it, takes the lock, looks again, writes that the work is being
 * done, and in the end what became of it. So keep beginning turns until there is nothing left to
 * do:
 *
 *     struct hf_once_options options = {
 *         .size = sizeof options, .per_ms = 86400000, .at = "03:00", .tz = "Europe/Berlin",
 *         .retries = 2, .wait_ms = -1};
 *
 *     status = hf_once_open(store, "report", &options, &once, &err);
 *     while (status == HF_OK && (status = hf_once_begin(once, &err)) == HF_OK &&
 *            hf_once_outcome(once) == HF_ONCE_RUN) {
 *         bool good = report(hf_once_slot(once), hf_once_lease(once));
 *
 *         status = hf_once_end(once, good ? HF_ONCE_END_SUCCESS : HF_ONCE_END_FAILURE, !good,
 *                              NULL, 0, &err);
 *     }
 *     puts(status == HF_OK ? hf_once_text(once) : err.text);
 *     hf_once_close(once);
 *
 * A process may die after the work is done and before that is on record; no lock store can close
 * this gap. Without hold_crashed the work is then done again (at least once), with it a person has
 * to say what happened (at most once). holdfast-once(1) has a table of that.
 */
#ifndef HOLDFAST_ONCE_H
#define HOLDFAST_ONCE_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HF_ONCE_OUTPUT_MAX = 32768 }; /* bytes of output that are kept: the last ones */

/* One slot of a key as a program means it, over all of its turns. For one thread at a time. */
struct hf_once;

struct hf_once_options {
    size_t size; /* sizeof(struct hf_once_options) */
    /* Which slot. All who use the key must have the same per_ms, at and tz. */
    int64_t per_ms; /* whole days, or whole seconds that divide a day; 0: only once */
    const char *at; /* "03:00": when a period of whole days begins; NULL: "00:00" */
    const char *tz; /* "Europe/Berlin": the zone of at, from the system's database; NULL: "UTC" */
    /* From this long before a slot on, it is the one meant; 0: a quarter of the period, at most 15
     * min; < 0: none. At most half a period. */
    int64_t slack_ms;
    int64_t start_by_ms; /* begin no later than this after the slot began; 0: one period */
    /* How long an outcome is kept; 0: 30 days, but at least 30 and at most 1000 periods; without a
     * period for ever. Longer than start_by_ms and slack_ms together. */
    int64_t keep_ms;
    /* If it fails. */
    int64_t retry_after_ms; /* how long after a failure the next attempt is due */
    uint32_t retries;       /* how many more attempts, on any machine */
    bool hold_crashed;      /* a run that began and never ended is held until a person clears it */
    /* The lock: as in hf_acquire_options. */
    uint32_t ttl_ms;
    int cancel_fd; /* 0: none; else hf_once_begin stops waiting when it becomes readable */
    /* For the store, the lock and the next attempt together, counted from hf_once_open, all turns
     * together. 0: do not wait; < 0: without limit, which is what a job on several machines wants:
     * one of them must be there when another crashes. */
    int64_t wait_ms;
    const char *label;         /* what people see, also on record; NULL: host/pid/program */
    hf_lost_fn *on_lost;       /* must not release or leave the lease */
    hf_renewed_fn *on_renewed; /* the same */
    hf_trouble_fn *on_trouble; /* the store does not answer, and the wait goes on */
    void *data;                /* handed to all callbacks */
    /* How long before hf_once_open the work was asked for: what was spent in hf_open_waiting, for
     * instance. That moment decides about the slot, and the wait counts from it. */
    int64_t ago_ms;
};

/* hf_once_open - say which work is meant, and until when to wait for it.
 *
 * key: a lock's name. options: NULL means all defaults: only once, no waiting. Asks the store
 * nothing; the moment of the call (less ago_ms) is what decides about the slot, by the store's
 * clock, and it stays the same in all turns, however long they wait.
 *
 * The caller owns *out and ends it with hf_once_close, before or after hf_close of the store.
 *
 * HF_OK
 * HF_INVALID      a bad key, ttl or option: no such period, time of the day or time zone; the text
 *                 says which. A store that was opened read-only, or is closed; a forked child
 * HF_UNSUPPORTED  this kind of store keeps no records
 * HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_once_open(struct hf_store *store, const char *key,
                                                 const struct hf_once_options *options,
                                                 struct hf_once **out, struct hf_error *err);

/* What is known about the slot. */
enum hf_once_outcome {
    HF_ONCE_OPEN = 0, /* nothing is settled: hf_once_begin goes on */
    HF_ONCE_RUN,      /* it is ours, now: do the work, then hf_once_end */
    HF_ONCE_DONE,     /* the work has succeeded */
    HF_ONCE_FAILED,   /* it has failed for good, or was given up here */
    HF_ONCE_LATE,     /* it was not begun in time (start_by_ms) */
    HF_ONCE_HELD      /* a run began and never ended: until `holdfast once --clear` */
};

/* hf_once_begin - begin a turn: the work is ours to do, or settled.
 *
 * Looks at the record; takes the lock, waiting in the queue while another has it; looks again;
 * writes that it is being done. After a failure it first sleeps until the next attempt is due,
 * without the lock: as long as that takes if the failure was ours, else as long as the wait lasts.
 * It waits out what hf_acquire waits out: a store that is down, does not answer, or is in
 * quarantine. A turn whose lock is lost before the work begins is begun again while there is time
 * to wait.
 *
 * With HF_OK hf_once_outcome tells which it is, and never says HF_ONCE_OPEN. What is settled stays
 * settled: another call returns the same, and asks the store nothing. After anything else it may be
 * called again, and means the same slot.
 *
 * HF_OK           HF_ONCE_RUN, or it is settled. If err has a text all the same, that is a warning
 *                 worth showing: the store may lose the record (as hf_record_put has it), or the
 *                 slot was asked for so close to the edge of its slack that machines may differ
 * HF_BUSY         another is working on it, or the next attempt is not due, and the wait is over;
 *                 the text says who or when
 * HF_CANCELLED    cancel_fd became readable
 * HF_LOST         the lock was lost before the work could begin, and the wait is over
 * HF_INVALID      other settings than ours are on record for key; a turn is under way; a forked
 *                 child; the store was closed
 * HF_CORRUPT      a record makes no sense, or is of a newer holdfast
 * HF_UNREACHABLE, HF_UNKNOWN, HF_QUARANTINE   the store was in trouble until the wait was over.
 *                 After HF_UNKNOWN *running* may be on record: whoever comes next takes that for a
 *                 crash, but not this handle
 * HF_DENIED, HF_UNSUPPORTED, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_once_begin(struct hf_once *once, struct hf_error *err);

/* How a turn ends. */
enum hf_once_ending {
    HF_ONCE_END_SUCCESS = 1, /* never again in this slot */
    HF_ONCE_END_FAILURE,     /* the work failed; another attempt if retries allow it */
    /* It was begun and cut off for a reason that says nothing about the work: we are told to end,
     * for instance. No failure; with hold_crashed the slot is held. Nobody waits for retry_after_ms
     * after it. */
    HF_ONCE_END_CUT_OFF,
    HF_ONCE_END_NOT_STARTED /* nothing was done: not a failure, and never held. Likewise */
};

/* hf_once_end - end the turn: put what became of it on record, and give the lock back.
 *
 * code: an exit code for people to see, 1 or the like; with HF_ONCE_END_SUCCESS it is 0 whatever is
 * given. output: the last HF_ONCE_OUTPUT_MAX bytes of it are kept with the record; any bytes; may
 * be NULL if output_len is 0. A failure under a lock that was broken counts as cut off.
 *
 * A write that is not answered is sent again while the lease lasts, and for its ttl at most; the
 * keeper keeps renewing. The turn is over whatever is returned (but HF_INVALID), and the lock is
 * given back as well as can be. hf_once_outcome tells what that means for this handle: after
 * HF_ONCE_END_SUCCESS it is HF_ONCE_DONE, whatever is returned; after a failure with retries left,
 * and after one that could not be put on record because the lock was lost, HF_ONCE_OPEN: begin
 * again, in the queue; else HF_ONCE_FAILED, or HF_ONCE_HELD.
 *
 * HF_OK           it is on record. If err has a text all the same, that is a warning: as with
 *                 hf_record_put, or the lock could not be given back and is free when its ttl ends
 * HF_LOST         the lock was not held any more: nothing was written, neither now nor later. On
 *                 record is *running*, or what another one has written since. If the work was done,
 *                 it may be done again, or is being done again
 * HF_UNKNOWN      no answer to the end of the lease: it may be on record. If it is not, the work
 *                 may be done again. hf_record_get, or `holdfast once --show`, tells
 * HF_UNREACHABLE, HF_DENIED, HF_CORRUPT, HF_NOMEM   nothing was written: on record is *running*,
 *                 which whoever comes next takes for a crash
 * HF_INVALID      no turn is under way, no such ending, a forked child: nothing was done */
HF_API HF_MUST_CHECK enum hf_status hf_once_end(struct hf_once *once, enum hf_once_ending ending,
                                                uint32_t code, const void *output,
                                                size_t output_len, struct hf_error *err);

/* hf_once_close - free the handle; takes NULL.
 *
 * A turn that is under way is given up. To whoever comes next that looks like a crash: *running*
 * stays on record. But nobody waits for the ttl: the lock is released. */
HF_API void hf_once_close(struct hf_once *once);

/* The rest never blocks and asks the store nothing. What it points to lives until the next call of
 * hf_once_begin, hf_once_end or hf_once_close. */

HF_API enum hf_once_outcome hf_once_outcome(const struct hf_once *once);

/* "2026-11-17", "2026-11-17T03:00Z", "ever"; "" before the store has told its clock. Names what
 * belongs to that night: a late run still knows which one it is. */
HF_API const char *hf_once_slot(const struct hf_once *once);

/* The lease while it is ours (HF_ONCE_RUN), else NULL: for its token, its remaining time, its
 * descriptor, and records of one's own (not "once", "once:..."). Must not be released or left. */
HF_API struct hf_lease *hf_once_lease(const struct hf_once *once);

/* What is on record about the slot, as the handle saw or wrote it last. After a wait, somebody else
 * may be working on it by now. */
struct hf_once_record {
    size_t size;        /* of the struct as the library knows it */
    const char *state;  /* "running", "done", "failed", "too-late", "held", "cleared" */
    const char *by;     /* a label; "" if not known */
    uint64_t token;     /* of the hold under which that run was, or is, done */
    int64_t since_ms;   /* it began, by the store's clock, since 1970; < 0: not known */
    int64_t took_ms;    /* < 0: not known, or not over */
    uint64_t code;      /* its exit code */
    uint64_t attempts;  /* runs that were begun, this one too */
    uint64_t failures;  /* of those, the ones that failed of themselves */
    const char *note;   /* why a person cleared it; "" if there is none */
    const void *output; /* what was kept of it; a NUL that does not count follows it */
    size_t output_len;
};
/* NULL: nothing. */
HF_API const struct hf_once_record *hf_once_on_record(const struct hf_once *once);

/* The same in a sentence: "report", slot 2026-11-17: done by web1/4711/report, began ... */
HF_API const char *hf_once_text(const struct hf_once *once);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_ONCE_H */
