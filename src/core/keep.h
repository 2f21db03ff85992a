/* keep.h - what a keeper does about a lease: when it looks at it, what it does then, how long a
 * renewal may take, and what the answer means.
 *
 * Pure, as lease.h is: src/client/keeper.c has the thread and the clock, the
 * simulator has others. */
#ifndef HF_CORE_KEEP_H
#define HF_CORE_KEEP_H

#include "core/lease.h"

enum hf__keep_task {
    HF__KEEP_RENEW,    /* ask the store */
    HF__KEEP_ANNOUNCE, /* it is lost: tell its owner, and stop looking at it */
    HF__KEEP_WAIT      /* its owner is at it; look again at *due_ns */
};

/* When the keeper has to look at a lease of which there is no news: at its next renewal or its
 * deadline, whatever comes first. 0, at once, if it is not held: its loss was not announced yet. */
int64_t hf__keep_due_ns(const struct hf__lease_core *lease);

/* What to do about a lease that is due at now_ns. busy: a call of its owner's is under way. */
enum hf__keep_task hf__keep_decide(struct hf__lease_core *lease, bool busy, int64_t now_ns,
                                   int64_t *due_ns);

/* Whether a lease due at due_ns is so near that it is renewed along with one that is due now:
 * within a tenth of the time between two renewals. */
bool hf__keep_along(const struct hf__lease_core *lease, int64_t due_ns, int64_t now_ns);

/* Until when a renewal that begins at now_ns may take: a tenth of the ttl, 50 ms to 1 s, and not
 * past the deadline. */
int64_t hf__keep_limit_ns(const struct hf__lease_core *lease, int64_t now_ns);

/* A renewal, and what the store said to it. */
struct hf__renewal {
    uint32_t ttl_ms;   /* asked for */
    int64_t before_ns; /* a time before it was sent */
    enum hf_status status;
    int64_t sent_at_ns;  /* HF_OK: when it was sent */
    uint32_t granted_ms; /* HF_OK: if not 0, at most this */
    enum hf_loss loss;   /* HF_LOST: why, if it is known */
};

/* Takes the answer into the lease. No answer is not a no: the lease lives on until its deadline. */
void hf__keep_answered(struct hf__lease_core *lease, const struct hf__renewal *renewal,
                       int64_t now_ns);

/* When to look at the lease after a renewal that was answered so: as usual if it was renewed, a
 * little later if not, at once if it is lost. */
int64_t hf__keep_next_ns(const struct hf__lease_core *lease, enum hf_status status, int64_t now_ns);

#endif /* HF_CORE_KEEP_H */
