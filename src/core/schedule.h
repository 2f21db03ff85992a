/* schedule.h - which slot a moment belongs to: the hour, the night or the week that a job is due
 * once in.
 *
 * Periods shorter than a day divide it, and are UTC. Whole days are dates of a zone, and begin at a
 * time of the day; several are counted from a Monday. Shortly before a border, within the slack,
 * the coming slot is meant: servers whose clocks are that close mean the same one.
 *
 * Pure, as lease.h is: the moment comes from outside, in ms since 1970.
 */
#ifndef HF_CORE_SCHEDULE_H
#define HF_CORE_SCHEDULE_H

#include "core/zone.h"

enum {
    HF__SLOT_NAME_SIZE = 24, /* bytes, with the NUL: "2026-11-17T03:00:00Z" is the longest */
    HF__PERIOD_DAYS_MAX = 366,
    HF__SLACK_MAX_MS = 900000 /* of the default: 15 min */
};
/* The clock of a store is believed from 1970 to the end of 9999. */
#define HF__CLOCK_MAX_MS 253402300799999LL
#define HF__SLOT_EVER    "ever" /* the one slot there is without a period */

struct hf__schedule {
    int64_t period_ms; /* 0: there is one slot, for ever */
    int32_t at_s;      /* whole days: when they begin, after midnight */
    int64_t slack_ms;
    struct hf__zone zone; /* whole days: whose dates they are */
};

struct hf__slot {
    int64_t start_ms;
    int64_t end_ms;                /* the next one's start; INT64_MAX: for ever */
    char name[HF__SLOT_NAME_SIZE]; /* "2026-11-17", "2026-11-17T03:00Z", "ever" */
};

/* Whether there are slots of this length: whole seconds that divide a day, or whole days. */
bool hf__period_valid(int64_t period_ms);
/* Whether it is made of dates. */
bool hf__period_is_days(int64_t period_ms);
/* A quarter of the period, at most 15 min. */
int64_t hf__slack_default_ms(int64_t period_ms);
/* "03:00"; false if it is not a time of day. */
bool hf__at_parse(const char *text, int32_t *at_s);

/* The slot that is meant at a moment between 0 and HF__CLOCK_MAX_MS. */
struct hf__slot hf__slot_meant(const struct hf__schedule *schedule, int64_t now_ms);
/* The slot in which a moment lies, without any slack. */
struct hf__slot hf__slot_of(const struct hf__schedule *schedule, int64_t now_ms);
/* Whether a moment is so close to where one slot ends to be meant and the next begins that servers
 * a little apart would not agree. */
bool hf__slot_on_edge(const struct hf__schedule *schedule, int64_t now_ms);

#endif /* HF_CORE_SCHEDULE_H */
