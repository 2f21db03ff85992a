/* sound.c - could these numbers have been written by us?
 *
 * A checksum tells accidents, not intent: whoever can write the file can write one that fits. Every
 * number that is used as a place, a count or a time is checked when a page is read, so that the
 * rest of the store can rely on it. What is found is damage, never a crash.
 */
#include "stores/file/internal.h"
#include "core/token.h"

#include <string.h>

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
        if (head->next[i] <= ROOTS || head->next[i] == page_no || head->next[i] == GUARD_GROW)
            return false;
    return true;
}

bool hf__slot_sound(const struct slot *slot)
{
    return slot->hash != 0 && slot->token <= HF__TOKEN_MAX && slot->expires_ns >= 0 &&
           slot->taken_ns >= 0 && slot->claim_ns >= 0 && slot->ttl_ms <= HF_TTL_MAX_MS &&
           slot->tail <= INT64_MAX && slot->head <= slot->tail &&
           slot->tail - slot->head <= TICKETS_MAX && slot->name[HF_NAME_MAX] == '\0' &&
           slot->label[HF_LABEL_MAX] == '\0';
}

bool hf__child_sound(const struct page_head *parent, uint32_t split, const struct page_head *child)
{
    return child->born == split + 1 &&
           child->prefix == (parent->prefix | (uint64_t)1 << (ROOT_BITS + split));
}
