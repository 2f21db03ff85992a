/* postgres.h - the store, as the parts of the plugin know it.
 *
 *   store.c        the table of operations: open, close
 *   acquire.c      taking a lock, or one of several, and waiting for it
 *   listener.c     being woken
 *   hold.c         renewing and releasing it
 *   renew_many.c   renewing many at once
 *   list.c         what is held; waiters.c: who waits
 *   record.c       what holders leave behind
 *   incarnation.c  which life of the server it is, and whether it grants
 *   quarantine.c   what is said of one that does not, and ending that
 *   audit.c        what can be learned about the server without a change
 *   call.c         one request and its answer
 *   pool.c         connections
 *   hosts.c        which address
 *   conn.c         one connection
 *   execute.c      one statement on it; array.c its parameters that are arrays
 *   row.c          what the rows of an answer say
 *   errors.c       what is said when something went wrong; what refusals mean
 *   schema.c       the tables and functions, which are in scripts/
 *   url.c          what a URL says
 */
#ifndef HF_STORES_POSTGRES_POSTGRES_H
#define HF_STORES_POSTGRES_POSTGRES_H

#include "base/backoff.h"
#include "stores/postgres/conn.h"
#include "stores/postgres/url.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    PG_IDLE_MAX = 8,       /* connections kept for later */
    PG_CONNS_MAX = 64,     /* connections at once, for acquires */
    PG_SPARE = 16,         /* more of them, for renewals and releases only */
    PG_LISTENERS_MAX = 32, /* of them, waiters with a connection of their own; more poll */
    PG_LINGER_MAX = 8      /* connections kept open for a server that has yet to read from them */
};

/* Connections to one URI. */
struct pg_pool {
    const char *uri;
    const char *shown;
    const struct hf_host *host;
    pthread_mutex_t lock;
    struct pg_conn *idle;
    size_t idle_count;
    size_t conn_count; /* in use and idle */
    struct pg_conn *lingering;
    atomic_uint first_host;     /* see pg_conn_open */
    atomic_bool at_risk;        /* a password may have gone to anybody */
    struct hf__backoff backoff; /* of connecting */
    struct hf_error last;       /* what the last failure said */
};

struct pg_store {
    struct hf_store_base base;
    struct pg_url url;
    struct pg_pool main;
    struct pg_pool listen; /* only with PG_LISTEN_URL */
    bool absent;           /* only looked at, and there is no schema: no locks */
    atomic_uint listeners; /* waiters that listen now */
    atomic_uint holds;     /* grants not given back: somebody will want to renew */
    pthread_mutex_t lock;  /* guards what follows */
    char id[PG_ID_SIZE];   /* the incarnation if it is known and grants, else "" */
};

/* pool.c */

enum pg_use {
    PG_USE_ACQUIRE,
    PG_USE_URGENT,  /* a renewal or release, which must not wait for acquires */
    PG_USE_LISTENER /* for long: leaves one behind if there is something to renew */
};

/* uri and shown are read when a connection is made, and outlive the pool. */
void pg_pool_init(struct pg_pool *pool, const struct hf_host *host, const char *uri,
                  const char *shown);
void pg_pool_release(struct pg_pool *pool, bool forked);
/* A connection of one's own, from the pool or new; ends with pg_pool_give. leave_one: not the last
 * idle one. HF_OK, HF_UNREACHABLE, HF_DENIED, HF_CANCELLED, HF_NOMEM, with a text. */
enum hf_status pg_pool_take(struct pg_pool *pool, enum pg_use use, bool leave_one,
                            const struct hf__patience *patience, struct pg_conn **out,
                            struct hf_error *err);
void pg_pool_give(struct pg_pool *pool, struct pg_conn *conn);
/* A request that was sent at that time was never answered: idle connections that have been silent
 * since before are as dead as the one it was sent on, for all we know, and are closed. */
void pg_pool_doubt(struct pg_pool *pool, int64_t sent_at_ns);

/* call.c */

struct pg_call {
    const char *lock; /* for error texts; NULL: about the store */
    const struct pg_statement *statement;
    const struct pg_params *params;
    struct hf__patience patience;
    /* The same request, such that it wakes nobody: sent instead where the server cannot notify.
     * NULL: there is none. */
    const struct pg_params *quiet;
    enum pg_use use;
    struct pg_conn *conn; /* NULL, or broken: one from the pool */
    /* What takes the request back if no answer comes; sent behind it. NULL: nothing. */
    const struct pg_statement *undo_statement;
    const struct pg_params *undo;
    bool only_reads; /* it changes nothing: without an answer, nothing is unknown */
};

struct pg_answer {
    PGresult *rows;            /* the caller clears it */
    int64_t sent_at_ns;        /* host time before it was sent */
    bool undone;               /* after HF_UNKNOWN: the undo was sent */
    char state[PG_STATE_SIZE]; /* if the server refused it: the SQLSTATE; else "" */
};

/* Sends a request and gets its answer. Sent again only if the answer proves that it was not
 * executed: serialization failures and deadlocks, a full queue of notifications. HF_OK: rows, not a
 * standby's. HF_UNKNOWN: it may have been executed. HF_CANCELLED: likewise. HF_UNREACHABLE and the
 * rest: it was not. */
enum hf_status pg_call(struct pg_store *store, const struct pg_call *call, struct pg_answer *out,
                       struct hf_error *err);
/* Milliseconds until deadline_ns, at least 1. */
int64_t pg_left_ms(const struct pg_store *store, int64_t deadline_ns);

/* incarnation.c */

/* Learns which incarnation the server is, if it is not known, and makes the schema if it is not
 * there. HF_OK: id is filled in, it grants. HF_QUARANTINE: with err->retry_after_ms. HF_INVALID:
 * clients disagree about max_ttl. */
enum hf_status pg_incarnation_meet(struct pg_store *store, const struct hf__patience *patience,
                                   char id[PG_ID_SIZE], struct hf_error *err);
/* The same, known or not; also with HF_QUARANTINE *met is what the server said of itself. */
enum hf_status pg_incarnation_ask(struct pg_store *store, const struct hf__patience *patience,
                                  struct pg_met *met, struct hf_error *err);
/* The incarnation if it is known and grants, else "". */
void pg_incarnation_known(struct pg_store *store, char id[PG_ID_SIZE]);
/* The server says it is not that incarnation (any more). */
void pg_incarnation_forget(struct pg_store *store, const char *id);

/* quarantine.c */

/* Fills *err: *met says that the server grants nothing yet. HF_QUARANTINE. */
enum hf_status pg_quarantine_fail(const struct pg_store *store, const struct pg_met *met,
                                  struct hf_error *err);
/* Slots of the table. */
enum hf_status pg_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err);
enum hf_status pg_end_quarantine(struct hf_store_base *base, const char *label, const char *reason,
                                 int64_t deadline_ns, struct hf_error *report);

/* listener.c */

/* A connection on which a waiter of ours is woken; NULL if there is none to be had, and never an
 * error: there is the poll. Ends with pg_listener_give. */
struct pg_conn *pg_listener_take(struct pg_store *store, const struct hf__patience *patience);
void pg_listener_give(struct pg_store *store, struct pg_conn *listener);

/* errors.c: what went wrong, in words; what an SQLSTATE means. Pure. */

#define PG_STATE_ROW_LOCKED "55P03" /* lock_not_available */
#define PG_STATE_READ_ONLY  "25006" /* read_only_sql_transaction */

/* The statement was rolled back for no fault of its own (a serialization failure, a deadlock, a
 * session that turned out to be shared) and may be sent once more. */
bool pg_error_again(const char *state);
/* It was rolled back because the waiter that it wakes cannot be notified. */
bool pg_error_no_wake(const char *state);
/* There is no schema, or an old one. */
bool pg_error_no_schema(const char *state);
/* Fills *err for a request about the lock (NULL: none) that was refused so; returns its status. */
enum hf_status pg_error_fail(const char *state, const char *why, const char *lock,
                             const char *shown, struct hf_error *err);

/* Fills *err: no answer came, status is HF_UNKNOWN or HF_CANCELLED. Returns the status that this
 * has for the caller: a request that changes nothing leaves nothing unknown. */
enum hf_status pg_no_answer(const struct pg_store *store, const struct pg_call *call,
                            enum hf_status status, const char *why, struct hf_error *err);
/* Fills *err: an answer that makes no sense. HF_CORRUPT. */
enum hf_status pg_nonsense(const struct pg_store *store, const char *lock, struct hf_error *err);
/* Fills *err: the claim's ttl is longer than the store grants. HF_INVALID. */
enum hf_status pg_above_max_ttl(const struct pg_store *store, const struct hf_claim *claim,
                                struct hf_error *err);
/* Fills *err: it is not held any more. HF_LOST. */
enum hf_status pg_lost(const struct pg_store *store, const char *name, enum hf_loss loss,
                       struct hf_error *err);

/* break.c */

/* Fills *grant, which may be NULL, and *err: the hold was broken; asks by whom. HF_LOST. */
enum hf_status pg_broken(struct pg_store *store, const struct hf_claim *claim,
                         struct hf_grant *grant, struct hf_error *err);
enum hf_status pg_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err);

/* acquire.c, hold.c, renew_many.c, list.c, record.c: slots of the table */
enum hf_status pg_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err);
enum hf_status pg_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err);
enum hf_status pg_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err);
enum hf_status pg_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err);
enum hf_status pg_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err);
enum hf_status pg_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report);
/* A statement that only reads, about one lock, and what a schema without it does not tell. */
struct pg_asked {
    const struct pg_statement *statement;
    const struct pg_params *params;
    const char *what;
};
/* HF_OK: the caller clears out->rows. */
enum hf_status pg_ask(struct pg_store *store, const struct hf_query *query,
                      const struct pg_asked *asked, struct pg_answer *out, struct hf_error *err);
enum hf_status pg_last_break(struct hf_store_base *base, const struct hf_query *query,
                             struct hf_revocation *out, struct hf_error *err);
enum hf_status pg_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err);
enum hf_status pg_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err);
enum hf_status pg_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err);
enum hf_status pg_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err);

enum hf_status pg_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err);
enum hf_status pg_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err);
enum hf_status pg_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err);

#endif /* HF_STORES_POSTGRES_POSTGRES_H */
