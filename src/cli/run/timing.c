/* timing.c - whether a ttl leaves time to renew, and to end a job before the deadline. */
#include "cli/run/run.h"

#include "base/base.h"
#include "core/lease.h"

enum {
    GRACE_DEFAULT_MS = 5000, /* or ... */
    GRACE_PART = 3           /* ... this part of a shorter ttl */
};

int64_t run_renew_ns(int64_t ttl_ms)
{
    struct hf__lease_core lease = {.state = HF__LEASE_NONE};

    hf__lease_granted(&lease, 0, (uint32_t)ttl_ms);
    return hf__lease_renew_at_ns(&lease);
}

void run_choose_grace(struct run_options *options)
{
    int64_t third_ms = options->take.ttl_ms / GRACE_PART;

    if (!options->grace_given)
        options->grace_ms = third_ms < GRACE_DEFAULT_MS ? third_ms : GRACE_DEFAULT_MS;
}

/* A renewal that fails once is tried again; there must be time for that before TERM is due. */
bool run_timing_fits(const struct run_options *options, char *why, size_t size)
{
    int64_t ttl_ms = options->take.ttl_ms;
    int64_t renew_ms = run_renew_ns(ttl_ms) / HF__NS_PER_MS;
    int64_t margin_ms = run_margin_ns(ttl_ms) / HF__NS_PER_MS;
    int64_t drift_ms = hf__drift_ns((uint32_t)ttl_ms) / HF__NS_PER_MS;
    int64_t needed_ms = renew_ms + options->grace_ms + margin_ms + drift_ms;
    char ttl[32], renew[32], grace[32], rest[32];

    if (options->on_loss != RUN_LOSS_TERM || needed_ms < ttl_ms)
        return true;
    (void)hf__format_duration(ttl, sizeof ttl, ttl_ms);
    (void)hf__format_duration(renew, sizeof renew, renew_ms);
    (void)hf__format_duration(grace, sizeof grace, options->grace_ms);
    (void)hf__format_duration(rest, sizeof rest, margin_ms + drift_ms);
    (void)snprintf(
        why, size,
        "a ttl of %s is too short: it is renewed every %s, the grace is %s, and %s is kept for "
        "KILL and clock drift; use a longer --ttl or a shorter --grace",
        ttl, renew, grace, rest);
    return false;
}
