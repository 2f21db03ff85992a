/* settings.c - from the options of once to a schedule, its rules, and what has to be the same on
 * every machine. */
#include "cli/once/once.h"

#include "base/base.h"

#include <string.h>

enum {
    KEEP_PERIODS = 30,       /* outcomes are kept for so many periods, ... */
    KEEP_PERIODS_MAX = 1000, /* ... and for KEEP_MS, if that is not more than this */
    SLACK_PART = 2           /* of the period: the longest slack */
};
#define KEEP_MS (30 * 86400 * 1000LL)

static int no_period(struct once *once);
static int period(struct once *once);
static int limits(struct once *once);
static int keep(struct once *once);

int once_settings(struct once *once)
{
    const struct once_request *ask = &once->ask;
    int bad;

    if (ask->retry_after_ms > HF_RECORD_KEEP_MAX_MS)
        return cli_usage_error(once->command, "--retry-after: at most 100 years");
    once->rules = (struct hf__once_rules){.retries = ask->retries,
                                          .retry_after_ms = ask->retry_after_ms,
                                          .start_by_ms = INT64_MAX,
                                          .hold_crashed = ask->on_crash != 0};
    once->keep_ms = ask->keep_given ? ask->keep_ms : 0;
    hf__zone_utc(&once->schedule.zone);
    bad = ask->per_given ? period(once) : no_period(once);
    if (!bad && ask->per_given)
        bad = limits(once);
    return bad ? bad : keep(once);
}

static int no_period(struct once *once)
{
    const struct once_request *ask = &once->ask;

    if (ask->at != NULL || ask->tz != NULL || ask->slack_given || ask->start_by_given)
        return cli_usage_error(once->command, "--at, --tz, --slack and --start-by need --per");
    return 0;
}

static int period(struct once *once)
{
    const struct once_request *ask = &once->ask;
    struct hf__once_settings *settings = &once->settings;

    if (!hf__period_valid(ask->per_ms))
        return cli_usage_error(
            once->command, "--per: a period is whole days, or divides one: 10m, 1h, 6h, 1d, 7d");
    settings->period_ms = once->schedule.period_ms = ask->per_ms;
    if (!hf__period_is_days(ask->per_ms)) {
        if (ask->at != NULL || ask->tz != NULL)
            return cli_usage_error(once->command, "--at and --tz are for periods of whole days; "
                                                  "shorter ones begin with the day in UTC");
        return 0;
    }
    (void)snprintf(settings->at, sizeof settings->at, "%.5s", ask->at != NULL ? ask->at : "00:00");
    (void)snprintf(settings->zone, sizeof settings->zone, "%s", ask->tz != NULL ? ask->tz : "UTC");
    if (!hf__at_parse(ask->at != NULL ? ask->at : "00:00", &once->schedule.at_s))
        return cli_usage_error(once->command, "--at: \"%s\" is not a time of day such as 03:00",
                               ask->at);
    return once_zone(once->command, ask->tz != NULL ? ask->tz : "UTC", &once->schedule.zone,
                     &once->zone_data);
}

static int limits(struct once *once)
{
    const struct once_request *ask = &once->ask;

    once->schedule.slack_ms = ask->slack_given ? ask->slack_ms : hf__slack_default_ms(ask->per_ms);
    once->rules.start_by_ms = ask->start_by_given ? ask->start_by_ms : ask->per_ms;
    if (once->schedule.slack_ms > ask->per_ms / SLACK_PART)
        return cli_usage_error(once->command, "--slack: at most half a period");
    if (once->rules.start_by_ms > HF_RECORD_KEEP_MAX_MS / 2)
        return cli_usage_error(once->command, "--start-by: at most 50 years");
    return 0;
}

/* Somebody may mean a slot until it is too late to start it. Were its outcome forgotten by then, it
 * would be run again. The outcome may have been written a slack before the slot began. */
static int keep(struct once *once)
{
    const struct once_request *ask = &once->ask;
    char start_by[32], slack[32];
    int64_t least_ms;

    if (ask->keep_given && (ask->keep_ms == 0 || ask->keep_ms > HF_RECORD_KEEP_MAX_MS))
        return cli_usage_error(once->command, "--keep: more than 0, and at most 100 years");
    if (!ask->per_given)
        return 0;
    least_ms = once->rules.start_by_ms + once->schedule.slack_ms;
    if (ask->keep_given && ask->keep_ms <= least_ms)
        return cli_usage_error(
            once->command,
            "--keep: a slot could run twice; it has to be longer than --start-by and --slack "
            "together, here %s and %s",
            hf__format_duration(start_by, sizeof start_by, once->rules.start_by_ms),
            hf__format_duration(slack, sizeof slack, once->schedule.slack_ms));
    if (ask->keep_given)
        return 0;
    once->keep_ms =
        KEEP_MS < KEEP_PERIODS_MAX * ask->per_ms ? KEEP_MS : KEEP_PERIODS_MAX * ask->per_ms;
    if (once->keep_ms < KEEP_PERIODS * ask->per_ms)
        once->keep_ms = KEEP_PERIODS * ask->per_ms;
    if (once->keep_ms <= 2 * least_ms)
        once->keep_ms = 2 * least_ms;
    return 0;
}

char *once_settings_text(char *out, size_t size, const struct hf__once_settings *settings)
{
    char per[32];

    if (settings->period_ms == 0)
        (void)snprintf(out, size, "no --per");
    else
        (void)snprintf(out, size, "--per %s%s%s%s%s",
                       hf__format_duration(per, sizeof per, settings->period_ms),
                       settings->at[0] != '\0' ? " --at " : "", settings->at,
                       settings->zone[0] != '\0' ? " --tz " : "", settings->zone);
    return out;
}
