/* page.c - finding a name's page, changing one of its blocks, splitting it when it is full. */
#include "stores/file/page.h"
#include "base/base.h"
#include "stores/file/byte_lock.h"
#include "stores/file/errors.h"
#include "stores/file/step.h"
#include "stores/file/word.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SEED 0x6e616d65u
#define HINT_BITS 18 /* of a hash, whose page a client remembers */
#define HINT_MASK ((1u << HINT_BITS) - 1)

static enum hf_status mend(struct file_store *store, struct bucket *bucket, struct hf_error *err);

off_t hf__slot_at(uint32_t page_no, int index)
{
    return hf__page_at(page_no) + (off_t)(index + 1) * SLOT_SIZE;
}

uint64_t hf__name_hash(const char *name)
{
    uint64_t hash = hf__hash64(name, strlen(name), NAME_SEED);

    return hash != 0 ? hash : 1; /* 0 marks an empty slot */
}

enum hf_status hf__page_read(struct file_store *store, uint32_t page_no, struct page *out,
                             struct hf_error *err)
{
    enum hf_status status = hf__map_read(store, hf__page_at(page_no), out, sizeof *out, err);

    if (status != HF_OK)
        return status;
    if (!hf__sum_ok(&out->head) || !hf__head_sound(&out->head, page_no))
        return hf__page_damaged(store, page_no, err);
    for (int i = 0; i < SLOTS_PER_PAGE; i++)
        if (out->slots[i].hash != 0 && !hf__slot_sound(&out->slots[i]))
            return hf__page_damaged(store, page_no, err);
    return HF_OK;
}

static uint32_t root_of(uint64_t hash)
{
    return 1 + (uint32_t)(hash & (ROOTS - 1));
}

uint32_t hf__page_route(const struct page_head *head, uint32_t page_no, uint64_t hash)
{
    uint64_t ones = hash >> ROOT_BITS;
    uint64_t prefix = head->sum != 0 ? head->prefix : page_no - 1; /* a root never written */
    uint64_t known = ((uint64_t)1 << (ROOT_BITS + head->born)) - 1;

    if ((hash & known) != prefix)
        return root_of(hash); /* a remembered page that is not on this hash's way */
    for (uint32_t i = head->born; i < head->depth; i++)
        if ((ones >> i & 1) != 0)
            return head->next[i];
    return page_no;
}

uint32_t hf__page_route_live(const struct page_head *head, uint32_t page_no, uint64_t hash)
{
    /* What was split off is there before `depth` tells of it. */
    uint64_t splits = hf__map_get(&head->born);
    uint64_t prefix = page_no <= ROOTS ? page_no - 1 : hf__map_get(&head->prefix);
    uint64_t ones = hash >> ROOT_BITS;
    uint32_t born, depth;

    memcpy(&born, &splits, sizeof born);
    memcpy(&depth, (char *)&splits + sizeof born, sizeof depth);
    if (born > depth || depth > SPLITS_MAX)
        return 0;
    if ((hash & (((uint64_t)1 << (ROOT_BITS + born)) - 1)) != prefix)
        return root_of(hash); /* a remembered page that is not on this hash's way */
    for (uint32_t i = born; i < depth; i++)
        if ((ones >> i & 1) != 0) {
            uint32_t next = __atomic_load_n(&head->next[i], __ATOMIC_ACQUIRE);

            return next >= PAGES_FIRST && next != PAGE_NONE ? next : 0;
        }
    return page_no;
}

/* The table of remembered pages, made when there is something to remember; NULL if memory is short,
 * which only makes lookups walk further. */
static _Atomic(uint32_t) *hints_of(struct file_store *store)
{
    _Atomic(uint32_t) *hints = atomic_load(&store->hints);
    _Atomic(uint32_t) *fresh;

    if (hints != NULL)
        return hints;
    fresh = calloc(HINT_MASK + 1, sizeof *fresh);
    if (fresh != NULL && !atomic_compare_exchange_strong(&store->hints, &hints, fresh)) {
        free(fresh);
        return hints;
    }
    return fresh;
}

/* Only pages other than roots need remembering. */
static void remember(struct file_store *store, uint64_t hash, uint32_t page_no)
{
    _Atomic(uint32_t) *hints = page_no > ROOTS ? hints_of(store) : NULL;

    if (hints != NULL)
        atomic_store_explicit(&hints[hash & HINT_MASK], page_no, memory_order_relaxed);
}

/* Follows the heads without locking. A head only ever grows, so that an old one leads towards the
 * right page too; a torn one ends the walk early, which the caller notices. */
static uint32_t walk(struct file_store *store, uint32_t page_no, uint64_t hash)
{
    struct page_head head;

    for (int steps = 0; steps < SPLITS_MAX; steps++) {
        uint32_t next;

        if (hf__map_read(store, hf__page_at(page_no), &head, sizeof head, NULL) != HF_OK ||
            !hf__sum_ok(&head) || !hf__head_sound(&head, page_no))
            return page_no;
        next = hf__page_route(&head, page_no, hash);
        if (next == page_no)
            return page_no;
        page_no = next;
    }
    return page_no;
}

/* A file that is known to have grown is walked from the root. */
uint32_t hf__page_guess(struct file_store *store, uint64_t hash)
{
    _Atomic(uint32_t) *hints = atomic_load(&store->hints);
    uint32_t page_no;

    if (hints == NULL)
        return root_of(hash);
    page_no = atomic_load_explicit(&hints[hash & HINT_MASK], memory_order_relaxed);
    return page_no != 0 ? page_no : walk(store, root_of(hash), hash);
}

enum hf_status hf__page_lock(struct file_store *store, uint64_t hash, int64_t deadline_ns,
                             struct bucket *out, struct hf_error *err)
{
    uint32_t page_no = hf__page_guess(store, hash);

    out->blocked = false;
    for (int steps = 0; steps <= 2 * SPLITS_MAX; steps++) {
        uint32_t next;
        enum hf_status status = hf__byte_lock(store, page_no, deadline_ns, err);

        out->page_no = page_no;
        out->blocked = status == HF_BUSY;
        if (status != HF_OK)
            return out->blocked ? HF_UNREACHABLE : status;
        status = hf__page_read(store, page_no, &out->page, err);
        if (status != HF_OK) {
            hf__byte_unlock(store, page_no);
            return status;
        }
        next = hf__page_route(&out->page.head, page_no, hash);
        if (next == page_no) {
            remember(store, hash, page_no);
            status = mend(store, out, err);
            if (status != HF_OK)
                hf__byte_unlock(store, page_no);
            return status;
        }
        hf__byte_unlock(store, page_no);
        page_no = walk(store, next, hash);
    }
    return hf__page_damaged(store, page_no, err);
}

enum hf_status hf__page_failed(struct file_store *store, const struct bucket *bucket,
                               enum hf_status status, struct hf_error *err)
{
    return bucket->blocked ? hf__byte_lock_explain(store, bucket->page_no, err) : status;
}

void hf__page_unlock(struct file_store *store, const struct bucket *bucket)
{
    hf__byte_unlock(store, bucket->page_no);
}

/* A head is small enough for one pwrite to be whole or not at all, even where it is mapped: what is
 * summed must not be seen half written by those who come after a dead writer. */
enum hf_status hf__page_write_head(struct file_store *store, struct bucket *bucket,
                                   struct hf_error *err)
{
    struct page_head *head = &bucket->page.head;
    struct page_head there;
    off_t at = hf__page_at(bucket->page_no);
    bool known;
    int error;

    if (head->sum == 0)
        head->prefix = bucket->page_no - 1;
    hf__sum_set(head);
    if (hf__write_all(store->sys, store->slots_fd, head, sizeof *head, at))
        return HF_OK;
    error = errno;
    known = store->sys->pread(store->slots_fd, &there, sizeof there, at) == sizeof there;
    if (known && memcmp(&there, head, sizeof there) == 0)
        return HF_OK;
    return hf__fail_lock(err, known ? HF_UNREACHABLE : HF_UNKNOWN, NULL, store->shown,
                         ": cannot write the slot file: %s", strerror(error));
}

enum hf_status hf__page_append(struct file_store *store, const void *page, uint32_t *page_no,
                               struct hf_error *err)
{
    enum hf_status status =
        hf__byte_lock(store, LOCK_GROWING, store->base.host->now_ns() + HF__NS_PER_S, err);

    if (status == HF_BUSY)
        return hf__byte_lock_explain(store, LOCK_GROWING, err);
    if (status != HF_OK)
        return status;
    status = hf__map_count(store, page_no, err);
    if (status == HF_OK && *page_no < PAGES_FIRST)
        status = hf__page_damaged(store, *page_no,
                                  err); /* cut off: a root must not become another page */
    if (status == HF_OK &&
        !hf__write_all(store->sys, store->slots_fd, page, PAGE_SIZE, hf__page_at(*page_no)))
        status = hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                               ": cannot grow the slot file: %s", strerror(errno));
    HF__STEP(page_appended);
    hf__byte_unlock(store, LOCK_GROWING);
    return status;
}

/* Puts a flag in or takes it away, whatever else happens to the word; *word: as it was before. */
static enum hf_status change_flag(struct file_store *store, off_t at, bool in, unsigned flag,
                                  struct hf__pair *word, struct hf_error *err)
{
    enum hf_status status;

    do {
        status = hf__word_load(store, at, word, err);
        if (status == HF_OK)
            status =
                hf__word_swap(store, at, *word,
                              in ? hf__word_with(*word, flag) : hf__word_without(*word, flag), err);
    } while (status == HF_STALE);
    return status;
}

/* A moving slot that has a name and belongs here was left by one that died with the page locked. */
static enum hf_status mend(struct file_store *store, struct bucket *bucket, struct hf_error *err)
{
    enum hf_status status = HF_OK;

    for (int i = 0; i < SLOTS_PER_PAGE && status == HF_OK; i++) {
        const struct slot *slot = &bucket->page.slots[i];
        struct hf__pair word;

        if (slot->hash == 0 || !hf__word_is(slot->word, WORD_MOVING) ||
            hf__page_route(&bucket->page.head, bucket->page_no, slot->hash) != bucket->page_no)
            continue;
        status =
            change_flag(store, hf__slot_at(bucket->page_no, i), false, WORD_MOVING, &word, err);
        HF__STEP(mended);
    }
    return status;
}

/* Whether the next split takes a slot along. What an earlier one left behind stays. */
static bool moves(const struct bucket *bucket, int index)
{
    const struct page_head *head = &bucket->page.head;
    uint64_t hash = bucket->page.slots[index].hash;

    return (hash >> (ROOT_BITS + head->depth) & 1) != 0 &&
           hf__page_route(head, bucket->page_no, hash) == bucket->page_no;
}

/* Marks a slot as moving and copies it to its new place, where nobody looks yet. */
static enum hf_status move_slot(struct file_store *store, struct bucket *bucket, int index,
                                off_t to, struct hf_error *err)
{
    struct slot *slot = &bucket->page.slots[index];
    struct slot copy = *slot;
    enum hf_status status =
        change_flag(store, hf__slot_at(bucket->page_no, index), true, WORD_MOVING, &copy.word, err);

    HF__STEP(split_marked);
    if (status != HF_OK)
        return status;
    slot->word.high |= WORD_MOVING; /* to be mended if this comes to nothing */
    status = hf__map_write(store, to, &copy, sizeof copy, err);
    HF__STEP(split_copied);
    return status;
}

/* From the write of `depth` on the split is true; `next` is there before it. */
static enum hf_status tell_of_split(struct file_store *store, struct bucket *bucket,
                                    uint32_t page_no, struct hf_error *err)
{
    struct page_head *head = &bucket->page.head;
    enum hf_status status;

    head->next[head->depth] = page_no;
    status = hf__page_write_head(store, bucket, err);
    HF__STEP(split_next);
    if (status != HF_OK)
        return status;
    head->depth++;
    status = hf__page_write_head(store, bucket, err);
    HF__STEP(split_depth);
    return status;
}

enum hf_status hf__page_split(struct file_store *store, struct bucket *bucket, struct hf_error *err)
{
    struct page_head *head = &bucket->page.head;
    struct page_head before = *head;
    struct page upper = {0};
    uint32_t bit = head->depth;
    uint32_t page_no = PAGE_NONE;
    int moved = 0;
    enum hf_status status;

    if (bit >= SPLITS_MAX)
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown,
                             ": too many names share a hash");
    if (head->sum == 0)
        head->prefix = bucket->page_no - 1;
    upper.head.floor = head->floor;
    upper.head.prefix = head->prefix | (uint64_t)1 << (ROOT_BITS + bit);
    upper.head.born = bit + 1;
    upper.head.depth = bit + 1;
    hf__sum_set(&upper.head);
    status = hf__page_append(store, &upper, &page_no, err);
    for (int i = 0; i < SLOTS_PER_PAGE && status == HF_OK; i++)
        if (moves(bucket, i))
            status = move_slot(store, bucket, i, hf__slot_at(page_no, moved++), err);
    if (status == HF_OK)
        status = tell_of_split(store, bucket, page_no, err);
    if (status != HF_OK) {
        *head = before;
        if (status != HF_UNKNOWN) /* then the next one who reads the head mends, or need not */
            (void)mend(store, bucket, NULL);
    }
    return status;
}
