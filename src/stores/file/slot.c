/* slot.c - a lock in its locked page: found, seen, made. grant.c has the rest. */
#include "stores/file/slot.h"
#include "base/base.h"
#include "core/token.h"
#include "stores/file/details.h"
#include "stores/file/life.h"
#include "stores/file/location.h"
#include "stores/file/step.h"
#include "stores/file/ticket.h"
#include "stores/file/word.h"

#include <stddef.h>
#include <string.h>

#define LOOK_TRIES 100
/* No hold lasts longer; the clock may have gone on since it was read. */
#define HOLD_MAX_NS ((int64_t)HF_TTL_MAX_MS * HF__NS_PER_MS + HF__NS_PER_S)

bool hf__slot_held(struct file_store *store, const struct view *view, int64_t now_ns)
{
    return view->expires_ns > now_ns &&
           (view->details.client == 0 || hf__life_check(store, view->details.client));
}

int hf__slot_find(const struct bucket *bucket, uint64_t hash, const char *name)
{
    for (int i = 0; i < SLOTS_PER_PAGE; i++)
        if (bucket->page.slots[i].hash == hash && strcmp(bucket->page.slots[i].name, name) == 0)
            return i;
    return -1;
}

/* What the slot says besides its word. */
static enum hf_status see_rest(struct file_store *store, struct view *out, struct hf_error *err)
{
    struct slot slot;
    enum hf_status status = hf__map_read(store, out->at, &slot, sizeof slot, err);

    if (status != HF_OK)
        return status;
    out->hash = slot.hash;
    out->head = slot.head;
    out->tail = slot.tail;
    out->broken = slot.broken;
    memcpy(out->name, slot.name, sizeof out->name);
    out->name[HF_NAME_MAX] = '\0';
    return HF_OK;
}

/* Takes the word apart, and reads the details it names. */
static enum hf_status see_hold(struct file_store *store, struct view *out, struct hf_error *err)
{
    bool held = out->word.high != 0 && !hf__word_is(out->word, WORD_RESERVED) &&
                hf__word_expiry_ms(out->word) != 0;
    enum hf_status status = HF_OK;

    out->token = out->word.low;
    out->expires_ns = held ? hf__word_expiry_ns(out->word) : 0;
    out->reserved_until_ns = held ? 0 : hf__word_expiry_ns(out->word);
    memset(&out->details, 0, sizeof out->details);
    if (held)
        status = hf__details_read(store, out->at, hf__word_details(out->word), &out->details, err);
    /* A process killed between the two steps of a break has broken nothing. */
    if (held && out->broken == out->token && !hf__word_is(out->word, WORD_BROKEN))
        out->broken = 0;
    return status;
}

/* What the numbers say makes sense. */
static bool is_sound(const struct file_store *store, const struct view *view)
{
    int64_t latest_ns = hf__time_add(store->base.host->now_ns(), HOLD_MAX_NS);

    if (view->head > view->tail || view->tail - view->head > TICKETS_MAX ||
        view->token > HF__TOKEN_MAX || hf__word_expiry_ns(view->word) > latest_ns)
        return false;
    return view->expires_ns == 0 ||
           (view->details.token == view->token && view->details.hash == view->hash &&
            view->details.ttl_ms <= HF_TTL_MAX_MS && view->details.taken_ns >= 0);
}

enum hf_status hf__slot_read(struct file_store *store, const struct bucket *bucket, int index,
                             struct view *out, struct hf_error *err)
{
    struct hf__pair again = {0, 0};
    enum hf_status status;

    out->at = hf__slot_at(bucket->page_no, index);
    out->floor = bucket->page.head.floor;
    status = hf__word_load(store, out->at, &out->word, err);
    for (int i = 0; i < LOOK_TRIES && status == HF_OK; i++) {
        status = see_rest(store, out, err);
        if (status == HF_OK)
            status = see_hold(store, out, err);
        if (status != HF_OK && status != HF_CORRUPT)
            return status;
        if (hf__word_load(store, out->at, &again, err) != HF_OK)
            return HF_UNREACHABLE;
        if (hf__word_same(again, out->word)) {
            if (status == HF_OK && is_sound(store, out))
                return HF_OK;
            return hf__page_damaged(store, bucket->page_no, err);
        }
        status = HF_OK;
        out->word = again;
    }
    return status != HF_OK ? status : HF_STALE;
}

enum hf_status hf__slot_see(struct file_store *store, const struct bucket *bucket, const char *name,
                            struct view *out, struct view **found, struct hf_error *err)
{
    int index = hf__slot_find(bucket, hf__name_hash(name), name);
    enum hf_status status;

    *found = NULL;
    if (index < 0)
        return HF_OK;
    do
        status = hf__slot_read(store, bucket, index, out, err);
    while (status == HF_STALE);
    if (status == HF_OK)
        *found = out;
    return status;
}

/* After a split the old copies of the names that moved are still there: they are empty space. */
static bool is_vacant(const struct bucket *bucket, int index)
{
    uint64_t hash = bucket->page.slots[index].hash;

    return hash == 0 ||
           hf__page_route(&bucket->page.head, bucket->page_no, hash) != bucket->page_no;
}

static bool is_idle(struct file_store *store, const struct view *view, int64_t now_ns)
{
    if (hf__slot_held(store, view, now_ns))
        return false;
    return view->head == view->tail || hf__ticket_first_live(store, view, NULL) == view->tail;
}

static enum hf_status raise_floor(struct file_store *store, struct bucket *bucket, uint64_t token,
                                  struct hf_error *err)
{
    uint64_t before = bucket->page.head.floor;
    enum hf_status status;

    if (token <= before)
        return HF_OK;
    bucket->page.head.floor = token;
    status = hf__page_write_head(store, bucket, err);
    HF__STEP(floor_raised);
    if (status != HF_OK)
        bucket->page.head.floor = before;
    return status;
}

/* Takes the slot away from its name, if it has one: nobody takes it, renews or releases what was
 * there, from the swap on. Its token is the page's floor before it is forgotten. */
static enum hf_status take_away(struct file_store *store, struct bucket *bucket, int index,
                                struct hf__pair *word, struct hf_error *err)
{
    off_t at = hf__slot_at(bucket->page_no, index);
    struct hf__pair moving = {.high = WORD_MOVING};
    const uint64_t no_hash = 0;
    enum hf_status status = HF_OK;

    if (!is_vacant(bucket, index))
        status = raise_floor(store, bucket, word->low, err);
    if (status != HF_OK)
        return status;
    moving.low = (word->low > bucket->page.head.floor ? word->low : bucket->page.head.floor) + 1;
    status = hf__word_swap(store, at, *word, moving, err);
    HF__STEP(reuse_marked);
    if (status != HF_OK)
        return status;
    *word = moving;
    if (bucket->page.slots[index].hash != 0)
        status = hf__map_write(store, at + (off_t)offsetof(struct slot, hash), &no_hash,
                               sizeof no_hash, err);
    HF__STEP(reuse_unnamed);
    if (status == HF_OK)
        bucket->page.slots[index].hash = 0;
    return status;
}

enum hf_status hf__slot_forget(struct file_store *store, struct bucket *bucket, int index,
                               struct hf_error *err)
{
    const uint64_t nothing[(SLOT_SIZE - offsetof(struct slot, sum)) / 8] = {0};
    struct view view;
    enum hf_status status;

    do {
        status = hf__slot_read(store, bucket, index, &view, err);
        if (status == HF_OK && !is_idle(store, &view, store->base.host->now_ns()))
            return hf__fail_lock(err, HF_BUSY, view.name, store->shown, " is held or waited for");
        if (status == HF_OK)
            status = take_away(store, bucket, index, &view.word, err);
    } while (status == HF_STALE);
    /* Nobody looks there any more; it is cleared so that nothing of it can be found either. */
    if (status == HF_OK)
        status = hf__map_write(store, view.at + (off_t)offsetof(struct slot, sum), nothing,
                               sizeof nothing, err);
    return status;
}

/* Gives a slot that nobody has to a name. */
static enum hf_status give(struct file_store *store, struct bucket *bucket, int index,
                           const char *name, struct hf__pair word, struct hf_error *err)
{
    struct slot *slot = &bucket->page.slots[index];
    off_t at = hf__slot_at(bucket->page_no, index);
    uint64_t hash = hf__name_hash(name);
    enum hf_status status;

    *slot = (struct slot){.word = word, .hash = hash};
    memcpy(slot->name, name, strlen(name));
    slot->sum = hf__slot_sum(slot);
    /* Tickets of a name that lost its slot must not come again: start at the clock. */
    slot->head = (uint64_t)store->base.host->now_ns();
    slot->tail = slot->head;
    status = hf__map_write(store, at + (off_t)offsetof(struct slot, sum), &slot->sum,
                           sizeof *slot - offsetof(struct slot, sum), err);
    HF__STEP(reuse_named);
    if (status == HF_OK)
        status =
            hf__map_write(store, at + (off_t)offsetof(struct slot, hash), &hash, sizeof hash, err);
    HF__STEP(reuse_hashed);
    if (status == HF_OK)
        status = hf__word_swap(store, at, word, hf__word_without(word, WORD_MOVING), err);
    HF__STEP(reuse_done);
    return status;
}

/* Which slot a new name can have: an empty one, else an idle one. -1 with HF_OK: all are in use.
 * *word: what was seen there. */
static enum hf_status choose(struct file_store *store, const struct bucket *bucket, int *out,
                             struct hf__pair *word, struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    enum hf_status status = HF_OK;

    for (*out = 0; *out < SLOTS_PER_PAGE; ++*out)
        if (is_vacant(bucket, *out))
            return hf__word_load(store, hf__slot_at(bucket->page_no, *out), word, err);
    for (*out = 0; *out < SLOTS_PER_PAGE && status == HF_OK; ++*out) {
        struct view view;

        status = hf__slot_read(store, bucket, *out, &view, err);
        if (status == HF_OK && is_idle(store, &view, now_ns)) {
            *word = view.word;
            return HF_OK;
        }
    }
    *out = -1;
    return status;
}

/* Makes the slot of a name that has none yet. HF_OK and -1: the page is full. */
static enum hf_status make_here(struct file_store *store, struct bucket *bucket, const char *name,
                                int *out, struct hf_error *err)
{
    struct hf__pair word;
    enum hf_status status;

    do {
        status = choose(store, bucket, out, &word, err);
        if (status == HF_OK && *out >= 0)
            status = take_away(store, bucket, *out, &word, err);
    } while (status == HF_STALE);
    if (status == HF_OK && *out >= 0)
        status = give(store, bucket, *out, name, word, err);
    return status;
}

/* Finds or makes it in its locked page. HF_STALE: it was split. */
static enum hf_status find_or_make(struct file_store *store, struct bucket *bucket,
                                   const char *name, struct view *out, struct hf_error *err)
{
    int index = hf__slot_find(bucket, hf__name_hash(name), name);
    enum hf_status status = HF_OK;

    if (index < 0)
        status = make_here(store, bucket, name, &index, err);
    if (status == HF_OK && index < 0) {
        status = hf__page_split(store, bucket, err);
        return status == HF_OK ? HF_STALE : status;
    }
    while (status == HF_OK) {
        status = hf__slot_read(store, bucket, index, out, err);
        if (status != HF_STALE)
            return status;
        status = HF_OK;
    }
    return status;
}

enum hf_status hf__slot_make(struct file_store *store, const struct hf_claim *claim,
                             struct bucket *bucket, struct view *out, struct hf_error *err)
{
    uint64_t hash = hf__name_hash(claim->name);
    enum hf_status status = hf__location_check(store, err); /* also in the middle of a wait */

    bucket->blocked = false;
    if (status != HF_OK)
        return status;
    for (int splits = 0; splits <= SPLITS_MAX; splits++) {
        status = hf__page_lock(store, hash, claim->deadline_ns, bucket, err);
        if (status != HF_OK)
            return status;
        status = find_or_make(store, bucket, claim->name, out, err);
        if (status == HF_OK)
            return HF_OK;
        hf__page_unlock(store, bucket);
        if (status != HF_STALE)
            return status;
    }
    return hf__fail_lock(err, HF_UNSUPPORTED, claim->name, store->shown,
                         ": there is no room for it");
}
