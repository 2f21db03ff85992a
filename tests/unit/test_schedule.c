/* test_schedule.c - slots: borders, slack; and of zone.c dates, and the nights on which
 * clocks change.
 * run: late asan */
#include "../support/check.h"
#include "core/civil.h"
#include "core/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define S   1000LL
#define MIN (60 * S)
#define H   (60 * MIN)
#define D   (24 * H)

/* A moment in UTC. */
static int64_t utc(int year, int month, int day, int hour, int minute)
{
    const struct hf__date date = {.year = year, .month = month, .day = day};

    return hf__days_of(date) * D + hour * H + minute * MIN;
}

/* The zone of the system's database; the bytes stay for the test's life. */
static struct hf__zone zone_of(const char *name)
{
    static unsigned char bytes[8][HF__ZONE_FILE_MAX];
    static size_t next;
    struct hf__zone zone;
    char path[128];
    unsigned char *data = bytes[next++ % COUNT(bytes)];
    FILE *file;
    size_t len;

    hf__zone_utc(&zone);
    if (strcmp(name, "UTC") == 0)
        return zone;
    (void)snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
    file = fopen(path, "rb");
    assert_non_null(file);
    len = fread(data, 1, HF__ZONE_FILE_MAX, file);
    (void)fclose(file);
    assert_true(hf__zone_read(&zone, data, len));
    return zone;
}

static struct hf__schedule daily(const char *at, const char *zone)
{
    struct hf__schedule schedule = {.period_ms = D, .zone = zone_of(zone)};

    assert_true(hf__at_parse(at, &schedule.at_s));
    return schedule;
}

static void check_slot(struct hf__slot slot, const char *name, int64_t start_ms, int64_t end_ms)
{
    assert_string_equal(slot.name, name);
    assert_int_equal(slot.start_ms, start_ms);
    assert_int_equal(slot.end_ms, end_ms);
}

/* The system's own reader of the same files, hour by hour through the years. */
static void zones_are_the_systems(void **state)
{
    static const char *const names[] = {
        "Europe/Berlin",    "America/New_York",  "Australia/Lord_Howe", "Asia/Kolkata",
        "Pacific/Apia",     "Africa/Casablanca", "America/St_Johns",    "Europe/Dublin",
        "America/Santiago", "Antarctica/Troll",  "Pacific/Kiritimati",  "Asia/Gaza"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct hf__zone zone = zone_of(names[i]);

        (void)setenv("TZ", names[i], 1);
        tzset();
        for (int64_t at_s = utc(1960, 1, 1, 0, 0) / S; at_s < utc(2090, 1, 1, 0, 0) / S;
             at_s += 4 * 3600 + 1800) {
            time_t at = at_s;
            struct tm tm;

            localtime_r(&at, &tm);
            check_row(hf__zone_at(&zone, at_s).offset_s == tm.tm_gmtoff, i);
        }
    }
    (void)unsetenv("TZ");
    tzset();
}

static void a_stretch_ends_where_the_clocks_change(void **state)
{
    struct hf__zone zone = zone_of("Europe/Berlin");
    int64_t change_s = utc(2040, 3, 25, 1, 0) / S;

    (void)state;
    assert_int_equal(hf__zone_at(&zone, change_s - 1).offset_s, 3600);
    assert_int_equal(hf__zone_at(&zone, change_s - 1).until_s, change_s);
    assert_int_equal(hf__zone_at(&zone, change_s).offset_s, 7200);
}

static void which_periods_there_are(void **state)
{
    static const struct {
        int64_t period_ms;
        bool valid;

    } rows[] = {{0, false},       {1, false},         {500, false},   {S, true},
                {1500, false},    {7 * S, false},     {8 * S, true},  {MIN, true},
                {7 * MIN, false}, {H, true},          {5 * H, false}, {8 * H, true},
                {D, true},        {D + H, false},     {7 * D, true},  {366 * D, true},
                {367 * D, false}, {INT64_MAX, false}, {-D, false},    {36 * H, false}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(hf__period_valid(rows[i].period_ms) == rows[i].valid, i);
    assert_int_equal(hf__slack_default_ms(D), 15 * MIN);
    assert_int_equal(hf__slack_default_ms(H), 15 * MIN);
    assert_int_equal(hf__slack_default_ms(8 * MIN), 2 * MIN);
}

static void which_times_of_the_day_there_are(void **state)
{
    static const char *const bad[] = {"",     "3:00",  "24:00", "03:60", "03:00:00",
                                      "0300", "-1:00", "03.00", "+3:00"};
    int32_t at_s = 0;

    (void)state;
    assert_true(hf__at_parse("23:59", &at_s));
    assert_int_equal(at_s, 86340);
    for (size_t i = 0; i < COUNT(bad); i++)
        check_row(!hf__at_parse(bad[i], &at_s), i);
}

static void hours_and_seconds_are_utc(void **state)
{
    struct hf__schedule schedule = {.period_ms = H};

    (void)state;
    check_slot(hf__slot_of(&schedule, utc(2026, 11, 17, 3, 0)), "2026-11-17T03:00Z",
               utc(2026, 11, 17, 3, 0), utc(2026, 11, 17, 4, 0));
    check_slot(hf__slot_of(&schedule, utc(2026, 11, 17, 4, 0) - 1), "2026-11-17T03:00Z",
               utc(2026, 11, 17, 3, 0), utc(2026, 11, 17, 4, 0));
    schedule.period_ms = 8 * S;
    assert_string_equal(hf__slot_of(&schedule, utc(2026, 11, 17, 3, 0) + 17 * S).name,
                        "2026-11-17T03:00:16Z");
    schedule.period_ms = 12 * H;
    check_slot(hf__slot_of(&schedule, utc(2026, 12, 31, 23, 59)), "2026-12-31T12:00Z",
               utc(2026, 12, 31, 12, 0), utc(2027, 1, 1, 0, 0));
}

static void without_a_period_there_is_one_slot(void **state)
{
    struct hf__schedule schedule = {.period_ms = 0};

    (void)state;
    check_slot(hf__slot_meant(&schedule, utc(2026, 11, 17, 3, 0)), "ever", 0, INT64_MAX);
    assert_false(hf__slot_on_edge(&schedule, utc(2026, 11, 17, 3, 0)));
}

static void shortly_before_a_border_the_coming_slot_is_meant(void **state)
{
    struct hf__schedule schedule = daily("03:00", "UTC");
    int64_t border = utc(2026, 11, 17, 3, 0);

    (void)state;
    schedule.slack_ms = 15 * MIN;
    assert_string_equal(hf__slot_meant(&schedule, border - 15 * MIN - 1).name, "2026-11-16");
    assert_string_equal(hf__slot_meant(&schedule, border - 15 * MIN).name, "2026-11-17");
    assert_string_equal(hf__slot_meant(&schedule, border - 2 * S).name, "2026-11-17");
    assert_string_equal(hf__slot_meant(&schedule, border).name, "2026-11-17");
    assert_string_equal(hf__slot_meant(&schedule, border + D - 15 * MIN - 1).name, "2026-11-17");
    schedule.slack_ms = 0;
    assert_string_equal(hf__slot_meant(&schedule, border - 1).name, "2026-11-16");
}

static void a_schedule_on_the_edge_is_noticed(void **state)
{
    struct hf__schedule schedule = {.period_ms = H, .slack_ms = 15 * MIN};
    int64_t edge = utc(2026, 11, 17, 3, 45);

    (void)state;
    assert_true(hf__slot_on_edge(&schedule, edge));
    assert_true(hf__slot_on_edge(&schedule, edge - 30 * S));
    assert_true(hf__slot_on_edge(&schedule, edge + 30 * S));
    assert_false(hf__slot_on_edge(&schedule, edge - 2 * MIN));
    assert_false(hf__slot_on_edge(&schedule, edge + 2 * MIN));
    assert_false(hf__slot_on_edge(&schedule, utc(2026, 11, 17, 4, 0)));
    /* Without slack the border is the edge, and cron fires right on it. */
    schedule.slack_ms = 0;
    assert_true(hf__slot_on_edge(&schedule, utc(2026, 11, 17, 4, 0)));
    assert_true(hf__slot_on_edge(&schedule, utc(2026, 11, 17, 4, 0) - 1 * S));
}

static void weeks_begin_on_mondays(void **state)
{
    struct hf__schedule schedule = daily("00:00", "UTC");

    (void)state;
    schedule.period_ms = 7 * D;
    check_slot(hf__slot_of(&schedule, utc(2026, 11, 17, 12, 0)), "2026-11-16",
               utc(2026, 11, 16, 0, 0), utc(2026, 11, 23, 0, 0));
    check_slot(hf__slot_of(&schedule, utc(2026, 11, 22, 23, 59)), "2026-11-16",
               utc(2026, 11, 16, 0, 0), utc(2026, 11, 23, 0, 0));
    assert_string_equal(hf__slot_of(&schedule, utc(1970, 1, 1, 0, 0)).name, "1969-12-29");
    schedule.period_ms = 2 * D;
    check_slot(hf__slot_of(&schedule, utc(1970, 1, 8, 0, 0)), "1970-01-07", utc(1970, 1, 7, 0, 0),
               utc(1970, 1, 9, 0, 0));
}

static void years_end_and_leap_days_come(void **state)
{
    struct hf__schedule schedule = daily("03:00", "UTC");

    (void)state;
    check_slot(hf__slot_of(&schedule, utc(2027, 1, 1, 2, 59)), "2026-12-31",
               utc(2026, 12, 31, 3, 0), utc(2027, 1, 1, 3, 0));
    check_slot(hf__slot_of(&schedule, utc(2028, 2, 29, 12, 0)), "2028-02-29",
               utc(2028, 2, 29, 3, 0), utc(2028, 3, 1, 3, 0));
    check_slot(hf__slot_of(&schedule, utc(2027, 2, 28, 12, 0)), "2027-02-28",
               utc(2027, 2, 28, 3, 0), utc(2027, 3, 1, 3, 0));
    check_slot(hf__slot_of(&schedule, utc(2100, 2, 28, 12, 0)), "2100-02-28",
               utc(2100, 2, 28, 3, 0), utc(2100, 3, 1, 3, 0));
}

/* Berlin, 2026: clocks go from 02:00 to 03:00 on 29 March, and back from 03:00 on 25 October. */

static void a_day_of_23_or_25_hours_is_one_slot(void **state)
{
    struct hf__schedule schedule = daily("00:00", "Europe/Berlin");

    (void)state;
    check_slot(hf__slot_of(&schedule, utc(2026, 3, 29, 12, 0)), "2026-03-29",
               utc(2026, 3, 28, 23, 0), utc(2026, 3, 29, 22, 0));
    check_slot(hf__slot_of(&schedule, utc(2026, 10, 25, 12, 0)), "2026-10-25",
               utc(2026, 10, 24, 22, 0), utc(2026, 10, 25, 23, 0));
}

static void a_time_in_the_missing_hour_is_the_first_after_it(void **state)
{
    struct hf__schedule schedule = daily("02:30", "Europe/Berlin");

    (void)state;
    check_slot(hf__slot_of(&schedule, utc(2026, 3, 29, 1, 0)), "2026-03-29", utc(2026, 3, 29, 1, 0),
               utc(2026, 3, 30, 0, 30));
    check_slot(hf__slot_of(&schedule, utc(2026, 3, 29, 1, 0) - 1), "2026-03-28",
               utc(2026, 3, 28, 1, 30), utc(2026, 3, 29, 1, 0));
}

static void a_time_in_the_doubled_hour_is_the_first(void **state)
{
    struct hf__schedule schedule = daily("02:30", "Europe/Berlin");

    (void)state;
    check_slot(hf__slot_of(&schedule, utc(2026, 10, 25, 0, 30)), "2026-10-25",
               utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30));
    /* 02:30 for the second time is the same slot. */
    assert_string_equal(hf__slot_of(&schedule, utc(2026, 10, 25, 1, 30)).name, "2026-10-25");
    assert_string_equal(hf__slot_of(&schedule, utc(2026, 10, 25, 0, 30) - 1).name, "2026-10-24");
}

static void zones_lie_east_and_west(void **state)
{
    struct hf__schedule east = daily("03:00", "Pacific/Kiritimati"); /* +14 */
    struct hf__schedule west = daily("03:00", "Pacific/Pago_Pago");  /* -11 */
    struct hf__schedule half = daily("03:00", "Asia/Kathmandu");     /* +5:45 */

    (void)state;
    check_slot(hf__slot_of(&east, utc(2026, 11, 16, 13, 0)), "2026-11-17", utc(2026, 11, 16, 13, 0),
               utc(2026, 11, 17, 13, 0));
    check_slot(hf__slot_of(&west, utc(2026, 11, 17, 14, 0)), "2026-11-17", utc(2026, 11, 17, 14, 0),
               utc(2026, 11, 18, 14, 0));
    check_slot(hf__slot_of(&half, utc(2026, 11, 16, 21, 15)), "2026-11-17",
               utc(2026, 11, 16, 21, 15), utc(2026, 11, 17, 21, 15));
}

static void a_date_that_a_zone_skipped_is_no_slot(void **state)
{
    struct hf__schedule schedule = daily("12:00", "Pacific/Apia"); /* there was no 30 Dec 2011 */

    (void)state;
    assert_string_equal(hf__slot_of(&schedule, utc(2011, 12, 30, 9, 59)).name, "2011-12-29");
    assert_string_equal(hf__slot_of(&schedule, utc(2011, 12, 30, 22, 0)).name, "2011-12-31");
    for (int64_t at = utc(2011, 12, 28, 0, 0); at < utc(2012, 1, 2, 0, 0); at += 10 * MIN) {
        struct hf__slot slot = hf__slot_of(&schedule, at);

        assert_true(slot.start_ms <= at && at < slot.end_ms);
    }
}

static void slots_follow_each_other_without_gaps(void **state)
{
    static const char *const zones[] = {"UTC", "Europe/Berlin", "America/New_York",
                                        "Australia/Lord_Howe", "America/Santiago"};

    (void)state;
    for (size_t i = 0; i < COUNT(zones); i++) {
        struct hf__schedule schedule = daily("02:30", zones[i]);
        struct hf__slot slot = hf__slot_of(&schedule, utc(2026, 1, 1, 0, 0));

        for (int n = 0; n < 800; n++) {
            struct hf__slot next = hf__slot_of(&schedule, slot.end_ms);

            check_row(next.start_ms == slot.end_ms && next.end_ms > next.start_ms, i);
            check_row(strcmp(next.name, slot.name) > 0, i);
            slot = next;
        }
    }
}

static void what_is_no_zone_is_refused(void **state)
{
    unsigned char data[4096];
    struct hf__zone zone;
    FILE *file = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
    size_t len;

    (void)state;
    assert_non_null(file);
    len = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    for (size_t cut = 0; cut < len; cut++)
        check_row(!hf__zone_read(&zone, data, cut), cut);
    assert_true(hf__zone_read(&zone, data, len));
    data[0] = 'X';
    assert_false(hf__zone_read(&zone, data, len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zones_are_the_systems),
        cmocka_unit_test(a_stretch_ends_where_the_clocks_change),
        cmocka_unit_test(which_periods_there_are),
        cmocka_unit_test(which_times_of_the_day_there_are),
        cmocka_unit_test(hours_and_seconds_are_utc),
        cmocka_unit_test(without_a_period_there_is_one_slot),
        cmocka_unit_test(shortly_before_a_border_the_coming_slot_is_meant),
        cmocka_unit_test(a_schedule_on_the_edge_is_noticed),
        cmocka_unit_test(weeks_begin_on_mondays),
        cmocka_unit_test(years_end_and_leap_days_come),
        cmocka_unit_test(a_day_of_23_or_25_hours_is_one_slot),
        cmocka_unit_test(a_time_in_the_missing_hour_is_the_first_after_it),
        cmocka_unit_test(a_time_in_the_doubled_hour_is_the_first),
        cmocka_unit_test(zones_lie_east_and_west),
        cmocka_unit_test(a_date_that_a_zone_skipped_is_no_slot),
        cmocka_unit_test(slots_follow_each_other_without_gaps),
        cmocka_unit_test(what_is_no_zone_is_refused)};

    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
