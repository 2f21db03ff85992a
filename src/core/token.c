/* token.c - which fencing token comes next. */
#include "core/token.h"

bool hf__token_next(uint64_t last, int64_t clock_us, uint64_t floor, uint64_t *out)
{
    uint64_t token = floor;

    if (last >= HF__TOKEN_MAX)
        return false;
    if (token < last + 1)
        token = last + 1;
    if (clock_us > 0 && token < (uint64_t)clock_us)
        token = (uint64_t)clock_us;
    if (token > HF__TOKEN_MAX)
        return false;
    *out = token;
    return true;
}
