/* once_plan.c - from what is asked of `once` to a schedule and its rules. */
#include "core/once_plan.h"

#include "base/base.h"

#include <holdfast/record.h>

enum {
    KEEP_PERIODS = 30,       /* outcomes are kept for this many periods, ... */
    KEEP_PERIODS_MAX = 1000, /* ... and for KEEP_MS, if that is not more than this */
    SLACK_PART = 2           /* of the period: the longest slack */
};
#define KEEP_MS (30 * 86400 * 1000LL)

static enum hf__once_flaw period(struct hf__once_plan *plan,
                                 const struct hf__once_request *request);
static enum hf__once_flaw limits(struct hf__once_plan *plan,
                                 const struct hf__once_request *request);
static enum hf__once_flaw keep(struct hf__once_plan *plan, const struct hf__once_request *request);

enum hf__once_flaw hf__once_plan(struct hf__once_plan *plan, const struct hf__once_request *request)
{
    enum hf__once_flaw flaw = HF__ONCE_SOUND;

    *plan = (struct hf__once_plan){.rules = {.retries = request->retries,
                                             .retry_after_ms = request->retry_after_ms,
                                             .start_by_ms = INT64_MAX,
                                             .hold_crashed = request->hold_crashed}};
    hf__zone_utc(&plan->schedule.zone);
    if (request->retry_after_ms < 0 || request->retry_after_ms > HF_RECORD_KEEP_MAX_MS)
        return HF__ONCE_RETRY_AFTER;
    if (request->periodic)
        flaw = period(plan, request);
    else if (request->at != NULL || request->tz != NULL || request->slack_ms >= 0 ||
             request->start_by_ms >= 0)
        flaw = HF__ONCE_NEEDS_PERIOD;
    if (flaw == HF__ONCE_SOUND && request->periodic)
        flaw = limits(plan, request);
    return flaw == HF__ONCE_SOUND ? keep(plan, request) : flaw;
}

const char *hf__once_zone_of(const struct hf__once_request *request)
{
    return request->periodic && request->tz != NULL ? request->tz : "UTC";
}

static enum hf__once_flaw period(struct hf__once_plan *plan, const struct hf__once_request *request)
{
    struct hf__once_settings *settings = &plan->settings;
    const char *at = request->at != NULL ? request->at : "00:00";

    if (!hf__period_valid(request->per_ms))
        return HF__ONCE_PERIOD;
    settings->period_ms = plan->schedule.period_ms = request->per_ms;
    if (!hf__period_is_days(request->per_ms))
        return request->at != NULL || request->tz != NULL ? HF__ONCE_AT_NEEDS_DAYS : HF__ONCE_SOUND;
    if (!hf__at_parse(at, &plan->schedule.at_s))
        return HF__ONCE_AT;
    hf__copy_printable(settings->at, sizeof settings->at, at);
    hf__copy_printable(settings->zone, sizeof settings->zone, hf__once_zone_of(request));
    return HF__ONCE_SOUND;
}

static enum hf__once_flaw limits(struct hf__once_plan *plan, const struct hf__once_request *request)
{
    plan->schedule.slack_ms =
        request->slack_ms >= 0 ? request->slack_ms : hf__slack_default_ms(request->per_ms);
    plan->rules.start_by_ms = request->start_by_ms >= 0 ? request->start_by_ms : request->per_ms;
    if (plan->schedule.slack_ms > request->per_ms / SLACK_PART)
        return HF__ONCE_SLACK_LONG;
    if (plan->rules.start_by_ms > HF_RECORD_KEEP_MAX_MS / 2)
        return HF__ONCE_START_BY_LONG;
    return HF__ONCE_SOUND;
}

/* Somebody may mean a slot until it is too late to start it. Were its outcome forgotten by then, it
 * would be run again. The outcome may have been written a slack before the slot began. */
static enum hf__once_flaw keep(struct hf__once_plan *plan, const struct hf__once_request *request)
{
    bool given = request->keep_ms >= 0;
    int64_t least_ms;

    if (given)
        plan->keep_ms = request->keep_ms;
    if (given && (plan->keep_ms == 0 || plan->keep_ms > HF_RECORD_KEEP_MAX_MS))
        return HF__ONCE_KEEP_RANGE;
    if (!request->periodic)
        return HF__ONCE_SOUND;
    least_ms = plan->rules.start_by_ms + plan->schedule.slack_ms;
    if (given)
        return plan->keep_ms <= least_ms ? HF__ONCE_KEEP_SHORT : HF__ONCE_SOUND;
    plan->keep_ms =
        KEEP_MS < KEEP_PERIODS_MAX * request->per_ms ? KEEP_MS : KEEP_PERIODS_MAX * request->per_ms;
    if (plan->keep_ms < KEEP_PERIODS * request->per_ms)
        plan->keep_ms = KEEP_PERIODS * request->per_ms;
    if (plan->keep_ms <= 2 * least_ms)
        plan->keep_ms = 2 * least_ms;
    return HF__ONCE_SOUND;
}
