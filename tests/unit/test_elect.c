/* test_elect.c - what a candidate does when its term is over. */
#include "../support/check.h"
#include "core/elect.h"

#define S 1000000000LL

static struct hf__elect_step over(struct hf__elect *elect, enum hf__term_end end, int64_t began_ns,
                                  int64_t lasted_ns, uint32_t dice)
{
    const struct hf__term term = {
        .end = end, .began_ns = began_ns, .ended_ns = began_ns + lasted_ns};
    return hf__elect_term_over(elect, &term, dice);
}

static bool again(enum hf__elect_restart restart, enum hf__term_end end)
{
    struct hf__elect elect;
    hf__elect_init(&elect, restart);
    return over(&elect, end, 0, 3600 * S, 0).again;
}

static void the_policy_is_about_work_that_ended_by_itself(void **state)
{
    (void)state;
    assert_true(again(HF__RESTART_ALWAYS, HF__TERM_DONE));
    assert_true(again(HF__RESTART_ALWAYS, HF__TERM_FAILED));
    assert_false(again(HF__RESTART_ON_FAILURE, HF__TERM_DONE));
    assert_true(again(HF__RESTART_ON_FAILURE, HF__TERM_FAILED));
    assert_false(again(HF__RESTART_NO, HF__TERM_DONE));
    assert_false(again(HF__RESTART_NO, HF__TERM_FAILED));
}

static void who_lost_the_lock_stands_again_and_who_is_told_to_end_does_not(void **state)
{
    (void)state;
    for (int restart = HF__RESTART_ALWAYS; restart <= HF__RESTART_NO; restart++) {
        assert_true(again((enum hf__elect_restart)restart, HF__TERM_LOST));
        assert_false(again((enum hf__elect_restart)restart, HF__TERM_TOLD));
    }
}

static void a_long_term_is_followed_by_the_next_try_at_once(void **state)
{
    struct hf__elect elect;

    (void)state;
    hf__elect_init(&elect, HF__RESTART_ALWAYS);
    assert_int_equal(over(&elect, HF__TERM_FAILED, 5 * S, 60 * S, UINT32_MAX).not_before_ns,
                     65 * S);
}

static void short_terms_pause_from_a_second_to_a_minute(void **state)
{
    struct hf__elect shortest, longest;
    int64_t least_ns = 0, most_ns = 0;

    (void)state;
    hf__elect_init(&shortest, HF__RESTART_ALWAYS);
    hf__elect_init(&longest, HF__RESTART_ALWAYS);
    for (int i = 0; i < 100; i++) {
        int64_t low_ns = over(&shortest, HF__TERM_FAILED, 0, S, UINT32_MAX).not_before_ns - S;
        int64_t high_ns = over(&longest, HF__TERM_LOST, 0, S, 0).not_before_ns - S;
        assert_true(low_ns >= S && low_ns >= least_ns && low_ns <= high_ns);
        assert_true(high_ns <= 60 * S && high_ns >= most_ns);
        assert_true(i > 0 || high_ns <= 2 * S);
        least_ns = low_ns;
        most_ns = high_ns;
    }
    assert_int_equal(most_ns, 60 * S);
    assert_true(least_ns >= 30 * S);
}

static void a_long_term_makes_the_next_pause_short_again(void **state)
{
    struct hf__elect elect;

    (void)state;
    hf__elect_init(&elect, HF__RESTART_ALWAYS);
    for (int i = 0; i < 10; i++)
        over(&elect, HF__TERM_FAILED, 0, S, 0);
    over(&elect, HF__TERM_LOST, 0, 61 * S, 0);
    assert_true(over(&elect, HF__TERM_FAILED, 0, S, 0).not_before_ns <= 3 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_is_about_work_that_ended_by_itself),
        cmocka_unit_test(who_lost_the_lock_stands_again_and_who_is_told_to_end_does_not),
        cmocka_unit_test(a_long_term_is_followed_by_the_next_try_at_once),
        cmocka_unit_test(short_terms_pause_from_a_second_to_a_minute),
        cmocka_unit_test(a_long_term_makes_the_next_pause_short_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
