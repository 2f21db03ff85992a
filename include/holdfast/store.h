/* holdfast/store.h - how to write a store.
 *
 * A store is a shared object <scheme>.so that exports one symbol, hf_store_plugin. libholdfast
 * loads it when a URL of one of its schemes is opened: from the folders of $HOLDFAST_STORE_PATH
 * (absolute paths with a colon between two; others are passed over), then from the folder holdfast/
 * beside the file that the library was loaded from. The built-in file: store implements the same
 * table. `make conform URL=yours://localhost` in the source tree of holdfast runs the conformance
 * suite over yours, whose folder HOLDFAST_STORE_PATH names, and reports which promises it keeps
 * (TAP; CONFORM_TTL_MS: the shortest ttl that means something there). It leaves no lock behind.
 *
 * libholdfast does the rest: it checks names and ttls, draws owners, keeps deadlines, renews in
 * the background and decides when a lease is lost. A store only talks to its engine:
 *
 *   - Time is CLOCK_BOOTTIME in nanoseconds, read through the host. A store never compares the
 *     engine's clock with the client's.
 *   - Unknown is not no. A request whose reply never came may have taken effect: the store then
 *     sends a release for that owner as well as it can, and answers HF_UNKNOWN. Nothing is sent a
 *     second time unless an answer proves that it was not executed.
 *   - Renewal extends what is held and never creates. Release compares the owner and deletes in one
 *     atomic step at the engine.
 *   - Slots may be called from several threads at once, never before open returned or after close
 *     began. A renew or release must not have to wait for an acquire that waits.
 *   - Error texts name the lock and the store, never a password and never an owner.
 */
#ifndef HOLDFAST_STORE_H
#define HOLDFAST_STORE_H

#include <holdfast.h>
#include <holdfast/audit.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <holdfast/waiters.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the structs and slots below. A table may end early, with slots that are not there; but a
 * struct that grew, or a slot that means something else, is another ABI. 2: struct hf_grant and
 * struct hf_lock_info tell who broke a hold. */
#define HF_STORE_ABI 2u

#define HF_WAITERS_MAX 100 /* that hf_waiters reports */

#define HF_NEVER INT64_MAX /* a point in time that does not come */

/* What libholdfast offers to a store. Outlives the store. */
struct hf_host {
    size_t size;
    /* CLOCK_BOOTTIME in nanoseconds. */
    int64_t (*now_ns)(void);
    /* CLOCK_REALTIME in microseconds: for tokens and display, never for a decision. */
    int64_t (*wall_us)(void);
    /* Fills buf from getrandom(2). Cannot fail once the machine is up; aborts otherwise. */
    void (*random)(void *buf, size_t len);
    /* A line for the person who switched tracing on. No newline at the end, no secrets. */
    void (*log)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    void (*vlog)(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
    /* Fills *err (NULL: nobody wants to know) and returns code, so that a slot can write
     * `return host->fail(err, HF_BUSY, "lock \"%s\" is held by %s", ...)`. The text is cut at
     * HF_ERROR_TEXT_SIZE. retry_after_ms becomes 0: with HF_QUARANTINE set it after the call. */
    enum hf_status (*fail)(struct hf_error *err, enum hf_status code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    /* Copies a URL without its password, cut at size: what may be shown of it. */
    void (*redact)(char *out, size_t size, const char *url);
};

/* What an implementation embeds as its first member. open fills both. */
struct hf_store_base {
    const struct hf_store_ops *ops;
    const struct hf_host *host;
};

/* Who renews a hold. */
enum hf_kept {
    HF_KEPT_NOW, /* the keeper, together with others */
    /* The caller, until it hands it over to the keeper (hf_keep): from then on HF_KEPT_NOW. */
    HF_KEPT_LATER,
    HF_KEPT_NEVER /* whoever knows its owner: it is detached */
};

/* What a store is asked for: to take, extend or end a hold. Strings live for the call only. */
struct hf_claim {
    const char *name;  /* checked: 1..HF_NAME_MAX bytes, no control characters */
    const char *owner; /* HF_OWNER_LEN lower-case hex digits; fresh for every acquire */
    /* renew: what the grant said; release: likewise, or 0 if the answer never came; acquire: 0. */
    uint64_t token;
    const char *label;   /* acquire only; at most HF_LABEL_MAX bytes, no control characters */
    uint32_t ttl_ms;     /* acquire: HF_TTL_MIN_MS..MAX; renew: likewise, or 0 = only look */
    bool detached;       /* belongs to no process: no crash release */
    enum hf_kept kept;   /* acquire, renew */
    int64_t deadline_ns; /* a single request is given up at this time */
    /* acquire: 0 = do not wait, HF_NEVER = without limit. When a wait ends, the store has as long
     * to leave the queue as a single request has: deadline_ns less the time of the call. */
    int64_t wait_until_ns;
    int cancel_fd; /* acquire: -1, or stop waiting once it is readable */
};

/* What the engine answered. The caller passes it zeroed. */
struct hf_grant {
    uint64_t token;     /* acquire: the fencing token, 1..2^63-1 */
    int64_t sent_at_ns; /* host time before the request that granted, confirmed or renewed */
    /* What the engine granted from sent_at_ns on; at most the claim's, and 0 means as claimed. A
     * renew that only looked: the ttl on record. */
    uint32_t ttl_ms;
    int64_t remaining_ms; /* a renew that only looked: validity left at sent_at_ns */
    enum hf_loss loss;    /* with HF_LOST: why; a look at a revoked hold: HF_LOSS_BROKEN */
    /* acquire: the owner it was granted to, if the store drew a fresh one for a second attempt; ""
     * means the claim's. */
    char owner[HF_OWNER_LEN + 1];
    /* renew: the one member that need not be zero: the caller's memory, or NULL. With
     * HF_LOSS_BROKEN the store fills it in; else it is not touched. */
    struct hf_revocation *revocation;
};

struct hf_query {
    const char *name;    /* a lock's name, or the prefix of names; "" is every lock */
    bool exact;          /* true: only the lock called name */
    int64_t deadline_ns; /* a request without an answer is given up at this time */
};

/* A record to be written. Strings live for the call only. */
struct hf_record_write {
    const char *name;  /* the lock's */
    const char *owner; /* who holds it, with token */
    uint64_t token;
    uint64_t number;     /* counted by the lease, from 1 */
    const char *key;     /* checked: 1..HF_RECORD_KEY_MAX bytes, no control characters */
    const void *value;   /* never NULL */
    size_t value_len;    /* at most HF_RECORD_VALUE_MAX */
    int64_t keep_ms;     /* 0: for ever */
    int64_t deadline_ns; /* the request is given up at this time */
};

struct hf_record_query {
    const char *name;    /* the lock's */
    const char *key;     /* get: the key; list: what keys start with, "" for all */
    int64_t deadline_ns; /* a request without an answer is given up at this time */
};

/* A hold to be broken. Strings live for the call only. */
struct hf_revoke {
    const char *name;    /* checked, as a claim's */
    uint64_t token;      /* of the hold that is meant; 0, with now: a foreign holder */
    const char *by;      /* the label of who breaks it: at most HF_LABEL_MAX printable bytes */
    const char *reason;  /* likewise, at most HF_REASON_MAX; "" if none was given */
    bool now;            /* end the hold at once, and pass the lock on */
    int64_t deadline_ns; /* the request is given up at this time */
};

/* What an audit is to find out. */
struct hf_audit_query {
    enum hf_audit_scope scope;
    uint32_t ttl_ms;     /* of the leases in question; never 0 */
    int64_t deadline_ns; /* what is not known by then is reported as unknown */
};

/* Called by listen: the hold of owner may be gone; owner NULL: any hold of the store may be. */
typedef void hf_doubt_fn(const char *owner, void *data);

struct hf_begun;         /* a call that was begun: the store's own */
struct hf_fence_request; /* holdfast/fence.h */
struct hf_fence_mark;

struct hf_store_ops {
    size_t size;                /* sizeof(struct hf_store_ops) */
    const char *const *schemes; /* ends with NULL */
    unsigned features;          /* HF_FEATURE_ bits; see open_features */

    /* Required. Open the store that url names (its scheme is one of schemes) and set *out.
     * host stays valid until after close. May block until deadline_ns.
     * Returns what hf_open documents. On failure *out is untouched and nothing is left behind.
     * HF_OK with err->code HF_OK and a text is a warning, which the user is shown:
     * `return host->fail(err, HF_OK, "store %s: ...", ...)`. */
    enum hf_status (*open)(const struct hf_host *host, const char *url, int64_t deadline_ns,
                           struct hf_store_base **out, struct hf_error *err);

    /* Required. Free everything. Locks still held stay held in the engine until their ttl ends,
     * unless the store has crash release. In a process forked from the one that opened (forked
     * true), touch nothing that the parent shares: free memory and close descriptors only. */
    void (*close)(struct hf_store_base *store, bool forked);

    /* Required. Take claim->name for claim->owner, waiting until claim->wait_until_ns. If that
     * owner holds it already: the same token again, or HF_BUSY, never a second token. HF_OK:
     * granted, *grant filled in. HF_BUSY: held by another to the end of the wait; the text says by
     * whom if that is known. HF_CANCELLED: cancel_fd was readable; the queue is left. HF_QUARANTINE
     * (with err->retry_after_ms), HF_UNREACHABLE, HF_UNKNOWN: as soon as it is known, even in the
     * middle of a wait. While that has time left libholdfast asks again, with a fresh owner; a
     * store needs no loop of its own for it. So what passes by itself (no connection to be had, a
     * server that starts) is one of these three.
     * HF_DENIED, HF_INVALID, HF_UNSUPPORTED, HF_CORRUPT, HF_NOMEM: waiting would not help. */
    enum hf_status (*acquire)(struct hf_store_base *store, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err);

    /* Required. Extend the hold of claim->owner with claim->token to ttl_ms from now; with ttl_ms 0
     * only look whether it is held. Both are compared: an older token of the same owner is HF_LOST.
     * Never creates. May block until claim->deadline_ns. A hold that was revoked is not extended:
     * HF_LOST and HF_LOSS_BROKEN, with *grant->revocation and a text that says by whom. A look at
     * it is HF_OK, because it is still held, with grant->loss HF_LOSS_BROKEN.
     * HF_OK; HF_LOST with grant->loss; HF_UNKNOWN or HF_UNREACHABLE: no answer, try again. */
    enum hf_status (*renew)(struct hf_store_base *store, const struct hf_claim *claim,
                            struct hf_grant *grant, struct hf_error *err);

    /* Required. End the hold of claim->owner with claim->token, or with token 0 whatever that owner
     * holds: compare and delete in one step; hand over to the next waiter if the store is fair. A
     * revoked hold is held, and is released as any other.
     * May block until claim->deadline_ns.
     * HF_OK: it was held and is free. HF_LOST: it was not held by this owner.
     * HF_UNKNOWN, HF_UNREACHABLE: no answer. */
    enum hf_status (*release)(struct hf_store_base *store, const struct hf_claim *claim,
                              struct hf_error *err);

    /* Required. Call fn for each lock that is held or waited for and fits the query, with no
     * mutex held, until it returns false. */
    enum hf_status (*list)(struct hf_store_base *store, const struct hf_query *query,
                           hf_list_fn *fn, void *data, struct hf_error *err);

    /* Optional, with HF_FEATURE_CRASH_RELEASE. See hf_store_life_fd. */
    int (*life_fd)(struct hf_store_base *store);

    /* Optional. The URL by which any other process opens this very store: defaults filled in,
     * paths absolute, no password. Lives as long as the store. Without it, the one given. */
    const char *(*url)(struct hf_store_base *store);

    /* Optional. Make a damaged store usable again; tokens from now on are above `above` and above
     * everything the store can still tell. Refuses (HF_BUSY) while others use the store. On HF_OK
     * the error's text says in one sentence what was done. */
    enum hf_status (*repair)(const struct hf_host *host, const char *url, uint64_t above,
                             struct hf_error *report);

    /* Optional. renew for count holds at once (ttl_ms is never 0), for engines where many requests
     * together cost less than one by one. results[i] and grants[i] are filled in for every claim as
     * renew would; the grants come zeroed. May block until the earliest deadline_ns of the claims.
     * HF_OK if all were renewed; else the first result that is not, which err is about. */
    enum hf_status (*renew_many)(struct hf_store_base *store, const struct hf_claim *claims,
                                 struct hf_grant *grants, enum hf_status *results, size_t count,
                                 struct hf_error *err);

    /* Optional. Carry out a request on a fenced key, as hf_fence_key documents it, in one atomic
     * step at the engine: judge the token by the mark beside the key, raise the mark, change the
     * key. What the request says is checked. May block until request->deadline_ns.
     * HF_OK. HF_STALE, and HF_INVALID for a token of another issuer: refused, *mark (it comes
     * zeroed) is what refused it, and libholdfast finds the words. HF_INVALID with the mark left
     * alone, HF_UNKNOWN, HF_UNREACHABLE, HF_DENIED: *err says it. HF_FENCE_READ_KEY judges and
     * changes nothing: HF_OK, and *mark is what stands beside the key. */
    enum hf_status (*fence)(struct hf_store_base *store, const struct hf_fence_request *request,
                            struct hf_fence_mark *mark, struct hf_error *err);

    /* Optional. As open, for somebody who calls list, waiters, record_get, record_list and close
     * only: makes and changes nothing in the engine. A store that is not there yet is opened all
     * the same, and nothing is found in it.
     * Without this slot open serves: right where opening makes nothing anyway. */
    enum hf_status (*open_readonly)(const struct hf_host *host, const char *url,
                                    int64_t deadline_ns, struct hf_store_base **out,
                                    struct hf_error *err);

    /* Optional. The longest ttl that this store grants; never blocks. Without this slot it is
     * HF_TTL_MAX_MS. A claim above it is HF_INVALID. */
    uint32_t (*max_ttl_ms)(struct hf_store_base *store);

    /* Optional, for stores with a quarantine. End the quarantine of the incarnation that is there
     * now, as hf_end_quarantine documents it: by compare on that incarnation, in one atomic step at
     * the engine, and leave on record who did it, when and why. May block until deadline_ns.
     * HF_OK: the report's text says what was ended. HF_INVALID: there is no quarantine. */
    enum hf_status (*end_quarantine)(struct hf_store_base *store, const char *label,
                                     const char *reason, int64_t deadline_ns,
                                     struct hf_error *report);

    /* Optional, for engines that tell when a hold ends (a watch, a subscription, a broken link).
     * The keeper sleeps in here, as its only caller, while none of its holds is due. Returns once
     * wake_fd (the same in every call; it is not read) is readable, or once doubt was called for
     * whatever was heard, with no mutex held. The keeper then renews what is in doubt, at once, and
     * that answer alone decides: doubt without a cause costs a request. Silence proves nothing
     * either, so holds are renewed as ever, and a store that cannot listen for now just sleeps.
     * What is opened here is open until close. Holds that nobody keeps are not listened for. */
    void (*listen)(struct hf_store_base *store, int wake_fd, hf_doubt_fn *doubt, void *data);

    /* Optional, for stores with a quarantine. Whether the store grants at this moment: HF_OK, or
     * HF_QUARANTINE with err->retry_after_ms and the reason. Makes and changes nothing, even for a
     * store that was opened read-only. May block until deadline_ns. HF_UNKNOWN, HF_UNREACHABLE. */
    enum hf_status (*quarantine)(struct hf_store_base *store, int64_t deadline_ns,
                                 struct hf_error *err);

    /* Optional. Who the store is, whatever URL leads to it, as hf_store_identity documents it: a
     * text that starts with "id:" and the store's kind, the same for every client, another one for
     * another engine or another part of it. What it rests on may be made here. May block until
     * deadline_ns. HF_OK. HF_UNKNOWN: there is nothing yet to tell it by. HF_UNREACHABLE,
     * HF_DENIED, HF_CORRUPT, HF_NOMEM. */
    enum hf_status (*identity)(struct hf_store_base *store, char out[HF_IDENTITY_SIZE],
                               int64_t deadline_ns, struct hf_error *err);

    /* Optional, with HF_FEATURE_RECORDS, which promises all three. Write a record, in one atomic
     * step at the engine: the owner holds the lock there with that token, now, or HF_LOST; the pair
     * (token, number) is above that of the record on file under this key, or HF_STALE; then value,
     * pair, the engine's clock and until when it is kept take its place. Nothing of this lies where
     * the lock's queue or its holders are looked for. Sent once: libholdfast sends it again, with
     * the same number, when no answer came. A few of the lock's records that have expired are
     * removed on the way; a bounded number, and no more round trips for it.
     * HF_OK; with err->code HF_OK and a text, as in open, it is a warning: what would lose the
     * record. HF_UNKNOWN: no answer. HF_UNREACHABLE: certainly not written. */
    enum hf_status (*record_put)(struct hf_store_base *store, const struct hf_record_write *write,
                                 struct hf_error *err);

    /* Call fn for the record called query->key, if it is there and has not expired by the engine's
     * clock. *now_ms, if now_ms is not NULL, becomes that clock. A record that cannot be read is
     * HF_CORRUPT; the lock and its other records are unaffected. */
    enum hf_status (*record_get)(struct hf_store_base *store, const struct hf_record_query *query,
                                 hf_record_fn *fn, void *data, int64_t *now_ms,
                                 struct hf_error *err);

    /* The same for every record of the lock whose key starts with query->key, with no mutex held,
     * until fn returns false. */
    enum hf_status (*record_list)(struct hf_store_base *store, const struct hf_record_query *query,
                                  hf_record_fn *fn, void *data, struct hf_error *err);

    /* Optional, with HF_FEATURE_BREAK. Break a hold, as hf_break documents it, in one atomic step
     * at the engine: token and recorded owner are the present holder's, and the lock is not in the
     * middle of a hand-over, or nothing changes. Then the hold is marked, and stays: renew refuses
     * it from here on; release, record_put, list and a look know it as held, by the same owner and
     * token; its end is neither later nor sooner than before; nobody else is granted the lock
     * until it was released or that end has come. The step leaves on record who, when and why,
     * which renew and list report as long as the hold is there. *out comes zeroed and says what was
     * found. Revoking what is revoked is HF_OK with out->again: the first one stays on record.
     *
     * With now the hold is deleted by compare, revoked before or not, and the lock passed on as by
     * a release; not in quarantine, where it only becomes free. A renewal of that hold afterwards
     * is HF_LOSS_BROKEN as well, as far as the store can still tell. A foreign holder (token 0,
     * which comes only with now) is deleted by compare on what it wrote; never a hold of ours, nor
     * one that is being handed over: HF_LOST.
     *
     * May block until deadline_ns. Sent once; libholdfast does not repeat it.
     * HF_OK; HF_LOST: not the present hold, nothing changed. HF_UNKNOWN: no answer, or not from
     * enough of the servers. HF_UNREACHABLE: certainly nothing changed. HF_DENIED: whoever may
     * take locks need not be allowed to break them. HF_UNSUPPORTED: not a holder of this kind. */
    enum hf_status (*revoke)(struct hf_store_base *store, const struct hf_revoke *revoke,
                             struct hf_broken *out, struct hf_error *err);

    /* Optional. Call fn for each fact about the store at url, as hf_audit documents it, with no
     * mutex held, until it returns false. Looks and does not judge; makes and changes nothing; a
     * store that open would refuse is looked at as far as it goes. Keys start with the store's kind
     * and a dot; the first is "store.incarnation" where there is one, before anything that takes
     * another round trip. A fact that our rights do not show, or that is not answered by
     * deadline_ns, is reported with the reason in `unknown`, and so is each fact that other stores
     * of the kind have: silence must not be taken for health. May block until deadline_ns.
     * HF_OK; HF_UNREACHABLE, HF_UNKNOWN, HF_DENIED: nothing (more) could be learned. HF_INVALID. */
    enum hf_status (*audit)(const struct hf_host *host, const char *url,
                            const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                            struct hf_error *err);

    /* Optional. Take one of count locks, 2 to HF_SEVERAL_MAX, whose claims differ in name and owner
     * only: no name and no owner is there twice, and all but the last two digits of the owners are
     * the same. As acquire for one of them, and then:
     *
     * - The first that is free in the order of the claims, and that no older waiter is due, is
     * taken. Whether one is takes one round trip where the engine can do that, also if
     *     claims[0].wait_until_ns is 0: then HF_BUSY if none is.
     *   - Else the caller stands in every queue, behind those who wait there already, until the
     *     first grant. It costs the engine one connection (one descriptor to sleep on, one session)
     *     whatever the number of names, and a waiter that is killed costs those behind it what it
     *     would cost them in one queue, with all the names together, not in one after the other.
     *   - When this returns the other queues are left. What was handed to another of the owners at
     *     the same moment is passed on to the next who waits for it, at once, and the caller never
     *     hears of it: with HF_OK exactly *which is held.
     *
     * *which: the claim that was granted, and that *grant is about; without HF_OK the one that *err
     * is about. Statuses are those of acquire. HF_UNKNOWN: any of the owners may hold its lock, and
     * was given back as well as can be; libholdfast tries again with fresh owners for all.
     * HF_UNSUPPORTED: these names cannot be claimed together (they live on several servers), and
     * nothing was asked for: libholdfast claims them one by one, as without this slot. */
    enum hf_status (*acquire_any)(struct hf_store_base *store, const struct hf_claim *claims,
                                  size_t count, size_t *which, struct hf_grant *grant,
                                  struct hf_error *err);

    /* Optional. Remove what the engine keeps about a lock that is free, its last token for
     * instance; for names that nobody will use again: a token of such a name may come twice. In
     * one step with the look whether it is free. Records are left alone. May block until
     * deadline_ns. HF_OK: nothing else of the name is left; the report's text, if there is one, is
     * what any first use of this store leaves anyway ("the schema holdfast"). HF_BUSY: it is held
     * or waited for. HF_UNKNOWN, HF_UNREACHABLE, HF_DENIED. */
    enum hf_status (*forget)(struct hf_store_base *store, const char *name, int64_t deadline_ns,
                             struct hf_error *report);

    /* Optional, for stores that know who waits. Call fn for those who wait for query->name, the
     * next one first, with no mutex held, until it returns false; the first HF_WAITERS_MAX are
     * enough. Changes nothing, even for a store that was opened read-only. */
    enum hf_status (*waiters)(struct hf_store_base *store, const struct hf_query *query,
                              hf_waiter_fn *fn, void *data, struct hf_error *err);

    /* Optional, for stores that differ in what they can do, those behind a server for instance:
     * HF_FEATURE_ bits of this one, the same from open to close. Never blocks. Without it: what
     * the table says. */
    unsigned (*open_features)(struct hf_store_base *store);

    /* Optional. Who broke a hold of query->name last, as hf_last_break documents it. *out comes
     * zeroed. Changes nothing. May block until query->deadline_ns. */
    enum hf_status (*last_break)(struct hf_store_base *store, const struct hf_query *query,
                                 struct hf_revocation *out, struct hf_error *err);

    /* Optional, with HF_FEATURE_RECORDS, for stores where two records cost less in one step than
     * one by one, which is what libholdfast does without this slot. As record_put of write; and
     * with HF_OK, first, of the same hold and with another key, is on record too, unless what
     * was there is as new or newer. Otherwise it may be, but never if the hold was over before. */
    enum hf_status (*record_put_both)(struct hf_store_base *store,
                                      const struct hf_record_write *first,
                                      const struct hf_record_write *write, struct hf_error *err);

    /* Optional, all three or none, for engines that often answer sooner than a thread is woken: an
     * acquire, or with a grant's token a release, in two halves. Never blocks: sends the first
     * request of the call if that can be done at once. The claim stays where it is until the end.
     * NULL: nothing was sent, and acquire or release will be called instead. */
    struct hf_begun *(*begin)(struct hf_store_base *store, const struct hf_claim *claim);

    /* Look for the answer until then at the latest. True: it is there, and the end will not wait
     * for anything. Never blocks otherwise. */
    bool (*answered)(struct hf_store_base *store, struct hf_begun *begun, int64_t until_ns);

    /* The rest of what acquire or release does, by whatever thread; frees what begin made. Contract
     * and statuses are theirs; grant is NULL for a release. */
    enum hf_status (*end)(struct hf_store_base *store, struct hf_begun *begun,
                          struct hf_grant *grant, struct hf_error *err);

    /* Optional. As acquire, whatever wait_until_ns says, of a lock that is seen to be free without
     * a request to anybody; never waits for others. HF_UNSUPPORTED: it is not, nothing changed, and
     * libholdfast goes on with the same claim. Never HF_BUSY. */
    enum hf_status (*acquire_free)(struct hf_store_base *store, const struct hf_claim *claim,
                                   struct hf_grant *grant, struct hf_error *err);

    /* Optional, with record_put_both. As that, or with first NULL as record_put; but after a crash
     * of the machine, and of nothing less, each of them may be the record before, or none: whole,
     * as ever, and safe from that with the lock's next put. libholdfast asks for it where all that
     * means the same then, and never for hf_record_put. */
    enum hf_status (*put_forgettable)(struct hf_store_base *store,
                                      const struct hf_record_write *first,
                                      const struct hf_record_write *write, struct hf_error *err);
};

struct hf_store_plugin {
    unsigned abi; /* HF_STORE_ABI the plugin was built for */
    const struct hf_store_ops *ops;
};

/* The one symbol a plugin exports. */
HF_API const struct hf_store_plugin *hf_store_plugin(void);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_STORE_H */
