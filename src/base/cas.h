/* cas.h - compare-and-swap of 128 bits, between processes. */
#ifndef HF_BASE_CAS_H
#define HF_BASE_CAS_H

#include <stdbool.h>
#include <stdint.h>

/* Two numbers that change together. */
struct hf__pair {
    uint64_t low;
    uint64_t high;
} __attribute__((aligned(16)));

/* Whether this machine can do it. The same answer for ever. */
bool hf__cas_able(void);
/* If *at is `from`, it becomes `to`, and nobody sees half of it: true. A full fence, even if it is
 * not. Only where hf__cas_able. */
bool hf__cas(struct hf__pair *at, struct hf__pair from, struct hf__pair to);

#endif /* HF_BASE_CAS_H */
