/* wait.h - what a caller who waits does about an answer that is no answer: the store was not
 * reached, it may have granted, or it is in quarantine. As long as the wait has time left, it asks
 * again after a pause. One rule for every store, and for opening one.
 *
 * Pure, as lease.h is: src/client/waiting.c has the clock and the dice.
 */
#ifndef HF_CORE_WAIT_H
#define HF_CORE_WAIT_H

#include <holdfast.h>

/* A wait, from the first question to the last. Starts with until_ns alone filled in. */
struct hf__wait {
    int64_t until_ns; /* 0: no wait at all; INT64_MAX: without limit                  */
    unsigned misses;  /* questions in a row that went unanswered: the pauses grow by them */
};

struct hf__wait_step {
    bool again;        /* false: that answer is the caller's                        */
    int64_t resume_ns; /* when to ask again; never after the end of the wait         */
};

/* Whether status is something that may pass by itself: unreachable, unknown, quarantine. */
bool hf__wait_may_pass(enum hf_status status);

/* What to do at now_ns about a question that was asked at asked_ns and answered with status (and
 * retry_after_ms). dice: a random number, so that those who were thrown out together do not come
 * back together. */
struct hf__wait_step hf__wait_answered(struct hf__wait *wait, enum hf_status status,
                                       int64_t retry_after_ms, int64_t asked_ns, int64_t now_ns,
                                       uint32_t dice);

#endif /* HF_CORE_WAIT_H */
