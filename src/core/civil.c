/* civil.c - dates and days. The arithmetic counts in eras of 400 years that begin on a 1 March, so
 * that the leap day is the last day of a year. */
#include "core/civil.h"

enum {
    ERA_YEARS = 400,
    ERA_DAYS = 146097,
    EPOCH_DAYS = 719468, /* from 0000-03-01 to 1970-01-01 */
    EPOCH_WEEKDAY = 4    /* 1970-01-01 was a Thursday */
};

int64_t hf__floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

int64_t hf__days_of(struct hf__date date)
{
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t era = hf__floor_div(year, ERA_YEARS);
    int64_t of_era = year - era * ERA_YEARS;
    int64_t month = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t of_year = (153 * month + 2) / 5 + date.day - 1;

    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS;
}

struct hf__date hf__date_of(int64_t days)
{
    int64_t era = hf__floor_div(days + EPOCH_DAYS, ERA_DAYS);
    int64_t of_era = days + EPOCH_DAYS - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    struct hf__date date = {.day = (int)(of_year - (153 * month + 2) / 5 + 1),
                            .month = (int)(month < 10 ? month + 3 : month - 9)};

    date.year = year + era * ERA_YEARS + (date.month <= 2);
    return date;
}

int hf__weekday_of(int64_t days)
{
    return (int)(days + EPOCH_WEEKDAY - hf__floor_div(days + EPOCH_WEEKDAY, 7) * 7);
}

bool hf__is_leap_year(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}
