/* test_civil.c - dates and days are those of the system's calendar. */
#include "core/civil.h"

#include "../support/check.h"

#include <time.h>

static void the_calendar_is_the_systems(void **state)
{
    (void)state;
    for (int64_t days = -800000; days < 800000; days += 13) {
        time_t at = days * HF__DAY_S;
        struct tm tm;
        struct hf__date date = hf__date_of(days);

        gmtime_r(&at, &tm);
        check_row(date.year == tm.tm_year + 1900 && date.month == tm.tm_mon + 1 &&
                      date.day == tm.tm_mday,
                  days);
        check_row(hf__days_of(date) == days, days);
        check_row(hf__weekday_of(days) == tm.tm_wday, days);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_calendar_is_the_systems),
    };

    return cmocka_run_group_tests_name("civil", tests, NULL, NULL);
}
