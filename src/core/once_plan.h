/* once_plan.h - from what is asked of `once` to a schedule, its rules, and what has to be the same
 * on every machine.
 *
 * Pure, as lease.h is. The zone is the caller's to read: until then it is UTC.
 */
#ifndef HF_CORE_ONCE_PLAN_H
#define HF_CORE_ONCE_PLAN_H

#include "core/once.h"
#include "core/schedule.h"

struct hf__once_request {
    bool periodic;  /* per_ms was given */
    int64_t per_ms; /* whatever was given */
    const char *at, *tz;
    int64_t slack_ms, start_by_ms, keep_ms; /* < 0: not given */
    uint64_t retries;
    int64_t retry_after_ms;
    bool hold_crashed;
};

struct hf__once_plan {
    struct hf__once_settings settings;
    struct hf__once_rules rules;
    struct hf__schedule schedule;
    int64_t keep_ms; /* 0: for ever */
};

/* What keeps a request from being a plan. */
enum hf__once_flaw {
    HF__ONCE_SOUND,
    HF__ONCE_RETRY_AFTER,   /* too long */
    HF__ONCE_NEEDS_PERIOD,  /* at, tz, slack, start-by without a period */
    HF__ONCE_PERIOD,        /* there are no slots of this length */
    HF__ONCE_AT_NEEDS_DAYS, /* at or tz, and slots shorter than a day */
    HF__ONCE_AT,            /* no time of the day */
    HF__ONCE_SLACK_LONG,    /* more than half a period */
    HF__ONCE_START_BY_LONG, /* more than 50 years */
    HF__ONCE_KEEP_RANGE,    /* 0, or more than 100 years */
    HF__ONCE_KEEP_SHORT     /* a slot could run twice: start-by and slack are those of the plan */
};

enum hf__once_flaw hf__once_plan(struct hf__once_plan *plan,
                                 const struct hf__once_request *request);
/* The zone that the plan needs: a name as it was given; "UTC" if it is not made of dates. */
const char *hf__once_zone_of(const struct hf__once_request *request);

#endif /* HF_CORE_ONCE_PLAN_H */
