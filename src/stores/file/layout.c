/* layout.c - sums, and sense: could these numbers have been written by us?
 *
 * A checksum detects accidents, not intent: whoever can write the file can write one that fits.
 * What changes without the page's lock has none. Every number that is used as a place, a count or a
 * time is checked when it is read, so that the rest of the store can rely on it. What is found is
 * damage, never a crash. */
#include "stores/file/layout.h"
#include "base/base.h"
#include "core/token.h"

#include <string.h>

#define SUM_SEED 0x686f6c6466617374u

/* Of a block of SLOT_SIZE bytes, whose first eight it is kept in. */
static uint64_t sum_of(const void *block)
{
    uint64_t sum = hf__hash64((const char *)block + 8, SLOT_SIZE - 8, SUM_SEED);

    return sum != 0 ? sum : 1; /* 0 is for blocks that were never written */
}

void hf__sum_set(void *block)
{
    uint64_t sum = sum_of(block);

    memcpy(block, &sum, sizeof sum);
}

bool hf__sum_ok(const void *block)
{
    uint64_t words[2];

    memcpy(words, block, sizeof words);
    if (words[0] == 0) {
        static const char zeros[SLOT_SIZE];

        return words[1] == 0 && memcmp(block, zeros, SLOT_SIZE) == 0;
    }
    return words[0] == sum_of(block);
}

bool hf__head_sound(const struct page_head *head, uint32_t page_no)
{
    uint64_t known;

    if (head->sum == 0) /* never written: all zero, which only roots may be */
        return page_no <= ROOTS;
    if (head->born > head->depth || head->depth > SPLITS_MAX || head->floor > HF__TOKEN_MAX)
        return false;
    known = (uint64_t)1 << (ROOT_BITS + head->born);
    if (head->prefix >= known)
        return false;
    if (page_no <= ROOTS ? head->born != 0 || head->prefix != page_no - 1 : head->born == 0)
        return false;
    for (uint32_t i = head->born; i < head->depth; i++)
        if (head->next[i] < PAGES_FIRST || head->next[i] == page_no || head->next[i] == PAGE_NONE)
            return false;
    return true;
}

uint64_t hf__slot_sum(const struct slot *slot)
{
    return hf__hash64(slot->name, sizeof slot->name, SUM_SEED ^ slot->hash);
}

uint64_t hf__client_sum(const struct client_head *head)
{
    return hf__hash64(head->magic, sizeof head->magic + sizeof head->place, SUM_SEED);
}

bool hf__slot_sound(const struct slot *slot)
{
    return slot->sum == hf__slot_sum(slot) && slot->word.low <= HF__TOKEN_MAX &&
           slot->broken <= slot->word.low && slot->tail <= INT64_MAX && slot->head <= slot->tail &&
           slot->tail - slot->head <= TICKETS_MAX && slot->name[HF_NAME_MAX] == '\0';
}

bool hf__child_sound(const struct page_head *parent, uint32_t split, const struct page_head *child)
{
    return child->born == split + 1 &&
           child->prefix == (parent->prefix | (uint64_t)1 << (ROOT_BITS + split));
}
