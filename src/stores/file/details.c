/* details.c - who holds a lock: in its slot, or in a page of the client's own. */
#include "stores/file/details.h"
#include "base/base.h"
#include "stores/file/errors.h"
#include "stores/file/map.h"
#include "stores/file/word.h"

#include <stddef.h>
#include <string.h>

uint32_t hf__details_take(struct file_store *store, uint64_t *use)
{
    if (atomic_load_explicit(&store->client_page, memory_order_acquire) == 0)
        return 0;
    *use = 2 * (atomic_fetch_add_explicit(&store->details_count, 1, memory_order_relaxed) + 1);
    for (uint32_t i = 1; i <= DETAILS_PER_PAGE; i++) {
        uint_fast64_t none = 0;

        if (atomic_load_explicit(&store->details_uses[i], memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&store->details_uses[i], &none, *use))
            return store->client_place << 4 | i;
    }
    return 0;
}

static bool is_ours(struct file_store *store, uint32_t number)
{
    return number != 0 && atomic_load_explicit(&store->client_page, memory_order_acquire) != 0 &&
           number >> 4 == store->client_place;
}

void hf__details_named(struct file_store *store, uint32_t number, uint64_t use, off_t slot_at,
                       struct hf__pair word, const struct details *details)
{
    struct own_hold *own = &store->own_holds[number & 15];
    uint_fast64_t before = use;
    uint64_t owner[2];

    /* Another thread may have ended the hold already, and a third may use the number. */
    if (!is_ours(store, number) ||
        !atomic_compare_exchange_strong(&store->details_uses[number & 15], &before, use | 1))
        return;
    memcpy(owner, details->owner, sizeof owner);
    atomic_store_explicit(&own->at, (uint64_t)slot_at, memory_order_relaxed);
    atomic_store_explicit(&own->token, word.low, memory_order_relaxed);
    atomic_store_explicit(&own->state, word.high, memory_order_relaxed);
    atomic_store_explicit(&own->ttl_ms, details->ttl_ms, memory_order_relaxed);
    atomic_store_explicit(&own->owner[0], owner[0], memory_order_relaxed);
    atomic_store_explicit(&own->owner[1], owner[1], memory_order_relaxed);
}

uint64_t hf__details_use(struct file_store *store, uint32_t number)
{
    return is_ours(store, number) ? atomic_load(&store->details_uses[number & 15]) : 0;
}

void hf__details_renewed(struct file_store *store, uint32_t number, off_t slot_at,
                         struct hf__pair word)
{
    struct own_hold *own = &store->own_holds[number & 15];

    if (!is_ours(store, number))
        return;
    atomic_store_explicit(&own->at, (uint64_t)slot_at, memory_order_relaxed);
    atomic_store_explicit(&own->state, word.high, memory_order_relaxed);
}

uint32_t hf__details_own(struct file_store *store, const unsigned char *owner, uint64_t token,
                         off_t *slot_at, struct hf__pair *word)
{
    uint64_t wanted[2];

    memcpy(wanted, owner, sizeof wanted);
    for (uint32_t i = 1; i <= DETAILS_PER_PAGE; i++) {
        const struct own_hold *own = &store->own_holds[i];

        if (atomic_load_explicit(&own->token, memory_order_relaxed) != token ||
            atomic_load_explicit(&own->owner[0], memory_order_relaxed) != wanted[0] ||
            atomic_load_explicit(&own->owner[1], memory_order_relaxed) != wanted[1] ||
            (atomic_load_explicit(&store->details_uses[i], memory_order_acquire) & 1) == 0)
            continue;
        *slot_at = (off_t)atomic_load_explicit(&own->at, memory_order_relaxed);
        word->low = token;
        word->high = atomic_load_explicit(&own->state, memory_order_relaxed);
        return store->client_place << 4 | i;
    }
    return 0;
}

void hf__details_give(struct file_store *store, uint32_t number, uint64_t use)
{
    uint_fast64_t before = use;

    if (is_ours(store, number) && use != 0)
        (void)atomic_compare_exchange_strong(&store->details_uses[number & 15], &before, 0);
}

void hf__details_give_hold(struct file_store *store, uint64_t hash, uint64_t token)
{
    struct details details;

    for (uint32_t i = 1; i <= DETAILS_PER_PAGE; i++) {
        uint32_t number = store->client_place << 4 | i;
        uint_fast64_t use = atomic_load(&store->details_uses[i]);

        if ((use & 1) != 0 && hf__details_read(store, 0, number, &details, NULL) == HF_OK &&
            details.hash == hash && details.token == token)
            (void)atomic_compare_exchange_strong(&store->details_uses[i], &use, 0);
    }
}

enum hf_status hf__client_page(struct file_store *store, uint32_t place, uint32_t *out,
                               struct hf_error *err)
{
    uint32_t table = TABLE_FIRST + place / CLIENTS_PER_PAGE;
    off_t at = hf__page_at(table) + (off_t)(place % CLIENTS_PER_PAGE / 2 * 8);
    uint32_t entries[2];
    struct client_head head;
    enum hf_status status;

    if (place >= CLIENTS_MAX)
        return hf__page_damaged(store, PAGE_NONE, err);
    status = hf__map_read(store, at, entries, sizeof entries, err);
    if (status != HF_OK)
        return status;
    *out = entries[place % 2];
    if (*out < PAGES_FIRST)
        return hf__page_damaged(store, table, err);
    status = hf__map_read(store, hf__page_at(*out), &head, sizeof head, err);
    if (status == HF_OK && (head.place != place || head.sum != hf__client_sum(&head)))
        status = hf__page_damaged(store, *out, err);
    return status;
}

enum hf_status hf__details_find(struct file_store *store, off_t slot_at, uint32_t number,
                                off_t *out, struct hf_error *err)
{
    uint32_t page_no = atomic_load(&store->client_page);
    enum hf_status status = HF_OK;

    *out = slot_at + (off_t)offsetof(struct slot, details);
    if (hf__details_in_slot(number))
        return HF_OK;
    if ((number & 15) == 0)
        return hf__page_damaged(store, (uint32_t)(slot_at / PAGE_SIZE), err);
    if (!is_ours(store, number))
        status = hf__client_page(store, number >> 4, &page_no, err);
    *out = hf__page_at(page_no) + (off_t)(number & 15) * DETAILS_SIZE;
    return status;
}

enum hf_status hf__details_read(struct file_store *store, off_t slot_at, uint32_t number,
                                struct details *out, struct hf_error *err)
{
    off_t at;
    enum hf_status status = hf__details_find(store, slot_at, number, &at, err);

    if (status == HF_OK)
        status = hf__map_read(store, at, out, sizeof *out, err);
    if (status == HF_OK && number == DETAILS_OTHER)
        status = hf__map_read(store, slot_at + (off_t)offsetof(struct slot, other_ttl_ms),
                              &out->ttl_ms, sizeof out->ttl_ms, err);
    out->label[HF_LABEL_MAX] = '\0';
    return status;
}

enum hf_status hf__details_write(struct file_store *store, off_t slot_at, uint32_t number,
                                 const struct details *details, struct hf_error *err)
{
    off_t at;
    enum hf_status status = hf__details_find(store, slot_at, number, &at, err);

    return status == HF_OK ? hf__map_write(store, at, details, sizeof *details, err) : status;
}

enum hf_status hf__details_write_ttl(struct file_store *store, off_t slot_at, uint64_t ttl_ms,
                                     uint32_t *number, struct hf_error *err)
{
    size_t at = *number == DETAILS_SLOT
                    ? offsetof(struct slot, other_ttl_ms)
                    : offsetof(struct slot, details) + offsetof(struct details, ttl_ms);

    *number = *number == DETAILS_SLOT ? DETAILS_OTHER : DETAILS_SLOT;
    return hf__map_write(store, slot_at + (off_t)at, &ttl_ms, sizeof ttl_ms, err);
}

enum hf_status hf__details_of(const struct file_store *store, const struct hf_claim *claim,
                              uint64_t hash, int64_t now_ns, struct details *out,
                              struct hf_error *err)
{
    /* A word has room for an expiry of 34 years after the boot. */
    if (hf__time_add(now_ns, (int64_t)claim->ttl_ms * HF__NS_PER_MS) / HF__NS_PER_MS >=
        (int64_t)EXPIRY_MAX_MS)
        return hf__fail_lock(err, HF_UNSUPPORTED, claim->name, store->shown,
                             ": the machine has been up for too long");
    *out = (struct details){.hash = hash,
                            .client = claim->detached ? 0 : store->client,
                            .taken_ns = now_ns,
                            .ttl_ms = claim->ttl_ms};
    hf__copy_printable(out->label, HF_LABEL_MAX + 1, claim->label);
    return HF_OK;
}
