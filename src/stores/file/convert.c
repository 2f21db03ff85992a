/* convert.c - from a slot file of format 1, of this boot, to one of ours.
 *
 * Format 1 had the same heads and as many slots in a page, so page by page is copied; those behind
 * the roots make room for the client table. */
#include "stores/file/convert.h"
#include "base/base.h"
#include "core/token.h"
#include "stores/file/map.h"
#include "stores/file/page.h"
#include "stores/file/word.h"

#include <errno.h>
#include <string.h>

struct slot_1 {
    uint64_t sum;
    uint64_t hash;      /* of the name; with sum 0: an empty slot */
    uint64_t token;     /* the last one given for this name */
    int64_t expires_ns; /* CLOCK_BOOTTIME; 0: not held */
    int64_t taken_ns;
    uint64_t client; /* 0: detached */
    unsigned char owner[HF_OWNER_LEN / 2];
    uint64_t head;
    uint64_t tail;
    int64_t reserved_until_ns;
    uint32_t ttl_ms;
    char name[HF_NAME_MAX + 1];
    char label[HF_LABEL_MAX + 1];
    char gap[2];
    uint64_t broken;
    char padding[SLOT_SIZE - 102 - (HF_NAME_MAX + 1) - (HF_LABEL_MAX + 1)];
};
_Static_assert(sizeof(struct slot_1) == SLOT_SIZE, "a slot was one block");

struct page_1 {
    struct page_head head;
    struct slot_1 slots[SLOTS_PER_PAGE];
};

bool hf__convertible(const struct file_header *header)
{
    return header->version == FORMAT_BEFORE && header->page_size == PAGE_SIZE;
}

static uint32_t new_number(uint32_t page_no)
{
    return page_no <= ROOTS ? page_no : page_no + TABLE_PAGES;
}

static bool is_sound(const struct slot_1 *slot)
{
    return hf__sum_ok(slot) && slot->token <= HF__TOKEN_MAX && slot->broken <= slot->token &&
           slot->tail <= INT64_MAX && slot->ttl_ms <= HF_TTL_MAX_MS &&
           slot->name[HF_NAME_MAX] == '\0' && slot->label[HF_LABEL_MAX] == '\0';
}

static void convert_hold(const struct slot_1 *from, struct slot *to)
{
    unsigned flags = from->broken == from->token ? WORD_BROKEN : 0;

    to->word.high = hf__word_state(from->expires_ns, 0, flags);
    to->details = (struct details){.token = from->token,
                                   .hash = from->hash,
                                   .taken_ns = from->taken_ns,
                                   .ttl_ms = from->ttl_ms};
    memcpy(to->details.owner, from->owner, sizeof to->details.owner);
    memcpy(to->details.label, from->label, sizeof from->label);
}

static void convert_slot(const struct slot_1 *from, bool here, int64_t now_ns, struct slot *to)
{
    to->word.low = from->token;
    if (!here) {
        to->word.high = WORD_MOVING;
        return;
    }
    to->hash = from->hash;
    memcpy(to->name, from->name, sizeof from->name);
    to->sum = hf__slot_sum(to);
    to->head = from->tail;
    to->tail = from->tail;
    to->broken = from->broken;
    if (from->client == 0 && from->expires_ns > now_ns)
        convert_hold(from, to);
}

/* False: it is damaged. */
static bool convert_page(const struct page_1 *from, uint32_t page_no, int64_t now_ns,
                         struct page *to)
{
    memset(to, 0, sizeof *to);
    if (!hf__sum_ok(&from->head))
        return false;
    to->head = from->head;
    if (from->head.sum != 0) {
        if (from->head.born > from->head.depth || from->head.depth > SPLITS_MAX)
            return false;
        for (uint32_t i = from->head.born; i < from->head.depth; i++)
            to->head.next[i] = new_number(from->head.next[i]);
        hf__sum_set(&to->head);
    }
    if (!hf__head_sound(&to->head, new_number(page_no)))
        return false;
    for (int i = 0; i < SLOTS_PER_PAGE; i++) {
        const struct slot_1 *slot = &from->slots[i];
        uint32_t home;

        if (slot->sum == 0 && slot->hash == 0)
            continue;
        if (!is_sound(slot))
            return false;
        home = hf__page_route(&to->head, new_number(page_no), slot->hash);
        convert_slot(slot, home == new_number(page_no), now_ns, &to->slots[i]);
    }
    return true;
}

static enum hf_status write_page(struct file_store *store, int fd, uint32_t page_no,
                                 const void *page, struct hf_error *err)
{
    if (hf__write_all(store->sys, fd, page, PAGE_SIZE, hf__page_at(page_no)))
        return HF_OK;
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                         ": cannot write a slot file of the new format: %s", strerror(errno));
}

static enum hf_status write_first(struct file_store *store, int fd,
                                  const struct file_header *header, struct hf_error *err)
{
    struct {
        struct file_header header;
        char rest[PAGE_SIZE - SLOT_SIZE];
    } first = {.header = *header};
    const char zeros[PAGE_SIZE] = {0};
    enum hf_status status;

    hf__sum_set(&first.header);
    status = write_page(store, fd, 0, &first, err);
    for (uint32_t i = TABLE_FIRST; i < PAGES_FIRST && status == HF_OK; i++)
        status = write_page(store, fd, i, zeros, err);
    return status;
}

enum hf_status hf__convert(struct file_store *store, int fd, const struct file_header *header,
                           struct hf_error *err)
{
    int64_t now_ns = store->base.host->now_ns();
    struct page_1 from;
    struct page to;
    uint32_t count;
    enum hf_status status = hf__map_count(store, &count, err);

    if (status == HF_OK)
        status = write_first(store, fd, header, err);
    for (uint32_t i = 1; i < count && status == HF_OK; i++) {
        if (store->sys->pread(store->slots_fd, &from, sizeof from, hf__page_at(i)) !=
                (ssize_t)sizeof from ||
            !convert_page(&from, i, now_ns, &to))
            return hf__page_damaged(store, i, err);
        status = write_page(store, fd, new_number(i), &to, err);
    }
    return status;
}
