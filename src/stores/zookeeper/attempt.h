/* attempt.h - one attempt to take a lock, as the files that carry it out see it. */
#ifndef HF_ZOOKEEPER_ATTEMPT_H
#define HF_ZOOKEEPER_ATTEMPT_H

#include "core/wait.h"
#include "stores/zookeeper/zookeeper.h"

/* Beside the codes of request.h. */
#define ZK_WAIT_OVER (-1004)
#define ZK_OVERTAKEN (-1006) /* out of the line, and second in the queue of a slot */

struct zk_attempt {
    struct zk_store *store;
    const struct hf_claim *claim;
    struct zk_session *session;
    struct hf__patience patience; /* until the wait is over and a request has had its time */
    struct hf__wait_queue wait_queue;
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
    bool alone; /* it was made without anybody else's in between, since our last release */
    struct zk_attempt *instead; /* of that one's child, which goes as the own one comes; or NULL */
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

/* acquire.c, for one lock and for one of several. */

/* HF_OK; HF_UNSUPPORTED: detached; HF_BUSY: this very owner holds it. */
enum hf_status zk_attempt_init(struct zk_attempt *a, struct zk_store *store,
                               const struct hf_claim *claim, struct hf_error *err);
/* Gets a session, with a reference, and what it carries of the ttl. */
enum hf_status zk_attempt_join(struct zk_attempt *a, struct hf_error *err);
/* Into the queue, and in it until we are first: ZOK. ZK_WAIT_OVER: another is, and the claim does
 * not wait (any more). */
int zk_attempt_take(struct zk_attempt *a);
/* After a request about the queue was answered by rc: ZOK, and where the own child stands; it is
 * made anew if it is gone. */
int zk_attempt_stand(struct zk_attempt *a, int rc, size_t *index);
/* We are first: notes the hold, and fills in *grant. */
enum hf_status zk_attempt_grant(struct zk_attempt *a, struct hf_grant *grant, struct hf_error *err);
/* Whether rc is the end of the session, and there is time to start anew in another, after a pause.
 * Then its children have ended with it, and a fresh owner is needed. */
bool zk_attempt_again(struct zk_attempt *a, int *rc);
void zk_attempt_draw_owner(struct zk_attempt *a);
/* How long leaving may take, from now on. */
struct hf__patience zk_attempt_leaving(const struct zk_attempt *a);
/* True if the own child is certainly not there (any more). Otherwise the reaper sees to it. */
bool zk_attempt_leave(struct zk_attempt *a);
/* What is said of it in the end. inside: a child of ours was made, or may have been; left: it is
 * gone. */
enum hf_status zk_attempt_give_up(struct zk_attempt *a, int rc, bool inside, bool left,
                                  struct hf_error *err);

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
/* Has the listener hear of the end of a child. False: no child has such a name. */
bool zk_listen_to(const struct zk_store *store, const char *name, const char *child,
                  struct zk_listener *listener);
/* Watches the nodes of count listeners, which share a descriptor, and sleeps until one of them is
 * gone (ZOK, and *gone is its index), or something is heard, or period_ns is over (ZOK, and
 * *gone is count). ZK_WAIT_OVER: the caller's time is. */
int zk_doze(struct zk_attempt *a, struct zk_listener *listeners, size_t count, int64_t period_ns,
            size_t *gone);
/* After a connection or a session that was lost: ZOK, after a pause, if the attempt goes on. Else
 * ZK_GIVEN_UP or ZK_CANCELLED. */
int zk_endure(struct zk_attempt *a);

/* line.c */

/* Before a client that waits for a numbered slot enters its queue: waits until nobody is before it
 * in the common line. ZOK, at once if the lock is no slot, or a code. */
int zk_line_pass(struct zk_attempt *a);

#endif /* HF_ZOOKEEPER_ATTEMPT_H */
