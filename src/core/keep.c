/* keep.c - what a keeper does about a lease. */
#include "core/keep.h"

#define NS_PER_MS    1000000LL
#define RENEW_MIN_NS (50 * NS_PER_MS)   /* what a single renewal may take at the least */
#define RENEW_MAX_NS (1000 * NS_PER_MS) /* and at the most */
#define BUSY_NS      NS_PER_MS          /* how soon to look again while its owner is at it */
#define ALONG_PART   10                 /* of the time between two renewals: is renewed along */

int64_t hf__keep_due_ns(const struct hf__lease_core *lease)
{
    int64_t renew_ns = hf__lease_renew_at_ns(lease);

    if (lease->state != HF__LEASE_HELD)
        return 0;
    return renew_ns < lease->deadline_ns ? renew_ns : lease->deadline_ns;
}

enum hf__keep_task hf__keep_decide(struct hf__lease_core *lease, bool busy, int64_t now_ns,
                                   int64_t *due_ns)
{
    bool held = hf__lease_tick(lease, now_ns);

    if (busy) {
        /* The owner tells when it is done; but the deadline may pass meanwhile. */
        *due_ns = now_ns + BUSY_NS;
        return HF__KEEP_WAIT;
    }
    return held ? HF__KEEP_RENEW : HF__KEEP_ANNOUNCE;
}

bool hf__keep_along(const struct hf__lease_core *lease, int64_t due_ns, int64_t now_ns)
{
    return due_ns <= now_ns + hf__renew_interval_ns(lease->ttl_ms) / ALONG_PART;
}

int64_t hf__keep_limit_ns(const struct hf__lease_core *lease, int64_t now_ns)
{
    int64_t patience_ns = (int64_t)lease->ttl_ms * NS_PER_MS / 10;

    if (patience_ns > RENEW_MAX_NS)
        patience_ns = RENEW_MAX_NS;
    if (patience_ns < RENEW_MIN_NS)
        patience_ns = RENEW_MIN_NS;
    return now_ns + patience_ns < lease->deadline_ns ? now_ns + patience_ns : lease->deadline_ns;
}

void hf__keep_answered(struct hf__lease_core *lease, const struct hf__renewal *renewal,
                       int64_t now_ns)
{
    uint32_t ttl_ms = renewal->ttl_ms;

    if (renewal->status == HF_OK) {
        if (renewal->granted_ms != 0 && renewal->granted_ms < ttl_ms)
            ttl_ms = renewal->granted_ms;
        (void)hf__lease_renewed(lease, renewal->sent_at_ns, ttl_ms, now_ns);
    } else if (renewal->status == HF_LOST) {
        hf__lease_refused(lease, renewal->loss != HF_LOSS_NONE ? renewal->loss : HF_LOSS_TAKEN);
    } else if (renewal->status != HF_UNSUPPORTED && renewal->status != HF_INVALID) {
        hf__lease_unanswered(lease, renewal->before_ns, ttl_ms);
    }
    (void)hf__lease_tick(lease, now_ns);
}

int64_t hf__keep_next_ns(const struct hf__lease_core *lease, enum hf_status status, int64_t now_ns)
{
    if (lease->state != HF__LEASE_HELD || status == HF_OK)
        return hf__keep_due_ns(lease);
    return hf__lease_retry_at_ns(lease, now_ns);
}
