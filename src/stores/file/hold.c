/* hold.c - renewing and releasing what is held. */
#include "base/base.h"
#include "stores/file/errors.h"
#include "stores/file/fifo.h"
#include "stores/file/floor.h"
#include "stores/file/location.h"
#include "stores/file/queue.h"
#include "stores/file/revocation.h"
#include "stores/file/slot.h"

#include <string.h>

/* A hold that is lost, in the words of who broke it if somebody did: the slot may tell of a later
 * break only. grant may be NULL. */
static enum hf_status refuse(struct file_store *store, const struct hf_claim *claim,
                             enum hf_loss loss, struct hf_grant *grant, struct hf_error *err)
{
    struct hf_revocation own;
    struct hf_revocation *revocation =
        grant != NULL && grant->revocation != NULL ? grant->revocation : &own;

    if (!hf__revocation_read(store, claim->name, claim->token, revocation) &&
        loss != HF_LOSS_BROKEN)
        return hf__error_lost(store, claim, loss, grant, err);
    if (grant != NULL)
        grant->loss = HF_LOSS_BROKEN;
    return hf__fail_broken(err, claim->name, store->shown, revocation);
}

enum hf_status hf__file_renew(struct hf_store_base *base, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    uint64_t hash = hf__name_hash(claim->name);
    unsigned char owner[HF_OWNER_LEN / 2];
    struct bucket bucket;
    struct slot *slot;
    enum hf_loss loss;
    int64_t now_ns;
    enum hf_status status;

    if (!hf__hex_decode(owner, sizeof owner, claim->owner))
        return hf__error_owner(store, claim, err);
    if (hf__location_check(store, NULL) != HF_OK)
        return hf__error_lost(store, claim, HF_LOSS_FORGOTTEN, grant, err);
    status = hf__page_lock(store, hash, claim->deadline_ns, &bucket, err);
    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, err);
    now_ns = base->host->now_ns();
    slot = hf__slot_find(&bucket, hash, claim->name);
    loss = hf__slot_why_not_renewed(slot, owner, claim->token, now_ns);
    if (loss == HF_LOSS_BROKEN && claim->ttl_ms == 0 &&
        hf__slot_why_lost(slot, owner, claim->token, now_ns) == HF_LOSS_NONE) {
        grant->loss = HF_LOSS_BROKEN; /* a look: it is there */
        loss = HF_LOSS_NONE;
    }
    if (loss != HF_LOSS_NONE) {
        status = refuse(store, claim, loss, grant, err);
    } else {
        grant->sent_at_ns = now_ns;
        grant->ttl_ms = slot->ttl_ms;
        grant->remaining_ms = (slot->expires_ns - now_ns) / HF__NS_PER_MS;
        if (claim->ttl_ms != 0) {
            slot->ttl_ms = claim->ttl_ms;
            slot->expires_ns = hf__time_add(now_ns, (int64_t)claim->ttl_ms * HF__NS_PER_MS);
            status = hf__page_write(store, &bucket, slot, err);
            grant->ttl_ms = claim->ttl_ms;
        }
    }
    hf__page_unlock(store, &bucket);
    return status;
}

enum hf_status hf__file_release(struct hf_store_base *base, const struct hf_claim *claim,
                                struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    uint64_t hash = hf__name_hash(claim->name);
    unsigned char owner[HF_OWNER_LEN / 2];
    struct bucket bucket;
    struct slot *slot;
    enum hf_loss loss;
    uint64_t token;
    int64_t now_ns;
    enum hf_status status;

    if (!hf__hex_decode(owner, sizeof owner, claim->owner))
        return hf__error_owner(store, claim, err);
    status = hf__page_lock(store, hash, claim->deadline_ns, &bucket, err);
    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, err);
    now_ns = base->host->now_ns();
    slot = hf__slot_find(&bucket, hash, claim->name);
    /* Who never heard its token gives back whatever it holds. */
    token = claim->token != 0 || slot == NULL ? claim->token : slot->token;
    loss = hf__slot_why_lost(slot, owner, token, now_ns);
    if (hf__slot_is_hold(slot, owner, token)) {
        hf__slot_clear(slot);
        status = hf__queue_pass(store, &bucket, slot, now_ns, err);
    }
    hf__page_unlock(store, &bucket);
    if (slot == NULL ||
        !hf__slot_is_hold(slot, owner, slot->token)) /* it may hold on by another token */
        hf__fifo_release(store, owner);
    if (status == HF_OK && loss == HF_LOSS_NONE)
        hf__floor_refill(store, token);
    if (loss == HF_LOSS_NONE && hf__location_check(store, NULL) != HF_OK)
        loss = HF_LOSS_FORGOTTEN;
    if (status != HF_OK || loss == HF_LOSS_NONE)
        return status;
    if (hf__slot_why_not_renewed(slot, owner, token, now_ns) == HF_LOSS_BROKEN)
        loss = HF_LOSS_BROKEN;
    return refuse(store, claim, loss, NULL, err);
}
