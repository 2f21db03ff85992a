/* test_wait.c - what a caller who waits does about an answer that is no answer. */
#include "../support/check.h"
#include "core/wait.h"

#define MS 1000000LL
#define S  1000000000LL

static const enum hf_status passing[] = {HF_UNREACHABLE, HF_UNKNOWN, HF_QUARANTINE};
static const enum hf_status final[] = {HF_OK,        HF_BUSY,   HF_LOST,    HF_STALE,
                                       HF_CANCELLED, HF_DENIED, HF_INVALID, HF_UNSUPPORTED,
                                       HF_CORRUPT,   HF_NOMEM};

static struct hf__wait_step ask(struct hf__wait *wait, enum hf_status status, int64_t now_ns,
                                uint32_t dice)
{
    return hf__wait_answered(wait, status, 0, now_ns, now_ns, dice);
}

static void what_may_pass_is_asked_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        struct hf__wait wait = {.until_ns = 100 * S};
        struct hf__wait_step step = ask(&wait, passing[i], 10 * S, 12345);

        assert_true(hf__wait_may_pass(passing[i]));
        assert_true(step.again);
        assert_true(step.resume_ns > 10 * S && step.resume_ns <= 12 * S);
    }
}

static void what_does_not_pass_is_the_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof final / sizeof *final; i++) {
        struct hf__wait wait = {.until_ns = INT64_MAX};

        assert_false(hf__wait_may_pass(final[i]));
        assert_false(ask(&wait, final[i], 10 * S, 0).again);
    }
}

static void nobody_asks_again_without_time_left(void **state)
{
    struct hf__wait none = {.until_ns = 0};
    struct hf__wait over = {.until_ns = 10 * S};

    (void)state;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        assert_false(ask(&none, passing[i], 10 * S, 0).again);
        assert_false(ask(&over, passing[i], 10 * S, 0).again);
    }
}

static void the_pause_ends_with_the_wait(void **state)
{
    struct hf__wait wait = {.until_ns = 10 * S + 3 * MS};
    struct hf__wait_step step = ask(&wait, HF_UNREACHABLE, 10 * S, 77);

    (void)state;
    assert_true(step.again); /* one more time, at the very end */
    assert_int_equal(step.resume_ns, 10 * S + 3 * MS);
    step = hf__wait_answered(&wait, HF_QUARANTINE, INT64_MAX, 10 * S, 10 * S, 77);
    assert_int_equal(step.resume_ns, 10 * S + 3 * MS);
}

static void pauses_grow_to_a_bound_and_differ(void **state)
{
    static const int64_t most_ms[] = {100, 200, 400, 800, 1600, 2000, 2000, 2000};
    struct hf__wait low = {.until_ns = INT64_MAX};
    struct hf__wait high = {.until_ns = INT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof most_ms / sizeof *most_ms; i++) {
        int64_t half_ms = most_ms[i] / 2;

        assert_int_equal(ask(&low, HF_UNREACHABLE, 0, 0).resume_ns, half_ms * MS);
        assert_int_equal(ask(&high, HF_UNKNOWN, 0, (uint32_t)half_ms).resume_ns, most_ms[i] * MS);
    }
    for (unsigned i = 0; i < 1000; i++) /* no shift out of range */
        assert_true(ask(&low, HF_UNREACHABLE, 0, UINT32_MAX).resume_ns <= 2 * S);
}

static void a_store_that_answered_meanwhile_starts_anew(void **state)
{
    struct hf__wait wait = {.until_ns = INT64_MAX, .misses = 9};

    (void)state;
    assert_int_equal(hf__wait_answered(&wait, HF_UNREACHABLE, 0, 0, 9 * S, 0).resume_ns, 10 * S);
    assert_int_equal(hf__wait_answered(&wait, HF_UNREACHABLE, 0, 0, 10 * S, 0).resume_ns,
                     10 * S + 50 * MS);
    assert_int_equal(wait.misses, 1);
}

static void a_quarantine_is_looked_at(void **state)
{
    struct hf__wait wait = {.until_ns = INT64_MAX, .misses = 3};
    struct hf__wait_step step = hf__wait_answered(&wait, HF_QUARANTINE, 60000, 0, 0, 0);

    (void)state;
    assert_int_equal(step.resume_ns, 1 * S); /* an operator may end it */
    assert_int_equal(wait.misses, 0);        /* the store answers      */
    step = hf__wait_answered(&wait, HF_QUARANTINE, 700, 0, 0, 0);
    assert_int_equal(step.resume_ns, 701 * MS);
    for (uint32_t dice = 0; dice < 1000; dice++) {
        step = hf__wait_answered(&wait, HF_QUARANTINE, 700, 0, 0, dice);
        assert_true(step.resume_ns > 700 * MS && step.resume_ns <= 750 * MS);
    }
    step = hf__wait_answered(&wait, HF_QUARANTINE, -5, 0, 0, 0);
    assert_int_equal(step.resume_ns, 1 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_pass_is_asked_again),
        cmocka_unit_test(what_does_not_pass_is_the_answer),
        cmocka_unit_test(nobody_asks_again_without_time_left),
        cmocka_unit_test(the_pause_ends_with_the_wait),
        cmocka_unit_test(pauses_grow_to_a_bound_and_differ),
        cmocka_unit_test(a_store_that_answered_meanwhile_starts_anew),
        cmocka_unit_test(a_quarantine_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
