/* holdfast.h - a distributed lock with fencing tokens. Linux only.
 *
 * A lock is a name in a store; at most one owner holds it at a time. Taking it gives a lease: a
 * promise that ends at a deadline unless it is renewed in time. A background keeper renews it.
 * Every acquisition carries a fencing token, larger than every token of that lock before it; hand
 * it to the resource you write to and let the resource refuse a smaller one. The lock keeps
 * clients from stampeding, the fence keeps the data right.
 *
 *     struct hf_store *store;
 *     struct hf_lease *lease;
 *     struct hf_error  err;
 *
 *     if (hf_open("file:/var/lib/jobs", &store, &err) != HF_OK)
 *         die(err.text);
 *     if (hf_acquire(store, "nightly", NULL, &lease, &err) == HF_OK) {
 *         work(hf_lease_token(lease));
 *         if (hf_release(lease, &err) != HF_OK)
 *             complain(err.text);
 *     }
 *     hf_close(store);
 *
 * Rules that hold for every call:
 *   - Functions that can fail return an enum hf_status, and fill *err if err is not NULL. On HF_OK
 *     the error is cleared (opening a store may leave a warning in its text). Out-parameters are
 *     set to NULL on failure.
 *   - A store and a lease may be used from several threads at once, but a lease must not be used
 *     by one thread while another releases it.
 *   - A store belongs to the process that opened it. After fork() the child must open its own:
 *     every call on the parent's store or leases is refused with HF_INVALID, and hf_close,
 *     hf_release and hf_leave only free memory there.
 *   - Opening one store twice in a process gives two independent clients that exclude each other.
 *   - Strings passed in are copied. Strings handed out live as long as the handle they came from.
 *   - All descriptors are close-on-exec. No signal handler is installed, and SIGPIPE is never
 *     raised.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_VERSION_MAJOR  0
#define HF_VERSION_MINOR  2
#define HF_VERSION_PATCH  0
#define HF_VERSION_STRING "0.2.0"

#if defined(__GNUC__)
#define HF_API        __attribute__((visibility("default")))
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HF_API
#define HF_MUST_CHECK
#endif

/* Limits, the same in every store. */
enum {
    HF_NAME_MAX = 200,         /* bytes in a lock's name */
    HF_LABEL_MAX = 160,        /* bytes in a label; a longer one is cut */
    HF_REASON_MAX = 160,       /* bytes in the reason of a break; a longer one is cut */
    HF_OWNER_LEN = 32,         /* hex digits in an owner */
    HF_TTL_DEFAULT_MS = 30000, /* the ttl when none is given */
    HF_TTL_MIN_MS = 100,       /* the shortest ttl */
    HF_TTL_MAX_MS = 86400000,  /* the longest ttl: a day */
    HF_ERROR_TEXT_SIZE = 256   /* bytes of text in a struct hf_error */
};

/* What a call can answer, in three families that are never folded into each other:
 * yes; no; and "don't know" or "can't". X(symbol, value, short text) */
#define HF_STATUS_MAP(X)                                                                           \
    X(HF_OK, 0, "ok")                                                                              \
    X(HF_BUSY, 1, "held by another")                                                               \
    X(HF_LOST, 2, "was held, no longer is")                                                        \
    X(HF_STALE, 3, "token refused by a fence")                                                     \
    X(HF_CANCELLED, 4, "cancelled")                                                                \
    X(HF_UNKNOWN, 5, "may have taken effect")                                                      \
    X(HF_UNREACHABLE, 6, "store unreachable")                                                      \
    X(HF_QUARANTINE, 7, "store is new and grants nothing yet")                                     \
    X(HF_DENIED, 8, "permission denied")                                                           \
    X(HF_INVALID, 9, "invalid argument")                                                           \
    X(HF_UNSUPPORTED, 10, "not supported by this store")                                           \
    X(HF_CORRUPT, 11, "store is damaged")                                                          \
    X(HF_NOMEM, 12, "out of memory")

enum hf_status {
#define X(symbol, value, text) symbol = value,
    HF_STATUS_MAP(X)
#undef X
};

/* Why a lease was lost. X(symbol, value, short text) */
#define HF_LOSS_MAP(X)                                                                             \
    X(HF_LOSS_NONE, 0, "not lost")                                                                 \
    X(HF_LOSS_EXPIRED, 1, "it expired before it was renewed")                                      \
    X(HF_LOSS_TAKEN, 2, "another owner holds the lock")                                            \
    X(HF_LOSS_BROKEN, 3, "an operator broke the lock")                                             \
    X(HF_LOSS_UNREACHABLE, 4, "the store could not be reached before the deadline")                \
    X(HF_LOSS_FORGOTTEN, 5, "the store no longer knows the lock")                                  \
    X(HF_LOSS_CLOSED, 6, "the store was closed")

enum hf_loss {
#define X(symbol, value, text) symbol = value,
    HF_LOSS_MAP(X)
#undef X
};

/* The caller's error: plain English that names the lock, the store with its password removed, and
 * what to do. Never holds a password or an owner. */
struct hf_error {
    enum hf_status code;
    int64_t retry_after_ms; /* with HF_QUARANTINE: when to try again; else 0 */
    char text[HF_ERROR_TEXT_SIZE];
};

struct hf_store; /* an open store; thread-safe */
struct hf_lease; /* a held lock; thread-safe */

/* "held by another" for HF_BUSY, and so on. Never NULL, even for values that are not a status. */
HF_API const char *hf_status_text(enum hf_status status);
/* "HF_BUSY" for HF_BUSY, and so on. Never NULL. */
HF_API const char *hf_status_name(enum hf_status status);
HF_API const char *hf_loss_text(enum hf_loss loss);
/* The version of the library that runs, as opposed to HF_VERSION_STRING that was compiled in. */
HF_API const char *hf_version(void);

/* hf_open - open the store that url names.
 *
 * url: "file:DIR", or another scheme whose plugin is installed. NULL or "" or "file:" means the
 * embedded store in its default directory ($HOLDFAST_DIR, else $STATE_DIRECTORY/holdfast, else
 * /var/lib/holdfast for root, else $XDG_STATE_HOME/holdfast, else ~/.local/state/holdfast).
 * Blocks for a few seconds at most. The caller owns *out and ends it with hf_close.
 *
 * HF_OK           if err->text is not empty, it is a warning worth showing, about a password that
 *                 may have gone to anybody for instance
 * HF_INVALID      the url is malformed
 * HF_UNSUPPORTED  no plugin for the scheme, a network file system, another time namespace
 * HF_DENIED       the directory, file or server denies access, or is not safe to use
 * HF_UNREACHABLE  no server answers; directory cannot be created; disk full
 * HF_CORRUPT      the store's data is damaged; the text says how to repair it
 * HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_open(const char *url, struct hf_store **out,
                                            struct hf_error *err);

/* Called from the thread that waits in hf_acquire or hf_open_waiting, with no lock held, each time
 * the store does not answer, or is in quarantine, and the wait goes on: why->code is
 * HF_UNREACHABLE, HF_UNKNOWN or HF_QUARANTINE. Must not call into the store. */
typedef void hf_trouble_fn(const struct hf_error *why, void *data);

struct hf_open_options {
    size_t size;     /* sizeof(struct hf_open_options) */
    int64_t wait_ms; /* 0: do not wait; < 0: wait without limit */
    int cancel_fd;   /* 0: none; else stop waiting when it becomes readable */
    hf_trouble_fn *on_trouble;
    void *data; /* handed to it */
};

/* hf_open_waiting - open a store that may still be down.
 *
 * As hf_open; but while the wait has time left, a store that answers HF_UNREACHABLE or
 * HF_QUARANTINE is tried again, by the rule of hf_acquire. HF_CANCELLED: cancel_fd became readable
 * between two tries. */
HF_API HF_MUST_CHECK enum hf_status hf_open_waiting(const char *url,
                                                    const struct hf_open_options *options,
                                                    struct hf_store **out, struct hf_error *err);

/* hf_open_readonly - open a store for hf_list, hf_inspect and reading records only.
 *
 * As hf_open, but nothing is made, neither a directory nor anything at a server: looking leaves no
 * trace, and no other user of the store notices. A store that is not there yet opens, and nothing
 * is held in it; one that comes into being later is seen by those who open it then. Whatever would
 * change the store (hf_acquire, hf_adopt, hf_fence_key) is refused with HF_INVALID, and
 * hf_store_life_fd is -1. Ends with hf_close. */
HF_API HF_MUST_CHECK enum hf_status hf_open_readonly(const char *url, struct hf_store **out,
                                                     struct hf_error *err);

/* hf_close - close a store and free it; takes NULL.
 *
 * Live leases are lost with reason HF_LOSS_CLOSED: they are released in the store, except detached
 * ones, which stay held for their ttl. on_lost is called for the others. The handles stay valid
 * and must still be given to hf_release or hf_leave, which then only free them.
 * Joins the keeper: must not be called from on_lost or on_renewed. No other thread may be inside
 * a call on the store itself. */
HF_API void hf_close(struct hf_store *store);

/* The url that was opened, with any password removed. */
HF_API const char *hf_store_url(const struct hf_store *store);

/* What this open store can do: a set of HF_FEATURE_ bits. */
enum {
    HF_FEATURE_FAIR = 1 << 0,           /* waiters are served in the order they came */
    HF_FEATURE_CRASH_RELEASE = 1 << 1,  /* a dead holder's lock is free before its ttl ends */
    HF_FEATURE_DURABLE_TOKENS = 1 << 2, /* token order survives loss of power without any clock */
    HF_FEATURE_DETACHED = 1 << 3,       /* a lease can outlive the process that took it */
    HF_FEATURE_RENEW_TTL = 1 << 4,      /* hf_renew may change the ttl */
    HF_FEATURE_RECORDS = 1 << 5,        /* locks carry records: holdfast/record.h */
    HF_FEATURE_BREAK = 1 << 6           /* hf_break */
};
HF_API unsigned hf_store_features(const struct hf_store *store);

/* The longest ttl that the store grants: HF_TTL_MAX_MS, or less where the store's URL or its server
 * says so. A lease that is taken without a ttl gets the smaller of HF_TTL_DEFAULT_MS and this. */
HF_API uint32_t hf_store_max_ttl_ms(const struct hf_store *store);

/* hf_store_identity - who the store is, as opposed to how its URL was typed: the cluster, database,
 * node or directory behind it. What fences remember as the issuer of their tokens. Changes when the
 * data it is kept in is lost; a copy of the engine's data has the same one. Blocks for a few
 * seconds at most; no other call waits for it.
 *
 * HF_OK           out is a text of at most HF_IDENTITY_SIZE - 1 bytes
 * HF_UNSUPPORTED  the store cannot tell
 * HF_UNKNOWN      there is nothing yet to tell it by: it was never used
 * HF_UNREACHABLE, HF_DENIED, HF_NOMEM */
enum { HF_IDENTITY_SIZE = 128 };
HF_API HF_MUST_CHECK enum hf_status hf_store_identity(struct hf_store *store,
                                                      char out[HF_IDENTITY_SIZE],
                                                      struct hf_error *err);

/* hf_store_life_fd - the descriptor that stands for this client's life, or -1.
 *
 * In a store with crash release, the locks of a client are free at once when the last process
 * that has this descriptor open is gone. A program that starts helpers on behalf of a lock lets
 * them inherit it (clear FD_CLOEXEC in the child). It belongs to the store: do not read, write or
 * close it. -1: the store has no crash release. Creates the descriptor if need be. */
HF_API int hf_store_life_fd(struct hf_store *store);

/* Called from the keeper's thread, at most once per lease, with no lock held. When it runs, the
 * lease is no longer valid. It may call hf_release or hf_leave on the lease (which frees it; no
 * other thread may use it then), but not hf_close. Return soon: the keeper waits. */
typedef void hf_lost_fn(struct hf_lease *lease, enum hf_loss reason, void *data);

/* Called from the keeper's thread after each renewal, with no lock held: remaining_ms as
 * hf_lease_remaining_ms would answer now. Must not release or renew the lease. */
typedef void hf_renewed_fn(struct hf_lease *lease, int64_t remaining_ms, void *data);

struct hf_acquire_options {
    size_t size;       /* sizeof(struct hf_acquire_options) */
    uint32_t ttl_ms;   /* 0: HF_TTL_DEFAULT_MS, or hf_store_max_ttl_ms if that is less */
    int64_t wait_ms;   /* 0: do not wait; < 0: wait without limit */
    const char *label; /* what people see; NULL: host/pid/program */
    int cancel_fd;     /* 0: none; else stop waiting when it becomes readable */
    bool no_keeper;    /* true: the caller renews, with hf_renew or later hf_keep */
    bool detached;     /* true: outlives this process, no crash release, no keeper */
    hf_lost_fn *on_lost;
    hf_renewed_fn *on_renewed;
    void *data; /* handed to all callbacks */
    hf_trouble_fn *on_trouble;
    /* Of holdfast/several.h only: hf_acquire_any tries the names from a random one on; */
    bool spread;
    const char *wait_above; /* hf_acquire_all waits for names above this only; NULL: for all */
};

/* hf_acquire - take a lock.
 *
 * name: 1 to HF_NAME_MAX bytes, no control characters. options: NULL means all defaults: no
 * waiting, ttl 30s (or less, see hf_store_max_ttl_ms), kept by the keeper. Every attempt has a
 * fresh owner. Blocks for wait_ms and the time of a request (a few seconds when the store does not
 * answer). The caller owns *out and ends it with hf_release (or hf_leave).
 *
 * A wait outlives whatever may pass before it is over. If the store cannot be reached, does not
 * answer, or is in quarantine, what it may have granted is taken back, and after a pause (a tenth
 * of a second at first, at most 2s, cut short by cancel_fd) it is asked again with a fresh owner,
 * at the end of the queue. on_trouble hears of it. When the wait is over, the last answer is
 * returned. Without a wait the first answer is.
 *
 * HF_OK           held; the lease is valid until its deadline
 * HF_BUSY         another holds it, and did until the wait was over; the text says who
 * HF_CANCELLED    cancel_fd became readable
 * HF_UNKNOWN      a reply never came: the lock may have been taken. A release was sent as well as
 *                 can be; nothing is held as far as this client is concerned
 * HF_QUARANTINE   the store is new and may have forgotten a grant; err->retry_after_ms says when
 *                 it opens
 * HF_UNREACHABLE  no server answers, or it cannot serve us now
 * HF_DENIED, HF_INVALID, HF_UNSUPPORTED, HF_CORRUPT, HF_NOMEM   waiting would not help: at once */
HF_API HF_MUST_CHECK enum hf_status hf_acquire(struct hf_store *store, const char *name,
                                               const struct hf_acquire_options *options,
                                               struct hf_lease **out, struct hf_error *err);

/* hf_adopt - take over a detached lease, by its owner and token.
 *
 * Asks the store whether owner holds name with that token; nothing is extended. The new handle has
 * no keeper. Ends with hf_release, or hf_leave to let it live on.
 *
 * HF_OK           it is held, for hf_lease_remaining_ms
 * HF_LOST         not held by this owner (any more)
 * and what hf_renew answers otherwise */
HF_API HF_MUST_CHECK enum hf_status hf_adopt(struct hf_store *store, const char *name,
                                             const char *owner, uint64_t token,
                                             struct hf_lease **out, struct hf_error *err);

/* The fencing token: never 0, larger than that of every earlier hold of this lock. */
HF_API uint64_t hf_lease_token(const struct hf_lease *lease);
HF_API const char *hf_lease_name(const struct hf_lease *lease);
/* 32 hex digits. A secret: whoever has it can renew and release the lock. */
HF_API const char *hf_lease_owner(const struct hf_lease *lease);
HF_API uint32_t hf_lease_ttl_ms(const struct hf_lease *lease);

/* Milliseconds of validity left, rounded down, by CLOCK_BOOTTIME. <= 0: do not write any more.
 * Never blocks. Also <= 0 once the lease is lost. */
HF_API int64_t hf_lease_remaining_ms(const struct hf_lease *lease);

/* HF_LOSS_NONE while held, then the first reason. Never blocks. */
HF_API enum hf_loss hf_lease_loss(const struct hf_lease *lease);

/* Who broke a hold, when and why. */
struct hf_revocation {
    char by[HF_LABEL_MAX + 1];      /* a label; "" if not known */
    char reason[HF_REASON_MAX + 1]; /* "" if none was given */
    int64_t at_ms;                  /* since 1970, for display; 0 if not known */
};

/* True: the lease was broken, and *out says by whom. Never blocks; on_lost may call it. */
HF_API bool hf_lease_revocation(const struct hf_lease *lease, struct hf_revocation *out);

/* A descriptor that becomes and stays readable once the keeper knows the lease is lost. Made at the
 * first call, owned by the lease: do not read or close it. -1 if no descriptor can be had. */
HF_API int hf_lease_fd(struct hf_lease *lease);

/* hf_keep - let the keeper renew a lease that was taken with no_keeper, from now on.
 * HF_OK, even if it is kept already; HF_LOST; HF_INVALID for detached leases; HF_NOMEM. */
HF_API HF_MUST_CHECK enum hf_status hf_keep(struct hf_lease *lease, struct hf_error *err);

/* hf_renew - extend a lease to ttl_ms from now (0: the ttl it has).
 *
 * Extends only what is still held; never takes a lock anew, and never past the deadline even if
 * the store would agree. Blocks until the store answers, or the deadline.
 *
 * HF_OK           valid for ttl_ms less drift from the moment before the request was sent
 * HF_LOST         the lease is over; hf_lease_loss says why
 * HF_UNKNOWN, HF_UNREACHABLE, HF_QUARANTINE   no answer: the old deadline stands, try again
 * HF_INVALID      a ttl out of range
 * HF_UNSUPPORTED  the store cannot change the ttl (see HF_FEATURE_RENEW_TTL) */
HF_API HF_MUST_CHECK enum hf_status hf_renew(struct hf_lease *lease, uint32_t ttl_ms,
                                             struct hf_error *err);

/* hf_release - give the lock back and free the lease, whatever is returned; takes NULL (HF_OK).
 * What was lost is given back too, as far as it is still ours: a broken hold ends with it.
 *
 * Waits for a renewal or callback of this lease under way in the keeper, so on_lost is never
 * running or called after it returns (unless it is on_lost that called it).
 *
 * HF_OK           it was held to the end, and is free now
 * HF_LOST         it was not held any more: work done since the deadline was unprotected
 * HF_UNKNOWN, HF_UNREACHABLE   no answer: the lock is free when its ttl ends at the latest */
HF_API HF_MUST_CHECK enum hf_status hf_release(struct hf_lease *lease, struct hf_error *err);

/* hf_release_why - as hf_release, and says why the lease was lost: afterwards nobody can be asked.
 * *loss: HF_LOSS_NONE if it was held to the end, as far as this client knows; with HF_LOST that
 * means that only the store knew better. */
HF_API HF_MUST_CHECK enum hf_status hf_release_why(struct hf_lease *lease, enum hf_loss *loss,
                                                   struct hf_error *err);

/* hf_leave - free the handle and leave the lock held in the store until its ttl ends; takes NULL.
 * For detached leases, whose owner and token someone else will present. */
HF_API void hf_leave(struct hf_lease *lease);

/* One lock as a listing shows it. Strings live until the callback returns. */
struct hf_lock_info {
    size_t size; /* of the struct as the library knows it */
    const char *name;
    const char *label;    /* "" if not known */
    uint64_t token;       /* 0 if not known (a foreign holder) */
    int64_t remaining_ms; /* until the store frees it by itself; < 0: not known */
    int64_t age_ms;       /* since it was taken; < 0: not known */
    uint64_t waiters;
    bool held;                              /* false: only waited for */
    bool detached;                          /* belongs to no process */
    bool foreign;                           /* taken by a client that is not holdfast */
    const struct hf_revocation *revocation; /* who broke the hold; NULL: it was not broken */
    int64_t renewed_ms; /* last renewed, or taken; since 1970, for display; 0: not known */
    uint32_t ttl_ms;    /* that it was renewed with; 0: not known */
    bool endless;       /* it has no ttl, and never ends by itself: the work of another client */
};
/* Return false to stop the listing. */
typedef bool hf_list_fn(const struct hf_lock_info *info, void *data);

/* hf_list - call fn for each lock that is held or waited for and whose name starts with prefix
 * (NULL or "": all), in no particular order. A snapshot per lock, not of the store. Must not call
 * back into the store from fn. HF_OK even if there are none, or if fn stopped it. */
HF_API HF_MUST_CHECK enum hf_status hf_list(struct hf_store *store, const char *prefix,
                                            hf_list_fn *fn, void *data, struct hf_error *err);

/* hf_inspect - the same for the one lock called name; fn is not called if it is free. */
HF_API HF_MUST_CHECK enum hf_status hf_inspect(struct hf_store *store, const char *name,
                                               hf_list_fn *fn, void *data, struct hf_error *err);

struct hf_break_options {
    size_t size;        /* sizeof(struct hf_break_options) */
    const char *label;  /* who breaks it, for people to see; NULL: host/pid/program */
    const char *reason; /* why, likewise; NULL: not said */
    bool now;           /* true: end the hold at once */
};

/* The hold that hf_break found. */
struct hf_broken {
    char label[HF_LABEL_MAX + 1]; /* the holder's; "" if not known */
    /* How long the hold may last, unless it is released sooner; 0: it is over; < 0: not known. */
    int64_t remaining_ms;
    bool detached; /* belongs to no process: nobody hears of the break before its next renewal */
    bool foreign;  /* of a client that is not holdfast */
    bool again;    /* it had been broken before: the one before stays on record, with its reason */
};

/* hf_break - revoke somebody's hold of a lock.
 *
 * token: that of the hold to break, as hf_inspect and hf_list report it. The store compares it and
 * the recorded owner with the present holder's, in one step with the change. The hold is not taken
 * away: it is no longer renewed. Its holder hears of that at its next renewal, which the keeper
 * sends at least every 10s, as HF_LOSS_BROKEN, and has the time until its deadline to end its work
 * and release. Nobody else gets the lock before that, or before its time is over.
 *
 * options->now ends the hold at once instead, and the next in the queue has the lock: two may be at
 * work until the old holder hears of it, and only a fence at the resource keeps the late one out.
 * This is the only way to break a holder that is not holdfast, which has no token: token 0 means
 * whatever foreign client holds the lock at that moment.
 *
 * Blocks for a few seconds at most. out may be NULL.
 * HF_OK           revoked, or ended: *out is filled in
 * HF_LOST         it has ended, or is just being handed over: nothing was changed
 * HF_UNKNOWN      no answer: it may be revoked. Breaking it again does no harm
 * HF_INVALID      no such name or token; a foreign holder, and not now
 * HF_UNSUPPORTED  the store cannot do it (see HF_FEATURE_BREAK)
 * HF_UNREACHABLE, HF_DENIED, HF_CORRUPT, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_break(struct hf_store *store, const char *name,
                                             uint64_t token, const struct hf_break_options *options,
                                             struct hf_broken *out, struct hf_error *err);

/* hf_last_break - who last broke this lock, even if that hold is over, as far as the store still
 * knows. HF_OK; at_ms 0: nobody, or it was too long ago. HF_UNSUPPORTED: it does not remember.
 * HF_UNREACHABLE, HF_DENIED, HF_INVALID, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_last_break(struct hf_store *store, const char *name,
                                                  struct hf_revocation *out, struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_H */
