/* test_keeper_close.c - leases whose store is closed: each is told once, and none is kept any more.
 * run: threads */
#include "keeper.h"

#include <poll.h>
#include <pthread.h>

static void closed_with_live_leases(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 60000);
    struct hf_acquire_options detached = watched(world, 60000);
    struct pollfd fd = {.events = POLLIN};
    struct hf_lease *kept;
    struct hf_lease *left;
    struct hf_error err;

    detached.detached = true;
    kept = take(world, &options);
    left = take(world, &detached);
    fd.fd = hf_lease_fd(kept);
    hf_close(world->store);
    world->store = NULL;
    assert_int_equal(atomic_load(&world->witness.lost), 1); /* not for the detached one */
    assert_int_equal(atomic_load(&world->witness.reason), HF_LOSS_CLOSED);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
    assert_string_equal(fake_call(world->fake, FAKE_RELEASE, 0).owner, hf_lease_owner(kept));
    /* The handles are good until they are given back. */
    assert_int_equal(hf_lease_loss(kept), HF_LOSS_CLOSED);
    assert_int_equal(hf_lease_loss(left), HF_LOSS_CLOSED);
    assert_int_equal(hf_lease_remaining_ms(kept), 0);
    assert_string_equal(hf_lease_name(kept), "job");
    assert_int_equal(hf_renew(kept, 0, &err), HF_LOST);
    assert_int_equal(err.code, HF_LOST);
    assert_int_equal(hf_keep(kept, &err), HF_LOST);
    assert_int_equal(hf_release(kept, &err), HF_LOST);
    assert_int_equal(err.code, HF_LOST);
    hf_leave(left);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
    assert_int_equal(fake_count(world->fake, FAKE_CLOSE), 1);
}

/* A lease that was over before the store was closed keeps its first reason. */
static void closed_after_a_loss(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 100);
    struct hf_lease *lease;

    options.no_keeper = true;
    lease = take(world, &options);
    check_soon(hf_lease_loss(lease) == HF_LOSS_EXPIRED);
    hf_close(world->store);
    world->store = NULL;
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_EXPIRED);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

/* What the keeper has told is not told again. */
static void closed_after_a_loss_was_announced(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 300);
    struct hf_lease *lease;

    fake_always(world->fake, FAKE_RENEW,
                (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_TAKEN});
    lease = take(world, &options);
    check_soon(atomic_load(&world->witness.lost) == 1);
    hf_close(world->store);
    world->store = NULL;
    assert_int_equal(atomic_load(&world->witness.lost), 1);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_TAKEN);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

/* The keeper had no time to announce a loss before the store was closed: the closing does. */
static void closed_before_a_loss_was_announced(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options slow = watched(world, 400);
    struct hf_acquire_options options = watched(world, 60000);
    struct hf_lease *other;
    struct hf_lease *lease;

    slow.on_lost = NULL;
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.delay_ms = 200});
    fake_next(world->fake, FAKE_RENEW,
              (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_BROKEN});
    lease = take(world, &options);
    other = take(world, &slow);
    check_soon(fake_count(world->fake, FAKE_RENEW) == 1); /* the keeper is busy with the other */
    assert_int_equal(hf_renew(lease, 0, NULL), HF_LOST);
    hf_close(world->store);
    world->store = NULL;
    assert_int_equal(atomic_load(&world->witness.lost), 1);
    assert_int_equal(atomic_load(&world->witness.reason), HF_LOSS_BROKEN);
    (void)!hf_release(lease, NULL);
    (void)!hf_release(other, NULL);
    assert_int_equal(atomic_load(&world->witness.lost), 1);
}

static void *close_it(void *data)
{
    hf_close(data);
    return NULL;
}

/* While one lease is given back, the other is still held; but nobody will keep it any more. */
static void no_keeper_is_started_during_the_close(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 60000);
    struct hf_lease *first;
    struct hf_lease *last;
    pthread_t thread;

    options.no_keeper = true;
    first = take(world, &options);
    last = take(world, &options);
    fake_next(world->fake, FAKE_RELEASE, (struct fake_answer){.delay_ms = 1000});
    assert_int_equal(pthread_create(&thread, NULL, close_it, world->store), 0);
    world->store = NULL;
    check_soon(fake_count(world->fake, FAKE_RELEASE) == 1);
    assert_int_equal(hf_keep(first, NULL), HF_LOST);
    assert_int_equal(hf_keep(last, NULL), HF_LOST);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hf_release(first, NULL), HF_LOST);
    assert_int_equal(hf_release(last, NULL), HF_LOST);
}

static void closed_and_released_inside_the_callback(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 60000);

    atomic_store(&world->witness.release_inside, true);
    for (int i = 0; i < 3; i++)
        (void)take(world, &options);
    hf_close(world->store);
    world->store = NULL;
    assert_int_equal(atomic_load(&world->witness.lost), 3);
    assert_int_equal(atomic_load(&world->witness.release_status), HF_LOST);
    assert_int_equal(fake_count(world->fake, FAKE_CLOSE), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(closed_with_live_leases),
        with_store(closed_after_a_loss),
        with_store(closed_after_a_loss_was_announced),
        with_store(closed_before_a_loss_was_announced),
        with_store(no_keeper_is_started_during_the_close),
        with_store(closed_and_released_inside_the_callback),
    };

    return cmocka_run_group_tests_name("keeper_close", tests, NULL, NULL);
}
