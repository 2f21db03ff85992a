/* attempt.h - one attempt to take a lock, as the three files that carry it out see it. */
#ifndef HF_ZOOKEEPER_ATTEMPT_H
#define HF_ZOOKEEPER_ATTEMPT_H

#include "core/wait.h"
#include "stores/zookeeper/zookeeper.h"

#define ZK_WAIT_OVER (-1004) /* beside the codes of request.h */

struct zk_attempt {
    struct zk_store *store;
    const struct hf_claim *claim;
    struct zk_session *session;
    struct hf__patience patience; /* until the wait is over and a request has had its time */
    struct hf__wait_place place;
    int64_t leave_ns; /* how much more may be spent on leaving the queue */
    uint32_t lease_ms;
    char owner[HF_OWNER_LEN + 1]; /* the claim's; in another session a fresh one */
    bool in_queue;                /* the own child may exist */
    char path[ZK_PATH_MAX];
    char data[ZK_DATA_MAX];
    uint64_t token;
    int32_t version;    /* of the own child, as it was read or written last */
    int64_t made_at_ns; /* before the create was sent */
    int64_t sent_at_ns; /* of the write that proves the own child; 0: none that is fresh */
    struct zk_queue queue;
};

/* The session is over, and its children with it. */
static inline bool zk_session_ended(int rc)
{
    return rc == ZSESSIONEXPIRED || rc == ZINVALIDSTATE || rc == ZCLOSING;
}

/* What was under way may have been done or not. */
static inline bool zk_connection_lost(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED;
}

/* What the session carries of the ttl, as the server of its present connection has it. */
static inline void zk_fit_lease(struct zk_attempt *a)
{
    uint32_t most_ms = zk_session_lease_ms(a->session);

    a->lease_ms = most_ms < a->claim->ttl_ms ? most_ms : a->claim->ttl_ms;
}

/* enter.c. Each returns a code; ZOK: a->queue is the queue as it was after the request. */

/* Makes the own child, and whatever is missing above it. */
int zk_enter(struct zk_attempt *a);
/* After a lost connection: pauses, then waits for the next one. ZOK; ZK_GIVEN_UP: there is none,
 * and time is over; or another code. */
int zk_reconnect(struct zk_attempt *a);
/* Connected again: finds out whether the child was made. */
int zk_settle(struct zk_attempt *a);
/* Proves that the own child and its session are still there, and says how long it has waited. */
int zk_confirm(struct zk_attempt *a);

/* wait.c, by the rule of core/wait.h. */

/* Until the child in front of the one at that index is gone (ZOK), or the wait is over. */
int zk_queue_wait(struct zk_attempt *a, size_t index);
/* After a connection or a session that was lost: ZOK, after a pause, if the attempt goes on. Else
 * ZK_GIVEN_UP or ZK_CANCELLED. */
int zk_endure(struct zk_attempt *a);

#endif /* HF_ZOOKEEPER_ATTEMPT_H */
