/* elect.h - what a candidate does when its term is over: whether it stands again, and when.
 *
 * Pure, as lease.h is: the caller has the clock and the dice. */
#ifndef HF_CORE_ELECT_H
#define HF_CORE_ELECT_H

#include "base/backoff.h"

/* Whether to stand again when the leader's work has ended by itself. */
enum hf__elect_restart { HF__RESTART_ALWAYS, HF__RESTART_ON_FAILURE, HF__RESTART_NO };

/* How a term ended. */
enum hf__term_end {
    HF__TERM_DONE,   /* the work ended by itself, and well */
    HF__TERM_FAILED, /* the work ended by itself, or was not begun */
    HF__TERM_LOST,   /* the lock was lost */
    HF__TERM_TOLD    /* somebody told us to end */
};

/* A candidate, over all its terms. */
struct hf__elect {
    enum hf__elect_restart restart;
    struct hf__backoff backoff;
};
void hf__elect_init(struct hf__elect *elect, enum hf__elect_restart restart);

struct hf__term {
    enum hf__term_end end;
    int64_t began_ns;
    int64_t ended_ns;
};

struct hf__elect_step {
    bool again;            /* false: it does not stand any more */
    int64_t not_before_ns; /* when to join the line again */
};

/* What to do about a term that is over. A lost one is followed by another try whatever the policy:
 * the work has not ended, it was taken from us. After a term of less than a minute the candidate
 * pauses, 1 to 2 s at first and up to a minute if that goes on, so that a leader that fails at once
 * neither spins nor keeps the others from their turn. dice: any random number. */
struct hf__elect_step hf__elect_term_over(struct hf__elect *elect, const struct hf__term *term,
                                          uint32_t dice);

#endif /* HF_CORE_ELECT_H */
