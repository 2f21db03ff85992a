/* zone.h - a time zone: what the clocks on the wall show there, from the bytes of a TZif file.
 *
 * Not by localtime(3): it knows one zone for the whole process, and takes it from the environment.
 * Pure, as lease.h is: the caller has read the file. RFC 8536 describes the format.
 */
#ifndef HF_CORE_ZONE_H
#define HF_CORE_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HF__ZONE_FILE_MAX = 65536, /* bytes of a file; the largest known has 4 KiB */
    HF__ZONE_OFFSET_MAX_S = 26 * 3600
};

/* When the clocks change, year by year: "M3.2.0/2" and its like. */
struct hf__zone_change {
    char kind; /* 'M': a weekday of a month, 'J': a day without leap days, '0': with */
    int month, week, day;
    int32_t time_s; /* from midnight of that day, by the clock before the change */
};

struct hf__zone {
    /* The changes that are listed one by one; the bytes are the file's. */
    const unsigned char *times; /* 8 bytes each, or 4 */
    const unsigned char *kinds; /* one byte each: which of the types begins */
    const unsigned char *types; /* 6 bytes each */
    size_t time_size;
    size_t time_count;
    size_t type_count;
    /* And the rule for the time after them. */
    bool has_rule;
    bool has_summer;
    int32_t standard_s; /* east of Greenwich */
    int32_t summer_s;
    struct hf__zone_change to_summer, to_standard;
};

/* A stretch of time without a change of the clocks. */
struct hf__zone_stretch {
    int32_t offset_s; /* local time is UTC plus this */
    int64_t until_s;  /* first second after it, UTC; INT64_MAX: it does not end */
};

/* UTC, for which no file is needed. */
void hf__zone_utc(struct hf__zone *zone);
/* Takes a file apart; the bytes have to stay. False if it is none, or counts leap seconds. */
bool hf__zone_read(struct hf__zone *zone, const void *data, size_t len);
/* The stretch in which the second at_s lies, in UTC since 1970. */
struct hf__zone_stretch hf__zone_at(const struct hf__zone *zone, int64_t at_s);
/* The instant at which the clocks show local_s, seconds since 1970 as if local time were UTC. What
 * they never show means the first instant after it; what they show twice, the first time. */
int64_t hf__zone_instant(const struct hf__zone *zone, int64_t local_s);

#endif /* HF_CORE_ZONE_H */
