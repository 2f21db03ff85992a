/* test_odds.c - how often a lease is violated by pauses that outlast it. */
#include "../support/check.h"
#include "core/odds.h"

#include <math.h>

/* The case that everybody quotes. */
static const struct hf__odds known = {.ttl_s = 10, .pause = 1e-4, .rate_per_s = 10000, .tail = 1.5};

static bool near(double a, double b, double share)
{
    return fabs(a - b) <= share * fabs(b);
}

static void one_violation_each_second(void **state)
{
    struct hf__odds_story story;

    (void)state;
    hf__odds_tell(&known, 1, &story);
    assert_true(near(story.rows[0].per_s, 1, 1e-9));
    assert_true(near(story.rows[0].seen_per_s, 1, 0.02));
    assert_true(story.first_s > 0 && story.first_s < 20);
    assert_true(story.whole_seconds && story.busiest >= 3 && story.busiest <= 20);
    assert_true(story.longest_s > 10 * 100); /* heavy: some pause for longer than any ttl helps */
}

static void doubling_the_ttl_divides_by_a_power_of_two(void **state)
{
    (void)state;
    for (double tail = 0.5; tail <= 4; tail *= 2) {
        struct hf__odds odds = known;
        struct hf__odds_story story;

        odds.tail = tail;
        hf__odds_tell(&odds, 7, &story);
        for (int i = 0; i + 1 < HF__ODDS_ROWS; i++) {
            assert_true(near(story.rows[i].per_s / story.rows[i + 1].per_s, pow(2, tail), 1e-9));
            assert_true(story.rows[i + 1].ttl_s == 2 * story.rows[i].ttl_s);
        }
    }
}

/* Within five standard deviations, for every seed: the two ways of counting are of one model. */
static void simulation_and_arithmetic_agree(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct hf__odds odds = known;
        struct hf__odds_story story;

        odds.pause = seed % 2 != 0 ? 0.3 : 1e-7;
        hf__odds_tell(&odds, seed, &story);
        for (int i = 0; i < HF__ODDS_ROWS; i++) {
            double expected = story.rows[i].per_s * story.seconds;

            check_row(fabs((double)story.rows[i].seen - expected) <= 5 * sqrt(expected) + 1, seed);
        }
    }
}

static void a_seed_tells_the_same_story_again(void **state)
{
    struct hf__odds_story one, two, other;

    (void)state;
    hf__odds_tell(&known, 42, &one);
    hf__odds_tell(&known, 42, &two);
    hf__odds_tell(&known, 43, &other);
    assert_int_equal(one.rows[0].seen, two.rows[0].seen);
    assert_true(one.longest_s == two.longest_s && one.first_s == two.first_s);
    assert_true(one.longest_s != other.longest_s);
}

static void logarithms_are_those_of_libm(void **state)
{
    (void)state;
    for (double x = 1e-300; x < 1e300; x *= 3.7)
        assert_true(fabs(hf__odds_ln(x) - log(x)) <= 1e-12 * (1 + fabs(log(x))));
    for (double t = 0.11; t < 1e6; t *= 1.3) { /* powers too */
        struct hf__odds odds = {.ttl_s = 0.1, .pause = 1, .rate_per_s = 1, .tail = 1.7};

        assert_true(near(hf__odds_share(&odds, t), pow(0.1 / t, 1.7), 1e-10));
    }
}

static void shares_are_no_more_than_everything(void **state)
{
    struct hf__odds odds = known;

    (void)state;
    assert_true(near(hf__odds_share(&odds, 10), 1e-4, 1e-9));
    assert_true(near(hf__odds_share(&odds, 1), 1e-4 * pow(10, 1.5), 1e-9));
    assert_true(hf__odds_share(&odds, 1e-9) == 1);
    odds.pause = 0;
    assert_true(hf__odds_share(&odds, 1e-9) == 0);
}

/* Nothing is not a number, nothing takes long, whatever is asked. */
static void the_edges(void **state)
{
    static const struct hf__odds edges[] = {
        {0.1, 0, 1e9, 1.5},     {86400, 0, 1e-5, 10},     {0.1, 1, 1e9, 0.1},
        {86400, 1, 1e-5, 10},   {10, 1e-300, 1, 1.5},     {10, 1e-320, 1e9, 0.1},
        {10, 5e-324, 1e9, 1.5}, {0.1, 0.999999, 1e9, 10}, {1, 1e-12, 1e-300, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(edges); i++) {
        struct hf__odds_story story;

        hf__odds_tell(&edges[i], i, &story);
        check_row(isfinite(story.seconds) && story.seconds > 0, i);
        check_row(story.seconds <= HF__ODDS_LONGEST_S, i);
        check_row(isfinite(story.operations) && isfinite(story.longest_s), i);
        for (int row = 0; row < HF__ODDS_ROWS; row++)
            check_row(isfinite(story.rows[row].per_s) && isfinite(story.rows[row].seen_per_s), i);
        if (edges[i].pause == 0)
            check_row(story.rows[0].seen == 0 && story.first_s < 0 && story.longest_s < 0, i);
        if (edges[i].pause == 1)
            check_row(story.rows[0].seen > 0, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_violation_each_second),
        cmocka_unit_test(doubling_the_ttl_divides_by_a_power_of_two),
        cmocka_unit_test(simulation_and_arithmetic_agree),
        cmocka_unit_test(a_seed_tells_the_same_story_again),
        cmocka_unit_test(logarithms_are_those_of_libm),
        cmocka_unit_test(shares_are_no_more_than_everything),
        cmocka_unit_test(the_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
