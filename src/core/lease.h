/* lease.h - the arithmetic of a lease, and the state machine of its loss.
 *
 * Pure: time comes in as an argument, nothing is waited for, nothing is locked. The keeper and the
 * simulator drive the same functions. */
#ifndef HF_CORE_LEASE_H
#define HF_CORE_LEASE_H

#include <holdfast.h>

enum hf__lease_state {
    HF__LEASE_NONE, /* not granted yet */
    HF__LEASE_HELD, /* valid before its deadline */
    HF__LEASE_LOST, /* for a reason; never held again */
    HF__LEASE_ENDED /* given back by its owner */
};

struct hf__lease_core {
    enum hf__lease_state state;
    enum hf_loss loss; /* HF_LOSS_NONE unless lost */
    uint32_t ttl_ms;
    int64_t sent_at_ns;  /* when the last request that was granted left */
    int64_t deadline_ns; /* valid before this */
    bool unanswered;     /* a renewal since then was not answered */
};

/* What clocks may differ by during one ttl: ttl/100 + 2 ms. */
int64_t hf__drift_ns(uint32_t ttl_ms);

/* sent_at_ns + ttl - drift. */
int64_t hf__deadline_ns(int64_t sent_at_ns, uint32_t ttl_ms);

/* The store granted: the lease is held from here on. */
void hf__lease_granted(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms);

/* The store confirmed at a look sent at sent_at_ns that a lease granted for ttl_ms has remaining_ms
 * of its life left: held until then, less the drift of its whole ttl. */
void hf__lease_adopted(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms,
                       int64_t remaining_ms);

/* The store agreed to a renewal sent at sent_at_ns. If the answer came only after the deadline the
 * lease is lost all the same: in between nobody could rely on it. Returns true if it is held. */
bool hf__lease_renewed(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms,
                       int64_t now_ns);

/* The store knows the lock not to be ours. */
void hf__lease_refused(struct hf__lease_core *lease, enum hf_loss loss);

/* A renewal to ttl_ms sent at sent_at_ns got no answer. It may have taken effect, and if it made
 * the ttl shorter, the deadline has to follow. */
void hf__lease_unanswered(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms);

/* Time has passed. Returns true if the lease is (still) held. */
bool hf__lease_tick(struct hf__lease_core *lease, int64_t now_ns);

/* The owner gives the lease back. Returns true if it was held until now. */
bool hf__lease_end(struct hf__lease_core *lease, int64_t now_ns);

/* Whether the hold keeps others out at now_ns: it is held, or it was broken and its time is not
 * over. A job that was told to end may use that time to record what became of its work. */
bool hf__lease_excludes(const struct hf__lease_core *lease, int64_t now_ns);

/* From one renewal to the next: a third of the ttl, and at most 10 s, so that whoever breaks a lock
 * is heard soon. */
int64_t hf__renew_interval_ns(uint32_t ttl_ms);

/* When the next renewal is due: an interval after the last one was sent. */
int64_t hf__lease_renew_at_ns(const struct hf__lease_core *lease);

/* When to try again after a renewal that failed at now_ns: a tenth of an interval later. */
int64_t hf__lease_retry_at_ns(const struct hf__lease_core *lease, int64_t now_ns);

/* Milliseconds of validity left at now_ns, rounded down; <= 0 unless held. */
int64_t hf__lease_remaining_ms(const struct hf__lease_core *lease, int64_t now_ns);

/* False if the struct is in a state it must not be in. */
bool hf__lease_consistent(const struct hf__lease_core *lease);

#endif /* HF_CORE_LEASE_H */
