/* test_keeper_renew.c - the background renewer: which leases it renews, and when.
 * run: threads */
#include "keeper.h"

static void renews_at_a_third_of_the_ttl(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 1800);
    struct hf_lease *lease = take(world, &options);
    int64_t last_ns = fake_call(world->fake, FAKE_ACQUIRE, 0).at_ns;

    check_soon(atomic_load(&world->witness.renewed) >= 2);
    for (size_t i = 0; i < 2; i++) {
        struct fake_call call = fake_call(world->fake, FAKE_RENEW, i);

        assert_int_equal(call.ttl_ms, 1800);
        assert_int_equal(call.token, 1);
        assert_int_equal(call.kept, HF_KEPT_NOW);
        /* Not before it is due; how much later is the machine's business. */
        assert_true(call.at_ns - last_ns >= 590 * HF__NS_PER_MS);
        /* And it gives up in time for the deadline. */
        assert_true(call.deadline_ns <= last_ns + 1800 * HF__NS_PER_MS);
        last_ns = call.at_ns;
    }
    assert_true(hf_lease_remaining_ms(lease) > 0);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_int_equal(atomic_load(&world->witness.lost), 0);
}

/* An outage shorter than the validity costs nothing. */
static void retries_until_the_store_answers(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 3000);
    struct hf_lease *lease;

    for (int i = 0; i < 5; i++)
        fake_next(world->fake, FAKE_RENEW,
                  (struct fake_answer){.status = i % 2 ? HF_UNKNOWN : HF_UNREACHABLE});
    lease = take(world, &options);
    check_soon(atomic_load(&world->witness.renewed) >= 1);
    assert_true(fake_count(world->fake, FAKE_RENEW) >= 6);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_NONE);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_int_equal(atomic_load(&world->witness.lost), 0);
}

static void kept_from_now_on(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 1800);
    struct hf_lease *lease;

    options.no_keeper = true;
    lease = take(world, &options);
    check_pause_ms(700);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 0);
    assert_int_equal(fake_call(world->fake, FAKE_ACQUIRE, 0).kept, HF_KEPT_LATER);
    assert_int_equal(hf_keep(lease, NULL), HF_OK);
    assert_int_equal(hf_keep(lease, NULL), HF_OK);
    check_soon(atomic_load(&world->witness.renewed) >= 2);
    assert_int_equal(fake_call(world->fake, FAKE_RENEW, 0).kept, HF_KEPT_NOW);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

static void detached_leases_are_not_kept(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 150);
    struct hf_lease *lease;

    options.detached = true;
    lease = take(world, &options);
    assert_int_equal(fake_call(world->fake, FAKE_ACQUIRE, 0).kept, HF_KEPT_NEVER);
    assert_int_equal(hf_keep(lease, NULL), HF_INVALID);
    check_soon(hf_lease_loss(lease) == HF_LOSS_EXPIRED);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 0);
    hf_leave(lease);
}

/* A slow answer for one lease must not cost another its life. */
static void one_slow_lease_does_not_starve_the_others(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options slow = watched(world, 60000);
    struct hf_acquire_options quick = watched(world, 3000);
    struct hf_lease *leases[8];

    fake_always(world->fake, FAKE_RENEW, (struct fake_answer){.delay_ms = 10});
    for (size_t i = 0; i < COUNT(leases); i++)
        leases[i] = take(world, i == 0 ? &slow : &quick);
    check_soon(fake_count(world->fake, FAKE_RENEW) >= 2 * (COUNT(leases) - 1));
    for (size_t i = 0; i < COUNT(leases); i++)
        assert_int_equal(hf_release(leases[i], NULL), HF_OK);
    assert_int_equal(atomic_load(&world->witness.lost), 0);
}

/* Many leases with ttls of all sizes come and go: the heap keeps its order. */
static void many_leases_come_and_go(void **state)
{
    enum { LEASES = 300 };
    struct world *world = *state;
    struct hf_lease *leases[LEASES] = {0};
    unsigned seed = 42;

    for (int i = 0; i < 5000; i++) {
        size_t at;

        seed = seed * 1103515245u + 12345u;
        at = (seed >> 8) % LEASES;
        if (leases[at] != NULL) {
            assert_int_equal(hf_release(leases[at], NULL), HF_OK);
            leases[at] = NULL;
        } else {
            struct hf_acquire_options options = watched(world, 5000 + (seed >> 4) % 50000);

            leases[at] = take(world, &options);
        }
    }
    for (size_t i = 0; i < LEASES; i++)
        assert_int_equal(hf_release(leases[i], NULL), HF_OK);
    assert_int_equal(atomic_load(&world->witness.lost), 0);
}

static void renewals_by_hand_move_the_keepers(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 60000);
    struct hf_lease *lease = take(world, &options);

    assert_int_equal(hf_renew(lease, 1500, NULL), HF_OK); /* due half a second from now, not 20 s */
    check_soon(atomic_load(&world->witness.renewed) >= 2);
    assert_int_equal(fake_call(world->fake, FAKE_RENEW, 1).ttl_ms, 1500);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

/* hf_release comes while the keeper is in the middle of a renewal: it is done first. */
static void release_waits_for_a_renewal(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 1500);
    struct hf_lease *lease;

    fake_always(world->fake, FAKE_RENEW, (struct fake_answer){.delay_ms = 100});
    lease = take(world, &options);
    check_soon(fake_count(world->fake, FAKE_RENEW) == 1);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_true(fake_call(world->fake, FAKE_RELEASE, 0).at_ns >=
                fake_call(world->fake, FAKE_RENEW, 0).at_ns + 100 * HF__NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(renews_at_a_third_of_the_ttl),
        with_store(retries_until_the_store_answers),
        with_store(kept_from_now_on),
        with_store(detached_leases_are_not_kept),
        with_store(one_slow_lease_does_not_starve_the_others),
        with_store(many_leases_come_and_go),
        with_store(renewals_by_hand_move_the_keepers),
        with_store(release_waits_for_a_renewal),
    };

    return cmocka_run_group_tests_name("keeper_renew", tests, NULL, NULL);
}
