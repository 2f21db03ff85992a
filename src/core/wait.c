/* wait.c - what a caller who waits does about an answer that is no answer. */
#include "core/wait.h"

#define NS_PER_MS      1000000LL
#define PAUSE_FIRST_MS 100  /* after the first miss; doubled with each that follows             */
#define PAUSE_MAX_MS   2000 /* and no longer than this                                           */
#define DOUBLINGS_MAX  5    /* 100 ms * 2^5 is above the longest pause                           */
#define LOOK_MS        2000 /* a quarantine is looked at so often: an operator may end it         */
#define LATE_MS        50   /* how long after the end of a quarantine the last of a crowd asks    */
#define CALM_MS        10000 /* a store that kept us so long had answered in between              */

bool hf__wait_may_pass(enum hf_status status)
{
    return status == HF_UNREACHABLE || status == HF_UNKNOWN || status == HF_QUARANTINE;
}

/* Between half of the longest pause at this point and all of it. */
static int64_t pause_after_miss_ms(unsigned misses, uint32_t dice)
{
    int64_t most_ms = (int64_t)PAUSE_FIRST_MS << (misses < DOUBLINGS_MAX ? misses : DOUBLINGS_MAX);

    if (most_ms > PAUSE_MAX_MS)
        most_ms = PAUSE_MAX_MS;
    return most_ms / 2 + (int64_t)dice % (most_ms / 2 + 1);
}

/* Right after its end, if that is near; else now and then. */
static int64_t pause_in_quarantine_ms(int64_t retry_after_ms, uint32_t dice)
{
    if (retry_after_ms > LOOK_MS)
        return LOOK_MS / 2 + (int64_t)dice % (LOOK_MS / 2 + 1);
    return (retry_after_ms > 0 ? retry_after_ms : 0) + 1 + (int64_t)dice % LATE_MS;
}

struct hf__wait_step hf__wait_answered(struct hf__wait *wait, enum hf_status status,
                                       int64_t retry_after_ms, int64_t asked_ns, int64_t now_ns,
                                       uint32_t dice)
{
    struct hf__wait_step step = {.again = hf__wait_may_pass(status) && now_ns < wait->until_ns};
    int64_t pause_ms;

    if (!step.again)
        return step;
    if (status == HF_QUARANTINE || now_ns - asked_ns >= CALM_MS * NS_PER_MS)
        wait->misses = 0;
    if (status == HF_QUARANTINE)
        pause_ms = pause_in_quarantine_ms(retry_after_ms, dice);
    else
        pause_ms = pause_after_miss_ms(wait->misses++, dice);
    step.resume_ns = wait->until_ns - now_ns > pause_ms * NS_PER_MS ? now_ns + pause_ms * NS_PER_MS
                                                                    : wait->until_ns;
    return step;
}
