/* grant.c - what happens to a lock whose page is locked: granted, its queue moved, broken. */
#include "base/base.h"
#include "core/token.h"
#include "stores/file/details.h"
#include "stores/file/errors.h"
#include "stores/file/floor.h"
#include "stores/file/slot.h"
#include "stores/file/step.h"
#include "stores/file/word.h"

#include <stddef.h>

enum hf_status hf__slot_swap(struct file_store *store, struct view *view, struct hf__pair to,
                             struct hf_error *err)
{
    enum hf_status status = hf__word_swap(store, view->at, view->word, to, err);

    if (status == HF_OK)
        view->word = to;
    return status;
}

enum hf_status hf__slot_set_queue(struct file_store *store, struct view *view, uint64_t head,
                                  uint64_t tail, struct hf_error *err)
{
    const uint64_t ends[2] = {head, tail};
    enum hf_status status = HF_OK;

    if (head != view->head || tail != view->tail)
        status = hf__map_write(store, view->at + (off_t)offsetof(struct slot, head), ends,
                               sizeof ends, err);
    if (status == HF_OK) {
        view->head = head;
        view->tail = tail;
    }
    return status;
}

enum hf_status hf__slot_set_broken(struct file_store *store, struct view *view,
                                   struct hf_error *err)
{
    enum hf_status status = hf__map_write(store, view->at + (off_t)offsetof(struct slot, broken),
                                          &view->token, sizeof view->token, err);

    if (status == HF_OK)
        view->broken = view->token;
    return status;
}

static enum hf_status next_token(struct file_store *store, const struct view *view,
                                 const struct hf_claim *claim, uint64_t *out, struct hf_error *err)
{
    uint64_t floor = view->floor + 1;

    if (floor < store->token_base)
        floor = store->token_base;
    if (!hf__token_next(view->token, store->base.host->wall_us(), floor, out))
        return hf__fail_lock(err, HF_CORRUPT, claim->name, store->shown,
                             ": its tokens are used up");
    return hf__floor_admit(store, *out, claim->deadline_ns, err);
}

/* Details that are named must not be touched, so first the word stops naming them. A renewal that
 * came in the last moment is seen here. Whoever dies now leaves a lock that is free. */
static enum hf_status free_details(struct file_store *store, struct view *view,
                                   struct hf_error *err)
{
    enum hf_status status = HF_OK;

    if (view->expires_ns != 0 && hf__details_in_slot(hf__word_details(view->word)))
        status = hf__slot_swap(store, view, (struct hf__pair){view->token, WORD_MOVING}, err);
    HF__STEP(grant_freed);
    return status;
}

/* Which details are used, and which use of them it is. */
struct number {
    uint32_t number;
    uint64_t use;
};

/* Writes down who takes it, under a number of ours or in the slot. */
static enum hf_status describe(struct file_store *store, struct view *view,
                               const struct details *details, struct number *out,
                               struct hf_error *err)
{
    enum hf_status status = HF_OK;

    out->number = details->client != 0 ? hf__details_take(store, &out->use) : DETAILS_SLOT;
    if (out->number == DETAILS_SLOT)
        status = free_details(store, view, err);
    if (status == HF_OK)
        status = hf__details_write(store, view->at, out->number, details, err);
    HF__STEP(grant_described);
    return status;
}

enum hf_status hf__slot_grant(struct file_store *store, struct view *view,
                              const struct hf_claim *claim, uint64_t head, struct hf_grant *grant,
                              struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    struct hf__pair to = {0, 0};
    struct details details;
    struct number taken = {0, 0};
    enum hf_status status = hf__details_of(store, claim, view->hash, now_ns, &details, err);

    if (status == HF_OK && !hf__hex_decode(details.owner, sizeof details.owner, claim->owner))
        status = hf__error_owner(store, claim, err);
    if (status == HF_OK)
        status = next_token(store, view, claim, &details.token, err);
    if (status == HF_OK)
        status = describe(store, view, &details, &taken, err);
    if (status == HF_OK) {
        int64_t until_ns = hf__time_add(now_ns, (int64_t)claim->ttl_ms * HF__NS_PER_MS);

        to.low = details.token;
        to.high = hf__word_state(until_ns, taken.number, head != view->tail ? WORD_WAITED : 0);
        status = hf__slot_swap(store, view, to, err);
        HF__STEP(grant_swapped);
    }
    if (status == HF_OK || status == HF_UNKNOWN)
        hf__details_named(store, taken.number, taken.use, view->at, to, &details);
    else
        hf__details_give(store, taken.number, taken.use);
    if (status != HF_OK)
        return status;
    /* Only those who are dead, and ourselves, are stepped over: it may as well fail. */
    (void)hf__slot_set_queue(store, view, head, view->tail, NULL);
    HF__STEP(grant_head);
    grant->token = details.token;
    grant->sent_at_ns = now_ns;
    return HF_OK;
}

enum hf_loss hf__slot_why_lost(const struct view *view, const unsigned char *owner, uint64_t token,
                               int64_t now_ns)
{
    if (view == NULL)
        return HF_LOSS_FORGOTTEN;
    if (view->expires_ns <= now_ns)
        return HF_LOSS_EXPIRED;
    return hf__view_is_hold(view, owner, token) ? HF_LOSS_NONE : HF_LOSS_TAKEN;
}

/* Also of a hold that is over. Whoever has the token of the present hold, but is not its owner, is
 * not told that it was broken. */
enum hf_loss hf__slot_why_not_renewed(const struct view *view, const unsigned char *owner,
                                      uint64_t token, int64_t now_ns)
{
    enum hf_loss loss = hf__slot_why_lost(view, owner, token, now_ns);

    if (view == NULL || view->broken != token || (loss == HF_LOSS_TAKEN && view->token == token))
        return loss;
    return HF_LOSS_BROKEN;
}
