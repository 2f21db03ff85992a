/* test_wait.c - how a wait for a lock goes on after each answer. */
#include "../support/check.h"
#include "core/wait.h"

#define MS 1000000LL
#define S  1000000000LL

static const enum hf_status passing[] = {HF_UNREACHABLE, HF_UNKNOWN, HF_QUARANTINE};
static const enum hf_status final[] = {HF_OK,          HF_LOST,    HF_STALE,
                                       HF_CANCELLED,   HF_DENIED,  HF_INVALID,
                                       HF_UNSUPPORTED, HF_CORRUPT, HF_NOMEM};

static struct hf__wait wait_until(int64_t until_ns)
{
    struct hf__wait wait;

    hf__wait_init(&wait, until_ns);
    return wait;
}

static struct hf__wait_step ask(struct hf__wait *wait, enum hf_status status, int64_t now_ns,
                                uint32_t dice)
{
    const struct hf__wait_answer answer = {.status = status, .asked_ns = now_ns};

    return hf__wait_answered(wait, &answer, now_ns, dice);
}

static struct hf__wait_step ask_in_quarantine(struct hf__wait *wait, int64_t retry_after_ms,
                                              uint32_t dice)
{
    const struct hf__wait_answer answer = {.status = HF_QUARANTINE,
                                           .retry_after_ms = retry_after_ms};

    return hf__wait_answered(wait, &answer, 0, dice);
}

static void what_may_pass_is_asked_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(passing); i++) {
        struct hf__wait wait = wait_until(100 * S);
        struct hf__wait_step step = ask(&wait, passing[i], 10 * S, 12345);

        assert_true(hf__wait_may_pass(passing[i]));
        check_row(step.next == HF__WAIT_PAUSE, i);
        assert_true(step.until_ns > 10 * S && step.until_ns <= 12 * S);
    }
}

static void what_does_not_pass_is_the_answer(void **state)
{
    struct hf__wait wait = wait_until(INT64_MAX);

    (void)state;
    for (size_t i = 0; i < COUNT(final); i++) {
        assert_false(hf__wait_may_pass(final[i]));
        check_row(ask(&wait, final[i], 10 * S, 0).next == HF__WAIT_RETURN, i);
    }
    /* The store has waited for it as long as it was to. */
    assert_int_equal(ask(&wait, HF_BUSY, 10 * S, 0).next, HF__WAIT_RETURN);
}

static void nobody_asks_again_without_time_left(void **state)
{
    struct hf__wait none = wait_until(0);
    struct hf__wait over = wait_until(10 * S);

    (void)state;
    for (size_t i = 0; i < COUNT(passing); i++) {
        check_row(ask(&none, passing[i], 10 * S, 0).next == HF__WAIT_RETURN, i);
        check_row(ask(&over, passing[i], 10 * S, 0).next == HF__WAIT_RETURN, i);
    }
}

static void the_pause_ends_with_the_wait(void **state)
{
    struct hf__wait wait = wait_until(3 * MS);
    struct hf__wait_step step = ask(&wait, HF_UNREACHABLE, 0, 77);

    (void)state;
    assert_int_equal(step.next, HF__WAIT_PAUSE); /* one more time, at the very end */
    assert_int_equal(step.until_ns, 3 * MS);
    assert_int_equal(ask_in_quarantine(&wait, INT64_MAX, 77).until_ns, 3 * MS);
    assert_int_equal(ask_in_quarantine(&wait, 700, 77).until_ns, 3 * MS);
}

static void pauses_grow_to_a_bound_and_differ(void **state)
{
    static const int64_t most_ms[] = {100, 200, 400, 800, 1600, 2000, 2000, 2000};
    struct hf__wait low = wait_until(INT64_MAX);
    struct hf__wait high = low;

    (void)state;
    for (size_t i = 0; i < COUNT(most_ms); i++) {
        int64_t half_ns = most_ms[i] * MS / 2;
        int64_t low_ns = ask(&low, HF_UNREACHABLE, 0, UINT32_MAX).until_ns;

        check_row(low_ns >= half_ns && low_ns <= half_ns + 1, i);
        check_row(ask(&high, HF_UNKNOWN, 0, 0).until_ns == most_ms[i] * MS, i);
    }
}

static void a_store_that_answered_meanwhile_starts_anew(void **state)
{
    struct hf__wait wait = wait_until(INT64_MAX);
    struct hf__wait_answer late = {.status = HF_UNREACHABLE, .asked_ns = 0};

    (void)state;
    for (int i = 0; i < 9; i++)
        (void)ask(&wait, HF_UNREACHABLE, 0, 0);
    assert_int_equal(hf__wait_answered(&wait, &late, 9 * S, 0).until_ns, 11 * S);
    assert_int_equal(hf__wait_answered(&wait, &late, 10 * S, 0).until_ns, 10 * S + 100 * MS);
}

static void a_quarantine_is_looked_at(void **state)
{
    struct hf__wait wait = wait_until(INT64_MAX);

    (void)state;
    (void)ask(&wait, HF_UNREACHABLE, 0, 0);
    assert_int_equal(ask_in_quarantine(&wait, 60000, 0).until_ns, 1 * S); /* one may end it */
    assert_int_equal(wait.backoff.failures, 0);                           /* the store answers */
    assert_int_equal(ask_in_quarantine(&wait, 700, 0).until_ns, 701 * MS);
    for (uint32_t dice = 0; dice < 1000; dice++) {
        struct hf__wait_step step = ask_in_quarantine(&wait, 700, dice);

        assert_true(step.until_ns > 700 * MS && step.until_ns <= 750 * MS);
    }
    assert_int_equal(ask_in_quarantine(&wait, -5, 0).until_ns, 1 * MS);
}

/* A place in a queue that is ours until 13 s, of a wait until 100 s. */
static struct hf__wait_queue queued(void)
{
    struct hf__wait_queue queue;

    hf__wait_queue_init(&queue, 100 * S);
    queue.ours_until_ns = 13 * S;
    return queue;
}

static struct hf__wait_step stand(struct hf__wait_queue *queue, enum hf_status status,
                                  int64_t now_ns)
{
    const struct hf__wait_answer answer = {
        .status = status, .asked_ns = now_ns, .look_ns = now_ns + S, .retry_after_ms = 60000};

    return hf__wait_queued(queue, &answer, now_ns, 0);
}

static void who_finds_it_busy_sleeps_in_the_queue(void **state)
{
    struct hf__wait_queue queue = queued();
    struct hf__wait_step step = stand(&queue, HF_BUSY, 10 * S);

    (void)state;
    assert_int_equal(step.next, HF__WAIT_SLEEP);
    assert_int_equal(step.until_ns, 11 * S);
    queue.ours_until_ns = 0; /* a store without a queue, or one that thinks we are gone */
    assert_int_equal(stand(&queue, HF_BUSY, 50 * S).next, HF__WAIT_SLEEP);
    assert_int_equal(stand(&queue, HF_BUSY, 100 * S - 5).until_ns, 100 * S);
    assert_int_equal(stand(&queue, HF_BUSY, 100 * S).next, HF__WAIT_RETURN);
}

static void a_place_outlives_a_short_trouble(void **state)
{
    struct hf__wait_queue queue = queued();
    int64_t now_ns = 10 * S;
    int tries = 0;

    (void)state;
    for (;; tries++) {
        struct hf__wait_step step = stand(&queue, HF_UNREACHABLE, now_ns);

        if (step.next == HF__WAIT_RETURN)
            break;
        assert_int_equal(step.next, HF__WAIT_PAUSE);
        assert_true(step.until_ns > now_ns && step.until_ns <= now_ns + 400 * MS);
        now_ns = step.until_ns;
    }
    assert_true(now_ns >= 13 * S && now_ns < 14 * S); /* then the library begins anew */
    assert_true(tries >= 7);                          /* often enough to keep it */
}

static void without_a_place_trouble_is_told_at_once(void **state)
{
    struct hf__wait_queue queue = queued();

    (void)state;
    queue.ours_until_ns = 0;
    queue.settles = true;
    for (size_t i = 0; i < COUNT(passing); i++)
        check_row(stand(&queue, passing[i], 10 * S).next == HF__WAIT_RETURN, i);
}

static void a_busy_answer_makes_the_next_trouble_a_first_one(void **state)
{
    struct hf__wait_queue queue = queued();

    (void)state;
    for (int i = 0; i < 4; i++)
        (void)stand(&queue, HF_UNREACHABLE, 10 * S);
    (void)stand(&queue, HF_BUSY, 10 * S);
    assert_int_equal(stand(&queue, HF_UNREACHABLE, 10 * S).until_ns, 10 * S + 100 * MS);
}

static void unknown_is_waited_out_only_by_who_settles_it(void **state)
{
    struct hf__wait_queue queue = queued();

    (void)state;
    assert_int_equal(stand(&queue, HF_UNKNOWN, 10 * S).next, HF__WAIT_RETURN);
    queue.settles = true;
    assert_int_equal(stand(&queue, HF_UNKNOWN, 10 * S).next, HF__WAIT_PAUSE);
}

static void only_a_quarantine_that_ends_soon_is_waited_out(void **state)
{
    struct hf__wait_queue queue = queued();
    struct hf__wait_answer answer = {.status = HF_QUARANTINE, .retry_after_ms = 500};
    struct hf__wait_step step = hf__wait_queued(&queue, &answer, 10 * S, 7);

    (void)state;
    assert_int_equal(step.next, HF__WAIT_PAUSE);
    assert_true(step.until_ns > 10 * S + 500 * MS && step.until_ns <= 10 * S + 550 * MS);
    answer.retry_after_ms = 3000;
    assert_int_equal(hf__wait_queued(&queue, &answer, 10 * S, 7).next, HF__WAIT_RETURN);
    answer.retry_after_ms = INT64_MAX;
    assert_int_equal(hf__wait_queued(&queue, &answer, 10 * S, 7).next, HF__WAIT_RETURN);
}

static void no_place_is_kept_over_what_does_not_pass(void **state)
{
    struct hf__wait_queue queue = queued();

    (void)state;
    queue.settles = true;
    for (size_t i = 0; i < COUNT(final); i++)
        check_row(stand(&queue, final[i], 10 * S).next == HF__WAIT_RETURN, i);
    for (size_t i = 0; i < COUNT(passing); i++) /* nor beyond the wait */
        check_row(stand(&queue, passing[i], 100 * S).next == HF__WAIT_RETURN, i);
}

static void who_cannot_be_woken_asks_after_a_pause(void **state)
{
    struct hf__wait_queue queue = queued();
    struct hf__wait_step step = hf__wait_unheard(&queue, 50 * S, 0);

    (void)state;
    /* Also if the place may be lost by then: the answer tells. */
    assert_int_equal(step.next, HF__WAIT_PAUSE);
    assert_int_equal(step.until_ns, 50 * S + 100 * MS);
    assert_int_equal(hf__wait_unheard(&queue, 50 * S, 0).until_ns, 50 * S + 200 * MS);
    hf__wait_worked(&queue);
    assert_int_equal(hf__wait_unheard(&queue, 50 * S, 0).until_ns, 50 * S + 100 * MS);
    assert_int_equal(hf__wait_unheard(&queue, 100 * S - 5, 0).until_ns, 100 * S);
    assert_false(hf__wait_over(&queue, 100 * S - 5));
    assert_true(hf__wait_over(&queue, 100 * S));
}

static void without_a_queue_a_held_lock_is_asked_for_round_after_round(void **state)
{
    static const int64_t most_ms[] = {12, 24, 48, 96, 192, 192};
    struct hf__wait_rounds high;
    struct hf__wait_rounds low;

    (void)state;
    hf__wait_rounds_init(&high, 100 * S);
    hf__wait_rounds_init(&low, 100 * S);
    for (size_t i = 0; i < COUNT(most_ms); i++) {
        struct hf__wait_step step = hf__wait_unqueued(&high, HF_BUSY, 10 * S, 0);
        int64_t low_ns = hf__wait_unqueued(&low, HF_BUSY, 0, UINT32_MAX).until_ns;

        check_row(step.next == HF__WAIT_PAUSE && step.until_ns == 10 * S + most_ms[i] * MS, i);
        check_row(low_ns >= most_ms[i] * MS / 2 && low_ns <= most_ms[i] * MS / 2 + 1, i);
    }
    assert_int_equal(hf__wait_unqueued(&high, HF_BUSY, 100 * S - 5, 0).until_ns, 100 * S);
    assert_int_equal(hf__wait_unqueued(&high, HF_BUSY, 100 * S, 0).next, HF__WAIT_RETURN);
}

static void without_a_queue_all_else_is_told_at_once(void **state)
{
    struct hf__wait_rounds rounds;

    (void)state;
    hf__wait_rounds_init(&rounds, 100 * S);
    for (size_t i = 0; i < COUNT(passing); i++)
        check_row(hf__wait_unqueued(&rounds, passing[i], 0, 0).next == HF__WAIT_RETURN, i);
    for (size_t i = 0; i < COUNT(final); i++)
        check_row(hf__wait_unqueued(&rounds, final[i], 0, 0).next == HF__WAIT_RETURN, i);
    hf__wait_rounds_init(&rounds, 0);
    assert_int_equal(hf__wait_unqueued(&rounds, HF_BUSY, 0, 0).next, HF__WAIT_RETURN);
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
        cmocka_unit_test(who_finds_it_busy_sleeps_in_the_queue),
        cmocka_unit_test(a_place_outlives_a_short_trouble),
        cmocka_unit_test(without_a_place_trouble_is_told_at_once),
        cmocka_unit_test(a_busy_answer_makes_the_next_trouble_a_first_one),
        cmocka_unit_test(unknown_is_waited_out_only_by_who_settles_it),
        cmocka_unit_test(only_a_quarantine_that_ends_soon_is_waited_out),
        cmocka_unit_test(no_place_is_kept_over_what_does_not_pass),
        cmocka_unit_test(who_cannot_be_woken_asks_after_a_pause),
        cmocka_unit_test(without_a_queue_a_held_lock_is_asked_for_round_after_round),
        cmocka_unit_test(without_a_queue_all_else_is_told_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
