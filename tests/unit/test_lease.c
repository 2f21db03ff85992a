/* test_lease.c - the arithmetic of leases and the state machine of their loss. */
#include "../support/check.h"
#include "core/lease.h"

#include <stdlib.h>
#include <string.h>

#define MS 1000000LL
#define S  1000000000LL

static struct hf__lease_core held(int64_t sent_at_ns, uint32_t ttl_ms)
{
    struct hf__lease_core lease = {0};

    hf__lease_granted(&lease, sent_at_ns, ttl_ms);
    return lease;
}

static void drift_and_deadline(void **state)
{
    (void)state;
    assert_int_equal(hf__drift_ns(0), 2 * MS);
    assert_int_equal(hf__drift_ns(100), 3 * MS);
    assert_int_equal(hf__drift_ns(30000), 302 * MS);
    assert_true(hf__drift_ns(UINT32_MAX) == (int64_t)UINT32_MAX * MS / 100 + 2 * MS);
    assert_int_equal(hf__deadline_ns(5 * S, 30000), 5 * S + 30 * S - 302 * MS);
    assert_int_equal(hf__deadline_ns(-5 * S, 1000), -5 * S + 988 * MS);
    /* A clock so broken that the sum does not fit: valid for no time, never for ever. */
    assert_true(hf__deadline_ns(INT64_MAX, 30000) == INT64_MAX);
    assert_true(hf__deadline_ns(INT64_MAX - S, 30000) == INT64_MAX - S);
    assert_true(hf__deadline_ns(INT64_MIN, 30000) < 0);
}

static void granted_then_expires(void **state)
{
    struct hf__lease_core lease = held(10 * S, 1000);
    int64_t deadline = 10 * S + 988 * MS;

    (void)state;
    assert_int_equal(lease.state, HF__LEASE_HELD);
    assert_int_equal(lease.deadline_ns, deadline);
    assert_int_equal(hf__lease_remaining_ms(&lease, 10 * S), 988);
    assert_int_equal(hf__lease_remaining_ms(&lease, 10 * S + 1), 987); /* rounded down */
    assert_int_equal(hf__lease_remaining_ms(&lease, deadline - 1), 0);
    assert_true(hf__lease_tick(&lease, deadline - 1));
    assert_int_equal(lease.loss, HF_LOSS_NONE);
    assert_false(hf__lease_tick(&lease, deadline)); /* valid before its deadline, not at it */
    assert_int_equal(lease.state, HF__LEASE_LOST);
    assert_int_equal(lease.loss, HF_LOSS_EXPIRED);
    assert_int_equal(hf__lease_remaining_ms(&lease, 10 * S), 0); /* not even if time went back */
    assert_false(hf__lease_tick(&lease, 0));
}

static void renewed_in_time(void **state)
{
    struct hf__lease_core lease = held(0, 1000);

    (void)state;
    assert_int_equal(hf__lease_renew_at_ns(&lease), 1 * S / 3);
    assert_true(hf__lease_renewed(&lease, 400 * MS, 1000, 410 * MS));
    assert_int_equal(lease.deadline_ns, 400 * MS + 988 * MS);
    assert_int_equal(hf__lease_renew_at_ns(&lease), 400 * MS + 1 * S / 3);
    /* A shorter ttl pulls the deadline in. */
    assert_true(hf__lease_renewed(&lease, 500 * MS, 100, 510 * MS));
    assert_int_equal(lease.deadline_ns, 500 * MS + 97 * MS);
    assert_int_equal(lease.ttl_ms, 100);
}

/* A holder that was told to end keeps others out as long as before, and no longer. */
static void excludes_until_its_deadline(void **state)
{
    struct hf__lease_core lease = held(0, 1000);

    (void)state;
    assert_true(hf__lease_excludes(&lease, lease.deadline_ns - 1));
    assert_false(hf__lease_excludes(&lease, lease.deadline_ns));
    hf__lease_refused(&lease, HF_LOSS_BROKEN);
    assert_int_equal(hf__lease_remaining_ms(&lease, 1), 0);
    assert_true(hf__lease_excludes(&lease, lease.deadline_ns - 1));
    assert_false(hf__lease_excludes(&lease, lease.deadline_ns));
    (void)hf__lease_end(&lease, 1);
    assert_false(hf__lease_excludes(&lease, 1));
    lease = held(0, 1000);
    hf__lease_refused(&lease, HF_LOSS_TAKEN);
    assert_false(hf__lease_excludes(&lease, 1));
}

/* The store may agree for ever: once the deadline has passed, nobody could rely on the lease. */
static void never_renewed_past_the_deadline(void **state)
{
    struct hf__lease_core lease = held(0, 1000);

    (void)state;
    assert_false(hf__lease_renewed(&lease, 980 * MS, 1000, 988 * MS));
    assert_int_equal(lease.loss, HF_LOSS_EXPIRED);
    assert_int_equal(lease.deadline_ns, 988 * MS);
    assert_false(hf__lease_renewed(&lease, 990 * MS, 1000, 991 * MS));
    assert_int_equal(lease.state, HF__LEASE_LOST);
    assert_int_equal(hf__lease_remaining_ms(&lease, 0), 0);
}

/* The answer came in time for the old deadline, but what it granted is over already. */
static void renewed_for_less_than_the_answer_took(void **state)
{
    struct hf__lease_core lease = held(0, 10000);

    (void)state;
    assert_false(hf__lease_renewed(&lease, 1 * S, 100, 2 * S));
    assert_int_equal(lease.state, HF__LEASE_LOST);
    assert_int_equal(lease.loss, HF_LOSS_EXPIRED);
}

static void refused_with_each_reason(void **state)
{
    (void)state;
    for (int loss = HF_LOSS_EXPIRED; loss <= HF_LOSS_CLOSED; loss++) {
        struct hf__lease_core lease = held(0, 1000);

        hf__lease_refused(&lease, (enum hf_loss)loss);
        assert_int_equal(lease.state, HF__LEASE_LOST);
        assert_int_equal(lease.loss, loss);
        /* The first reason stays. */
        hf__lease_refused(&lease, HF_LOSS_TAKEN);
        assert_false(hf__lease_tick(&lease, INT64_MAX));
        assert_int_equal(lease.loss, loss);
        assert_false(hf__lease_renewed(&lease, 1, 1000, 1));
        assert_int_equal(lease.loss, loss);
        assert_false(hf__lease_end(&lease, 1));
        assert_int_equal(lease.state, HF__LEASE_ENDED);
        assert_int_equal(lease.loss, loss); /* what hf_release tells */
    }
}

static void no_answer_keeps_the_deadline(void **state)
{
    struct hf__lease_core lease = held(0, 1000);

    (void)state;
    hf__lease_unanswered(&lease, 400 * MS, 1000);
    assert_int_equal(lease.deadline_ns, 988 * MS);
    assert_true(hf__lease_tick(&lease, 987 * MS));
    assert_false(hf__lease_tick(&lease, 988 * MS));
    assert_int_equal(lease.loss, HF_LOSS_UNREACHABLE);
}

/* It may have taken effect: a shorter ttl may count at the store from then on. */
static void no_answer_to_a_shorter_ttl_pulls_the_deadline_in(void **state)
{
    struct hf__lease_core lease = held(0, 30000);

    (void)state;
    hf__lease_unanswered(&lease, 5 * S, 1000);
    assert_int_equal(lease.deadline_ns, 5 * S + 988 * MS);
    assert_int_equal(hf__lease_retry_at_ns(&lease, 5 * S + 900 * MS), 5 * S + 988 * MS);
    assert_false(hf__lease_tick(&lease, 5 * S + 988 * MS));
    assert_int_equal(lease.loss, HF_LOSS_UNREACHABLE);
}

static void an_answer_forgets_the_silence(void **state)
{
    struct hf__lease_core lease = held(0, 1000);

    (void)state;
    hf__lease_unanswered(&lease, 400 * MS, 1000);
    assert_true(hf__lease_renewed(&lease, 500 * MS, 1000, 501 * MS));
    assert_false(hf__lease_tick(&lease, 5 * S));
    assert_int_equal(lease.loss, HF_LOSS_EXPIRED);
}

static void retry_never_later_than_the_deadline(void **state)
{
    struct hf__lease_core lease = held(0, 3000);

    (void)state;
    assert_int_equal(hf__lease_retry_at_ns(&lease, 1 * S), 1 * S + 100 * MS);
    assert_int_equal(hf__lease_retry_at_ns(&lease, lease.deadline_ns - 1), lease.deadline_ns);
    assert_int_equal(hf__lease_retry_at_ns(&lease, 99 * S), lease.deadline_ns);
}

static void ended_while_held_or_not(void **state)
{
    struct hf__lease_core lease = held(0, 1000);

    (void)state;
    assert_true(hf__lease_end(&lease, 987 * MS));
    assert_int_equal(lease.state, HF__LEASE_ENDED);
    assert_int_equal(lease.loss, HF_LOSS_NONE);
    assert_false(hf__lease_end(&lease, 987 * MS)); /* once is enough */
    assert_int_equal(hf__lease_remaining_ms(&lease, 0), 0);
    lease = held(0, 1000);
    assert_false(hf__lease_end(&lease, 988 * MS));
    assert_int_equal(lease.loss, HF_LOSS_EXPIRED);
}

static void adopted_until_what_is_left(void **state)
{
    struct hf__lease_core lease = {0};

    (void)state;
    hf__lease_adopted(&lease, 7 * S, 30000, 5000);
    assert_int_equal(lease.deadline_ns, 7 * S + 5 * S - 302 * MS);
    assert_int_equal(lease.ttl_ms, 30000);
    /* A store that claims more than the ttl is not believed. */
    memset(&lease, 0, sizeof lease);
    hf__lease_adopted(&lease, 7 * S, 1000, INT64_MAX / MS);
    assert_int_equal(lease.deadline_ns, 7 * S + 988 * MS);
    memset(&lease, 0, sizeof lease);
    hf__lease_adopted(&lease, 7 * S, 1000, INT64_MAX);
    assert_int_equal(lease.deadline_ns, 7 * S + 988 * MS);
    /* Nothing left, or less than nothing. */
    memset(&lease, 0, sizeof lease);
    hf__lease_adopted(&lease, 7 * S, 1000, 0);
    assert_false(hf__lease_tick(&lease, 7 * S));
    memset(&lease, 0, sizeof lease);
    hf__lease_adopted(&lease, 7 * S, 1000, INT64_MIN);
    assert_false(hf__lease_tick(&lease, 7 * S));
}

/* Clock values at their ends: no overflow (the sanitizer would say so), and never a lease that is
 * valid for longer than its ttl. */
static void clocks_at_their_extremes(void **state)
{
    static const int64_t times[] = {
        INT64_MIN,     INT64_MIN + 1, INT64_MIN / 2, -S,       -1, 0, 1, S,
        INT64_MAX / 2, INT64_MAX - S, INT64_MAX - 1, INT64_MAX};
    static const uint32_t ttls[] = {1, 100, 30000, HF_TTL_MAX_MS, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++)
        for (size_t j = 0; j < COUNT(times); j++)
            for (size_t k = 0; k < COUNT(ttls); k++) {
                struct hf__lease_core lease = {0};
                int64_t remaining_ms;

                hf__lease_granted(&lease, times[i], ttls[k]);
                remaining_ms = hf__lease_remaining_ms(&lease, times[j]);
                assert_true(remaining_ms >= 0);
                (void)hf__lease_renew_at_ns(&lease);
                assert_true(hf__lease_retry_at_ns(&lease, times[j]) <= lease.deadline_ns);
                hf__lease_unanswered(&lease, times[j], ttls[k]);
                assert_true(hf__lease_consistent(&lease));
                if (hf__lease_tick(&lease, times[j]))
                    (void)hf__lease_renewed(&lease, times[i], ttls[k], times[j]);
                assert_true(hf__lease_consistent(&lease));
                memset(&lease, 0, sizeof lease);
                hf__lease_adopted(&lease, times[i], ttls[k], times[j]);
                assert_true(hf__lease_consistent(&lease));
            }
}

static void inconsistent_states_are_noticed(void **state)
{
    struct hf__lease_core lease = {0};

    (void)state;
    assert_true(hf__lease_consistent(&lease));
    lease.loss = HF_LOSS_TAKEN;
    assert_false(hf__lease_consistent(&lease)); /* lost before it was granted */
    lease = held(0, 1000);
    lease.deadline_ns = 1000 * MS;
    assert_false(hf__lease_consistent(&lease)); /* no drift left */
    lease = held(0, 1000);
    lease.loss = HF_LOSS_TAKEN;
    assert_false(hf__lease_consistent(&lease));
    lease = held(0, 1000);
    lease.state = HF__LEASE_LOST;
    assert_false(hf__lease_consistent(&lease)); /* without a reason */
    lease.state = (enum hf__lease_state)9;
    assert_false(hf__lease_consistent(&lease));
}

/* What may be said of a lease without looking at how it is done. */
struct model {
    bool lost;
    int64_t valid_until_ns; /* no answer of the store justifies more than this */
};

static uint32_t draw(unsigned *seed, uint32_t below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 8) % below;
}

static void one_event(struct hf__lease_core *lease, struct model *model, int64_t *now_ns,
                      unsigned *seed)
{
    uint32_t ttl_ms = 100 + draw(seed, 2000);
    int64_t sent_ns = *now_ns;
    bool in_time;

    *now_ns += (int64_t)draw(seed, 300) * MS;
    in_time = !model->lost && *now_ns < lease->deadline_ns;
    switch (draw(seed, 10)) {
    case 0:
        hf__lease_refused(lease, (enum hf_loss)(1 + draw(seed, 6)));
        model->lost = true;
        break;
    case 1:
    case 2:
        hf__lease_unanswered(lease, sent_ns, ttl_ms);
        break;
    case 3:
    case 4:
        (void)hf__lease_tick(lease, *now_ns);
        break;
    default:
        if (in_time)
            model->valid_until_ns = sent_ns + (int64_t)ttl_ms * MS;
        (void)hf__lease_renewed(lease, sent_ns, ttl_ms, *now_ns);
        break;
    }
    if (!in_time && lease->state == HF__LEASE_HELD)
        assert_true(*now_ns >= lease->deadline_ns); /* not noticed yet, but it will be */
}

static void one_life(unsigned seed)
{
    int64_t now_ns = (int64_t)draw(&seed, 1000000) * MS;
    uint32_t ttl_ms = 100 + draw(&seed, 2000);
    struct hf__lease_core lease = held(now_ns, ttl_ms);
    struct model model = {.valid_until_ns = now_ns + (int64_t)ttl_ms * MS};

    for (int step = 0; step < 400; step++) {
        enum hf_loss before = lease.loss;
        int64_t deadline = lease.deadline_ns;
        bool was_lost = lease.state == HF__LEASE_LOST;

        one_event(&lease, &model, &now_ns, &seed);
        assert_true(hf__lease_consistent(&lease));
        assert_true(!was_lost || lease.state == HF__LEASE_LOST); /* never held after lost */
        assert_true(!was_lost || lease.loss == before);          /* the first reason stays */
        if (now_ns >= deadline && lease.state == HF__LEASE_HELD)
            assert_true(lease.deadline_ns <= deadline); /* nothing extended what was over */
        if (hf__lease_remaining_ms(&lease, now_ns) > 0)
            assert_true(!model.lost && now_ns < model.valid_until_ns);
        if (lease.state == HF__LEASE_LOST)
            model.lost = true;
    }
    assert_true(hf__lease_end(&lease, now_ns) == (!model.lost && now_ns < lease.deadline_ns));
}

static void many_random_lives(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 5000; seed++)
        one_life(seed * 2654435761u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_and_deadline),
        cmocka_unit_test(granted_then_expires),
        cmocka_unit_test(renewed_in_time),
        cmocka_unit_test(excludes_until_its_deadline),
        cmocka_unit_test(never_renewed_past_the_deadline),
        cmocka_unit_test(renewed_for_less_than_the_answer_took),
        cmocka_unit_test(refused_with_each_reason),
        cmocka_unit_test(no_answer_keeps_the_deadline),
        cmocka_unit_test(no_answer_to_a_shorter_ttl_pulls_the_deadline_in),
        cmocka_unit_test(an_answer_forgets_the_silence),
        cmocka_unit_test(retry_never_later_than_the_deadline),
        cmocka_unit_test(ended_while_held_or_not),
        cmocka_unit_test(adopted_until_what_is_left),
        cmocka_unit_test(clocks_at_their_extremes),
        cmocka_unit_test(inconsistent_states_are_noticed),
        cmocka_unit_test(many_random_lives),
    };

    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
