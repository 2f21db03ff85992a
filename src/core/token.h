/* token.h - which fencing token comes next. Pure. */
#ifndef HF_CORE_TOKEN_H
#define HF_CORE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define HF__TOKEN_MAX ((uint64_t)INT64_MAX)

/* max(last + 1, clock_us, floor), at least 1. A clock before 1970 counts as 0. False if the result
 * would be above HF__TOKEN_MAX: there is no larger token to give. */
bool hf__token_next(uint64_t last, int64_t clock_us, uint64_t floor, uint64_t *out);

#endif /* HF_CORE_TOKEN_H */
