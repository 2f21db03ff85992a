/* hold.c - renewing, looking at and releasing what is held. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdlib.h>
#include <string.h>

#define RENEW_MAX_NS (5 * HF__NS_PER_S) /* one renewal; a caller with more time tries again */
#define WHY_MAX_NS   HF__NS_PER_S       /* to find out why a hold is gone */
#define MOVES_MAX    3                  /* how often a key may change under us before we give up */

/* One renewal, look or release. */
struct work {
    struct ec_store *store;
    const struct hf_claim *claim;
    struct ec_request request;
    struct ec_keys keys;
    struct ec_known known;
    struct ec_inspection found;
    struct ec_lease lease;  /* that the key should be on; id 0: none is alive */
    struct hf_grant *grant; /* NULL: a release */
};

static enum hf_status look(struct work *w);

static struct work begin(struct hf_store_base *base, const struct hf_claim *claim,
                         struct hf_grant *grant, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct work w = {.store = store,
                     .claim = claim,
                     .request = {.store = store,
                                 .lock = claim->name,
                                 .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1},
                                 .err = err},
                     .grant = grant};

    ec_keys_make(&w.keys, store->url.prefix, claim->name, claim->owner);
    return w;
}

static enum hf_status lost(struct work *w, enum hf_loss loss)
{
    if (w->grant != NULL)
        w->grant->loss = loss;
    return ec_lost(w->claim->name, w->store->url.common.shown, loss, w->request.err);
}

/* The same requests, for a reason that nobody waits for long. */
static struct ec_request briefly(const struct work *w)
{
    struct ec_request request = w->request;

    request.patience.deadline_ns = w->store->base.host->now_ns() + WHY_MAX_NS;
    return request;
}

/* Our key is not there, or is somebody else's. It was on that lease: if the lease is alive,
 * somebody deleted the key. */
static enum hf_status gone(struct work *w, int64_t lease)
{
    struct ec_request request = briefly(w);
    struct hf_revocation revocation = {.by = ""};
    struct ec_life life;

    request.err = NULL;
    if (w->claim->token != 0 && ec_notice_find(&request, w->claim->token, &revocation)) {
        ec_lease_retire(w->store, lease); /* the notice, which is on it, is not needed any more */
        return ec_broken(w->store, w->claim, &revocation, w->grant, w->request.err);
    }
    request.patience = briefly(w).patience;
    if (w->found.head_there && w->found.head.said.kind != EC_KIND_WAITING)
        return lost(w, HF_LOSS_TAKEN);
    if (w->grant == NULL || lease == 0 || ec_lease_left(&request, lease, &life) != HF_OK)
        return lost(w, HF_LOSS_EXPIRED);
    return ec_broken(w->store, w->claim, &revocation, w->grant, w->request.err);
}

/* The same, when it is known to be gone, but not who has it now, which only the text tells. */
static enum hf_status gone_to(struct work *w, int64_t lease)
{
    struct ec_request request = briefly(w);

    if (ec_inspect(&request, &w->keys, 0, &w->found) != HF_OK)
        memset(&w->found, 0, sizeof w->found);
    return gone(w, lease);
}

/* A hold on a shared lease that was not renewed in time has expired, whether or not etcd has ended
 * the lease by now: nobody may count on it any more. */
static enum hf_status end_expired(struct work *w)
{
    struct ec_deletion deletion = {.keys = &w->keys, .token = w->claim->token, .known = true};
    enum hf_status status = ec_delete(&w->request, &deletion);

    if (status != HF_OK)
        return status;
    (void)ec_hold_forget(w->store, w->claim->owner);
    return gone_to(w, 0);
}

/* What the key is to say on its new lease. */
static void new_value(const struct work *w, char out[EC_VALUE_MAX])
{
    struct ec_said said = w->found.own.said;

    said.ttl_ms = w->claim->ttl_ms;
    if (said.kind != EC_KIND_DETACHED || ec_is_kept(w->claim))
        said.kind = ec_kind(w->claim);
    ec_said_format(out, &said);
}

/* Puts the key on the lease it should be on. */
static enum hf_status change_lease(struct work *w, bool *moved)
{
    const struct hf_claim *claim = w->claim;
    const struct ec_kv *own = &w->found.own;
    char value[EC_VALUE_MAX];
    struct ec_move to = {.keys = &w->keys, .seen = own, .value = value};
    enum hf_status status = HF_OK;

    if (!ec_is_kept(claim))
        status = ec_lease_private(&w->request, 0, claim->ttl_ms, &w->lease);
    if (status != HF_OK)
        return status;
    new_value(w, value);
    to.lease = w->lease.id;
    status = ec_move(&w->request, &to);
    if (to.verdict == EC_NO_LEASE) {
        ec_lease_retire(w->store, w->lease.id);
        return ec_fail(claim->name, w->store->url.common.shown, HF_UNREACHABLE,
                       "its new lease was ended at once; try again", w->request.err);
    }
    if (status == HF_OK && to.moved && own->said.kind != EC_KIND_KEPT && own->lease != 0)
        ec_lease_drop(w->store, own->lease);
    if (!ec_is_kept(claim) && !to.moved && status != HF_UNKNOWN)
        ec_lease_drop(w->store, w->lease.id);
    *moved = to.moved;
    return status;
}

/* A private lease, which is the key's alone. */
static bool own_lease_serves(const struct work *w)
{
    const struct ec_kv *own = &w->found.own;

    return !ec_is_kept(w->claim) && own->said.ttl_ms == w->claim->ttl_ms && own->lease != 0 &&
           (own->said.kind == EC_KIND_PRIVATE || own->said.kind == EC_KIND_DETACHED);
}

/* Only once the key was seen, without a mark: nobody but us would ever end that lease. */
static enum hf_status keep_own_lease(struct work *w, bool *kept)
{
    struct ec_life life;
    enum hf_status status = ec_lease_keep(&w->request, w->found.own.lease, &life);

    *kept = status == HF_OK;
    if (*kept)
        w->lease = (struct ec_lease){.id = w->found.own.lease, .sent_at_ns = life.sent_at_ns};
    return status == HF_LOST ? HF_OK : status; /* then so is the key: read again */
}

static enum hf_status renewed(struct work *w)
{
    const struct hf_claim *claim = w->claim;
    struct ec_hold *spare = NULL;

    w->grant->sent_at_ns = w->lease.sent_at_ns;
    if (ec_is_kept(claim)) {
        spare = ec_hold_new(claim->owner, claim->name);
        ec_hold_note(w->store, &spare, claim->owner,
                     &(struct ec_hold_news){.waited = ec_keys_waited(&w->keys),
                                            .lease = w->lease.id,
                                            .until_ns = w->lease.sent_at_ns +
                                                        (int64_t)claim->ttl_ms * HF__NS_PER_MS,
                                            .token = claim->token});
        free(spare);
    } else {
        (void)ec_hold_forget(w->store, claim->owner);
    }
    return hf__ok(w->request.err);
}

/* What the key was on; 0: only the key could tell. */
static int64_t private_lease(const struct hf_claim *claim)
{
    return claim->detached ? 0 : ec_lease_id(claim->owner);
}

static bool is_there(const struct work *w)
{
    return w->found.own_there && w->found.own.create_revision == w->claim->token;
}

static bool is_on_lease(const struct work *w)
{
    return w->lease.id != 0 && w->found.own.lease == w->lease.id &&
           w->found.own.said.ttl_ms == w->claim->ttl_ms;
}

/* The key as it was found, on the lease it should be on. *done: it is, or it is gone. */
static enum hf_status settle_lease(struct work *w, bool *done)
{
    enum hf_status status;

    *done = true;
    if (!is_there(w)) {
        if (w->known.token == w->claim->token) /* not that of a hold with another token */
            (void)ec_hold_forget(w->store, w->claim->owner);
        return gone(w, ec_is_kept(w->claim) ? w->known.lease : private_lease(w->claim));
    }
    if (w->found.own.said.revoked)
        return ec_revoked(w->store, w->claim, &w->found.own, w->grant, w->request.err);
    if (is_on_lease(w))
        return renewed(w);
    *done = false;
    status = own_lease_serves(w) ? keep_own_lease(w, done) : change_lease(w, done);
    return status == HF_OK && *done ? renewed(w) : status;
}

enum hf_status ec_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct work w = begin(base, claim, grant, err);
    int64_t latest_ns = base->host->now_ns() + RENEW_MAX_NS;
    enum hf_status status = HF_OK;
    bool done = false;

    if (w.request.patience.deadline_ns > latest_ns)
        w.request.patience.deadline_ns = latest_ns;
    if (claim->ttl_ms == 0)
        return look(&w);
    (void)ec_hold_known(w.store, claim->owner, &w.known);
    ec_keys_use(&w.keys, w.known.waited);
    if (w.known.gone && w.known.token == claim->token) {
        (void)ec_hold_forget(w.store, claim->owner);
        return gone_to(&w, w.known.lease);
    }
    if (w.known.expired)
        return end_expired(&w);
    /* First the shared lease, then the key: one seen on it has all of its new life before it. */
    if (ec_is_kept(claim))
        status = ec_lease_class(&w.request, claim->ttl_ms, EC_USE_KEPT, &w.lease);
    for (int i = 0; i < MOVES_MAX && status == HF_OK && !done; i++) {
        status = ec_inspect(&w.request, &w.keys, 0, &w.found);
        if (status == HF_OK)
            status = settle_lease(&w, &done);
    }
    if (status != HF_OK || done)
        return status;
    return ec_fail(claim->name, w.store->url.common.shown, HF_UNKNOWN, "its key keeps changing",
                   err);
}

static enum hf_status look(struct work *w)
{
    struct hf_grant *grant = w->grant;
    uint32_t ttl_ms;
    struct ec_life life;
    int64_t slack_ms;
    enum hf_status status = ec_inspect(&w->request, &w->keys, 0, &w->found);

    if (status != HF_OK)
        return status;
    if (!is_there(w))
        return gone(w, 0);
    status = ec_lease_left(&w->request, w->found.own.lease, &life);
    if (status == HF_LOST)
        return lost(w, HF_LOSS_EXPIRED);
    if (status != HF_OK)
        return status;
    ttl_ms = w->found.own.said.ttl_ms;
    slack_ms = life.granted_ms - (int64_t)ttl_ms;
    grant->sent_at_ns = life.sent_at_ns;
    grant->ttl_ms = ttl_ms;
    grant->remaining_ms = life.left_ms - (slack_ms > 0 ? slack_ms : 0);
    if (grant->remaining_ms < 0)
        grant->remaining_ms = 0;
    if (w->found.own.said.revoked)
        (void)ec_broken(w->store, w->claim, &w->found.own.said.revocation, grant, NULL);
    return hf__ok(w->request.err);
}

/* No answer to the delete. If the key is gone it was us, as long as nobody else could have ended
 * the hold. If it is there, a second delete of this one key cannot do more than the first. */
static enum hf_status settle(struct work *w, struct ec_kv *deleted)
{
    struct ec_deletion again = {
        .keys = &w->keys, .token = w->claim->token, .known = true, .for_good = true};
    struct hf_error *err = w->request.err;
    struct hf_error unknown = *err;
    struct ec_known known;
    enum hf_status status = ec_inspect(&w->request, &w->keys, 0, &w->found);

    if (status == HF_OK && is_there(w)) {
        *deleted = w->found.own;
        status = ec_delete(&w->request, &again);
        if (status != HF_OK)
            ec_lease_retire(w->store, deleted->lease);
    } else if (status == HF_OK) {
        (void)ec_hold_known(w->store, w->claim->owner, &known);
        if (known.expired)
            status = HF_UNKNOWN;
    }
    if (status == HF_OK)
        return HF_OK;
    *err = unknown;
    return HF_UNKNOWN;
}

/* Deletes the key, whichever of the two it is. What it was tells the private lease, which has to be
 * ended too. */
static enum hf_status delete_own(struct work *w, bool shared, struct ec_kv *deleted,
                                 bool *was_there)
{
    struct ec_deletion deletion = {.keys = &w->keys,
                                   .token = w->claim->token,
                                   .known = shared,
                                   .deleted = shared ? NULL : deleted};
    enum hf_status status;

    ec_keys_use(&w->keys, w->known.waited);
    status = ec_delete(&w->request, &deletion);
    if (status == HF_OK && !deletion.was_there && !shared) {
        ec_keys_use(&w->keys, true); /* a hold that we know nothing of may have waited */
        status = ec_delete(&w->request, &deletion);
    }
    *was_there = deletion.was_there;
    if (status != HF_UNKNOWN)
        return status;
    *was_there = true; /* by then, or by the first request meanwhile */
    return settle(w, deleted);
}

enum hf_status ec_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct hf_error own_err;
    struct work w = begin(base, claim, NULL, err != NULL ? err : &own_err);
    struct ec_kv deleted = {.said.kind = EC_KIND_KEPT};
    bool shared = ec_hold_known(w.store, claim->owner, &w.known);
    bool was_there = false;
    enum hf_status status = delete_own(&w, shared, &deleted, &was_there);
    int64_t lease = ec_hold_forget(w.store, claim->owner);

    if (status != HF_OK) {
        /* What may still be there must not live on with the others on its lease. */
        ec_lease_retire(w.store, lease);
        return status;
    }
    if (was_there && deleted.lease != 0 &&
        (deleted.said.kind == EC_KIND_PRIVATE || deleted.said.kind == EC_KIND_DETACHED))
        ec_lease_drop(w.store, deleted.lease);
    if (!was_there || w.known.expired)
        return gone_to(&w, 0);
    return hf__ok(err);
}
