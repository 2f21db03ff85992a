/* redis.h - the store and its servers, as the parts of the plugin know them.
 *
 *   store.c        the table of operations: open, close
 *   acquire.c      taking a lock, or one of several, and waiting for it; attempt.h, ask.c
 *   begun.c        taking and releasing it in two halves
 *   hold.c         renewing and releasing it; break.c: somebody else wants it released
 *   list.c         what is held; waiters.c: who waits
 *   url.c          what the URL says
 *   errors.c       what an answer means, and what is said about it
 *   record.c       what holders leave behind
 *   fence.c        fenced keys; identity.c: who the store is; forget.c: a name for good
 *   incarnation.c  whether a server is still the one that granted; quarantine.c says what that
 *                  means, and ends it by hand
 *   vouched.c      which tokens a server has confirmed, and for which owners
 *   call.c         one request and its answer, wherever the key may live
 *   route.c        which server that is: fixed, by cluster slot, or by the sentinels
 *   node.c         one server; keys.c, script.c: what a lock is called there, and the scripts
 *                  that work on it
 *   wire/          connections to one server, TLS, requests and replies
 *   redlock/       the store redlock: on top of these servers
 *   audit/         what can be learned about either without a change
 */
#ifndef HF_STORES_REDIS_REDIS_H
#define HF_STORES_REDIS_REDIS_H

#include "stores/redis/errors.h"
#include "stores/redis/keys.h"
#include "stores/redis/script.h"
#include "stores/redis/wire/pool.h"
#include <holdfast/store.h>
#include <pthread.h>

enum {
    RD_NODES_MAX = 256,      /* servers of a cluster, or masters the sentinels named over time */
    RD_VOUCHED_MAX = 1024,   /* pairs of owner and token that are remembered */
    RD_INCARNATION_LEN = 54, /* "master_replid:" and 40 hex digits, as INFO shows it */
    RD_SHAPE_LEN = 40        /* SHA-1 of what a server of a cluster is responsible for, in hex */
};

/* The commands that a server has for what else takes a script. */
enum rd_delete { RD_DELETE_SCRIPT, RD_DELETE_DELEX, RD_DELETE_DELIFEQ };
struct rd_commands {
    enum rd_delete delete_kind;
    bool set_ifeq;
};

/* One server. Lives as long as its store. */
struct rd_node {
    struct rd_pool pool;  /* how it is reached */
    pthread_mutex_t lock; /* for what follows */

    /* The incarnation we have met, and whether it grants. */
    char incarnation[RD_INCARNATION_LEN + 1]; /* "" until a handshake */
    bool open;
    char shape[RD_SHAPE_LEN + 1]; /* of a cluster's server: settled for all its slots; "" if not */
    struct rd_commands commands;
    int64_t replicas;        /* that were online when it last told us */
    char handshake_key[64];  /* where the server's record stands */
    char handshake_copy[64]; /* and where else, in a cluster; else "" */
};

/* An owner, its token and the ttl on record, from the server's own mouth. */
struct rd_vouched {
    char owner[HF_OWNER_LEN];
    uint64_t token; /* 0: free */
    uint32_t ttl_ms;
};

struct rd_store {
    struct hf_store_base base;
    struct rd_setup setup;

    pthread_mutex_t lock; /* for what follows */
    struct rd_node *nodes[RD_NODES_MAX];
    size_t node_count;
    struct rd_node *master;   /* unless a cluster; NULL: the sentinels have to be asked */
    bool cluster;             /* set before open returns, never changed */
    uint16_t slots[RD_SLOTS]; /* cluster: index into nodes, plus 1; 0: not known */
    struct rd_vouched vouched[RD_VOUCHED_MAX]; /* by hash of the owner; the later one stays */
};

/* What a request was answered with. */
struct rd_answer {
    struct rd_reply *reply;  /* the caller frees it */
    struct rd_reply *second; /* likewise; only if the call had two commands */
    int64_t sent_at_ns;      /* host time before it was sent */
    struct rd_node *node;    /* who answered */
};

/* store.c */

/* A store that has met no server yet: the URL is read, and with one server it is the master. */
enum hf_status rd_store_new(const struct hf_host *host, const char *url, bool readonly,
                            struct rd_store **out, struct hf_error *err);
void rd_store_free(struct rd_store *store, bool forked);

/* node.c */

struct rd_node *rd_node_open(const struct rd_setup *setup, const struct hf__address *address);
void rd_node_close(struct rd_node *node, bool forked); /* forked: as rd_pool_release */
/* Loads the scripts: HF_OK, or what is in the way. */
enum hf_status rd_node_load(struct rd_node *node, const struct hf__patience *patience,
                            struct hf_error *err);

/* route.c */

/* The one server, if there is no cluster and it is known; waits for nothing. NULL: not. */
struct rd_node *rd_route_known(struct rd_store *store);
/* The server for a slot. HF_OK, HF_UNREACHABLE, HF_DENIED, HF_CANCELLED, HF_NOMEM. */
enum hf_status rd_route(struct rd_store *store, unsigned slot, const struct hf__patience *patience,
                        struct rd_node **out, struct hf_error *err);
/* The slot of a lock; 0 where there is no cluster and it does not matter. */
unsigned rd_route_slot(const struct rd_store *store, const struct rd_keys *keys);
/* The server at an address, made if need be; NULL: too many, or out of memory. */
struct rd_node *rd_route_node(struct rd_store *store, const struct hf__address *address);
/* From now on, that server has the slot. */
void rd_route_moved(struct rd_store *store, unsigned slot, struct rd_node *node);
/* node turned out to be no master, or is gone: ask again next time. */
void rd_route_forget(struct rd_store *store, const struct rd_node *node);
/* Whether a key or the master may turn up at another server. */
bool rd_route_moves(struct rd_store *store);
/* Finds out whether the first server belongs to a cluster, and what the cluster looks like. */
enum hf_status rd_route_learn(struct rd_store *store, const struct hf__patience *patience,
                              struct hf_error *err);
/* The servers to be asked for a complete listing. HF_OK, or what rd_route answers. */
enum hf_status rd_route_all(struct rd_store *store, const struct hf__patience *patience,
                            struct rd_node *out[RD_NODES_MAX], size_t *count, struct hf_error *err);

/* call.c */

/* Frees the replies. */
void rd_answer_release(struct rd_answer *answer);

/* A request that went out before its call: on which connection, and what has come back. */
struct rd_sent {
    struct rd_conn *conn; /* NULL: none, or its call has it by now */
    struct rd_answer answer;
};

struct rd_call {
    const char *lock; /* for error texts */
    unsigned slot;
    bool urgent;
    struct hf__patience patience;
    const struct rd_request *request;
    bool two; /* the request is two commands; the first decides */
    /* Writes what takes the request back; NULL: nothing does. Sent right behind it, on the same
     * connection, if no answer comes: there it cannot overtake. */
    void (*undo)(void *data, struct rd_request *request);
    void *data;
    struct rd_sent *sent; /* NULL, or how rd_call_send has sent it */
};

/* Sends the request to the server that has the slot and gets its answer, following redirections
 * and loading scripts. Sent again only if the answer proves that it was not executed.
 * HF_OK: *out is filled in; the reply is no error. HF_UNKNOWN: it may have been executed; *undone
 * (may be NULL) tells if undo was sent. HF_UNREACHABLE and the rest: it was not. */
enum hf_status rd_call(struct rd_store *store, const struct rd_call *call, struct rd_answer *out,
                       bool *undone, struct hf_error *err);
/* Sends the request of a call that is still to come, to a server without a cluster, and waits for
 * nothing. False: there is no idle connection, or it does not work; nothing was executed. */
bool rd_call_send(struct rd_node *node, const struct rd_call *call);
/* Looks for its answer until then at the latest. */
bool rd_call_answered(const struct rd_call *call, int64_t until_ns);

/* incarnation.c */

/* What a handshake said. */
struct rd_met {
    char id[RD_INCARNATION_LEN + 1]; /* the incarnation; "" unless it grants */
    char shape[RD_SHAPE_LEN + 1];    /* in a cluster what is settled there, or "-"; else "" */
    bool first;                      /* in a cluster: nobody had met this server */
    /* With HF_UNREACHABLE: its record's slot is elsewhere now, look for the slots anew. */
    bool moved;
};

/* Learns which incarnation the server is, if it is not known. HF_OK: *out is filled in, it grants.
 * HF_QUARANTINE: with err->retry_after_ms. HF_INVALID: clients disagree about max_ttl. */
enum hf_status rd_incarnation_pass(struct rd_node *node, const struct hf__patience *patience,
                                   struct rd_met *out, struct hf_error *err);
/* The same for a lock without a record in a slot of a cluster: asks whatever is known already, and
 * answers HF_QUARANTINE even if only locks without a record have to wait. slot -1: none. */
enum hf_status rd_incarnation_meet(struct rd_node *node, int slot,
                                   const struct hf__patience *patience, struct rd_met *out,
                                   struct hf_error *err);
/* After the first meeting with one server of a cluster: meets the others too, so that all begin to
 * be settled together, and not each when its turn comes. */
void rd_incarnation_meet_all(struct rd_store *store, const struct hf__patience *patience);
/* What the server knows besides scripts, as far as it was asked. */
struct rd_commands rd_incarnation_commands(struct rd_node *node);
/* The same for one who waits elsewhere: writes the question, takes its RD_MEETING_REPLIES in. */
enum { RD_MEETING_REPLIES = 3 };
void rd_incarnation_ask(struct rd_node *node, struct rd_request *request);
enum hf_status rd_incarnation_hear(struct rd_node *node, struct rd_reply *const *replies,
                                   struct hf_error *err);
/* Whether it grants, for somebody who only reads: writes the question, which leaves no trace there,
 * and judges the one answer, which leaves none here. HF_OK, HF_QUARANTINE and the rest. */
void rd_incarnation_inquire(struct rd_node *node, struct rd_request *request);
enum hf_status rd_incarnation_judge(const struct rd_node *node, const struct rd_reply *answer,
                                    struct hf_error *err);
/* The incarnation if it is known and grants, else "". */
void rd_incarnation_known(struct rd_node *node, char id[RD_INCARNATION_LEN + 1]);
/* The server says it is not that incarnation (any more). */
void rd_incarnation_forget(struct rd_node *node, const char *id);

/* vouched.c */

/* The server says that this owner holds with this token, and has this ttl on record. */
void rd_vouch(struct rd_store *store, const char *owner, uint64_t token, uint32_t ttl_ms);
/* Whether it said so of the claim's owner and token, and of its ttl, unless that is 0. False may
 * also mean that it was long ago. */
bool rd_vouched(struct rd_store *store, const struct hf_claim *claim);

/* quarantine.c */

/* HF_QUARANTINE, why and until when, from {'quarantine', ...}. */
enum hf_status rd_quarantine_fail(const struct rd_node *node, const struct rd_reply *answer,
                                  struct hf_error *err);
/* Whether this server grants, for somebody who only reads: as rd_incarnation_judge. */
enum hf_status rd_quarantine_inquire(struct rd_node *node, const struct hf__patience *patience,
                                     struct hf_error *err);
/* Slots of the table. */
enum hf_status rd_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err);
enum hf_status rd_end_quarantine(struct hf_store_base *base, const char *label, const char *reason,
                                 int64_t deadline_ns, struct hf_error *report);

/* begun.c: slots of the table */
struct hf_begun *rd_begin(struct hf_store_base *base, const struct hf_claim *claim);
bool rd_answered(struct hf_store_base *base, struct hf_begun *begun, int64_t until_ns);
enum hf_status rd_end(struct hf_store_base *base, struct hf_begun *begun, struct hf_grant *grant,
                      struct hf_error *err);

/* hold.c: a release in its parts */
struct rd_release {
    struct rd_store *store;
    const struct hf_claim *claim;
    struct rd_keys keys;
    struct rd_node *node; /* who will be asked, as far as is known; NULL: not known */
    enum rd_delete kind;
    struct rd_request request;
    struct rd_call call;
};
enum hf_status rd_release_prepare(struct rd_release *r, struct rd_store *store,
                                  const struct hf_claim *claim, struct hf_error *err);
/* Writes the request, as that server understands it. */
void rd_release_build(struct rd_release *r, struct rd_node *node);
/* Sends it, and another if that is what it takes. */
enum hf_status rd_release_carry_out(struct rd_release *r, struct hf_error *err);
/* Whether nothing is to be sent after this answer. */
bool rd_release_worked(const struct rd_release *r, const struct rd_answer *answer);

/* acquire.c, list.c, hold.c, break.c: slots of the table */
enum hf_status rd_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err);
enum hf_status rd_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err);
enum hf_status rd_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err);
enum hf_status rd_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err);
enum hf_status rd_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err);
enum hf_status rd_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err);
enum hf_status rd_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err);

/* One page of the keys that match, as SCAN shows them: the caller frees *reply, whose second item
 * is an array. cursor is "0" at first, and "0" again after the last page. HF_OK, HF_UNREACHABLE,
 * HF_DENIED and others, with a text. */
enum { RD_CURSOR_MAX = 24 };
enum hf_status rd_scan(struct rd_node *node, const char *pattern, char cursor[RD_CURSOR_MAX],
                       const struct hf__patience *patience, struct rd_reply **reply,
                       struct hf_error *err);

/* break.c, forget.c, waiters.c: slots of the table */
/* A script that only reads, about one lock; it is told how many waiters to tell of at most. The
 * caller releases *out if it is HF_OK. */
enum hf_status rd_ask(struct rd_store *store, const struct hf_query *query,
                      enum rd_script_id script, struct rd_answer *out, struct hf_error *err);
enum hf_status rd_last_break(struct hf_store_base *base, const struct hf_query *query,
                             struct hf_revocation *out, struct hf_error *err);
enum hf_status rd_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report);
enum hf_status rd_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err);
enum hf_status rd_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err);
enum hf_status rd_fence(struct hf_store_base *base, const struct hf_fence_request *request,
                        struct hf_fence_mark *mark, struct hf_error *err);

/* record.c: slots of the table */
enum hf_status rd_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err);
enum hf_status rd_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err);
enum hf_status rd_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err);

#endif /* HF_STORES_REDIS_REDIS_H */
