/* fit.c - the times of a job, made to fit what the store grants. */
#include "cli/run/job.h"

#include "base/base.h"

/* The default is what the store grants, if that is less than 30 s. */
bool run_fit_to_store(struct run_job *job)
{
    struct run_options *options = job->options;
    int64_t longest_ms = hf_store_max_ttl_ms(job->store);
    char why[RUN_WHY_SIZE];

    if (options->take.ttl_given || longest_ms >= options->take.ttl_ms)
        return true;
    options->take.ttl_ms = longest_ms;
    run_choose_grace(options);
    if (run_timing_fits(options, why, sizeof why))
        return true;
    cli_stderr_say(job->writer, "lock \"%s\": %s", options->name, why);
    return false;
}

/* Of several, the shortest. */
static int64_t granted_ttl_ms(const struct run_job *job)
{
    int64_t least_ms = HF_TTL_MAX_MS;

    for (size_t i = 0; i < job->take.taken; i++)
        if (hf_lease_ttl_ms(job->take.leases[i]) < least_ms)
            least_ms = hf_lease_ttl_ms(job->take.leases[i]);
    return least_ms;
}

/* A store may grant a shorter lease than was asked for: it is then the one that ends the tree. */
bool run_fit_to_lease(struct run_job *job)
{
    struct run_options *options = job->options;
    int64_t granted_ms = granted_ttl_ms(job);
    char granted[32], asked[32], why[RUN_WHY_SIZE];

    if (granted_ms >= options->take.ttl_ms)
        return true;
    (void)hf__format_duration(granted, sizeof granted, granted_ms);
    (void)hf__format_duration(asked, sizeof asked, options->take.ttl_ms);
    cli_stderr_say(job->writer, "lock \"%s\": the store grants a lease of %s, not of %s",
                   options->name, granted, asked);
    options->take.ttl_ms = granted_ms;
    run_choose_grace(options);
    if (run_timing_fits(options, why, sizeof why))
        return true;
    cli_stderr_say(job->writer, "%s", why);
    return false;
}
