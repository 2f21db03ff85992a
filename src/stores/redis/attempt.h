/* attempt.h - one attempt to take a lock, or one of several: what asks, and what waits.
 *
 *   acquire.c   the story: ask, sleep in the queues, leave them
 *   ask.c       the requests of an attempt, and what their answers mean */
#ifndef HF_STORES_REDIS_ATTEMPT_H
#define HF_STORES_REDIS_ATTEMPT_H

#include "core/wait.h"
#include "stores/redis/redis.h"

struct rd_attempt {
    struct rd_store *store;
    const struct hf_claim *claims; /* they differ in name and owner only */
    size_t count;
    size_t which;             /* of the claims: granted, or what the error is about */
    struct rd_keys keys;      /* of the first */
    struct rd_request others; /* lock and counter of each of the others, a NUL behind each */
    unsigned slot;
    int64_t budget_ns; /* what a single request may take */
    struct rd_request request;
    struct rd_met met;    /* what the last request said of the server */
    bool unmet;           /* the lock has no counter, and its slot may be new there */
    struct rd_node *meet; /* who has to be met before the next request: while a slot is on the move,
                           * not the one it is addressed to; NULL: that one */
    bool known;           /* the server may have us in its queues, or as the holder */
    bool undone;          /* what takes it back was sent, and may arrive */
    bool twice;           /* the owner holds the lock, by another attempt */
    bool refused;         /* the server denied the request */
    char flags[12];       /* of the hold: "-"; "d" and a number, which tells attempts apart */
    struct rd_node *node; /* who said busy */
    int64_t again_ns;     /* when to ask again, if nobody wakes us */
    struct rd_sent sent;  /* the first request, if it went out before */
    struct hf__wait_queue wait_queue;
};

static inline bool rd_attempt_waits(const struct rd_attempt *a)
{
    return a->claims->wait_until_ns != 0;
}

/* acquire.c: an attempt in its parts, for count claims. */
enum hf_status rd_attempt_prepare(struct rd_attempt *a, struct rd_store *store,
                                  const struct hf_claim *claims, size_t count,
                                  struct hf_error *err);
enum hf_status rd_attempt_carry_out(struct rd_attempt *a, struct hf_grant *grant,
                                    struct hf_error *err);
/* The request, as it stands in the attempt. */
struct rd_call rd_attempt_call(struct rd_attempt *a);

/* Writes the request that takes a lock or queues. */
void rd_ask_build(struct rd_attempt *a);
/* Writes what takes it back, and leaves the queues; data is the attempt. */
void rd_ask_build_leave(void *data, struct rd_request *request);
/* Writes the blocking pop over the lists on which the attempt sleeps. */
void rd_ask_build_sleep(const struct rd_attempt *a, int64_t sleep_for_ms,
                        struct rd_request *request);
/* What the script answered. HF_OK with no token: the server is not what we took it for, ask
 * anew. */
enum hf_status rd_ask_judge(struct rd_attempt *a, const struct rd_answer *answer,
                            struct hf_grant *grant, struct hf_error *err);

#endif /* HF_STORES_REDIS_ATTEMPT_H */
