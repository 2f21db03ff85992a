/* lease.c - lease arithmetic and loss. */
#include "core/lease.h"

#include <assert.h>

#define NS_PER_MS       1000000LL
#define INTERVAL_MAX_NS (10000 * NS_PER_MS) /* from one renewal to the next */
#define RETRY_PART      10                  /* of an interval: until a failed one is repeated */

/* From which state to which. A lost lease is never held again, whatever the store says later. */
static const bool allowed[4][4] = {
    [HF__LEASE_NONE] = {[HF__LEASE_HELD] = true},
    [HF__LEASE_HELD] = {[HF__LEASE_HELD] = true, [HF__LEASE_LOST] = true, [HF__LEASE_ENDED] = true},
    [HF__LEASE_LOST] = {[HF__LEASE_ENDED] = true},
};

static void move(struct hf__lease_core *lease, enum hf__lease_state to, enum hf_loss loss)
{
    assert(allowed[lease->state][to]);
    lease->state = to;
    lease->loss = loss;
    assert(hf__lease_consistent(lease));
}

/* a + b, held at the ends: clocks that far off are broken, and must not break us. */
static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;

    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

int64_t hf__drift_ns(uint32_t ttl_ms)
{
    return (int64_t)ttl_ms * NS_PER_MS / 100 + 2 * NS_PER_MS;
}

int64_t hf__deadline_ns(int64_t sent_at_ns, uint32_t ttl_ms)
{
    int64_t valid_ns = (int64_t)ttl_ms * NS_PER_MS - hf__drift_ns(ttl_ms);
    int64_t deadline_ns;

    /* A sum that does not fit can only come from a broken clock: valid for no time at all. */
    if (__builtin_add_overflow(sent_at_ns, valid_ns, &deadline_ns))
        return sent_at_ns;
    return deadline_ns;
}

void hf__lease_granted(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms)
{
    lease->ttl_ms = ttl_ms;
    lease->sent_at_ns = sent_at_ns;
    lease->deadline_ns = hf__deadline_ns(sent_at_ns, ttl_ms);
    lease->unanswered = false;
    move(lease, HF__LEASE_HELD, HF_LOSS_NONE);
}

void hf__lease_adopted(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms,
                       int64_t remaining_ms)
{
    int64_t limit_ns;

    hf__lease_granted(lease, sent_at_ns, ttl_ms);
    if (remaining_ms >= (int64_t)ttl_ms)
        return;
    if (remaining_ms < 0)
        remaining_ms = 0;
    limit_ns = add(sent_at_ns, remaining_ms * NS_PER_MS - hf__drift_ns(ttl_ms));
    if (limit_ns < lease->deadline_ns)
        lease->deadline_ns = limit_ns;
}

bool hf__lease_renewed(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms,
                       int64_t now_ns)
{
    if (!hf__lease_tick(lease, now_ns))
        return false;
    hf__lease_granted(lease, sent_at_ns, ttl_ms);
    return hf__lease_tick(lease, now_ns);
}

void hf__lease_refused(struct hf__lease_core *lease, enum hf_loss loss)
{
    assert(loss != HF_LOSS_NONE);
    if (lease->state == HF__LEASE_HELD)
        move(lease, HF__LEASE_LOST, loss);
}

void hf__lease_unanswered(struct hf__lease_core *lease, int64_t sent_at_ns, uint32_t ttl_ms)
{
    int64_t deadline_ns = hf__deadline_ns(sent_at_ns, ttl_ms);

    lease->unanswered = true;
    if (deadline_ns < lease->deadline_ns)
        lease->deadline_ns = deadline_ns;
}

bool hf__lease_tick(struct hf__lease_core *lease, int64_t now_ns)
{
    if (lease->state == HF__LEASE_HELD && now_ns >= lease->deadline_ns)
        move(lease, HF__LEASE_LOST, lease->unanswered ? HF_LOSS_UNREACHABLE : HF_LOSS_EXPIRED);
    return lease->state == HF__LEASE_HELD;
}

bool hf__lease_end(struct hf__lease_core *lease, int64_t now_ns)
{
    bool held = hf__lease_tick(lease, now_ns);

    if (lease->state != HF__LEASE_ENDED)
        move(lease, HF__LEASE_ENDED, lease->loss);
    return held;
}

bool hf__lease_excludes(const struct hf__lease_core *lease, int64_t now_ns)
{
    bool broken = lease->state == HF__LEASE_LOST && lease->loss == HF_LOSS_BROKEN;

    return (lease->state == HF__LEASE_HELD || broken) && now_ns < lease->deadline_ns;
}

int64_t hf__renew_interval_ns(uint32_t ttl_ms)
{
    int64_t third_ns = (int64_t)ttl_ms * NS_PER_MS / 3;

    return third_ns < INTERVAL_MAX_NS ? third_ns : INTERVAL_MAX_NS;
}

int64_t hf__lease_renew_at_ns(const struct hf__lease_core *lease)
{
    return add(lease->sent_at_ns, hf__renew_interval_ns(lease->ttl_ms));
}

int64_t hf__lease_retry_at_ns(const struct hf__lease_core *lease, int64_t now_ns)
{
    int64_t retry_ns = add(now_ns, hf__renew_interval_ns(lease->ttl_ms) / RETRY_PART);

    return retry_ns < lease->deadline_ns ? retry_ns : lease->deadline_ns;
}

int64_t hf__lease_remaining_ms(const struct hf__lease_core *lease, int64_t now_ns)
{
    int64_t left_ns;

    if (lease->state != HF__LEASE_HELD || now_ns >= lease->deadline_ns)
        return 0;
    if (__builtin_sub_overflow(lease->deadline_ns, now_ns, &left_ns))
        left_ns = INT64_MAX;
    return left_ns / NS_PER_MS;
}

/* Is the deadline before the end of the ttl? */
static bool ends_in_time(const struct hf__lease_core *lease)
{
    int64_t valid_ns;

    if (__builtin_sub_overflow(lease->deadline_ns, lease->sent_at_ns, &valid_ns))
        return lease->deadline_ns < lease->sent_at_ns;
    return valid_ns < (int64_t)lease->ttl_ms * NS_PER_MS;
}

bool hf__lease_consistent(const struct hf__lease_core *lease)
{
    switch (lease->state) {
    case HF__LEASE_NONE:
        return lease->loss == HF_LOSS_NONE;
    case HF__LEASE_HELD:
        return lease->loss == HF_LOSS_NONE && lease->ttl_ms > 0 && ends_in_time(lease);
    case HF__LEASE_LOST:
        return lease->loss != HF_LOSS_NONE;
    case HF__LEASE_ENDED:
        return true;
    }
    return false;
}
