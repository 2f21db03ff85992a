/* samples.h - what a row of measurements says: how long answers take, how a clock runs. Pure. */
#ifndef HF_CORE_SAMPLES_H
#define HF_CORE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

enum { HF__SAMPLES_MAX = 128 }; /* measurements that are kept */

/* Lengths of time, in microseconds. Starts zeroed. */
struct hf__samples {
    int64_t us[HF__SAMPLES_MAX]; /* in order, the shortest first */
    size_t count;
};

/* One more; what has no room is dropped. */
void hf__samples_add(struct hf__samples *samples, int64_t us);
/* The smallest that `percent` of them do not exceed; 0 if there are none. */
int64_t hf__samples_percentile(const struct hf__samples *samples, int percent);

/* Somebody else's clock, as one answer told it. */
struct hf__clock_reading {
    int64_t sent_ns;  /* our CLOCK_BOOTTIME before the question */
    int64_t heard_ns; /* and after the answer */
    int64_t wall_us;  /* our wall clock after the answer */
    int64_t their_us; /* theirs, at some moment in between */
};

/* How far their clock is ahead of ours (or behind, below 0), less what the time on the way may
 * explain: 0 if that explains all of it. */
int64_t hf__clock_ahead_us(const struct hf__clock_reading *reading);
/* By how many millionths it runs faster (or slower, below 0) than ours from one reading to the
 * next, less what times on the way may explain. 0 if they are not in order. */
int64_t hf__clock_rate_ppm(const struct hf__clock_reading *first,
                           const struct hf__clock_reading *second);

#endif /* HF_CORE_SAMPLES_H */
