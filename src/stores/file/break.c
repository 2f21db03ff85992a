/* break.c - breaking a hold.
 *
 * A flag of the word keeps it from being renewed. The slot also remembers the token that was
 * broken, for when the hold is over: a later one has another, and so nothing has to be cleared. */
#include "base/base.h"
#include "stores/file/details.h"
#include "stores/file/errors.h"
#include "stores/file/location.h"
#include "stores/file/operations.h"
#include "stores/file/queue.h"
#include "stores/file/revocation.h"
#include "stores/file/slot.h"
#include "stores/file/step.h"
#include "stores/file/word.h"

/* Whether the hold that is meant is the present one; else *why not. */
static bool is_meant(struct file_store *store, const struct view *view, uint64_t token,
                     int64_t now_ns, enum hf__not_broken *why)
{
    if (view != NULL && hf__slot_held(store, view, now_ns))
        *why = HF__HELD_WITH_OTHER_TOKEN;
    else if (view != NULL && view->reserved_until_ns > now_ns)
        *why = HF__HANDED_OVER;
    else
        *why = HF__NOT_HELD;
    return *why == HF__HELD_WITH_OTHER_TOKEN && view->token == token;
}

/* The hold that was seen, with its page locked. */
static enum hf_status break_hold(struct file_store *store, struct view *view,
                                 const struct hf_revoke *revoke, struct hf_error *err)
{
    uint32_t number = hf__word_details(view->word);
    uint64_t use = hf__details_use(store, number);
    enum hf_status status = hf__revocation_write(store, view, revoke, err);

    HF__STEP(break_noted);
    if (status == HF_OK)
        status = hf__slot_set_broken(store, view, err);
    HF__STEP(break_marked);
    if (status != HF_OK)
        return status;
    if (!revoke->now)
        return hf__slot_swap(store, view, hf__word_with(view->word, WORD_BROKEN), err);
    status = hf__queue_pass(store, view, err);
    if (status == HF_OK)
        hf__details_give(store, number, use);
    return status;
}

/* HF_STALE: look again. */
static enum hf_status break_here(struct file_store *store, const struct bucket *bucket,
                                 const struct hf_revoke *revoke, struct hf_broken *out,
                                 struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    struct view seen;
    struct view *view;
    enum hf__not_broken why;
    enum hf_status status = hf__slot_see(store, bucket, revoke->name, &seen, &view, err);

    if (status != HF_OK)
        return status;
    if (!is_meant(store, view, revoke->token, now_ns, &why))
        return hf__fail_not_broken(err, revoke->name, store->shown, revoke->token, why);
    hf__copy_printable(out->label, sizeof out->label, view->details.label);
    out->remaining_ms = revoke->now ? 0 : (view->expires_ns - now_ns) / HF__NS_PER_MS;
    out->detached = view->details.client == 0;
    out->again = hf__word_is(view->word, WORD_BROKEN);
    return revoke->now || !out->again ? break_hold(store, view, revoke, err) : HF_OK;
}

enum hf_status hf__file_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                               struct hf_broken *out, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    uint64_t hash = hf__name_hash(revoke->name);
    struct bucket bucket;
    enum hf_status status = hf__location_check(store, err);

    if (status != HF_OK)
        return status;
    status = hf__page_lock(store, hash, revoke->deadline_ns, &bucket, err);
    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, err);
    do
        status = break_here(store, &bucket, revoke, out, err);
    while (status == HF_STALE);
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
