/* client.h - what the parts of libholdfast know about each other.
 *
 * One mutex per store guards its leases, their cores and the keeper's heap. It is held for a few
 * instructions at a time: never across a call into the store, a callback, or a wait. A lease that
 * is in the middle of such a call is marked busy, and whoever wants it too waits for `idle`. */
#ifndef HF_CLIENT_CLIENT_H
#define HF_CLIENT_CLIENT_H

#include "base/base.h"
#include "client/plugin.h"
#include "core/keep.h"
#include "core/wait.h"
#include <holdfast/store.h>
#include <pthread.h>

#define HF__REQUEST_MS  5000     /* how long a single request may take */
#define HF__OWNER_BATCH 16       /* owners drawn with one getrandom(2) */
#define HF__NOT_KEPT    SIZE_MAX /* heap position of a lease outside the heap */

struct hf__keeper {
    pthread_t thread;
    bool running;
    bool stop;
    int wake_fd;      /* eventfd: the earliest due time changed, or stop */
    int timer_fd;     /* timerfd on CLOCK_BOOTTIME */
    int either_fd;    /* epoll: one of the two is readable */
    int64_t armed_ns; /* when the thread wakes by itself */
    struct hf_lease **heap;
    size_t count;
    size_t reserved; /* places promised to acquires under way */
    size_t capacity;
};

struct hf_store {
    struct hf_store_base *base;
    struct hf__fork_mark mark; /* who opened it */
    char url[HF__URL_MAX];
    char label[HF_LABEL_MAX + 1]; /* the default label */

    pthread_mutex_t lock;
    pthread_cond_t idle; /* a lease stopped being busy, or a call ended */
    size_t refs;         /* hf_open's and one per lease */
    size_t calls;        /* threads inside base */
    bool closed;
    bool readonly;           /* by hf_open_readonly: no claims */
    struct hf_lease *leases; /* all that are not freed yet */
    struct hf__keeper keeper;
    unsigned char owners[HF__OWNER_BATCH][HF_OWNER_LEN / 2];
    size_t owners_left;
};

struct hf_lease {
    struct hf_store *store;
    struct hf_lease *next, *prev; /* in store->leases */
    struct hf__fork_mark mark;    /* the store's; outlives it in a forked child */
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    uint64_t token;
    uint64_t last_number; /* of its records; see record.c */
    bool adopted;         /* another process may have written records for it */
    bool writing;         /* a record is being put; the keeper does not mind */
    bool detached;
    /* The keeper has it only until all of several are taken: claims do not call it kept. */
    bool collecting;
    bool busy;          /* a call or callback for it is under way */
    bool closed;        /* hf_close has dealt with it */
    bool told;          /* on_lost was called */
    bool *freed;        /* inside on_lost: set when the callback releases it */
    pthread_t notifier; /* inside on_lost: the thread that runs it */
    struct hf__lease_core core;
    int64_t due_ns;                   /* when the keeper looks at it next */
    size_t heap_at;                   /* HF__NOT_KEPT if the keeper does not have it */
    int lost_fd;                      /* eventfd, -1 until asked for */
    struct hf_revocation *revocation; /* by whom it was broken; NULL: not, or not known */
    hf_lost_fn *on_lost;
    hf_renewed_fn *on_renewed;
    void *data;
};

/* An optional operation of a store's table, NULL if the store has none or was built before it
 * existed. */
#define HF__OPERATION(table, name)                                                                 \
    ((table)->size >= offsetof(struct hf_store_ops, name) + sizeof(table)->name ? (table)->name    \
                                                                                : NULL)

/* What an open store can do. */
static inline unsigned hf__features(struct hf_store_base *base)
{
    unsigned (*open_features)(struct hf_store_base *) = HF__OPERATION(base->ops, open_features);

    return open_features != NULL ? open_features(base) : base->ops->features;
}

/* registry.c: finds the store for a url, loads its plugin if need be, opens it. */
enum hf_status hf__registry_open(const char *url, struct hf_store_base **out, struct hf_error *err);
/* The ops for a url without opening it. */
enum hf_status hf__registry_find(const char *url, const struct hf_store_ops **out,
                                 struct hf_error *err);
/* What is meant if no store is named. */
static inline const char *hf__url_or_default(const char *url)
{
    return url != NULL && url[0] != '\0' ? url : "file:";
}

/* trace.c: wraps a store so that every call writes a line; on failure returns inner as it is. */
struct hf_store_base *hf__trace_wrap(struct hf_store_base *inner);

/* waiting.c: the pauses of src/core/wait.h */

/* A wait of that many milliseconds from now on, as the options of a call give it. */
struct hf__wait hf__wait_begin(int64_t wait_ms);
/* And back: what is left of it, as options say it. */
int64_t hf__wait_left_ms(int64_t until_ns);
/* After a question that was asked at asked_ns and answered with status and *err: tells on_trouble
 * (may be NULL), and sleeps. True: ask again. False: *status and *err are the caller's answer. */
bool hf__wait_go_on(struct hf__wait *wait, const struct hf_open_options *options, int64_t asked_ns,
                    enum hf_status *status, struct hf_error *err);

/* acquire.c, any.c, all.c */

/* Copies the options that a caller gave, all defaults for NULL. HF_OK, HF_INVALID. */
enum hf_status hf__check_options(const struct hf_acquire_options *given,
                                 struct hf_acquire_options *out, struct hf_error *err);

/* Whether the store can do that for the lock, or for those of which it is the first. Fills in the
 * ttl. HF_OK, HF_INVALID, HF_UNSUPPORTED. */
enum hf_status hf__check_lease(struct hf_store *store, const char *name,
                               struct hf_acquire_options *options, struct hf_error *err);

/* Asks for one of count locks, 2 or more, as the slot acquire_any documents it: by that slot if the
 * store has one, else by claims of one lock each. */
enum hf_status hf__any_ask(const struct hf_store *store, const struct hf_claim *claims,
                           size_t count, size_t *which, struct hf_grant *grant,
                           struct hf_error *err);
/* HF_OK, or HF_INVALID: no names, too many, one malformed or there twice, and *which that is. */
enum hf_status hf__check_names(const struct hf_store *store, const char *const *names, size_t count,
                               size_t *which, struct hf_error *err);

/* store.c */

/* Makes the handle around an open store; owns base from here on, even on failure. */
enum hf_status hf__store_wrap(struct hf_store_base *base, const char *url, struct hf_store **out,
                              struct hf_error *err);
/* Begins a call into base: refuses forked children and closed stores. Pairs with hf__store_end. */
enum hf_status hf__store_begin(struct hf_store *store, struct hf_error *err);
/* The same for a call that changes something: refuses stores that were opened read-only. */
enum hf_status hf__store_begin_use(struct hf_store *store, struct hf_error *err);
void hf__store_end(struct hf_store *store);
/* Drops a reference, with the lock held; unlocks, and frees the store with the last one. */
void hf__store_unref(struct hf_store *store);

/* HF_INVALID: a ttl above hf_store_max_ttl_ms. */
enum hf_status hf__ttl_too_long(const struct hf_store *store, const char *name, uint32_t ttl_ms,
                                struct hf_error *err);
/* HF_INVALID: not a valid name. */
enum hf_status hf__bad_name(struct hf_error *err);
/* HF_INVALID: not a valid ttl. */
enum hf_status hf__bad_ttl(const struct hf_store *store, const char *name, struct hf_error *err);

/* record.c: hf_record_put of a record's key, value and how long it is kept; what of a write is the
 * lease's is filled in. */
struct hf__record_task {
    struct hf_record_write write;
    /* Goes before it, with another key: with HF_OK both are on record, else this one may be. In one
     * step where the store can. NULL: nothing does. */
    const struct hf_record_write *first;
    bool forgettable; /* as the slot put_forgettable has it */
};
enum hf_status hf__record_write(struct hf_lease *lease, const struct hf__record_task *task,
                                struct hf_error *err);

/* forget.c: removes what the store keeps about a lock that is free and that nobody will use again,
 * as the slot forget documents it. HF_UNSUPPORTED: the store cannot. Not for applications: it ends
 * the promise that tokens of this name rise. */
enum hf_status hf__forget(struct hf_store *store, const char *name, struct hf_error *report);

/* lease.c: the parts of a lease's life that acquire.c and keeper.c share. */

/* A lease that is not granted yet and not in the store's list. */
struct hf_lease *hf__lease_new(struct hf_store *store, const char *name);
/* Frees a lease that hf__lease_publish was not called for. */
void hf__lease_discard(struct hf_lease *lease);
/* Puts a granted lease into the store's list. Lock held. */
void hf__lease_publish(struct hf_lease *lease);
/* The claim for renew and release of a lease. Lock held, if the keeper may know the lease. */
struct hf_claim hf__lease_claim(const struct hf_lease *lease, uint32_t ttl_ms, int64_t deadline_ns);
/* Takes the store's answer to a renewal that was sent after before_ns into the core. Lock held. */
void hf__lease_answered(struct hf_lease *lease, uint32_t ttl_ms, int64_t before_ns,
                        enum hf_status status, const struct hf_grant *grant);
/* One renewal at the store, lock held on entry and exit, dropped in between; the lease must be
 * busy. Updates the core. */
enum hf_status hf__lease_renew_once(struct hf_lease *lease, uint32_t ttl_ms, int64_t deadline_ns,
                                    struct hf_error *err);
/* Empty, in as few instructions as that takes: it is made ready for every renewal. */
static inline struct hf_revocation *hf__revocation_init(struct hf_revocation *revocation)
{
    revocation->by[0] = '\0';
    revocation->reason[0] = '\0';
    revocation->at_ms = 0;
    return revocation;
}
/* The lease was broken: remembers by whom. Lock held. */
void hf__lease_broken(struct hf_lease *lease, const struct hf_revocation *revocation);
/* HF_LOST, and why. */
enum hf_status hf__lease_lost(const struct hf_lease *lease, struct hf_error *err);
/* HF_INVALID: a forked child has a lease of its parent's. */
enum hf_status hf__lease_not_for_children(const struct hf_lease *lease, struct hf_error *err);
/* Makes the lost descriptor readable. Lock held. */
void hf__lease_signal(struct hf_lease *lease);
/* Waits until the lease is not busy. Lock held. */
void hf__lease_wait_idle(struct hf_lease *lease);
/* Calls on_lost if there is one and it was not called before; lock held on entry and exit, dropped
 * in between. Returns false if the callback released the lease: it must not be touched any more. */
bool hf__lease_notify(struct hf_lease *lease);

/* The end of a lease, in two halves. */
struct hf__release {
    struct hf_lease *lease;
    struct hf_claim claim;
    bool reachable;         /* the store is still open */
    bool held;              /* to the end, as far as is known here */
    struct hf_begun *begun; /* the store was asked already; NULL: not yet */
    enum hf_loss loss;      /* when it is over: why it was not held */
};
/* Takes the lease out of the keeper's hands. False: that would mean to wait, and nothing was done;
 * never if waits. */
bool hf__release_begin(struct hf__release *r, struct hf_lease *lease, bool waits);
/* Asks the store, and frees the lease. */
enum hf_status hf__release_end(struct hf__release *r, struct hf_error *err);

/* keeper.c; all with the store's lock held */

/* Promises a place in the heap and starts the thread. Pairs with keeper_add or keeper_unreserve. */
enum hf_status hf__keeper_reserve(struct hf_store *store, struct hf_error *err);
void hf__keeper_unreserve(struct hf_store *store);
/* Takes the lease into a reserved place. */
void hf__keeper_add(struct hf_lease *lease);
/* Moves a lease whose due time changed. */
void hf__keeper_update(struct hf_lease *lease);
void hf__keeper_remove(struct hf_lease *lease);
/* Ends the thread, for good; drops the lock in between. */
void hf__keeper_stop(struct hf_store *store);
/* Closes what the thread sleeps on; no thread uses it. */
void hf__keeper_close_fds(struct hf__keeper *keeper);

#endif /* HF_CLIENT_CLIENT_H */
