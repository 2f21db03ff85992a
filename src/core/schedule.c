/* schedule.c - which slot a moment belongs to. */
#include "core/schedule.h"

#include "core/civil.h"

#include <string.h>

enum {
    MS_PER_S = 1000,
    SLACK_PART = 4,          /* of the period */
    EDGE_SLACK_PART = 10,    /* this near to the edge, as a part of the slack ... */
    EDGE_PERIOD_PART = 1000, /* ... and at least as a part of the period ... */
    EDGE_MAX_MS = 60000,     /* ... and at most this, servers do not agree */
    FIRST_MONDAY = 4,        /* 1970-01-05, in days since 1970-01-01 */
    DAYS_AHEAD = 2           /* no date begins this long before it does in Greenwich */
};
#define DAY_MS ((int64_t)HF__DAY_S * MS_PER_S)

static int64_t start_of_date(const struct hf__schedule *schedule, int64_t days);
static void name_date(char *out, int64_t days);
static void name_time(struct hf__slot *slot, bool seconds);

bool hf__period_is_days(int64_t period_ms)
{
    return period_ms >= DAY_MS;
}

bool hf__period_valid(int64_t period_ms)
{
    if (period_ms < MS_PER_S || period_ms % MS_PER_S != 0)
        return false;
    if (hf__period_is_days(period_ms))
        return period_ms % DAY_MS == 0 && period_ms / DAY_MS <= HF__PERIOD_DAYS_MAX;
    return DAY_MS % period_ms == 0;
}

int64_t hf__slack_default_ms(int64_t period_ms)
{
    int64_t part_ms = period_ms / SLACK_PART;

    return part_ms < HF__SLACK_MAX_MS ? part_ms : HF__SLACK_MAX_MS;
}

/* Two digits below limit; -1 if there are none. */
static int two_digits(const char *text, int limit)
{
    int value;

    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
        return -1;
    value = (text[0] - '0') * 10 + (text[1] - '0');
    return value < limit ? value : -1;
}

bool hf__at_parse(const char *text, int32_t *at_s)
{
    int hours, minutes;

    if (strlen(text) != 5 || text[2] != ':')
        return false;
    hours = two_digits(text, 24);
    minutes = two_digits(text + 3, 60);
    *at_s = hours * 3600 + minutes * 60;
    return hours >= 0 && minutes >= 0;
}

struct hf__slot hf__slot_meant(const struct hf__schedule *schedule, int64_t now_ms)
{
    return hf__slot_of(schedule, now_ms + schedule->slack_ms);
}

/* The date whose beginning was the last before now; a date that a zone skipped begins together with
 * the next one, and is never it. */
static struct hf__slot slot_of_dates(const struct hf__schedule *schedule, int64_t now_ms)
{
    int64_t count = schedule->period_ms / DAY_MS;
    int64_t guess = hf__floor_div(now_ms, DAY_MS) + DAYS_AHEAD;
    int64_t index = hf__floor_div(guess - FIRST_MONDAY, count);
    struct hf__slot slot;

    slot.end_ms = start_of_date(schedule, (index + 1) * count + FIRST_MONDAY);
    for (;; index--) {
        slot.start_ms = start_of_date(schedule, index * count + FIRST_MONDAY);
        if (slot.start_ms <= now_ms)
            break;
        slot.end_ms = slot.start_ms;
    }
    name_date(slot.name, index * count + FIRST_MONDAY);
    return slot;
}

struct hf__slot hf__slot_of(const struct hf__schedule *schedule, int64_t now_ms)
{
    struct hf__slot slot = {.start_ms = 0, .end_ms = INT64_MAX, .name = HF__SLOT_EVER};

    if (schedule->period_ms == 0)
        return slot;
    if (hf__period_is_days(schedule->period_ms))
        return slot_of_dates(schedule, now_ms);
    slot.start_ms = hf__floor_div(now_ms, schedule->period_ms) * schedule->period_ms;
    slot.end_ms = slot.start_ms + schedule->period_ms;
    name_time(&slot, schedule->period_ms % (60 * MS_PER_S) != 0);
    return slot;
}

bool hf__slot_on_edge(const struct hf__schedule *schedule, int64_t now_ms)
{
    int64_t near_ms = schedule->slack_ms / EDGE_SLACK_PART;
    int64_t least_ms = schedule->period_ms / EDGE_PERIOD_PART;
    struct hf__slot slot;

    if (schedule->period_ms == 0)
        return false;
    if (near_ms < least_ms)
        near_ms = least_ms;
    if (near_ms > EDGE_MAX_MS)
        near_ms = EDGE_MAX_MS;
    slot = hf__slot_meant(schedule, now_ms);
    return now_ms + schedule->slack_ms - slot.start_ms < near_ms ||
           slot.end_ms - (now_ms + schedule->slack_ms) <= near_ms;
}

static int64_t start_of_date(const struct hf__schedule *schedule, int64_t days)
{
    return hf__zone_instant(&schedule->zone, days * HF__DAY_S + schedule->at_s) * MS_PER_S;
}

static char *put_digits(char *out, int64_t value, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

static void name_date(char *out, int64_t days)
{
    struct hf__date date = hf__date_of(days);

    out = put_digits(out, date.year, 4);
    *out++ = '-';
    out = put_digits(out, date.month, 2);
    *out++ = '-';
    out = put_digits(out, date.day, 2);
    *out = '\0';
}

static void name_time(struct hf__slot *slot, bool seconds)
{
    int64_t at_s = slot->start_ms / MS_PER_S;
    int64_t of_day = at_s % HF__DAY_S;
    char *out = slot->name;

    name_date(out, at_s / HF__DAY_S);
    out += strlen(out);
    *out++ = 'T';
    out = put_digits(out, of_day / 3600, 2);
    *out++ = ':';
    out = put_digits(out, of_day / 60 % 60, 2);
    if (seconds) {
        *out++ = ':';
        out = put_digits(out, of_day % 60, 2);
    }
    *out++ = 'Z';
    *out = '\0';
}
