/* test_samples.c - percentiles, and what an answer tells of another clock. */
#include "core/samples.h"

#include "../support/check.h"

static void percentiles(void **state)
{
    struct hf__samples samples = {.count = 0};

    (void)state;
    assert_int_equal(hf__samples_percentile(&samples, 99), 0);
    for (int i = 100; i > 0; i--)
        hf__samples_add(&samples, i);
    assert_int_equal(hf__samples_percentile(&samples, 50), 50);
    assert_int_equal(hf__samples_percentile(&samples, 99), 99);
    assert_int_equal(hf__samples_percentile(&samples, 100), 100);
    for (int i = 0; i < 100; i++)
        hf__samples_add(&samples, 1);
    assert_int_equal(samples.count, HF__SAMPLES_MAX);
}

/* A round trip of 10ms explains 5ms on either side. */
static void a_clock_is_judged_less_what_the_way_explains(void **state)
{
    struct hf__clock_reading first = {
        .sent_ns = 0, .heard_ns = 10000000, .wall_us = 1000000, .their_us = 1000000};
    struct hf__clock_reading second = {
        .sent_ns = 1000000000, .heard_ns = 1010000000, .wall_us = 2000000, .their_us = 2000000};

    (void)state;
    assert_int_equal(hf__clock_ahead_us(&first), 0);
    first.their_us = 2000000;
    assert_int_equal(hf__clock_ahead_us(&first), 1000000);
    first.their_us = 0;
    assert_int_equal(hf__clock_ahead_us(&first), -990000);
    first.their_us = 1000000;
    assert_int_equal(hf__clock_rate_ppm(&first, &second), 0);
    second.their_us += 10000;
    assert_int_equal(hf__clock_rate_ppm(&first, &second), 0);
    second.their_us += 50000;
    assert_int_equal(hf__clock_rate_ppm(&first, &second), 50000);
    second.their_us = 1500000;
    assert_int_equal(hf__clock_rate_ppm(&first, &second), -490000);
    assert_int_equal(hf__clock_rate_ppm(&second, &first), 0);
    second.their_us = INT64_MAX / 2;
    assert_true(hf__clock_rate_ppm(&first, &second) > 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles),
        cmocka_unit_test(a_clock_is_judged_less_what_the_way_explains),
    };

    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
