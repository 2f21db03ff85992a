/* hold.c - renewing and releasing what is held. */
#include "base/base.h"
#include "stores/file/hold.h"
#include "stores/file/details.h"
#include "stores/file/errors.h"
#include "stores/file/fifo.h"
#include "stores/file/floor.h"
#include "stores/file/location.h"
#include "stores/file/operations.h"
#include "stores/file/queue.h"
#include "stores/file/quick.h"
#include "stores/file/revocation.h"
#include "stores/file/slot.h"
#include "stores/file/step.h"
#include "stores/file/word.h"

#include <string.h>

/* A hold that is lost, in the words of who broke it if somebody did: the slot may tell of a later
 * break only. grant may be NULL. */
static enum hf_status refuse(struct file_store *store, const struct hf_claim *claim,
                             enum hf_loss loss, struct hf_grant *grant, struct hf_error *err)
{
    struct hf_revocation own = {.at_ms = 0};
    struct hf_revocation *revocation =
        grant != NULL && grant->revocation != NULL ? grant->revocation : &own;

    if (!hf__revocation_read(store, claim->name, claim->token, revocation) &&
        loss != HF_LOSS_BROKEN)
        return hf__error_lost(store, claim, loss, grant, err);
    if (grant != NULL)
        grant->loss = HF_LOSS_BROKEN;
    return hf__fail_broken(err, claim->name, store->shown, revocation);
}

/* Writes a new ttl, under a number that the word does not name yet. Details that are another
 * client's are not ours to change: those of a hold whose ttl changes lie in the slot from then
 * on. */
static enum hf_status describe(struct file_store *store, struct view *view, uint32_t ttl_ms,
                               uint32_t *number, struct hf_error *err)
{
    enum hf_status status;

    view->details.ttl_ms = ttl_ms;
    if (hf__details_in_slot(*number)) {
        status = hf__details_write_ttl(store, view->at, ttl_ms, number, err);
    } else {
        *number = DETAILS_SLOT;
        status = hf__details_write(store, view->at, *number, &view->details, err);
    }
    HF__STEP(renew_described);
    return status;
}

/* The hold goes on for another ttl. */
static enum hf_status extend(struct file_store *store, struct view *view,
                             const struct hf_claim *claim, int64_t now_ns, struct hf_error *err)
{
    int64_t until_ns = hf__time_add(now_ns, (int64_t)claim->ttl_ms * HF__NS_PER_MS);
    uint32_t before = hf__word_details(view->word);
    uint32_t number = before;
    uint64_t use = hf__details_use(store, before);
    struct hf__pair to = {view->token, 0};
    enum hf_status status = HF_OK;

    if (view->details.ttl_ms != claim->ttl_ms)
        status = describe(store, view, claim->ttl_ms, &number, err);
    if (status != HF_OK)
        return status;
    to.high = hf__word_state(until_ns, number, (unsigned)view->word.high & WORD_FLAGS);
    status = hf__slot_swap(store, view, to, err);
    HF__STEP(renew_swapped);
    if (status == HF_OK && number != before)
        hf__details_give(store, before, use);
    return status;
}

/* With the page locked. HF_STALE: look again. */
static enum hf_status renew_here(struct file_store *store, const struct bucket *bucket,
                                 const struct hf_claim *claim, struct hf_grant *grant,
                                 struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    unsigned char owner[HF_OWNER_LEN / 2];
    struct view seen;
    struct view *view;
    enum hf_loss loss;
    enum hf_status status = hf__slot_see(store, bucket, claim->name, &seen, &view, err);

    if (status != HF_OK)
        return status;
    (void)hf__hex_decode(owner, sizeof owner, claim->owner);
    loss = hf__slot_why_not_renewed(view, owner, claim->token, now_ns);
    if (loss == HF_LOSS_BROKEN && claim->ttl_ms == 0 &&
        hf__slot_why_lost(view, owner, claim->token, now_ns) == HF_LOSS_NONE) {
        grant->loss = HF_LOSS_BROKEN; /* a look: it is there */
        loss = HF_LOSS_NONE;
    }
    if (loss != HF_LOSS_NONE)
        return refuse(store, claim, loss, grant, err);
    grant->sent_at_ns = now_ns;
    grant->ttl_ms = claim->ttl_ms != 0 ? claim->ttl_ms : (uint32_t)view->details.ttl_ms;
    grant->remaining_ms = (view->expires_ns - now_ns) / HF__NS_PER_MS;
    return claim->ttl_ms != 0 ? extend(store, view, claim, now_ns, err) : HF_OK;
}

enum hf_status hf__file_renew(struct hf_store_base *base, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    struct quick quick = {
        .claim = claim, .hash = hf__name_hash(claim->name), .now_ns = base->host->now_ns()};
    struct bucket bucket;
    enum hf_status status = hf__quick_begin(store, &quick, err);

    if (status != HF_OK)
        return status;
    if (hf__location_check_at(store, quick.now_ns, NULL) != HF_OK)
        return hf__error_lost(store, claim, HF_LOSS_FORGOTTEN, grant, err);
    status = hf__quick_renew(store, &quick, grant, err);
    if (status != HF_STALE)
        return status;
    status = hf__page_lock(store, quick.hash, claim->deadline_ns, &bucket, err);
    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, err);
    do
        status = renew_here(store, &bucket, claim, grant, err);
    while (status == HF_STALE);
    hf__page_unlock(store, &bucket);
    return status;
}

/* With the page locked. HF_STALE: look again. HF_OK: it is not held by the claim's owner any more,
 * and *loss says whether it was. */
static enum hf_status release_here(struct file_store *store, const struct bucket *bucket,
                                   const struct quick *quick, enum hf_loss *loss,
                                   struct hf_error *err)
{
    const struct hf_claim *claim = quick->claim;
    int64_t now_ns = store->base.host->now_ns();
    struct view seen;
    struct view *view;
    uint64_t token = claim->token;
    enum hf_status status = hf__slot_see(store, bucket, claim->name, &seen, &view, err);

    if (status != HF_OK)
        return status;
    /* A client that never heard its token gives back whatever it holds. */
    if (token == 0 && view != NULL)
        token = view->token;
    *loss = hf__slot_why_not_renewed(view, quick->owner, token, now_ns);
    if (*loss == HF_LOSS_BROKEN)
        *loss = hf__slot_why_lost(view, quick->owner, token, now_ns) == HF_LOSS_NONE
                    ? HF_LOSS_NONE
                    : HF_LOSS_BROKEN;
    if (hf__view_is_hold(view, quick->owner, token)) {
        uint32_t number = hf__word_details(view->word);
        uint64_t use = hf__details_use(store, number);

        status = hf__queue_pass(store, view, err);
        if (status == HF_OK)
            hf__details_give(store, number, use);
    } else {
        hf__details_give_hold(store, quick->hash, token);
    }
    if (status == HF_OK && /* it may hold on by another token */
        (view == NULL || !hf__view_is_hold(view, quick->owner, view->token)))
        hf__fifo_release(store, quick->owner);
    return status;
}

/* The long way: also for what has waiters, what is over, and what is not ours. */
static enum hf_status release_locked(struct file_store *store, const struct quick *quick,
                                     enum hf_loss *loss, struct hf_error *err)
{
    struct bucket bucket;
    enum hf_status status =
        hf__page_lock(store, quick->hash, quick->claim->deadline_ns, &bucket, err);

    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, err);
    do
        status = release_here(store, &bucket, quick, loss, err);
    while (status == HF_STALE);
    hf__page_unlock(store, &bucket);
    return status;
}

enum hf_status hf__hold_release(struct file_store *store, const struct hf_claim *claim,
                                struct hf_error *err)
{
    enum hf_loss loss = HF_LOSS_NONE;
    struct quick quick = {
        .claim = claim, .hash = hf__name_hash(claim->name), .now_ns = store->base.host->now_ns()};
    enum hf_status status = hf__quick_begin(store, &quick, err);

    if (status != HF_OK)
        return status;
    status = hf__quick_release(store, &quick, err);
    if (status == HF_OK)
        hf__fifo_release(store, quick.owner);
    if (status == HF_STALE)
        status = release_locked(store, &quick, &loss, err);
    if (status == HF_OK && loss == HF_LOSS_NONE)
        hf__floor_refill(store, claim->token);
    if (status == HF_OK && loss == HF_LOSS_NONE &&
        hf__location_check_at(store, quick.now_ns, NULL) != HF_OK)
        loss = HF_LOSS_FORGOTTEN;
    if (status != HF_OK || loss == HF_LOSS_NONE)
        return status;
    return refuse(store, claim, loss, NULL, err);
}

enum hf_status hf__file_release(struct hf_store_base *base, const struct hf_claim *claim,
                                struct hf_error *err)
{
    return hf__hold_release(hf__file_of(base), claim, err);
}
