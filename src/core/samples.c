/* samples.c - what a row of measurements says. */
#include "core/samples.h"

#include <string.h>

void hf__samples_add(struct hf__samples *samples, int64_t us)
{
    size_t at = samples->count;

    if (samples->count == HF__SAMPLES_MAX)
        return;
    while (at > 0 && samples->us[at - 1] > us)
        at--;
    memmove(&samples->us[at + 1], &samples->us[at], (samples->count - at) * sizeof us);
    samples->us[at] = us;
    samples->count++;
}

int64_t hf__samples_percentile(const struct hf__samples *samples, int percent)
{
    size_t at = (samples->count * (size_t)percent + 99) / 100;

    if (samples->count == 0)
        return 0;
    return samples->us[at > 0 ? at - 1 : 0];
}

/* What is left of a difference when that much of it may be chance. */
static int64_t beyond(int64_t difference, int64_t chance)
{
    if (difference > chance)
        return difference - chance;
    return difference < -chance ? difference + chance : 0;
}

int64_t hf__clock_ahead_us(const struct hf__clock_reading *reading)
{
    int64_t half_us = (reading->heard_ns - reading->sent_ns) / 2000;

    return beyond(reading->their_us - (reading->wall_us - half_us), half_us);
}

int64_t hf__clock_rate_ppm(const struct hf__clock_reading *first,
                           const struct hf__clock_reading *second)
{
    int64_t half_us =
        (first->heard_ns - first->sent_ns + second->heard_ns - second->sent_ns) / 2000;
    int64_t ours_us =
        (second->sent_ns + second->heard_ns - first->sent_ns - first->heard_ns) / 2000;
    int64_t theirs_us = second->their_us - first->their_us;
    int64_t off_us = beyond(theirs_us - ours_us, half_us);
    int64_t most = INT64_MAX / 1000000;

    if (ours_us <= 0)
        return 0;
    if (off_us > most || off_us < -most)
        return off_us > 0 ? most : -most;
    return off_us * 1000000 / ours_us;
}
