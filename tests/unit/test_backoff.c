/* test_backoff.c - the pauses between tries at something that fails. */
#include "../support/check.h"
#include "base/backoff.h"

#define MS 1000000LL
#define S  1000000000LL

static void pauses_double_up_to_the_bound(void **state)
{
    static const int64_t most_ms[] = {50, 100, 200, 400, 800, 1600, 2000, 2000};
    struct hf__backoff longest = {.first_ns = 50 * MS, .most_ns = 2 * S};
    struct hf__backoff shortest = longest;

    (void)state;
    for (size_t i = 0; i < sizeof most_ms / sizeof *most_ms; i++) {
        int64_t half_ns = most_ms[i] * MS / 2;
        int64_t low_ns = hf__backoff_failed(&shortest, S, UINT32_MAX) - S;

        assert_int_equal(hf__backoff_failed(&longest, S, 0), S + most_ms[i] * MS);
        assert_true(low_ns >= half_ns && low_ns <= half_ns + 1);
    }
    assert_int_equal(longest.failures, 8);
    assert_int_equal(longest.not_before_ns, 3 * S);
}

static void a_success_starts_anew(void **state)
{
    struct hf__backoff backoff = {.first_ns = 8 * MS, .most_ns = 128 * MS};

    (void)state;
    for (int i = 0; i < 5; i++)
        (void)hf__backoff_failed(&backoff, 0, 1);
    hf__backoff_worked(&backoff);
    assert_int_equal(backoff.failures, 0);
    assert_int_equal(backoff.not_before_ns, 0);
    assert_int_equal(hf__backoff_failed(&backoff, 0, 0), 8 * MS);
}

static void no_count_and_no_time_overflows(void **state)
{
    struct hf__backoff backoff = {.first_ns = 1, .most_ns = INT64_MAX};

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_true(hf__backoff_failed(&backoff, 0, 0) > 0);
    assert_int_equal(backoff.not_before_ns, INT64_MAX);
    backoff.failures = UINT32_MAX;
    assert_int_equal(hf__backoff_failed(&backoff, 5 * S, 0), INT64_MAX);
    assert_int_equal(backoff.failures, UINT32_MAX);
}

static void who_failed_together_comes_back_apart(void **state)
{
    struct hf__backoff one = {.first_ns = S, .most_ns = S};
    struct hf__backoff other = one;

    (void)state;
    assert_true(hf__backoff_failed(&one, 0, 1u << 30) - hf__backoff_failed(&other, 0, 3u << 30) >
                200 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_double_up_to_the_bound),
        cmocka_unit_test(a_success_starts_anew),
        cmocka_unit_test(no_count_and_no_time_overflows),
        cmocka_unit_test(who_failed_together_comes_back_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
