/* test_once_plan.c - from what is asked of once to a schedule, its rules, and how long an outcome
 * is kept. */
#include "../support/check.h"
#include "core/once_plan.h"

#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

static struct hf__once_request every(int64_t per_ms)
{
    return (struct hf__once_request){
        .periodic = true, .per_ms = per_ms, .slack_ms = -1, .start_by_ms = -1, .keep_ms = -1};
}

static void what_is_not_given_follows_from_the_period(void **state)
{
    static const struct {
        int64_t per_ms, slack_ms, keep_ms;
    } rows[] = {
        {10 * MINUTE_MS, 150000, 10000 * MINUTE_MS},      /* 1000 periods */
        {HOUR_MS, 15 * MINUTE_MS, 30 * DAY_MS},           /* 30 days */
        {DAY_MS, 15 * MINUTE_MS, 30 * DAY_MS},            /* both */
        {7 * DAY_MS, 15 * MINUTE_MS, 210 * DAY_MS},       /* 30 periods */
        {366 * DAY_MS, 15 * MINUTE_MS, 30 * 366 * DAY_MS} /* the longest */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct hf__once_request request = every(rows[i].per_ms);
        struct hf__once_plan plan;

        check_row(hf__once_plan(&plan, &request) == HF__ONCE_SOUND, i);
        check_row(plan.schedule.period_ms == rows[i].per_ms, i);
        check_row(plan.settings.period_ms == rows[i].per_ms, i);
        check_row(plan.schedule.slack_ms == rows[i].slack_ms, i);
        check_row(plan.rules.start_by_ms == rows[i].per_ms, i);
        check_row(plan.keep_ms == rows[i].keep_ms, i);
    }
}

/* Nobody forgets a slot that somebody may still mean. */
static void an_outcome_is_kept_longer_than_its_slot_can_be_meant(void **state)
{
    struct hf__once_request request = every(DAY_MS);
    struct hf__once_plan plan;

    (void)state;
    request.start_by_ms = 20 * DAY_MS;
    request.slack_ms = HOUR_MS;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_SOUND);
    assert_int_equal(plan.keep_ms, 2 * (20 * DAY_MS + HOUR_MS));
    request.keep_ms = 20 * DAY_MS + HOUR_MS;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_KEEP_SHORT);
    request.keep_ms++;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_SOUND);
    assert_int_equal(plan.keep_ms, request.keep_ms);
}

static void without_a_period_an_outcome_is_kept_for_ever(void **state)
{
    struct hf__once_request request = every(0);
    struct hf__once_plan plan;

    (void)state;
    request.periodic = false;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_SOUND);
    assert_int_equal(plan.keep_ms, 0);
    assert_true(plan.rules.start_by_ms == INT64_MAX);
    assert_string_equal(plan.settings.zone, "");
    request.keep_ms = HOUR_MS;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_SOUND);
    assert_int_equal(plan.keep_ms, HOUR_MS);
    request.keep_ms = 0;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_KEEP_RANGE);
    request.periodic = true; /* none, and a period of none */
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_PERIOD);
}

static void days_have_a_beginning_and_a_zone_on_record(void **state)
{
    struct hf__once_request request = every(DAY_MS);
    struct hf__once_plan plan;

    (void)state;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_SOUND);
    assert_string_equal(plan.settings.at, "00:00");
    assert_string_equal(plan.settings.zone, "UTC");
    request.at = "03:30";
    request.tz = "Europe/Berlin";
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_SOUND);
    assert_string_equal(plan.settings.at, "03:30");
    assert_string_equal(plan.settings.zone, "Europe/Berlin");
    assert_string_equal(hf__once_zone_of(&request), "Europe/Berlin");
    assert_int_equal(plan.schedule.at_s, 3 * 3600 + 30 * 60);
    request.per_ms = HOUR_MS;
    assert_int_equal(hf__once_plan(&plan, &request), HF__ONCE_AT_NEEDS_DAYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_follows_from_the_period),
        cmocka_unit_test(an_outcome_is_kept_longer_than_its_slot_can_be_meant),
        cmocka_unit_test(without_a_period_an_outcome_is_kept_for_ever),
        cmocka_unit_test(days_have_a_beginning_and_a_zone_on_record),
    };

    return cmocka_run_group_tests_name("once_plan", tests, NULL, NULL);
}
