/* quick.c - what needs no lock of a page. */
#include "stores/file/quick.h"
#include "base/base.h"
#include "core/token.h"
#include "stores/file/details.h"
#include "stores/file/errors.h"
#include "stores/file/page.h"
#include "stores/file/step.h"
#include "stores/file/word.h"

#include <string.h>

/* A slot as it lies there: in the map, or in a copy of its page that was read just now. The copy is
 * read from front to back, and the word stands before the name: so the name is never older than the
 * word, in the copy as in the map. */
struct glance {
    const struct slot *slot;
    off_t at;
    struct hf__pair word;
    struct page copy; /* where there is no map */
};

enum hf_status hf__quick_begin(const struct file_store *store, struct quick *quick,
                               struct hf_error *err)
{
    if (!hf__hex_decode(quick->owner, sizeof quick->owner, quick->claim->owner))
        return hf__error_owner(store, quick->claim, err);
    return HF_OK;
}

static const struct page *see_page(struct file_store *store, uint32_t page_no, struct page *copy)
{
    if (store->mapped)
        return hf__map_page(store, page_no);
    return hf__map_read(store, hf__page_at(page_no), copy, sizeof *copy, NULL) == HF_OK ? copy
                                                                                        : NULL;
}

/* Finds the slot by its hash, and reads its word. */
static bool find(struct file_store *store, uint64_t hash, struct glance *out)
{
    uint32_t page_no = hf__page_guess(store, hash);
    const struct page *page = NULL;

    for (int steps = 0; steps <= SPLITS_MAX; steps++) {
        uint32_t next;

        page = see_page(store, page_no, &out->copy);
        if (page == NULL)
            return false;
        next = hf__page_route_live(&page->head, page_no, hash);
        if (next == page_no)
            break;
        if (next == 0 || steps == SPLITS_MAX)
            return false;
        page_no = next;
    }
    for (int i = 0; i < SLOTS_PER_PAGE; i++) {
        if (hf__map_get(&page->slots[i].hash) != hash)
            continue;
        out->slot = &page->slots[i];
        out->at = hf__slot_at(page_no, i);
        out->word = hf__map_word(&out->slot->word);
        return true;
    }
    return false;
}

/* Compared after the word was read: a slot that gets another name has another word first. */
static bool is_named(const struct slot *slot, uint64_t hash, const char *name)
{
    char padded[HF_NAME_MAX + 8] = {0};
    size_t len = strlen(name) + 1;
    uint64_t part;

    memcpy(padded, name, len);
    if (hf__map_get(&slot->hash) != hash)
        return false;
    for (size_t i = 0; i < len; i += sizeof part) {
        memcpy(&part, padded + i, sizeof part);
        if (hf__map_get(slot->name + i) != part)
            return false;
    }
    return true;
}

bool hf__quick_taken(struct file_store *store, const char *name, int64_t now_ns)
{
    uint64_t hash = hf__name_hash(name);
    struct glance glance;

    return find(store, hash, &glance) && !hf__word_is(glance.word, WORD_MOVING) &&
           hf__word_expiry_ns(glance.word) > now_ns && is_named(glance.slot, hash, name);
}

/* A grant in the making. */
struct taking {
    off_t at;
    struct hf__pair to;
    struct details details;
    uint32_t number; /* of the details */
    uint64_t use;    /* and which of them it is */
};

/* Details of ours that say who takes it, with the token in taking->to. HF_STALE: none is to be
 * had. */
static enum hf_status describe(struct file_store *store, const struct quick *quick,
                               struct taking *taking)
{
    int64_t until_ns = hf__time_add(quick->now_ns, (int64_t)quick->claim->ttl_ms * HF__NS_PER_MS);
    enum hf_status status =
        hf__details_of(store, quick->claim, quick->hash, quick->now_ns, &taking->details, NULL);

    if (status != HF_OK)
        return HF_STALE;
    taking->details.token = taking->to.low;
    memcpy(taking->details.owner, quick->owner, sizeof taking->details.owner);
    taking->number = hf__details_take(store, &taking->use);
    if (taking->number == 0)
        return HF_STALE;
    taking->to.high = hf__word_state(until_ns, taking->number, 0);
    status = hf__details_write(store, 0, taking->number, &taking->details, NULL);
    HF__STEP(take_described);
    if (status == HF_OK)
        return HF_OK;
    hf__details_give(store, taking->number, taking->use); /* no word names them */
    return HF_STALE;
}

/* What came of the swap, or whatever changed the word. */
static enum hf_status conclude(struct file_store *store, const struct quick *quick,
                               const struct taking *taking, enum hf_status status,
                               struct hf_grant *grant)
{
    HF__STEP(take_swapped);
    if (status == HF_OK || status == HF_UNKNOWN)
        hf__details_named(store, taking->number, taking->use, taking->at, taking->to,
                          &taking->details);
    else
        hf__details_give(store, taking->number, taking->use);
    if (status != HF_OK)
        return status;
    if (!store->mapped)
        atomic_store_explicit(&store->met[quick->hash % SLOTS_MET], (uint64_t)taking->at,
                              memory_order_relaxed);
    grant->token = taking->to.low;
    grant->sent_at_ns = quick->now_ns;
    return HF_OK;
}

/* A slot that is free, and is the claim's, and the token that it can be had with. */
static bool find_free(struct file_store *store, const struct quick *quick, struct glance *out,
                      uint64_t *token)
{
    if (!find(store, quick->hash, out) || out->word.high != 0)
        return false;
    HF__STEP(take_read);
    return is_named(out->slot, quick->hash, quick->claim->name) &&
           hf__token_next(out->word.low, store->base.host->wall_us(), store->token_base, token) &&
           *token <= atomic_load(&store->promise); /* else the long way raises the floor */
}

/* Where we met the name before, with the word locked from the look on: the slot need not be read
 * twice. One that has moved is marked, or another name's by now. */
static enum hf_status take_met(struct file_store *store, const struct quick *quick,
                               struct taking *taking, struct hf_error *err)
{
    struct slot slot;
    enum hf_status status = HF_STALE;

    taking->at =
        (off_t)atomic_load_explicit(&store->met[quick->hash % SLOTS_MET], memory_order_relaxed);
    if (taking->at == 0 || hf__word_lock(store, taking->at) != HF_OK)
        return HF_STALE;
    if (hf__map_read(store, taking->at, &slot, sizeof slot, NULL) == HF_OK && slot.word.high == 0 &&
        is_named(&slot, quick->hash, quick->claim->name) &&
        hf__token_next(slot.word.low, store->base.host->wall_us(), store->token_base,
                       &taking->to.low) &&
        taking->to.low <= atomic_load(&store->promise))
        status = describe(store, quick, taking);
    if (status == HF_OK)
        status = hf__word_put(store, taking->at, taking->to, err);
    hf__word_unlock(store, taking->at);
    return status;
}

enum hf_status hf__quick_take(struct file_store *store, const struct quick *quick,
                              struct hf_grant *grant, struct hf_error *err)
{
    struct taking taking;
    struct glance glance;
    enum hf_status status;

    if (quick->claim->detached)
        return HF_STALE;
    if (!store->mapped) {
        status = take_met(store, quick, &taking, err);
        if (status != HF_STALE)
            return conclude(store, quick, &taking, status, grant);
    }
    if (!find_free(store, quick, &glance, &taking.to.low) ||
        describe(store, quick, &taking) != HF_OK)
        return HF_STALE;
    taking.at = glance.at;
    status = hf__word_swap(store, glance.at, glance.word, taking.to, err);
    return conclude(store, quick, &taking, status, grant);
}

/* A hold to renew or release. */
struct hold {
    off_t at;
    struct hf__pair word;
    uint64_t ttl_ms;
};

/* The hold of the claim's owner and token, if that is plain to see. */
static bool find_hold(struct file_store *store, const struct quick *quick, struct hold *out)
{
    struct glance glance;
    struct details details;

    if (quick->claim->token == 0 || !find(store, quick->hash, &glance) ||
        glance.word.low != quick->claim->token || glance.word.high == 0 ||
        hf__word_is(glance.word, WORD_MOVING | WORD_RESERVED) ||
        hf__details_read(store, glance.at, hf__word_details(glance.word), &details, NULL) !=
            HF_OK ||
        details.token != quick->claim->token || details.hash != quick->hash ||
        memcmp(details.owner, quick->owner, sizeof details.owner) != 0)
        return false;
    *out = (struct hold){.at = glance.at, .word = glance.word, .ttl_ms = details.ttl_ms};
    return true;
}

/* The same as we remember it. */
static bool recall_hold(struct file_store *store, const struct quick *quick, struct hold *out)
{
    uint32_t number =
        hf__details_own(store, quick->owner, quick->claim->token, &out->at, &out->word);

    if (number == 0 || quick->claim->token == 0)
        return false;
    out->ttl_ms = atomic_load_explicit(&store->own_holds[number & 15].ttl_ms, memory_order_relaxed);
    return true;
}

static enum hf_status renew_hold(struct file_store *store, const struct quick *quick,
                                 const struct hold *hold, struct hf_grant *grant,
                                 struct hf_error *err)
{
    uint32_t ttl_ms = quick->claim->ttl_ms;
    int64_t now_ns = store->base.host->now_ns();
    uint32_t number = hf__word_details(hold->word);
    struct hf__pair to = {hold->word.low, 0};
    enum hf_status status;

    /* A look, and a new ttl, are for whoever has the page locked. */
    if (hf__word_is(hold->word, WORD_BROKEN) || hf__word_expiry_ns(hold->word) <= now_ns ||
        hold->ttl_ms != ttl_ms)
        return HF_STALE;
    HF__STEP(renew_read);
    to.high = hf__word_state(hf__time_add(now_ns, (int64_t)ttl_ms * HF__NS_PER_MS), number,
                             (unsigned)hold->word.high & WORD_FLAGS);
    status = hf__word_swap(store, hold->at, hold->word, to, err);
    HF__STEP(renew_swapped);
    if (status != HF_OK)
        return status;
    hf__details_renewed(store, number, hold->at, to);
    grant->sent_at_ns = now_ns;
    grant->ttl_ms = ttl_ms;
    grant->remaining_ms = (hf__word_expiry_ns(hold->word) - now_ns) / HF__NS_PER_MS;
    return HF_OK;
}

enum hf_status hf__quick_renew(struct file_store *store, const struct quick *quick,
                               struct hf_grant *grant, struct hf_error *err)
{
    struct hold hold;
    enum hf_status status = HF_STALE;

    if (recall_hold(store, quick, &hold))
        status = renew_hold(store, quick, &hold, grant, err);
    if (status == HF_STALE && find_hold(store, quick, &hold))
        status = renew_hold(store, quick, &hold, grant, err);
    return status;
}

static enum hf_status release_hold(struct file_store *store, const struct quick *quick,
                                   const struct hold *hold, struct hf_error *err)
{
    uint32_t number = hf__word_details(hold->word);
    uint64_t use = hf__details_use(store, number);
    enum hf_status status;

    if (hf__word_is(hold->word, WORD_WAITED) || hf__word_expiry_ns(hold->word) <= quick->now_ns)
        return HF_STALE;
    HF__STEP(release_read);
    status = hf__word_swap(store, hold->at, hold->word, (struct hf__pair){hold->word.low, 0}, err);
    HF__STEP(release_swapped);
    if (status == HF_OK)
        hf__details_give(store, number, use);
    return status;
}

enum hf_status hf__quick_release(struct file_store *store, const struct quick *quick,
                                 struct hf_error *err)
{
    struct hold hold;
    enum hf_status status = HF_STALE;

    if (recall_hold(store, quick, &hold))
        status = release_hold(store, quick, &hold, err);
    if (status == HF_STALE && find_hold(store, quick, &hold))
        status = release_hold(store, quick, &hold, err);
    return status;
}
