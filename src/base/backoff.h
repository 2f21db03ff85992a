/* backoff.h - the pauses between tries at something that fails.
 *
 * Each failure in a row doubles the pause, up to a bound; it is drawn from its upper half, so that
 * those who failed together do not come back together. Time and dice are arguments: nothing here
 * asks for them, so src/core may use it. */
#ifndef HF_BASE_BACKOFF_H
#define HF_BASE_BACKOFF_H

#include <holdfast.h>

/* Starts with first_ns and most_ns alone filled in, 0 < first_ns <= most_ns. */
struct hf__backoff {
    int64_t first_ns;      /* the longest pause after the first failure */
    int64_t most_ns;       /* and after any */
    unsigned failures;     /* in a row */
    int64_t not_before_ns; /* when the next try may be made; 0: at any time */
};

/* Notes a failure at now_ns. dice: any random number. Returns not_before_ns. */
int64_t hf__backoff_failed(struct hf__backoff *backoff, int64_t now_ns, uint32_t dice);
/* Notes a success: there is nothing to wait for. */
void hf__backoff_worked(struct hf__backoff *backoff);

#endif /* HF_BASE_BACKOFF_H */
