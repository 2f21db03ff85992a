/* page.c - finding a name's page, changing one of its blocks, splitting it when it is full. */
#include "stores/file/page.h"
#include "base/base.h"
#include "stores/file/byte_lock.h"
#include "stores/file/errors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_SEED 0x6e616d65u
#define HINT_BITS 18 /* of a hash, whose page a client remembers */
#define HINT_MASK ((1u << HINT_BITS) - 1)

static off_t offset_of(uint32_t page_no)
{
    return (off_t)page_no * PAGE_SIZE;
}

uint64_t hf__name_hash(const char *name)
{
    uint64_t hash = hf__hash64(name, strlen(name), NAME_SEED);

    return hash != 0 ? hash : 1; /* 0 marks an empty slot */
}

enum hf_status hf__page_damaged(const struct file_store *store, uint32_t page_no,
                                struct hf_error *err)
{
    char what[64];

    (void)snprintf(what, sizeof what, "page %u of the slot file is damaged", page_no);
    return hf__error_damaged(store, what, false, err);
}

/* Never written. What else may be in such a slot is not looked at, and is gone when it is taken. */
static bool is_empty(const struct slot *slot)
{
    return slot->sum == 0 && slot->hash == 0;
}

enum hf_status hf__page_read(struct file_store *store, uint32_t page_no, struct page *out,
                             struct hf_error *err)
{
    ssize_t got = store->sys->pread(store->slots_fd, out, sizeof *out, offset_of(page_no));

    if (got < 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                             ": cannot read the slot file: %s", strerror(errno));
    if (got != sizeof *out || !hf__sum_ok(&out->head) || !hf__head_sound(&out->head, page_no))
        return hf__page_damaged(store, page_no, err);
    for (int i = 0; i < SLOTS_PER_PAGE; i++)
        if (!is_empty(&out->slots[i]) &&
            (!hf__sum_ok(&out->slots[i]) || !hf__slot_sound(&out->slots[i])))
            return hf__page_damaged(store, page_no, err);
    return HF_OK;
}

enum hf_status hf__page_count(struct file_store *store, uint32_t *out, struct hf_error *err)
{
    struct stat st;

    if (fstat(store->slots_fd, &st) != 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                             ": cannot examine the slot file: %s", strerror(errno));
    if (st.st_size / PAGE_SIZE >= PAGE_NONE)
        return hf__page_damaged(store, PAGE_NONE, err); /* more than there can be */
    *out = (uint32_t)(st.st_size / PAGE_SIZE);
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

        if (store->sys->pread(store->slots_fd, &head, sizeof head, offset_of(page_no)) !=
                sizeof head ||
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
            return HF_OK;
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

/* Writes one block of a page that lies in memory. */
static enum hf_status write_block(struct file_store *store, struct bucket *bucket,
                                  const void *block, struct hf_error *err)
{
    off_t at = offset_of(bucket->page_no) + ((const char *)block - (const char *)&bucket->page);
    char there[SLOT_SIZE];
    bool known;
    int error;

    if (hf__write_all(store->sys, store->slots_fd, block, SLOT_SIZE, at))
        return HF_OK;
    /* What readers see is what counts, whatever was said about the write. */
    error = errno;
    known = store->sys->pread(store->slots_fd, there, sizeof there, at) == sizeof there;
    if (known && memcmp(there, block, sizeof there) == 0)
        return HF_OK;
    return hf__fail_lock(err, known ? HF_UNREACHABLE : HF_UNKNOWN, NULL, store->shown,
                         ": cannot write the slot file: %s", strerror(error));
}

enum hf_status hf__page_write(struct file_store *store, struct bucket *bucket, void *block,
                              struct hf_error *err)
{
    hf__sum_set(block);
    return write_block(store, bucket, block, err);
}

enum hf_status hf__page_clear(struct file_store *store, struct bucket *bucket, struct slot *slot,
                              struct hf_error *err)
{
    memset(slot, 0, sizeof *slot);
    return write_block(store, bucket, slot, err);
}

/* Appends a page. Whoever was killed in here before left at most an unused page behind. */
static enum hf_status append_page(struct file_store *store, const struct page *page,
                                  uint32_t *page_no, struct hf_error *err)
{
    enum hf_status status =
        hf__byte_lock(store, PAGE_NONE, store->base.host->now_ns() + HF__NS_PER_S, err);

    if (status == HF_BUSY)
        return hf__byte_lock_explain(store, PAGE_NONE, err);
    if (status != HF_OK)
        return status;
    status = hf__page_count(store, page_no, err);
    if (status == HF_OK && *page_no <= ROOTS)
        status = hf__page_damaged(store, *page_no,
                                  err); /* cut off: a root must not become another page */
    if (status == HF_OK &&
        !hf__write_all(store->sys, store->slots_fd, page, sizeof *page, offset_of(*page_no)))
        status = hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                               ": cannot grow the slot file: %s", strerror(errno));
    hf__byte_unlock(store, PAGE_NONE);
    return status;
}

enum hf_status hf__page_split(struct file_store *store, struct bucket *bucket, struct hf_error *err)
{
    struct page_head *head = &bucket->page.head;
    struct page_head before = *head;
    struct page upper = {0};
    uint32_t bit = head->depth;
    uint32_t page_no;
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
    for (int i = 0; i < SLOTS_PER_PAGE; i++)
        if ((bucket->page.slots[i].hash >> (ROOT_BITS + bit) & 1) != 0)
            upper.slots[moved++] = bucket->page.slots[i];
    status = append_page(store, &upper, &page_no, err);
    if (status != HF_OK) {
        *head = before;
        return status;
    }
    head->next[bit] = page_no;
    head->depth = bit + 1;
    status = hf__page_write(store, bucket, head, err); /* from here on the split is true */
    if (status != HF_OK) {
        *head = before;
        return status;
    }
    return HF_OK;
}
