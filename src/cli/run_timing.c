/* run_timing.c - whether a ttl leaves time to renew, and to end a job before the deadline. */
#include "cli/run.h"

#include "base/base.h"

enum {
    GRACE_DEFAULT_MS = 5000, /* or a third of the ttl if that is less */
    DRIFT_PART = 100,        /* what a deadline takes off the ttl for clocks that run apart: */
    DRIFT_EXTRA_MS = 2,      /* ttl/100 + 2 ms */
    RENEW_PART = 3           /* the keeper renews after this part of the ttl */
};

void run_choose_grace(struct run_options *options)
{
    int64_t third_ms = options->ttl_ms / RENEW_PART;
    if (!options->grace_given)
        options->grace_ms = third_ms < GRACE_DEFAULT_MS ? third_ms : GRACE_DEFAULT_MS;
}

/* A renewal that fails once is tried again; there must be time for that before TERM is due. */
bool run_timing_fits(const struct run_options *options, char *why, size_t size)
{
    int64_t ttl_ms = options->ttl_ms;
    int64_t renew_ms = ttl_ms / RENEW_PART;
    int64_t margin_ms = run_margin_ns(ttl_ms) / HF__NS_PER_MS;
    int64_t drift_ms = ttl_ms / DRIFT_PART + DRIFT_EXTRA_MS;
    int64_t needed_ms = renew_ms + options->grace_ms + margin_ms + drift_ms;
    char ttl[32], renew[32], grace[32], rest[32];
    if (options->on_loss != RUN_LOSS_TERM || needed_ms < ttl_ms)
        return true;
    hf__format_duration(ttl, sizeof ttl, ttl_ms);
    hf__format_duration(renew, sizeof renew, renew_ms);
    hf__format_duration(grace, sizeof grace, options->grace_ms);
    hf__format_duration(rest, sizeof rest, margin_ms + drift_ms);
    snprintf(
        why, size,
        "a ttl of %s is too short: it is renewed every %s, the grace is %s, and %s is kept for "
        "KILL and clock drift; take a longer --ttl or a shorter --grace",
        ttl, renew, grace, rest);
    return false;
}
