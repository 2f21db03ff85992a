/* wait.h - how a wait for a lock goes on after each answer. One rule for every store.
 *
 * Two loops turn while a caller waits, and each asks here what to do next:
 *
 *   - A store's acquire is one attempt, with one owner. It stays in the queue while another holds
 *     the lock, and for as long as its place in the queue outlives a trouble: hf__wait_queued. A
 *     store without a queue asks again, with an owner for each round: hf__wait_unqueued.
 *   - The library's loop begins a new attempt, with a fresh owner, after whatever a store could not
 *     wait out: hf__wait_answered. Opening a store is waited for by the same rule.
 *
 * Pure, as lease.h is: the caller has the clock and the dice. */
#ifndef HF_CORE_WAIT_H
#define HF_CORE_WAIT_H

#include "base/backoff.h"
#include <holdfast.h>

/* What became of a question. */
struct hf__wait_answer {
    enum hf_status status;
    int64_t retry_after_ms; /* with HF_QUARANTINE: when it is over */
    int64_t asked_ns;       /* when the question was asked */
    int64_t look_ns;        /* with HF_BUSY, in a queue: when to ask again at the latest */
};

enum hf__wait_next {
    HF__WAIT_RETURN, /* that answer is the caller's; whoever is in a queue leaves it */
    HF__WAIT_SLEEP,  /* in the queue, until woken or until_ns; then ask again */
    HF__WAIT_PAUSE   /* until until_ns, there is nobody to be woken by; then ask again */
};

struct hf__wait_step {
    enum hf__wait_next next;
    int64_t until_ns; /* never after the end of the wait */
};

/* Whether status is something that may pass by itself: unreachable, unknown, quarantine. */
bool hf__wait_may_pass(enum hf_status status);

/* The library's wait, from the first attempt to the last. */
struct hf__wait {
    int64_t until_ns; /* 0: no wait at all; INT64_MAX: without limit */
    struct hf__backoff backoff;
};
void hf__wait_init(struct hf__wait *wait, int64_t until_ns);

/* What to do at now_ns about an attempt, or a try to open a store, that was answered so. dice: a
 * random number, so that those who were thrown out together do not come back together. Never
 * HF__WAIT_SLEEP. */
struct hf__wait_step hf__wait_answered(struct hf__wait *wait, const struct hf__wait_answer *answer,
                                       int64_t now_ns, uint32_t dice);

/* A store's attempt that waits. */
struct hf__wait_queue {
    int64_t wait_until_ns; /* the claim's */
    /* Until when the place in the queue outlives our silence; 0: there is none, INT64_MAX: it lasts
     * as long as we do. Set it whenever the store confirms the place. */
    int64_t ours_until_ns;
    /* This store settles an unanswered request itself: by reading, or by taking it back and going
     * on with a fresh owner. */
    bool settles;
    struct hf__backoff backoff;
};
void hf__wait_queue_init(struct hf__wait_queue *queue, int64_t wait_until_ns);

/* What to do at now_ns about a request of an attempt that waits, answered so. The place in the
 * queue is kept over a trouble that passes while it is ours: over a store that is not reached; over
 * an answer that never came if the store settles it; over a quarantine that ends in that time.
 * Whatever lasts longer is the caller's to hear: the library begins anew. */
struct hf__wait_step hf__wait_queued(struct hf__wait_queue *queue,
                                     const struct hf__wait_answer *answer, int64_t now_ns,
                                     uint32_t dice);
/* Whether the wait is over, and the last answer is the caller's. */
bool hf__wait_over(const struct hf__wait_queue *queue, int64_t now_ns);
/* A request of the wait has been answered that was not about the lock: what goes wrong after it is
 * the first trouble again. */
void hf__wait_worked(struct hf__wait_queue *queue);
/* Whoever sleeps in the queue cannot be woken: how long to pause before the lock is asked for. Only
 * that answer tells how the wait goes on. */
struct hf__wait_step hf__wait_unheard(struct hf__wait_queue *queue, int64_t now_ns, uint32_t dice);

/* A wait without a queue: round after round. */
struct hf__wait_rounds {
    int64_t wait_until_ns; /* the claim's */
    struct hf__backoff backoff;
};
void hf__wait_rounds_init(struct hf__wait_rounds *rounds, int64_t wait_until_ns);

/* What to do at now_ns about a round that was answered so. A lock that is held is waited for to the
 * end. There is no place that could be lost, so the library is told of anything else at once, and
 * begins anew. Never HF__WAIT_SLEEP. */
struct hf__wait_step hf__wait_unqueued(struct hf__wait_rounds *rounds, enum hf_status status,
                                       int64_t now_ns, uint32_t dice);

#endif /* HF_CORE_WAIT_H */
