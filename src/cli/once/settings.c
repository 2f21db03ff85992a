/* settings.c - from the options of once to a plan, or to what is wrong with them. */
#include "cli/once/once.h"

#include "base/base.h"

static int flawed(const struct once *once, enum hf__once_flaw flaw)
{
    const struct hf__once_plan *plan = &once->work.plan;
    const struct cli_command *command = once->command;
    char start_by[32], slack[32];

    switch (flaw) {
    case HF__ONCE_SOUND:
        break;
    case HF__ONCE_RETRY_AFTER:
        return cli_usage_error(command, "--retry-after: at most 100 years");
    case HF__ONCE_NEEDS_PERIOD:
        return cli_usage_error(command, "--at, --tz, --slack and --start-by need --per");
    case HF__ONCE_PERIOD:
        return cli_usage_error(
            command, "--per: a period is whole days, or divides one: 10m, 1h, 6h, 1d, 7d");
    case HF__ONCE_AT_NEEDS_DAYS:
        return cli_usage_error(command, "--at and --tz are for periods of whole days; shorter ones "
                                        "begin with the day in UTC");
    case HF__ONCE_AT:
        return cli_usage_error(command, "--at: \"%s\" is not a time of day such as 03:00",
                               once->ask.at);
    case HF__ONCE_SLACK_LONG:
        return cli_usage_error(command, "--slack: at most half a period");
    case HF__ONCE_START_BY_LONG:
        return cli_usage_error(command, "--start-by: at most 50 years");
    case HF__ONCE_KEEP_RANGE:
        return cli_usage_error(command, "--keep: more than 0, and at most 100 years");
    case HF__ONCE_KEEP_SHORT:
        return cli_usage_error(
            command,
            "--keep: a slot could run twice; it has to be longer than --start-by and --slack "
            "together, here %s and %s",
            hf__format_duration(start_by, sizeof start_by, plan->rules.start_by_ms),
            hf__format_duration(slack, sizeof slack, plan->schedule.slack_ms));
    }
    return 0;
}

int once_settings(struct once *once)
{
    const struct once_request *ask = &once->ask;
    const struct hf__once_request request = {.periodic = ask->per_given,
                                             .per_ms = ask->per_ms,
                                             .at = ask->at,
                                             .tz = ask->tz,
                                             .slack_ms = ask->slack_given ? ask->slack_ms : -1,
                                             .start_by_ms =
                                                 ask->start_by_given ? ask->start_by_ms : -1,
                                             .keep_ms = ask->keep_given ? ask->keep_ms : -1,
                                             .retries = ask->retries,
                                             .retry_after_ms = ask->retry_after_ms,
                                             .hold_crashed = ask->on_crash != 0};
    struct hf__once_work *work = &once->work;
    struct hf_error err;
    int bad = flawed(once, hf__once_plan(&work->plan, &request));

    if (bad)
        return bad;
    if (hf__once_zone("--tz", hf__once_zone_of(&request), &work->plan.schedule.zone,
                      &work->zone_data, &err) != HF_OK)
        return cli_usage_error(once->command, "%s", err.text);
    return 0;
}
