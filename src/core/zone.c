/* zone.c - a time zone from the bytes of a TZif file: the changes listed one by one, and the rule
 * in the last line for the time after them. Every number is checked before it is used: the file may
 * be anything. */
#include "core/zone.h"

#include "core/civil.h"

#include <string.h>

enum {
    HEADER_SIZE = 44,
    TYPE_SIZE = 6,
    COUNTS_AT = 20, /* in the header */
    RULE_TIME_DEFAULT_S = 2 * 3600,
    RULE_HOURS_MAX = 167, /* RFC 8536, 3.3.1 */
    OFFSET_HOURS_MAX = 24
};

/* How many of each are in a block, in the order of the header. */
struct counts {
    uint32_t utc, standard, leaps, times, types, chars;
};

static bool read_block(struct hf__zone *zone, const unsigned char *data, size_t len, size_t size,
                       size_t *used);
static bool read_rule(struct hf__zone *zone, const char *text, size_t len);
static bool check_types(const struct hf__zone *zone);
static int64_t time_at(const struct hf__zone *zone, size_t index);
static int32_t type_offset(const struct hf__zone *zone, size_t type);
static struct hf__zone_stretch stretch_by_rule(const struct hf__zone *zone, int64_t at_s);

static int64_t big_endian(const unsigned char *bytes, size_t size)
{
    uint64_t value = (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return (int64_t)value;
}

void hf__zone_utc(struct hf__zone *zone)
{
    memset(zone, 0, sizeof *zone);
    zone->has_rule = true;
}

bool hf__zone_read(struct hf__zone *zone, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    size_t used = 0;

    memset(zone, 0, sizeof *zone);
    if (len > HF__ZONE_FILE_MAX || !read_block(zone, bytes, len, 4, &used))
        return false;
    if (bytes[4] == '\0')
        return check_types(zone);
    /* From version 2 on the same follows with eight bytes for each time, and the rule. */
    bytes += used;
    len -= used;
    if (!read_block(zone, bytes, len, 8, &used) || !check_types(zone))
        return false;
    return read_rule(zone, (const char *)bytes + used, len - used);
}

static bool read_block(struct hf__zone *zone, const unsigned char *data, size_t len, size_t size,
                       size_t *used)
{
    struct counts n = {0};
    uint32_t *const fields[] = {&n.utc, &n.standard, &n.leaps, &n.times, &n.types, &n.chars};

    if (len < HEADER_SIZE || memcmp(data, "TZif", 4) != 0)
        return false;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int64_t count = big_endian(data + COUNTS_AT + 4 * i, 4);

        if (count < 0 || count > HF__ZONE_FILE_MAX)
            return false;
        *fields[i] = (uint32_t)count;
    }
    *used = HEADER_SIZE + n.times * (size + 1) + n.types * (size_t)TYPE_SIZE + n.chars +
            n.leaps * (size + 4) + n.standard + n.utc;
    if (*used > len || n.types == 0 || n.leaps != 0)
        return false;
    zone->time_size = size;
    zone->time_count = n.times;
    zone->type_count = n.types;
    zone->times = data + HEADER_SIZE;
    zone->kinds = zone->times + n.times * size;
    zone->types = zone->kinds + n.times;
    return true;
}

/* Times rise, types exist, and no offset is longer than a zone can be. */
static bool check_types(const struct hf__zone *zone)
{
    for (size_t i = 0; i < zone->time_count; i++) {
        if (zone->kinds[i] >= zone->type_count)
            return false;
        if (i > 0 && time_at(zone, i) <= time_at(zone, i - 1))
            return false;
    }
    for (size_t i = 0; i < zone->type_count; i++) {
        int32_t offset_s = type_offset(zone, i);

        if (offset_s < -HF__ZONE_OFFSET_MAX_S || offset_s > HF__ZONE_OFFSET_MAX_S)
            return false;
    }
    return true;
}

static int64_t time_at(const struct hf__zone *zone, size_t index)
{
    return big_endian(zone->times + index * zone->time_size, zone->time_size);
}

static int32_t type_offset(const struct hf__zone *zone, size_t type)
{
    return (int32_t)big_endian(zone->types + type * TYPE_SIZE, 4);
}

struct hf__zone_stretch hf__zone_at(const struct hf__zone *zone, int64_t at_s)
{
    struct hf__zone_stretch stretch = {.until_s = INT64_MAX};
    size_t after = 0; /* the first change that is later */

    while (after < zone->time_count && time_at(zone, after) <= at_s)
        after++;
    if (after == zone->time_count && zone->has_rule)
        return stretch_by_rule(zone, at_s);
    /* Before the first change the first type holds. */
    stretch.offset_s = type_offset(zone, after > 0 ? zone->kinds[after - 1] : 0);
    if (after < zone->time_count)
        stretch.until_s = time_at(zone, after);
    return stretch;
}

int64_t hf__zone_instant(const struct hf__zone *zone, int64_t local_s)
{
    int64_t at_s = local_s - HF__ZONE_OFFSET_MAX_S; /* the clocks show less than local_s there */

    for (;;) {
        struct hf__zone_stretch stretch = hf__zone_at(zone, at_s);
        int64_t shown_s = local_s - stretch.offset_s;

        if (shown_s < at_s)
            shown_s = at_s; /* the change skipped it */
        if (shown_s < stretch.until_s)
            return shown_s;
        at_s = stretch.until_s;
    }
}

/* The rule of the last line: "CET-1CEST,M3.5.0,M10.5.0/3" */

struct reader {
    const char *at;
    const char *end;
    bool bad;
};

static bool take(struct reader *r, char c)
{
    if (r->at >= r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static int take_number(struct reader *r, int most)
{
    int value = 0;
    const char *from = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && value <= most)
        value = value * 10 + (*r->at++ - '0');
    if (r->at == from || value > most)
        r->bad = true;
    return r->bad ? 0 : value;
}

/* Letters, or anything in angle brackets. */
static void take_name(struct reader *r)
{
    const char *from = r->at;

    if (take(r, '<')) {
        while (r->at < r->end && *r->at != '>')
            r->at++;
        r->bad = r->bad || !take(r, '>');
        return;
    }
    while (r->at < r->end && ((*r->at | 0x20) >= 'a' && (*r->at | 0x20) <= 'z'))
        r->at++;
    if (r->at == from)
        r->bad = true;
}

static int32_t take_clock(struct reader *r, int most_hours)
{
    int sign = take(r, '-') ? -1 : 1;
    int seconds;

    if (sign > 0)
        take(r, '+');
    seconds = take_number(r, most_hours) * 3600;
    if (take(r, ':'))
        seconds += take_number(r, 59) * 60;
    if (take(r, ':'))
        seconds += take_number(r, 59);
    return sign * seconds;
}

static void take_change(struct reader *r, struct hf__zone_change *change)
{
    r->bad = r->bad || !take(r, ',');
    change->kind = '0';
    if (take(r, 'M')) {
        change->kind = 'M';
        change->month = take_number(r, 12);
        r->bad = r->bad || !take(r, '.');
        change->week = take_number(r, 5);
        r->bad = r->bad || !take(r, '.');
        change->day = take_number(r, 6);
        r->bad = r->bad || change->month == 0 || change->week == 0;
    } else {
        if (take(r, 'J'))
            change->kind = 'J';
        change->day = take_number(r, 365);
        r->bad = r->bad || (change->kind == 'J' && change->day == 0);
    }
    change->time_s = take(r, '/') ? take_clock(r, RULE_HOURS_MAX) : RULE_TIME_DEFAULT_S;
}

static bool read_rule(struct hf__zone *zone, const char *text, size_t len)
{
    struct reader r = {.at = text, .end = text + len};

    if (!take(&r, '\n') || len < 2 || memchr(r.at, '\n', len - 1) == NULL)
        return false;
    if (take(&r, '\n'))
        return true; /* nobody knows what comes then: the last change holds */
    zone->has_rule = true;
    take_name(&r);
    zone->standard_s = -take_clock(&r, OFFSET_HOURS_MAX);
    if (take(&r, '\n'))
        return !r.bad;
    zone->has_summer = true;
    take_name(&r);
    zone->summer_s = zone->standard_s + 3600;
    if (r.at < r.end && *r.at != ',')
        zone->summer_s = -take_clock(&r, OFFSET_HOURS_MAX);
    take_change(&r, &zone->to_summer);
    take_change(&r, &zone->to_standard);
    return !r.bad && take(&r, '\n');
}

static int64_t day_of_change(const struct hf__zone_change *change, int64_t year)
{
    struct hf__date first = {.year = year, .month = 1, .day = 1};
    int64_t days = hf__days_of(first);
    int64_t next;

    if (change->kind == '0')
        return days + change->day;
    if (change->kind == 'J')
        return days + change->day - 1 + (change->day > 59 && hf__is_leap_year(year));
    first.month = change->month;
    days = hf__days_of(first);
    days += (change->day - hf__weekday_of(days) + 7) % 7 + 7 * (int64_t)(change->week - 1);
    /* The fifth is the last. */
    first.year += first.month == 12;
    first.month = first.month % 12 + 1;
    next = hf__days_of(first);
    return days < next ? days : days - 7;
}

/* Of the changes around the year of at_s, the last one before it and the first one after it. Where
 * summer follows summer without a gap, both fall on one instant, and the beginning counts. */
static struct hf__zone_stretch stretch_by_rule(const struct hf__zone *zone, int64_t at_s)
{
    struct hf__zone_stretch stretch = {.offset_s = zone->standard_s, .until_s = INT64_MAX};
    int64_t year = hf__date_of(hf__floor_div(at_s, HF__DAY_S)).year;
    int64_t began_s = INT64_MIN;

    if (!zone->has_summer)
        return stretch;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        int64_t summer_s = day_of_change(&zone->to_summer, y) * HF__DAY_S + zone->to_summer.time_s -
                           zone->standard_s;
        int64_t standard_s = day_of_change(&zone->to_standard, y) * HF__DAY_S +
                             zone->to_standard.time_s - zone->summer_s;

        if (standard_s <= at_s && standard_s > began_s) {
            began_s = standard_s;
            stretch.offset_s = zone->standard_s;
        }
        if (summer_s <= at_s && summer_s >= began_s) {
            began_s = summer_s;
            stretch.offset_s = zone->summer_s;
        }
        if (standard_s > at_s && standard_s < stretch.until_s)
            stretch.until_s = standard_s;
        if (summer_s > at_s && summer_s < stretch.until_s)
            stretch.until_s = summer_s;
    }
    return stretch;
}
