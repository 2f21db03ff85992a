/* zookeeper.h - the ZooKeeper store, as its parts see each other.
 *
 * A lock is a container node ROOT/NAME; whoever wants it makes an ephemeral sequential child
 * OWNER-lock-SEQUENCE. The first child in order holds the lock, each other one watches the child in
 * front of it. The token is the child's czxid. A renewal is a write to the own child, so that only
 * a quorum can answer it.
 *
 * A client that wants one of several locks has a child in each of their queues, all in one session.
 * But a session that died is noticed late, and numbered slots (NAME#0, NAME#1 and so on) would wait
 * for it all together. So they are waited for in one common line: the queue of a lock that cannot
 * be, because its name, 0x01 NAME, has a control character in it. See line.c.
 *
 * A child lives as long as its session, and the library keeps a session alive as long as the
 * process runs, renewed or not. So the store ends holds itself when their lease is over (reaper.c);
 * the session's end is for processes that died, stopped or are cut off.
 *
 * Locks: store->lock guards the lists of sessions, holds and orphans. session->lock guards
 * its listeners. Neither is held across a request, and never both. */
#ifndef HF_ZOOKEEPER_ZOOKEEPER_H
#define HF_ZOOKEEPER_ZOOKEEPER_H

#include "base/base.h"
#include "base/patience.h"
#include "stores/zookeeper/name.h"
#include "stores/zookeeper/queue.h"
#include "stores/zookeeper/request.h"
#include "stores/zookeeper/url.h"
#include <holdfast/several.h>
#include <holdfast/store.h>
#include <pthread.h>

#define ZK_PATH_MAX       (ZK_ROOT_MAX + ZK_NAME_MAX + 96) /* ROOT/NAME/OWNER-lock-SEQUENCE */
#define ZK_BUCKETS        256                              /* of the table of holds */
#define ZK_LAST_RELEASES  64                               /* locks released last, by their hash */
#define ZK_POLL_NS        (5 * HF__NS_PER_S)               /* the slow poll behind every watch */
#define ZK_TRIES_MAX      16                               /* to make a parent that vanishes */
#define ZK_CONTENDERS_MAX 100000                           /* children of a lock that are read */
#define ZK_SEEN           16                               /* records seen last */
#define ZK_WATCHED_MAX    HF_SEVERAL_MAX                   /* nodes that a waiter watches */

/* Somebody who wants to hear of a session's state, and of the end of one node. */
struct zk_listener {
    int fd;                 /* eventfd */
    char path[ZK_PATH_MAX]; /* "": only of the session */
    struct zk_listener *next;
};

/* What is heard of a session's server (heartbeat.c). Everything else is the reaper's alone. */
struct zk_heartbeat {
    atomic_int unanswered;    /* touches */
    _Atomic int64_t heard_ns; /* the last answer to one */
    int64_t touched_ns;       /* the last one */
    int64_t quiet_ns;         /* since when an answer, or a connection, is waited for */
    int64_t cut_ns;           /* the last time its connection was ended for that */
    unsigned cuts;            /* since an answer was heard */
};

struct zk_session {
    struct zk_store *store;
    zhandle_t *handle;
    uint32_t asked_ms; /* the session timeout that was asked for */
    unsigned first;    /* the number of the host it tries first */
    int refs;          /* store->lock */
    struct zk_heartbeat heartbeat;
    atomic_bool cloexec; /* its first socket is close-on-exec */
    pthread_mutex_t lock;
    struct zk_listener *listeners;
    struct zk_session *next; /* in store->sessions */
};

struct zk_hold {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    char path[ZK_PATH_MAX];
    char data[ZK_DATA_MAX];
    uint64_t token;
    int32_t version; /* of the child, as far as our writes are answered */
    uint32_t claimed_ms;
    uint32_t lease_ms; /* what the session allows of it */
    int64_t end_ns;    /* without a renewal */
    struct zk_session *session;
    struct zk_hold *next;
};

/* A child that may exist and that nobody wants any more: the reaper deletes it. */
struct zk_orphan {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    struct zk_session *session;
    struct zk_orphan *next;
};

/* What is known of a lock after a release of ours: nobody was in front of that child. */
struct zk_last_release {
    char name[HF_NAME_MAX + 1]; /* "": nothing */
    int32_t sequence;
    uint64_t token;
};

/* A record as this client saw it last. */
struct zk_seen {
    char name[HF_NAME_MAX + 1]; /* "": none */
    char key[HF_RECORD_KEY_MAX + 1];
    bool there;
    int32_t version; /* of its node */
    uint64_t token;
    uint64_t number;
};

struct zk_store {
    struct hf_store_base base;
    struct zk_url url;
    pthread_mutex_t lock;
    struct zk_session *sessions;
    unsigned
        first_host; /* where the next session begins: at random, and after one that is silent */
    struct zk_hold *holds[ZK_BUCKETS];
    struct zk_orphan *orphans;
    struct zk_last_release last_releases[ZK_LAST_RELEASES];
    struct zk_seen seen[ZK_SEEN];
    unsigned seen_next;
    atomic_bool contended; /* the last try for one of several found none free */
    bool sweeping;         /* a sweep for expired records is under way */
    pthread_t reaper;
    bool reaper_runs;
    bool reaper_stop;
    int64_t reaper_next_ns; /* what comes before this must wake it */
    int reaper_fd;          /* eventfd */
};

/* store.c */

/* A store that has no session yet. */
enum hf_status zk_store_new(const struct hf_host *host, const char *url, struct zk_store **out,
                            struct hf_error *err);
void zk_store_free(struct zk_store *store, bool forked);

/* audit.c: a slot of the table */
enum hf_status zk_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err);

/* sessions.c */

/* A connected session for leases of ttl_ms, with a reference for the caller. Waits for the
 * connection. HF_UNREACHABLE, HF_DENIED, HF_CANCELLED, HF_NOMEM. */
enum hf_status zk_session_get(struct zk_store *store, uint32_t ttl_ms, const char *name,
                              const struct hf__patience *patience, struct zk_session **out,
                              struct hf_error *err);
void zk_sessions_close(struct zk_store *store, bool forked);

/* session.c */

/* Ends it, whoever may still use it. */
void zk_session_destroy(struct zk_session *session);
/* Waits until it is connected again; HF_LOST if it has ended. */
enum hf_status zk_session_connected(struct zk_session *session, const char *name,
                                    const struct hf__patience *patience, struct hf_error *err);
bool zk_session_dead(const struct zk_session *session);
int64_t zk_session_id(const struct zk_session *session);
/* The longest lease that the session can carry (margin.h). Never 0, which would mean the whole ttl.
 */
uint32_t zk_session_lease_ms(const struct zk_session *session);
void zk_session_ref(struct zk_session *session);   /* store->lock held */
void zk_session_unref(struct zk_session *session); /* takes store->lock; may block in the library */
/* listener->fd and ->path are the caller's. */
void zk_session_listen(struct zk_session *session, struct zk_listener *listener);
void zk_session_unlisten(struct zk_session *session, struct zk_listener *listener);
watcher_fn zk_session_watcher(void);

/* node.c: paths, and the requests about a lock's children */

bool zk_lock_path(const struct zk_store *store, const char *name, char out[ZK_PATH_MAX]);
const struct ACL_vector *zk_acl(const struct zk_store *store);
/* Makes a container and whatever is missing above it; path is written to, and as before in the end.
 * Returns a ZooKeeper code. */
int zk_make_container(struct zk_session *session, char *path, const struct hf__patience *patience);
/* The same for that of a lock. */
int zk_make_parent(struct zk_session *session, const char *name,
                   const struct hf__patience *patience);
/* The children in order. With synced true the answer is not older than the call. */
int zk_read_queue(struct zk_session *session, const char *name, bool synced,
                  const struct hf__patience *patience, struct zk_queue *out);
/* The order of names that are read already; asks for czxids where the numbers do not tell. */
int zk_order_queue(struct zk_session *session, const char *name, const struct zk_names *names,
                   const struct hf__patience *patience, struct zk_queue *out);
/* What a child says and its Stat; out_data may be NULL. */
int zk_read_child(struct zk_session *session, const char *name, const char *child,
                  const struct hf__patience *patience, char out_data[ZK_DATA_MAX],
                  struct Stat *stat);
/* The halves of the two, for many at once: ask sends, and the answer is waited for by
 * zk_request_wait or zk_hear_child. */
int zk_ask_queue(struct zk_session *session, const char *name, struct zk_request *request);
int zk_ask_child(struct zk_session *session, const char *name, const char *child,
                 struct zk_request *request);
int zk_hear_child(struct zk_request *request, const struct hf__patience *patience,
                  char out_data[ZK_DATA_MAX], struct Stat *stat);
/* The first child, what it says and its Stat, as any server knew them. ZNONODE: there is none, and
 * first->name is ""; or it has just gone. data may be NULL. */
int zk_read_first(struct zk_session *session, const char *name, const struct hf__patience *patience,
                  struct zk_entry *first, char data[ZK_DATA_MAX], struct Stat *stat);
bool zk_child_path(const struct zk_store *store, const char *name, const char *child,
                   char out[ZK_PATH_MAX + ZK_CHILD_MAX]);
/* version: that the node must have; -1: any. */
int zk_delete(struct zk_session *session, const char *path, int32_t version,
              const struct hf__patience *patience);
/* From here on the server of this connection knows what any server knew before the call. */
int zk_catch_up(struct zk_session *session, const struct hf__patience *patience);

/* errors.c: what a code of the library means */
enum hf_status zk_verdict(const struct zk_store *store, const char *name, int rc,
                          struct hf_error *err);
enum hf_status zk_busy(struct zk_session *session, const char *name, const struct zk_queue *queue,
                       const struct hf__patience *patience, struct hf_error *err);
/* HF_LOST, and by whom it was broken; grant may be NULL. */
enum hf_status zk_broken(const struct zk_store *store, const char *name,
                         const struct hf_revocation *revocation, struct hf_grant *grant,
                         struct hf_error *err);
enum hf_status zk_lost(const struct zk_store *store, const char *name, enum hf_loss loss,
                       struct hf_grant *grant, struct hf_error *err);

/* holds.c: the table */
bool zk_holds_add(struct zk_store *store,
                  const struct zk_hold *hold); /* takes a session reference */
/* Copies; the session gets a reference for the caller. */
bool zk_holds_find(struct zk_store *store, const struct hf_claim *claim, struct zk_hold *out);
/* To lease_ms from sent_at_ns on, and with hold->version, unless the hold is over by now. */
bool zk_holds_extend(struct zk_store *store, const struct zk_hold *hold, int64_t sent_at_ns,
                     uint32_t lease_ms);
/* What this client knows of the first child of a lock. */
enum zk_known {
    ZK_OTHERS, /* nothing: it is of no session of ours */
    ZK_HELD,   /* ours */
    ZK_OVER    /* ours, but no hold: its time or session ended, or nobody wants it any more */
};
enum zk_known zk_holds_judge(struct zk_store *store, const char *name, const char *child,
                             const struct Stat *stat, int64_t *remaining_ms);
/* The table's session reference goes to the caller. */
bool zk_holds_take(struct zk_store *store, const struct hf_claim *claim, struct zk_hold *out);
void zk_holds_clear(struct zk_store *store, bool forked);

/* last_release.c: a lock that the same client takes again and again needs no reading
 * of the queue */
void zk_last_release_note(struct zk_store *store,
                          const struct zk_hold *hold); /* its child was deleted */
/* Takes out what is known of the lock. */
bool zk_last_release_take(struct zk_store *store, const char *name, struct zk_last_release *out);
/* Whether anything is. */
bool zk_last_release_known(struct zk_store *store, const char *name);
/* Does the new child, by its name and czxid, stand alone? */
bool zk_stands_alone(const struct zk_last_release *last, int32_t sequence, uint64_t token);

/* heartbeat.c: the reaper's round of all sessions */

/* Says something in every session that is due, and leaves servers that do not answer. Returns when
 * it wants to be called again. Takes store->lock. */
int64_t zk_heartbeat_all(struct zk_store *store, int64_t now_ns);

/* reaper.c */
/* Has it run, and look at things at that time at the latest. store->lock held; true if it runs. */
bool zk_reaper_start(struct zk_store *store, int64_t at_ns);
void zk_reaper_stop(struct zk_store *store);
/* Have the child of owner deleted as soon as the session allows. */
void zk_orphan(struct zk_session *session, const char *name, const char *owner);

enum hf_status zk_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err);
enum hf_status zk_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err);
enum hf_status zk_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err);
enum hf_status zk_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err);
enum hf_status zk_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err);
/* fence.c */
enum hf_status zk_fence(struct hf_store_base *base, const struct hf_fence_request *request,
                        struct hf_fence_mark *mark, struct hf_error *err);

/* notice.c */
/* As well as can be: nothing depends on it. */
void zk_notice_leave(struct zk_session *session, const char *name, uint64_t token, const char *data,
                     const struct hf__patience *patience);
/* Its child is gone: by whom it was ended, if somebody left word. */
void zk_notice_take(const struct zk_hold *hold, struct hf_revocation *out);
/* Removes all but the last of a lock's notices. */
void zk_notices_trim(struct zk_session *session, const char *name, size_t keep,
                     const struct hf__patience *patience);
/* break.c */
enum hf_status zk_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err);
/* record_seen.c: a record that was seen lately is written in one round trip */
void zk_seen_note(struct zk_store *store, const struct zk_seen *seen);
/* By seen->name and ->key. */
bool zk_seen_find(struct zk_store *store, struct zk_seen *seen);
void zk_seen_forget(struct zk_store *store, const char *name, const char *key);

/* record_put.c, record_read.c: the slots of records */
enum hf_status zk_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err);
enum hf_status zk_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err);
enum hf_status zk_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err);
/* record_sweep.c */
/* Removes some of the lock's records that have expired, now that the one at path was written by
 * hold. Waits for nothing. */
void zk_sweep(struct zk_store *store, const struct zk_hold *hold, const char *path);

enum hf_status zk_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err);
enum hf_status zk_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report);
enum hf_status zk_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err);
enum hf_status zk_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err);

#endif /* HF_ZOOKEEPER_ZOOKEEPER_H */
