/* word.h - the word of a slot: all that decides about a lock, in 128 bits.
 *
 *   low     the token: the last one given, never falling
 *   high    expiry in ms of CLOCK_BOOTTIME, rounded up (40 bits), number of the details (20), flags
 *
 * Free is a high half of 0. A word is never stored to, only compared and swapped, whole, even by
 * whoever has the page locked. The token never falls, and rises with each grant and whenever the
 * slot is given to another name: so a value never comes back with another meaning, however long a
 * process that has read it was stopped.
 *
 * Where the file can be mapped, that is an instruction. Elsewhere the words are guarded: a byte
 * lock of their own, pread, compare, pwrite. The header of the file says which; nothing else
 * differs. */
#ifndef HF_STORES_FILE_WORD_H
#define HF_STORES_FILE_WORD_H

#include "stores/file/layout.h"

#define WORD_MOVING   1u /* it moves, or gets another name: only the page's lock lets one go on */
#define WORD_BROKEN   2u /* it is not renewed any more */
#define WORD_RESERVED 4u /* not held: for the head of the queue until it expires */
#define WORD_WAITED   8u /* somebody may be waiting: released only with the page locked */
#define WORD_FLAGS    15u
#define EXPIRY_MAX_MS (((uint64_t)1 << 40) - 1)

static inline uint64_t hf__word_expiry_ms(struct hf__pair word)
{
    return word.high >> 24;
}

static inline int64_t hf__word_expiry_ns(struct hf__pair word)
{
    return (int64_t)hf__word_expiry_ms(word) * 1000000;
}

static inline uint32_t hf__word_details(struct hf__pair word)
{
    return (uint32_t)(word.high >> 4) & ((1u << DETAILS_BITS) - 1);
}

static inline bool hf__word_is(struct hf__pair word, unsigned flag)
{
    return (word.high & flag) != 0;
}

/* The high half for an expiry, rounded up to the millisecond. */
static inline uint64_t hf__word_state(int64_t expires_ns, uint32_t details, unsigned flags)
{
    uint64_t ms = ((uint64_t)expires_ns + 999999) / 1000000;

    return (ms <= EXPIRY_MAX_MS ? ms : EXPIRY_MAX_MS) << 24 | (uint64_t)details << 4 | flags;
}

static inline struct hf__pair hf__word_with(struct hf__pair word, unsigned flag)
{
    return (struct hf__pair){word.low, word.high | flag};
}

static inline struct hf__pair hf__word_without(struct hf__pair word, unsigned flag)
{
    return (struct hf__pair){word.low, word.high & ~(uint64_t)flag};
}

static inline bool hf__word_same(struct hf__pair a, struct hf__pair b)
{
    return a.low == b.low && a.high == b.high;
}

#endif /* HF_STORES_FILE_WORD_H */
