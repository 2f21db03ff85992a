/* holdfast/elect.h - one of several processes leads.
 *
 * The leader is whoever holds a lock, and its term is the token of that hold: it only ever rises,
 * and a resource that checks it as a fence refuses a leader whose time is over. The others wait in
 * the queue, so that one of them leads as soon as the lock is free.
 *
 *     static bool lead(struct hf_lease *lease, void *data)
 *     {
 *         while (hf_lease_remaining_ms(lease) > 0 && !told_to_end)
 *             work(hf_lease_token(lease));
 *         return !told_to_end;
 *     }
 *
 *     struct hf_elect_options options = {.size = sizeof options, .on_elected = lead};
 *     status = hf_elect(store, "scheduler", &options, &err);
 */
#ifndef HOLDFAST_ELECT_H
#define HOLDFAST_ELECT_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_LEADER_KEY "leader" /* of the record with the leader's address: holdfast/record.h */

enum { HF_ADDRESS_MAX = 1024 }; /* bytes of an address; at least 1, no control characters */

/* Called from the thread that is in hf_elect, once per term: the process leads until this returns,
 * or the lease is lost. hf_lease_token is the term; hf_lease_remaining_ms and hf_lease_fd tell
 * whether it lasts. Must not release or leave the lease. Return true to stand for election again,
 * false to have hf_elect return. */
typedef bool hf_elected_fn(struct hf_lease *lease, void *data);

struct hf_elect_options {
    size_t size;               /* sizeof(struct hf_elect_options) */
    uint32_t ttl_ms;           /* as in hf_acquire_options */
    const char *label;         /* what people see; NULL: host/pid/program */
    const char *address;       /* where the leader can be found; NULL: not published */
    int cancel_fd;             /* 0: none; else stand no more when it becomes readable */
    hf_elected_fn *on_elected; /* required */
    hf_lost_fn *on_lost;       /* from the keeper, while on_elected runs: make it return. Must not
                            release or leave the lease. May be NULL */
    hf_trouble_fn *on_trouble; /* as in hf_acquire_options */
    void *data;                /* handed to all callbacks */
};

/* hf_elect - stand for election until told to stop.
 *
 * Waits in the queue for the lock name, publishes the address if there is one, calls on_elected,
 * gives the lock back when that returns, and begins again if it said so. After a term of less than
 * a minute it pauses first, outside the queue: 1s to 2s, and up to a minute if that keeps
 * happening. A lock that was lost is given up, never taken back silently: the next term has a term
 * of its own.
 * Blocks until one of these:
 *
 * HF_OK           on_elected returned false, and the lock was held to the end
 * HF_LOST         on_elected returned false, but the lock was lost before
 * HF_CANCELLED    cancel_fd became readable, while in the queue or between two terms. on_elected
 *                 has to watch it by itself
 * HF_INVALID      no on_elected, a bad name, ttl or address
 * HF_UNSUPPORTED  an address, and this kind of store keeps no records
 * HF_DENIED, HF_CORRUPT, HF_NOMEM   waiting would not help. What may pass is waited for
 * HF_UNKNOWN, HF_UNREACHABLE   on_elected returned false, and no answer came to the release
 */
HF_API HF_MUST_CHECK enum hf_status hf_elect(struct hf_store *store, const char *name,
                                             const struct hf_elect_options *options,
                                             struct hf_error *err);

/* Who leads, as a reader sees it. What it points to lives until the callback returns. */
struct hf_leader {
    size_t size;          /* of the struct as the library knows it */
    uint64_t term;        /* 0: not known (a holder that is not holdfast) */
    const char *label;    /* "" if not known */
    const char *address;  /* "" if it is not published, or not on record yet */
    int64_t age_ms;       /* since the term began; < 0: not known */
    int64_t remaining_ms; /* until it ends unless renewed; < 0: not known */
};
typedef void hf_leader_fn(const struct hf_leader *leader, void *data);

/* hf_leader - call fn for whoever leads; not at all if nobody does.
 *
 * An address counts only if the present holder wrote it: one of an earlier term is never reported.
 * What is reported is a moment old: it does not show that the leader still leads. Nothing is taken,
 * waited for or changed; a store that was opened read-only serves.
 * HF_OK, even if nobody leads. HF_UNREACHABLE, HF_UNKNOWN, HF_DENIED, HF_CORRUPT, HF_INVALID,
 * HF_NOMEM. */
HF_API HF_MUST_CHECK enum hf_status hf_leader(struct hf_store *store, const char *name,
                                              hf_leader_fn *fn, void *data, struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_ELECT_H */
