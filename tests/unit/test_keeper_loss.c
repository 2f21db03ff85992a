/* test_keeper_loss.c - the background renewer: when it gives a lease up, and whom it tells.
 * run: threads */
#include "keeper.h"

#include <poll.h>
#include <pthread.h>

static void gives_up_at_the_deadline(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 600);
    struct pollfd fd = {.events = POLLIN};
    struct hf_lease *lease;
    int64_t taken_ns;

    fake_always(world->fake, FAKE_RENEW, (struct fake_answer){.status = HF_UNREACHABLE});
    lease = take(world, &options);
    taken_ns = fake_call(world->fake, FAKE_ACQUIRE, 0).at_ns;
    fd.fd = hf_lease_fd(lease);
    assert_int_equal(poll(&fd, 1, 10000), 1);
    assert_true(hf__now_ns() >= taken_ns + 592 * HF__NS_PER_MS); /* not before its time */
    check_soon(atomic_load(&world->witness.lost) == 1);
    assert_int_equal(atomic_load(&world->witness.reason), HF_LOSS_UNREACHABLE);
    assert_int_equal(atomic_load(&world->witness.remaining_ms), 0);
    assert_true(fake_count(world->fake, FAKE_RENEW) > 2); /* it did try again */
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
    assert_int_equal(atomic_load(&world->witness.lost), 1);
}

/* A store that answers when it is too late changes nothing. */
static void an_answer_after_the_deadline_does_not_count(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 300);
    struct hf_lease *lease;

    fake_always(world->fake, FAKE_RENEW, (struct fake_answer){.delay_ms = 500});
    lease = take(world, &options);
    check_soon(atomic_load(&world->witness.lost) == 1);
    assert_int_equal(atomic_load(&world->witness.renewed), 0);
    assert_true(hf_lease_loss(lease) != HF_LOSS_NONE);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

static void told_once_with_the_reason(void **state)
{
    static const enum hf_loss reasons[] = {HF_LOSS_TAKEN, HF_LOSS_BROKEN, HF_LOSS_FORGOTTEN,
                                           HF_LOSS_EXPIRED};

    for (size_t i = 0; i < COUNT(reasons); i++) {
        struct world *world = *state;
        struct hf_acquire_options options = watched(world, 300);
        struct hf_lease *lease;

        atomic_store(&world->witness.lost, 0);
        fake_next(world->fake, FAKE_RENEW,
                  (struct fake_answer){.status = HF_LOST, .loss = reasons[i]});
        lease = take(world, &options);
        check_soon(atomic_load(&world->witness.lost) == 1);
        assert_int_equal(atomic_load(&world->witness.reason), reasons[i]);
        check_pause_ms(50);
        assert_int_equal(hf_release(lease, NULL), HF_LOST);
        assert_int_equal(atomic_load(&world->witness.lost), 1);
    }
}

static void released_inside_the_callback(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 300);
    struct hf_lease *lease;

    atomic_store(&world->witness.release_inside, true);
    fake_always(world->fake, FAKE_RENEW,
                (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_TAKEN});
    (void)take(world, &options);
    check_soon(atomic_load(&world->witness.lost) == 1);
    assert_int_equal(atomic_load(&world->witness.release_status), HF_LOST);
    /* The keeper lives on. */
    atomic_store(&world->witness.release_inside, false);
    atomic_store(&world->witness.leave_inside, true);
    (void)take(world, &options);
    check_soon(atomic_load(&world->witness.lost) == 2);
    fake_always(world->fake, FAKE_RENEW, (struct fake_answer){.status = HF_OK});
    options.ttl_ms = 1500;
    lease = take(world, &options);
    check_soon(atomic_load(&world->witness.renewed) >= 1);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

struct releaser {
    struct hf_lease *lease;
    atomic_bool done;
};

static void *release_it(void *data)
{
    struct releaser *releaser = data;

    (void)!hf_release(releaser->lease, NULL);
    atomic_store(&releaser->done, true);
    return NULL;
}

/* hf_release comes while on_lost runs: it waits, so that the callback never has a freed lease. */
static void release_waits_for_the_callback(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 300);
    struct releaser releaser = {0};
    pthread_t thread;

    atomic_store(&world->witness.hold, true);
    fake_next(world->fake, FAKE_RENEW,
              (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_TAKEN});
    releaser.lease = take(world, &options);
    check_soon(atomic_load(&world->witness.inside));
    assert_int_equal(pthread_create(&thread, NULL, release_it, &releaser), 0);
    check_pause_ms(50);
    assert_false(atomic_load(&releaser.done));
    atomic_store(&world->witness.hold, false);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&world->witness.lost), 1);
}

/* A lease that the owner's own renewal finds lost is announced by the keeper, once. */
static void a_loss_found_by_the_owner_is_announced(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 60000);
    struct hf_lease *lease = take(world, &options);

    fake_next(world->fake, FAKE_RENEW,
              (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_BROKEN});
    assert_int_equal(hf_renew(lease, 0, NULL), HF_LOST);
    check_soon(atomic_load(&world->witness.lost) == 1);
    assert_int_equal(atomic_load(&world->witness.reason), HF_LOSS_BROKEN);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(gives_up_at_the_deadline),
        with_store(an_answer_after_the_deadline_does_not_count),
        with_store(told_once_with_the_reason),
        with_store(released_inside_the_callback),
        with_store(release_waits_for_the_callback),
        with_store(a_loss_found_by_the_owner_is_announced),
    };

    return cmocka_run_group_tests_name("keeper_loss", tests, NULL, NULL);
}
