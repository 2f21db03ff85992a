/* take.c - the decision whether a lock can be taken, and taking it. */
#include "stores/file/internal.h"
#include "core/token.h"

#include <stdio.h>
#include <string.h>

static enum hf_status take(struct file_store *store, struct bucket *bucket, struct slot *slot,
                           const struct hf_claim *claim, int64_t now_ns, struct hf_grant *grant,
                           struct hf_error *err);

bool hf__slot_held(struct file_store *store, const struct slot *slot, int64_t now_ns)
{
    return slot->expires_ns > now_ns && (slot->client == 0 || hf__life_check(store, slot->client));
}

enum hf_status hf__busy(struct file_store *store, const struct slot *slot, const char *name,
                        int64_t now_ns, struct hf_error *err)
{
    char age[24];
    char label[HF_LABEL_MAX + 1];

    hf__copy_printable(label, sizeof label, slot->label[0] != '\0' ? slot->label : "another");
    if (slot->expires_ns == 0)
        return hf__fail(err, HF_BUSY, "lock \"%.60s\" in file:%s is about to go to a waiter", name,
                        store->shown);
    return hf__fail(err, HF_BUSY, "lock \"%.60s\" in file:%s is held by %s for %s (token %llu)",
                    name, store->shown, label,
                    hf__format_duration(age, sizeof age, (now_ns - slot->taken_ns) / HF__NS_PER_MS),
                    (unsigned long long)slot->token);
}

enum hf_status hf__take_slot(struct file_store *store, const struct hf_claim *claim,
                             struct bucket *bucket, struct slot **out, struct hf_error *err)
{
    uint64_t hash = hf__name_hash(claim->name);
    enum hf_status linked = hf__place_check(store, err); /* also in the middle of a wait */

    bucket->blocked = false;
    if (linked != HF_OK)
        return linked;
    for (int splits = 0; splits <= SPLITS_MAX; splits++) {
        enum hf_status status = hf__bucket_lock(store, hash, claim->deadline_ns, bucket, err);

        if (status != HF_OK)
            return status;
        *out = hf__bucket_find(bucket, hash, claim->name);
        if (*out != NULL)
            return HF_OK;
        status = hf__bucket_vacate(store, bucket, out, err);
        if (status == HF_OK && *out != NULL) {
            (*out)->hash = hash;
            memcpy((*out)->name, claim->name, strlen(claim->name) + 1);
            /* Tickets of a name that lost its slot must not come again: start at the clock. */
            (*out)->head = (uint64_t)store->base.host->now_ns();
            (*out)->tail = (*out)->head;
            return HF_OK;
        }
        if (status == HF_OK)
            status = hf__bucket_split(store, bucket, err);
        hf__bucket_unlock(store, bucket);
        if (status != HF_OK)
            return status;
    }
    return hf__fail(err, HF_UNSUPPORTED, "store file:%s: no room for lock \"%.60s\"", store->shown,
                    claim->name);
}

enum hf_status hf__take_look(struct file_store *store, struct bucket *bucket, struct slot *slot,
                             const struct hf_claim *claim, uint64_t ticket, enum look *look_out,
                             struct hf_grant *grant, struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    bool ours = ticket != 0 && ticket == slot->head;
    bool lapsed = slot->claim_ns != 0 && slot->claim_ns <= now_ns;
    uint64_t live;

    *look_out = LOOK_HELD;
    if (slot->expires_ns > now_ns && hf__slot_held(store, slot, now_ns))
        return HF_OK;
    if (!ours && slot->head != slot->tail) {
        struct slot from = *slot;

        if (lapsed)
            from.head++; /* the head had its chance and did not come */
        live = hf__ticket_first_live(store, &from, NULL);
        if (live < slot->tail && live != ticket) {
            *look_out = LOOK_PASSED;
            if (!lapsed && slot->claim_ns != 0 && live == slot->head)
                return HF_OK; /* it is reserved for that one already */
            slot->expires_ns = 0;
            memset(slot->owner, 0, sizeof slot->owner);
            slot->head = live;
            return hf__ticket_pass(store, bucket, slot, now_ns, err);
        }
        if (ticket == 0 || live == ticket)
            slot->head = live;
    }
    if (ticket != 0 && ticket == slot->head)
        slot->head++;
    *look_out = LOOK_TAKEN;
    return take(store, bucket, slot, claim, now_ns, grant, err);
}

/* One pwrite makes the lock ours. */
static enum hf_status take(struct file_store *store, struct bucket *bucket, struct slot *slot,
                           const struct hf_claim *claim, int64_t now_ns, struct hf_grant *grant,
                           struct hf_error *err)
{
    uint64_t floor = bucket->page.head.floor + 1;
    uint64_t token;
    enum hf_status status;

    if (floor < store->token_base)
        floor = store->token_base;
    if (!hf__token_next(slot->token, store->base.host->wall_us(), floor, &token))
        return hf__fail(err, HF_CORRUPT, "store file:%s: tokens of lock \"%.60s\" are used up",
                        store->shown, claim->name);
    status = hf__floor_admit(store, token, claim->deadline_ns, err);
    if (status != HF_OK)
        return status;
    slot->token = token;
    slot->expires_ns = hf__time_add(now_ns, (int64_t)claim->ttl_ms * HF__NS_PER_MS);
    slot->taken_ns = now_ns;
    slot->client = claim->detached ? 0 : store->client;
    slot->claim_ns = 0;
    slot->ttl_ms = claim->ttl_ms;
    if (!hf__hex_decode(slot->owner, sizeof slot->owner, claim->owner))
        return hf__fail(err, HF_INVALID, "lock \"%.60s\": malformed owner", claim->name);
    hf__copy_printable(slot->label, sizeof slot->label, claim->label);
    status = hf__bucket_write(store, bucket, slot, err);
    if (status != HF_OK)
        return status;
    grant->token = token;
    grant->sent_at_ns = now_ns;
    return HF_OK;
}
