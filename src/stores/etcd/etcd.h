/* etcd.h - the store, as the parts of the plugin know it.
 *
 *   store.c    the table of operations: open, close
 *   acquire.c  taking a lock, or one of several
 *   queue.c    waiting for it; enter.c getting into the queue, party.c into several
 *   hold.c     renewing and releasing it
 *   renew_many.c  renewing many at once
 *   break.c    breaking it
 *   fence.c    fenced keys
 *   list.c     what is held; scan.c how that much is read
 *   record.c   how records look; record_put.c, record_read.c the slots; date.c etcd's clock
 *   lease.c    etcd's leases: one per ttl class, and private ones
 *   holds.c    which key of ours is on which lease; known.c the same for many threads
 *   audit.c    what can be learned about the cluster without a change
 *   listener.c  hears when a key of ours is deleted; watch.c how
 *   call.c     one request and its answer, by whichever server
 *   http.c     one HTTP exchange; text.c, answer.c, layout.c what is in it; errors.c errors
 */
#ifndef HF_STORES_ETCD_ETCD_H
#define HF_STORES_ETCD_ETCD_H

#include "stores/etcd/answer.h"
#include "stores/etcd/holds.h"
#include "http/http.h"
#include "stores/etcd/text.h"
#include "stores/etcd/errors.h"
#include <pthread.h>

enum {
    EC_CLASSES_MAX = 32,   /* ttl classes with a lease at a time */
    EC_WAIT_LEASE_S = 5,   /* the ttl of the lease that waiters' keys are on */
    EC_WAIT_TTL_MS = 3500, /* the part of it that a waiter may count on */
    EC_UNDO_MS = 3000,     /* what taking back what we put may take */
    EC_START_MAX = 4096    /* bytes of a key that a page may begin behind */
};

/* What a shared lease is for. */
enum ec_use {
    EC_USE_ATTEMPT, /* keys of holds that were not renewed yet */
    EC_USE_KEPT,    /* keys of holds that were */
    EC_USE_WAITING  /* keys of waiters */
};

/* What an answer says of a lease's life. */
struct ec_life {
    int64_t sent_at_ns;
    int64_t granted_ms;
    int64_t left_ms; /* ec_lease_left alone tells */
};

/* The lease of a ttl class. */
struct ec_class {
    uint32_t ttl_s; /* as asked for; 0: this entry is free */
    enum ec_use use;
    int64_t id;          /* 0: has to be granted */
    struct ec_life life; /* by the last grant or keep-alive; etcd may grant more than asked for */
    int64_t used_ns;
};

struct ec_store {
    struct hf_store_base base;
    struct ec_url url;
    struct hf__http_pool pool;

    pthread_mutex_t lock; /* guards what follows; never held across a request */
    size_t at;            /* the endpoint to ask */
    char auth[HF__HTTP_AUTH_MAX];
    unsigned auth_serial; /* counts tokens, so that two threads do not both fetch one */
    char cluster[24];
    bool contended; /* the last try found the lock taken */
    struct ec_class classes[EC_CLASSES_MAX];
    struct ec_holds holds;
    struct ec_listener *listener; /* NULL: nobody listens */
    int64_t date_ms;              /* the clock of a server, as an answer told it last */
    int64_t dated_ns;             /* when that came; 0: never */
};

/* call.c */

struct ec_call {
    const char *lock; /* for error texts; NULL: none */
    const char *path;
    const struct ec_text *body;
    struct hf__patience patience;
    bool repeatable; /* reads, and what may be executed twice and late without harm */
    bool signing_in; /* fetches the auth token itself */
    bool may_shrink; /* EC_TOO_LONG ends it: there is less to ask for */
    bool hasty;      /* repeatable, and worth asking several servers soon */
    bool dated;      /* the server's clock is wanted too */
};

struct ec_answer {
    cJSON *json;        /* the caller frees it */
    int64_t sent_at_ns; /* before the request that was answered left */
    int64_t date_ms;    /* dated: when it was answered, by the server's clock; 0: it did not tell */
};

/* Sends the request to a server and gets its answer. Another server is asked if the first did
 * certainly not execute it, or if it is repeatable.
 * HF_OK: answered, *out filled in. HF_UNKNOWN: it may have been executed. HF_UNREACHABLE,
 * HF_DENIED, HF_CANCELLED, HF_UNSUPPORTED, HF_CORRUPT, HF_NOMEM: it was not. *verdict (may be
 * NULL) says more about a refusal. */
enum hf_status ec_call(struct ec_store *store, const struct ec_call *call, struct ec_answer *out,
                       enum ec_verdict *verdict, struct hf_error *err);
void ec_answer_release(struct ec_answer *answer);

/* pool.c */

/* Copies the current endpoint and auth token for a watch. */
void ec_where(struct ec_store *store, char endpoint[EC_ENDPOINT_MAX], char auth[HF__HTTP_AUTH_MAX]);
/* Sends a request without waiting for the answer: perhaps nobody hears it. */
void ec_send_unheard(struct ec_store *store, const char *path, const struct ec_text *body);
/* Turns from an endpoint that was of no use to the next one, unless another thread has. */
void ec_turn_away(struct ec_store *store, const char *endpoint);

/* What the requests about a lock have in common. */
struct ec_request {
    struct ec_store *store;
    const char *lock; /* for error texts; NULL: none */
    struct hf__patience patience;
    struct hf_error *err;
};

/* A call for a request: for what must not be sent twice, and for what may be (see repeatable). */
static inline struct ec_call ec_call_once(const struct ec_request *request, const char *path,
                                          const struct ec_text *body)
{
    return (struct ec_call){
        .lock = request->lock, .path = path, .body = body, .patience = request->patience};
}
static inline struct ec_call ec_call_repeatable(const struct ec_request *request, const char *path,
                                                const struct ec_text *body)
{
    struct ec_call call = ec_call_once(request, path, body);

    call.repeatable = true;
    return call;
}

/* lease.c */

/* A lease that keys may be put on. What is put there is safe for ttl_ms from sent_at_ns. */
struct ec_lease {
    int64_t id;
    int64_t sent_at_ns;
};

/* The lease of the class of ttl_ms, fresh enough to promise ttl_ms from now: as a rule without any
 * request. For waiters ttl_ms is ignored. */
enum hf_status ec_lease_class(const struct ec_request *request, uint32_t ttl_ms, enum ec_use use,
                              struct ec_lease *out);
/* A number that no other lease has. */
int64_t ec_lease_draw(const struct ec_store *store);
/* A lease for one key alone. id 0: any. */
enum hf_status ec_lease_private(const struct ec_request *request, int64_t id, uint32_t ttl_ms,
                                struct ec_lease *out);
/* The id that the private lease of an owner has, unless the hold is detached: a claim for others
 * may come twice, by two clients, and neither may end or keep alive what the other one has. It is
 * made of the whole owner: those of one of several locks differ in their last byte only. */
int64_t ec_lease_id(const char *owner);
/* Keeps a lease alive. HF_LOST: it is gone. */
enum hf_status ec_lease_keep(const struct ec_request *request, int64_t id, struct ec_life *out);
/* What is left of a lease and what was granted. HF_LOST: it is gone. */
enum hf_status ec_lease_left(const struct ec_request *request, int64_t id, struct ec_life *out);
/* Ends a lease that nothing is on any more, without waiting for the answer. If it is not heard, the
 * lease ends with its ttl. */
void ec_lease_drop(struct ec_store *store, int64_t id);
/* Ends a lease and what is on it, as well as can be. */
void ec_lease_revoke(struct ec_store *store, int64_t id, const struct hf__patience *patience);
/* No key is put on it and nobody keeps it alive from now on: holds move to a new one with their
 * next renewal, and whatever else is on it ends with it. */
void ec_lease_retire(struct ec_store *store, int64_t id);
/* Drops the class leases that no hold is on, before the store is closed. */
void ec_lease_end_idle(struct ec_store *store);

/* known.c */

/* Takes in what an answer said of the key of owner. *spare goes into the table if the owner has no
 * entry yet. */
void ec_hold_note(struct ec_store *store, struct ec_hold **spare, const char *owner,
                  const struct ec_hold_news *news);
/* The lease it was on; 0: it had no entry. */
int64_t ec_hold_forget(struct ec_store *store, const char *owner);

/* What the table says of an owner; all zero if it has no entry. */
struct ec_known {
    bool waited;
    bool expired; /* was not renewed in time */
    bool gone;    /* its key was heard to be deleted */
    int64_t lease;
    uint64_t token;
};
/* Whether owner has an entry. */
bool ec_hold_known(struct ec_store *store, const char *owner, struct ec_known *out);

/* acquire.c, queue.c, hold.c, renew_many.c, list.c: the slots */

/* One attempt to take a lock. */
struct ec_attempt {
    struct ec_store *store;
    const struct hf_claim *claim;
    struct hf_error *err;
    struct hf__patience patience;
    int64_t budget_ns; /* what a single request may take */
    struct ec_keys keys;
    struct ec_hold *spare;          /* for the table of holds; NULL once it is in there */
    int64_t lease_id;               /* that its lease has, if that is a private one */
    char holder[HF_LABEL_MAX + 64]; /* who is in the way, for the text */
};

/* store.c */

/* A store that has asked no server yet. */
enum hf_status ec_store_new(const struct hf_host *host, const char *url, struct ec_store **out,
                            struct hf_error *err);
void ec_store_free(struct ec_store *store, bool forked);
/* A first request, which any user of the store may make. */
enum hf_status ec_meet(struct ec_store *store, int64_t deadline_ns, struct ec_answer *answer,
                       struct hf_error *err);
enum hf_status ec_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report);
enum hf_status ec_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err);
enum hf_status ec_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err);
enum hf_status ec_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err);
enum hf_status ec_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err);
enum hf_status ec_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err);
enum hf_status ec_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err);
enum hf_status ec_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err);
enum hf_status ec_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err);

/* record_put.c, record_read.c: the slots of records */
enum hf_status ec_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err);
enum hf_status ec_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err);
enum hf_status ec_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err);

/* date.c */

/* Takes in what a dated answer said. */
void ec_date_note(struct ec_store *store, const struct ec_answer *answer);
/* The clock of the server that told it last, as it is now by our count; whole seconds, rounded down
 * and never ahead of it. Without a request if an answer told it within the last minute. */
enum hf_status ec_date_now(const struct ec_request *request, int64_t *out_ms);
/* An answer that does not tell the server's clock: HF_UNSUPPORTED. */
enum hf_status ec_date_missing(const struct ec_request *request);

/* scan.c */

/* A range of keys that is read page by page. */
struct ec_scan {
    struct ec_request request;
    int page;                     /* keys to ask for */
    char start[EC_START_MAX + 1]; /* of the next page */
    size_t start_len;
    char end[EC_START_MAX + 1];
    size_t end_len;
    bool more; /* there is a next page */
};
/* All keys that begin with the first len bytes of start, at most EC_START_MAX. */
void ec_scan_init(struct ec_scan *scan, const struct ec_request *request, const char *start,
                  size_t len, int page);
/* Reads the next page: the kvs of answer->json, which the caller releases, and its date if dated.
 * A page that was too long comes back as NULL, and a shorter one is next. */
enum hf_status ec_scan_page(struct ec_scan *scan, bool dated, struct ec_answer *answer);

/* fence.c */
enum hf_status ec_fence(struct hf_store_base *base, const struct hf_fence_request *request,
                        struct hf_fence_mark *mark, struct hf_error *err);

/* waiters.c */
enum hf_status ec_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err);

/* break.c */
enum hf_status ec_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err);
/* The hold was broken: HF_LOST, and by whom; grant may be NULL. */
enum hf_status ec_broken(struct ec_store *store, const struct hf_claim *claim,
                         const struct hf_revocation *revocation, struct hf_grant *grant,
                         struct hf_error *err);
/* The same for one whose key is there, with the mark. The lease it is on is retired. */
enum hf_status ec_revoked(struct ec_store *store, const struct hf_claim *claim,
                          const struct ec_kv *kv, struct hf_grant *grant, struct hf_error *err);
/* Whether there is a notice about that hold of request->lock. */
bool ec_notice_find(const struct ec_request *request, uint64_t token, struct hf_revocation *out);

/* A lease for the hold that the attempt is about: of its class, or its own. */
enum hf_status ec_attempt_lease(const struct ec_attempt *attempt, const struct ec_request *request,
                                struct ec_lease *out);
/* The attempt has become a hold on that lease: notes it, and fills in *grant. */
void ec_attempt_granted(struct ec_attempt *attempt, const struct ec_lease *lease, uint64_t token,
                        struct hf_grant *grant);
/* Waits in the queues of count attempts, which differ in name and owner only, until one of the
 * locks is ours (*which tells) or the wait is over. */
enum hf_status ec_queue_wait(struct ec_attempt *attempts, size_t count, size_t *which,
                             struct hf_grant *grant);
/* Makes out who is in the way. */
void ec_note_holder(struct ec_attempt *attempt, const struct ec_kv *kv);
enum hf_status ec_busy(const struct ec_attempt *attempt);

/* keys.c */

bool ec_is_kept(const struct hf_claim *claim);
/* The value of our key: of the kind that the claim asks for, or waiting. */
void ec_value(const struct ec_store *store, const struct hf_claim *claim, char kind,
              char out[EC_VALUE_MAX]);
char ec_kind(const struct hf_claim *claim);

/* Our own key and the head of the queue, read in one go. keys is set to the one that is there. */
struct ec_inspection {
    bool own_there;
    struct ec_kv own;
    bool head_there;
    struct ec_kv head;
    bool before_there; /* the one right in front of us; only if token was given */
    struct ec_kv before;
    uint64_t revision; /* of the store, when it was so */
};
enum hf_status ec_inspect(const struct ec_request *request, struct ec_keys *keys, uint64_t token,
                          struct ec_inspection *out);

/* Deletes our key under a compare on its owner and its create revision. */
struct ec_deletion {
    const struct ec_keys *keys;
    uint64_t token; /* the create revision; 0: whichever it is */
    bool known;     /* that revision was granted to that owner, one implies the other */
    /* It is to go, whoever deletes it: then the request may be sent again, because no owner ever
     * puts that key twice. */
    bool for_good;
    struct ec_kv *deleted; /* gets what was there; NULL: nobody asks */
    bool was_there;        /* tells */
};
enum hf_status ec_delete(const struct ec_request *request, struct ec_deletion *deletion);

/* Puts our key on another lease, if nothing happened to it since it was seen. */
struct ec_move {
    const struct ec_keys *keys;
    const struct ec_kv *seen;
    bool at_head; /* and only if nobody is before us */
    const char *value;
    int64_t lease;
    const struct ec_attempt *others; /* whose keys are deleted with it: all but its own */
    size_t other_count;
    char *buffer; /* for a request about many keys; else NULL */
    size_t buffer_size;
    bool moved;            /* tells */
    uint64_t mod_revision; /* if it was moved */
    enum ec_verdict verdict;
};
enum hf_status ec_move(const struct ec_request *request, struct ec_move *move);

#endif /* HF_STORES_ETCD_ETCD_H */
