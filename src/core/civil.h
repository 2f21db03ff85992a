/* civil.h - dates of the Gregorian calendar, and days counted from 1970-01-01. Pure. */
#ifndef HF_CORE_CIVIL_H
#define HF_CORE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

enum { HF__DAY_S = 86400 };

struct hf__date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* Of any date between the years -1000000 and 1000000. */
int64_t hf__days_of(struct hf__date date);
struct hf__date hf__date_of(int64_t days);
/* 0 is Sunday. */
int hf__weekday_of(int64_t days);
bool hf__is_leap_year(int64_t year);
/* a / b rounded down, even below 0; b > 0. */
int64_t hf__floor_div(int64_t a, int64_t b);

#endif /* HF_CORE_CIVIL_H */
