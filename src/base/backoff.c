/* backoff.c - the pauses between tries at something that fails. */
#include "base/backoff.h"

int64_t hf__backoff_failed(struct hf__backoff *backoff, int64_t now_ns, uint32_t dice)
{
    int64_t most_ns = backoff->first_ns;
    int64_t pause_ns;

    for (unsigned i = 0; i < backoff->failures && most_ns < backoff->most_ns; i++)
        most_ns = most_ns > backoff->most_ns / 2 ? backoff->most_ns : 2 * most_ns;
    pause_ns = most_ns - (int64_t)((unsigned __int128)((uint64_t)most_ns / 2) * dice >> 32);
    if (backoff->failures < UINT32_MAX)
        backoff->failures++;
    if (__builtin_add_overflow(now_ns, pause_ns, &backoff->not_before_ns))
        backoff->not_before_ns = INT64_MAX;
    return backoff->not_before_ns;
}

void hf__backoff_worked(struct hf__backoff *backoff)
{
    backoff->failures = 0;
    backoff->not_before_ns = 0;
}
