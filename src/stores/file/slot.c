/* slot.c - a lock in its locked page: found, made, granted. */
#include "stores/file/slot.h"
#include "base/base.h"
#include "core/token.h"
#include "stores/file/errors.h"
#include "stores/file/floor.h"
#include "stores/file/life.h"
#include "stores/file/location.h"
#include "stores/file/ticket.h"

#include <stdio.h>
#include <string.h>

bool hf__slot_held(struct file_store *store, const struct slot *slot, int64_t now_ns)
{
    return slot->expires_ns > now_ns && (slot->client == 0 || hf__life_check(store, slot->client));
}

struct slot *hf__slot_find(struct bucket *bucket, uint64_t hash, const char *name)
{
    for (int i = 0; i < SLOTS_PER_PAGE; i++) {
        struct slot *slot = &bucket->page.slots[i];

        if (slot->hash == hash && strncmp(slot->name, name, sizeof slot->name) == 0)
            return slot;
    }
    return NULL;
}

bool hf__slot_seems_taken(struct file_store *store, struct bucket *scratch, const char *name)
{
    uint64_t hash = hf__name_hash(name);
    uint32_t page_no = hf__page_guess(store, hash);
    const struct slot *slot;

    if (hf__page_read(store, page_no, &scratch->page, NULL) != HF_OK ||
        hf__page_route(&scratch->page.head, page_no, hash) != page_no)
        return false;
    slot = hf__slot_find(scratch, hash, name);
    return slot != NULL &&
           (slot->expires_ns > store->base.host->now_ns() || slot->head != slot->tail);
}

/* After a split the old copies of the names that moved are still there: they are empty space. */
static bool is_vacant(const struct bucket *bucket, const struct slot *slot)
{
    return slot->hash == 0 ||
           hf__page_route(&bucket->page.head, bucket->page_no, slot->hash) != bucket->page_no;
}

static bool is_idle(struct file_store *store, const struct slot *slot, int64_t now_ns)
{
    if (hf__slot_held(store, slot, now_ns))
        return false;
    return slot->head == slot->tail || hf__ticket_first_live(store, slot, NULL) == slot->tail;
}

static enum hf_status raise_floor(struct file_store *store, struct bucket *bucket, uint64_t token,
                                  struct hf_error *err)
{
    if (token <= bucket->page.head.floor)
        return HF_OK;
    bucket->page.head.floor = token;
    if (bucket->page.head.sum == 0)
        bucket->page.head.prefix = bucket->page_no - 1;
    return hf__page_write(store, bucket, &bucket->page.head, err);
}

enum hf_status hf__slot_forget(struct file_store *store, struct bucket *bucket, struct slot *slot,
                               struct hf_error *err)
{
    enum hf_status status;

    if (!is_idle(store, slot, store->base.host->now_ns()))
        return hf__fail_lock(err, HF_BUSY, slot->name, store->shown, " is held or waited for");
    status = raise_floor(store, bucket, slot->token, err);
    return status == HF_OK ? hf__page_clear(store, bucket, slot, err) : status;
}

/* A slot for a new name in a locked page: an empty one, else an idle one, whose token becomes the
 * page's floor first. NULL with HF_OK if all are in use. */
static enum hf_status vacate(struct file_store *store, struct bucket *bucket, struct slot **out,
                             struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    struct slot *slot = NULL;
    enum hf_status status = HF_OK;

    *out = NULL;
    for (int i = 0; i < SLOTS_PER_PAGE && slot == NULL; i++)
        if (is_vacant(bucket, &bucket->page.slots[i]))
            slot = &bucket->page.slots[i];
    for (int i = 0; i < SLOTS_PER_PAGE && slot == NULL; i++)
        if (is_idle(store, &bucket->page.slots[i], now_ns))
            slot = &bucket->page.slots[i];
    if (slot == NULL)
        return HF_OK;
    if (!is_vacant(bucket, slot))
        status = raise_floor(store, bucket, slot->token, err);
    if (status == HF_OK) {
        memset(slot, 0, sizeof *slot);
        *out = slot;
    }
    return status;
}

enum hf_status hf__slot_make(struct file_store *store, const struct hf_claim *claim,
                             struct bucket *bucket, struct slot **out, struct hf_error *err)
{
    uint64_t hash = hf__name_hash(claim->name);
    enum hf_status linked = hf__location_check(store, err); /* also in the middle of a wait */

    bucket->blocked = false;
    if (linked != HF_OK)
        return linked;
    for (int splits = 0; splits <= SPLITS_MAX; splits++) {
        enum hf_status status = hf__page_lock(store, hash, claim->deadline_ns, bucket, err);

        if (status != HF_OK)
            return status;
        *out = hf__slot_find(bucket, hash, claim->name);
        if (*out != NULL)
            return HF_OK;
        status = vacate(store, bucket, out, err);
        if (status == HF_OK && *out != NULL) {
            (*out)->hash = hash;
            memcpy((*out)->name, claim->name, strlen(claim->name) + 1);
            /* Tickets of a name that lost its slot must not come again: start at the clock. */
            (*out)->head = (uint64_t)store->base.host->now_ns();
            (*out)->tail = (*out)->head;
            return HF_OK;
        }
        if (status == HF_OK)
            status = hf__page_split(store, bucket, err);
        hf__page_unlock(store, bucket);
        if (status != HF_OK)
            return status;
    }
    return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown, ": no room for lock \"%.60s\"",
                         claim->name);
}

enum hf_status hf__slot_grant(struct file_store *store, struct bucket *bucket, struct slot *slot,
                              const struct hf_claim *claim, struct hf_grant *grant,
                              struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    uint64_t floor = bucket->page.head.floor + 1;
    uint64_t token;
    enum hf_status status;

    if (floor < store->token_base)
        floor = store->token_base;
    if (!hf__token_next(slot->token, store->base.host->wall_us(), floor, &token))
        return hf__fail_lock(err, HF_CORRUPT, claim->name, store->shown,
                             ": its tokens are used up");
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
        return hf__error_owner(store, claim, err);
    hf__copy_printable(slot->label, sizeof slot->label, claim->label);
    status = hf__page_write(store, bucket, slot, err);
    if (status != HF_OK)
        return status;
    grant->token = token;
    grant->sent_at_ns = now_ns;
    return HF_OK;
}

void hf__slot_clear(struct slot *slot)
{
    memset(slot->owner, 0, sizeof slot->owner);
    memset(slot->label, 0, sizeof slot->label);
    slot->expires_ns = 0;
    slot->client = 0;
}

enum hf_loss hf__slot_why_lost(const struct slot *slot, const unsigned char *owner, uint64_t token,
                               int64_t now_ns)
{
    if (slot == NULL)
        return HF_LOSS_FORGOTTEN;
    if (slot->expires_ns <= now_ns)
        return HF_LOSS_EXPIRED;
    return hf__slot_is_hold(slot, owner, token) ? HF_LOSS_NONE : HF_LOSS_TAKEN;
}

/* Also of a hold that is over. Whoever has the token of one that is there, and not its owner, is
 * told what it was told before. */
enum hf_loss hf__slot_why_not_renewed(const struct slot *slot, const unsigned char *owner,
                                      uint64_t token, int64_t now_ns)
{
    enum hf_loss loss = hf__slot_why_lost(slot, owner, token, now_ns);

    if (slot == NULL || slot->broken != token || (loss == HF_LOSS_TAKEN && slot->token == token))
        return loss;
    return HF_LOSS_BROKEN;
}
