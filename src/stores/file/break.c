/* break.c - breaking a hold.
 *
 * The slot remembers the token that was broken: renewal compares it, a later hold has another one,
 * and so nothing has to be cleared. */
#include "base/base.h"
#include "stores/file/errors.h"
#include "stores/file/location.h"
#include "stores/file/queue.h"
#include "stores/file/revocation.h"
#include "stores/file/slot.h"

/* Why the hold that is meant is not the present one; NULL: it is. */
static const char *why_not(struct file_store *store, const struct slot *slot, uint64_t token,
                           int64_t now_ns)
{
    if (slot == NULL || !hf__slot_held(store, slot, now_ns))
        return slot != NULL && slot->claim_ns > now_ns ? "is just being handed to the next"
                                                       : "is not held";
    return slot->token == token ? NULL : "is held with another token";
}

/* The hold, with its page locked. */
static enum hf_status break_hold(struct file_store *store, struct bucket *bucket, struct slot *slot,
                                 const struct hf_revoke *revoke, struct hf_error *err)
{
    enum hf_status status = hf__revocation_write(store, slot, revoke, err);

    if (status != HF_OK)
        return status;
    slot->broken = slot->token;
    if (!revoke->now)
        return hf__page_write(store, bucket, slot, err);
    hf__slot_clear(slot);
    return hf__queue_pass(store, bucket, slot, store->base.host->now_ns(), err);
}

enum hf_status hf__file_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                               struct hf_broken *out, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    uint64_t hash = hf__name_hash(revoke->name);
    struct bucket bucket;
    struct slot *slot;
    const char *why;
    int64_t now_ns;
    enum hf_status status = hf__location_check(store, err);

    if (status != HF_OK)
        return status;
    status = hf__page_lock(store, hash, revoke->deadline_ns, &bucket, err);
    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, err);
    now_ns = base->host->now_ns();
    slot = hf__slot_find(&bucket, hash, revoke->name);
    why = why_not(store, slot, revoke->token, now_ns);
    if (why != NULL) {
        status = hf__fail_not_broken(err, revoke->name, store->shown, why);
    } else {
        hf__copy_printable(out->label, sizeof out->label, slot->label);
        out->remaining_ms = revoke->now ? 0 : (slot->expires_ns - now_ns) / HF__NS_PER_MS;
        out->detached = slot->client == 0;
        out->again = slot->broken == slot->token;
        if (revoke->now || !out->again)
            status = break_hold(store, &bucket, slot, revoke, err);
    }
    hf__page_unlock(store, &bucket);
    hf__revocation_sweep(store);
    return status;
}

enum hf_status hf__file_last_break(struct hf_store_base *base, const struct hf_query *query,
                                   struct hf_revocation *out, struct hf_error *err)
{
    hf__revocation_last(hf__file_of(base), query->name, out);
    return hf__ok(err);
}
