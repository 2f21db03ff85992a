/* hold.c - renewing and releasing what is held. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdlib.h>
#include <string.h>

#define RENEW_MAX_NS (5 * HF__NS_PER_S)    /* one renewal; a caller with more time tries again */
#define WHY_MAX_NS   (300 * HF__NS_PER_MS) /* to find out why a hold is gone */
#define MOVES_MAX    3 /* how often a key may change under us before we give up */

static enum hf_status just_look(struct ec_store *store, const struct hf_claim *claim,
                                struct ec_keys *keys, const struct ec_patience *patience,
                                struct hf_grant *grant, struct hf_error *err);

static enum hf_status lost(const struct ec_store *store, const char *name, enum hf_loss loss,
                           struct hf_grant *grant, struct hf_error *err)
{
    if (grant != NULL)
        grant->loss = loss;
    return hf__fail(err, HF_LOST, "lock \"%.60s\" in store %.80s was lost: %s", name,
                    store->url.shown, hf_loss_text(loss));
}

/* Our key is not there, or is another's work. It was on that lease: if the lease is alive, somebody
 * deleted the key. */
static enum hf_status gone(struct ec_store *store, const struct hf_claim *claim,
                           const struct ec_look *look, int64_t lease, struct hf_grant *grant,
                           struct hf_error *err)
{
    struct ec_patience patience = {.deadline_ns = store->base.host->now_ns() + WHY_MAX_NS,
                                   .cancel_fd = -1};
    enum hf_loss loss = HF_LOSS_EXPIRED;
    int64_t sent_at_ns;
    int64_t granted_ms;
    int64_t left_ms;

    if (look->head_there && look->head.record.kind != EC_KIND_WAITING)
        loss = HF_LOSS_TAKEN;
    else if (lease != 0 && ec_lease_left(store, claim->name, lease, &patience, &sent_at_ns,
                                         &left_ms, &granted_ms, NULL) == HF_OK)
        loss = HF_LOSS_BROKEN;
    return lost(store, claim->name, loss, grant, err);
}

/* The same, when it is known to be gone and not yet who has it now. That is for the text only, so
 * nobody waits for it long. */
static enum hf_status gone_to(struct ec_store *store, const struct hf_claim *claim,
                              struct ec_keys *keys, int64_t lease, struct hf_grant *grant,
                              struct hf_error *err)
{
    struct ec_patience patience = {.deadline_ns = store->base.host->now_ns() + WHY_MAX_NS,
                                   .cancel_fd = -1};
    struct ec_look look;

    if (ec_look(store, claim->name, keys, 0, &patience, &look, err) != HF_OK)
        memset(&look, 0, sizeof look);
    return gone(store, claim, &look, lease, grant, err);
}

/* A hold on a shared lease that was not renewed in time has expired, whether or not etcd has ended
 * the lease by now: nobody may count on it any more. */
static enum hf_status end_expired(struct ec_store *store, const struct hf_claim *claim,
                                  struct ec_keys *keys, const struct ec_patience *patience,
                                  struct hf_grant *grant, struct hf_error *err)
{
    bool was_there = false;
    enum hf_status status =
        ec_delete(store, claim->name, keys, claim->token, true, patience, &was_there, NULL, err);

    if (status != HF_OK)
        return status;
    (void)ec_hold_forget(store, claim->owner);
    return gone_to(store, claim, keys, 0, grant, err);
}

/* The lease that our key should be on, alive. lease->id 0: it is dead. */
static enum hf_status ready_lease(struct ec_store *store, const struct hf_claim *claim,
                                  const struct ec_patience *patience, struct ec_lease *lease,
                                  struct hf_error *err)
{
    int64_t granted_ms;
    enum hf_status status;

    if (ec_is_kept(claim))
        return ec_lease_class(store, claim->name, claim->ttl_ms, EC_USE_KEPT, patience, lease, err);
    lease->id = ec_lease_id(claim->owner);
    status = ec_lease_keep(store, claim->name, lease->id, patience, &lease->sent_at_ns, &granted_ms,
                           err);
    if (status == HF_OK && granted_ms >= (int64_t)claim->ttl_ms)
        return HF_OK;
    lease->id = 0;
    return status == HF_LOST ? HF_OK : status;
}

/* Puts the key on the lease it should be on. */
static enum hf_status change_lease(struct ec_store *store, const struct hf_claim *claim,
                                   const struct ec_keys *keys, const struct ec_kv *own,
                                   const struct ec_patience *patience, struct ec_lease *lease,
                                   bool *moved, struct hf_error *err)
{
    struct ec_record record = own->record;
    char value[EC_VALUE_MAX];
    enum ec_verdict verdict;
    uint64_t mod_revision;
    enum hf_status status = HF_OK;
    bool was_private = record.kind != EC_KIND_KEPT;

    if (!ec_is_kept(claim))
        status = ec_lease_private(store, claim->name, 0, claim->ttl_ms, patience, lease, err);
    if (status != HF_OK)
        return status;
    record.ttl_ms = claim->ttl_ms;
    if (record.kind != EC_KIND_DETACHED || ec_is_kept(claim))
        record.kind = ec_kind(claim);
    ec_record_format(value, &record);
    status = ec_move(store, claim->name, keys, own, false, value, lease->id, patience, moved,
                     &mod_revision, &verdict, err);
    if (verdict == EC_NO_LEASE) {
        ec_lease_retire(store, lease->id);
        return hf__fail(err, HF_UNREACHABLE,
                        "lock \"%.50s\" in store %.70s: its new lease was ended at once; try again",
                        claim->name, store->url.shown);
    }
    if (status == HF_OK && *moved && was_private && own->lease != 0)
        ec_lease_drop(store, own->lease);
    if (!ec_is_kept(claim) && (status != HF_OK || !*moved) && status != HF_UNKNOWN)
        ec_lease_drop(store, lease->id);
    return status;
}

/* A private lease with another id than the usual, because the ttl was changed once. */
static bool own_lease_serves(const struct hf_claim *claim, const struct ec_kv *own)
{
    return !ec_is_kept(claim) && own->record.ttl_ms == claim->ttl_ms && own->lease != 0 &&
           (own->record.kind == EC_KIND_PRIVATE || own->record.kind == EC_KIND_DETACHED);
}

static enum hf_status renewed(struct ec_store *store, const struct hf_claim *claim, bool waited,
                              const struct ec_lease *lease, struct hf_grant *grant,
                              struct hf_error *err)
{
    struct ec_hold *spare = NULL;

    grant->sent_at_ns = lease->sent_at_ns;
    if (ec_is_kept(claim)) {
        spare = ec_hold_new(claim->owner, claim->name);
        ec_hold_note(store, &spare, claim->owner,
                     &(struct ec_hold_news){.waited = waited,
                                            .lease = lease->id,
                                            .until_ns = lease->sent_at_ns +
                                                        (int64_t)claim->ttl_ms * HF__NS_PER_MS,
                                            .token = claim->token});
        free(spare);
    } else {
        (void)ec_hold_forget(store, claim->owner);
    }
    return hf__ok(err);
}

enum hf_status ec_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct ec_patience patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1};
    struct ec_lease lease = {0};
    struct ec_keys keys;
    struct ec_look look;
    struct ec_known known;
    enum hf_status status;

    if (patience.deadline_ns > base->host->now_ns() + RENEW_MAX_NS)
        patience.deadline_ns = base->host->now_ns() + RENEW_MAX_NS;
    ec_keys_make(&keys, store->url.prefix, claim->name, claim->owner);
    if (claim->ttl_ms == 0)
        return just_look(store, claim, &keys, &patience, grant, err);
    (void)ec_hold_known(store, claim->owner, &known);
    ec_keys_use(&keys, known.waited);
    if (known.gone && known.token == claim->token) {
        (void)ec_hold_forget(store, claim->owner);
        return gone_to(store, claim, &keys, known.lease, grant, err);
    }
    if (known.expired)
        return end_expired(store, claim, &keys, &patience, grant, err);
    status = ready_lease(store, claim, &patience, &lease, err);
    for (int i = 0; i < MOVES_MAX && status == HF_OK; i++) {
        int64_t granted_ms;
        bool moved = false;

        /* First the lease, then the look: a key seen on it has all of its new life before it. */
        status = ec_look(store, claim->name, &keys, 0, &patience, &look, err);
        if (status != HF_OK)
            break;
        if (!look.own_there || look.own.create_revision != claim->token) {
            if (known.token == claim->token) /* not that of a hold with another token */
                (void)ec_hold_forget(store, claim->owner);
            return gone(store, claim, &look, ec_is_kept(claim) ? known.lease : lease.id, grant,
                        err);
        }
        if (look.own.lease == lease.id && lease.id != 0 && look.own.record.ttl_ms == claim->ttl_ms)
            return renewed(store, claim, ec_keys_waited(&keys), &lease, grant, err);
        if (own_lease_serves(claim, &look.own)) {
            lease.id = look.own.lease;
            status = ec_lease_keep(store, claim->name, lease.id, &patience, &lease.sent_at_ns,
                                   &granted_ms, err);
            if (status == HF_LOST) {
                lease.id = 0;
                status = HF_OK; /* then so is the key: look again */
            }
            continue;
        }
        status = change_lease(store, claim, &keys, &look.own, &patience, &lease, &moved, err);
        if (status == HF_OK && moved)
            return renewed(store, claim, ec_keys_waited(&keys), &lease, grant, err);
    }
    return status != HF_OK ? status
                           : hf__fail(err, HF_UNKNOWN,
                                      "lock \"%.50s\" in store %.70s: its key changes all the time",
                                      claim->name, store->url.shown);
}

static enum hf_status just_look(struct ec_store *store, const struct hf_claim *claim,
                                struct ec_keys *keys, const struct ec_patience *patience,
                                struct hf_grant *grant, struct hf_error *err)
{
    struct ec_look look;
    int64_t granted_ms;
    int64_t slack_ms;
    int64_t left_ms;
    enum hf_status status = ec_look(store, claim->name, keys, 0, patience, &look, err);

    if (status != HF_OK)
        return status;
    if (!look.own_there || look.own.create_revision != claim->token)
        return gone(store, claim, &look, 0, grant, err);
    status = ec_lease_left(store, claim->name, look.own.lease, patience, &grant->sent_at_ns,
                           &left_ms, &granted_ms, err);
    if (status == HF_LOST)
        return lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    if (status != HF_OK)
        return status;
    slack_ms = granted_ms - (int64_t)look.own.record.ttl_ms;
    grant->ttl_ms = look.own.record.ttl_ms;
    grant->remaining_ms = left_ms - (slack_ms > 0 ? slack_ms : 0);
    if (grant->remaining_ms < 0)
        grant->remaining_ms = 0;
    return hf__ok(err);
}

/* No answer to the delete. If the key is gone it was us, as long as nobody else could have ended
 * the hold. If it is there, a second delete of this one key cannot do more than the first. */
static enum hf_status settle(struct ec_store *store, const struct hf_claim *claim,
                             struct ec_keys *keys, const struct ec_patience *patience,
                             bool *was_there, struct ec_kv *deleted, struct hf_error *err)
{
    struct hf_error unknown = *err;
    struct ec_look look;
    enum hf_status status = ec_look(store, claim->name, keys, 0, patience, &look, err);
    struct ec_known known;

    if (status == HF_OK && look.own_there && look.own.create_revision == claim->token) {
        *deleted = look.own;
        status = ec_delete(store, claim->name, keys, claim->token, true, patience, NULL, NULL, err);
        if (status != HF_OK)
            ec_lease_retire(store, deleted->lease);
    } else if (status == HF_OK) {
        (void)ec_hold_known(store, claim->owner, &known);
        if (known.expired)
            status = HF_UNKNOWN;
    }
    *was_there = true; /* by now, or by the first request meanwhile */
    if (status == HF_OK)
        return HF_OK;
    *err = unknown;
    return HF_UNKNOWN;
}

enum hf_status ec_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct ec_patience patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1};
    struct hf_error own_err;
    struct ec_kv deleted = {.record.kind = EC_KIND_KEPT};
    struct ec_keys keys;
    struct ec_known known;
    bool was_there = false;
    bool shared = ec_hold_known(store, claim->owner, &known);
    enum hf_status status;
    int64_t lease;

    if (err == NULL)
        err = &own_err;
    ec_keys_make(&keys, store->url.prefix, claim->name, claim->owner);
    ec_keys_use(&keys, known.waited);
    /* What it was tells the private lease, which has to be ended too. */
    status = ec_delete(store, claim->name, &keys, claim->token, shared, &patience, &was_there,
                       shared ? NULL : &deleted, err);
    if (status == HF_OK && !was_there && !shared) {
        ec_keys_use(&keys, true); /* a hold that we know nothing of may have waited */
        status = ec_delete(store, claim->name, &keys, claim->token, false, &patience, &was_there,
                           &deleted, err);
    }
    if (status == HF_UNKNOWN)
        status = settle(store, claim, &keys, &patience, &was_there, &deleted, err);
    lease = ec_hold_forget(store, claim->owner);
    if (status != HF_OK) {
        /* What may still be there must not live on with the others on its lease. */
        ec_lease_retire(store, lease);
        return status;
    }
    if (was_there && deleted.lease != 0 &&
        (deleted.record.kind == EC_KIND_PRIVATE || deleted.record.kind == EC_KIND_DETACHED))
        ec_lease_drop(store, deleted.lease);
    if (!was_there || known.expired)
        return gone_to(store, claim, &keys, 0, NULL, err);
    return hf__ok(err);
}
