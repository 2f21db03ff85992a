/* test_keeper.c - the background renewer: when it renews, when it gives up, and whom it tells.
 * run: threads */
#include "../support/check.h"
#include "../support/fake_store.h"
#include "base/base.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ALL                                                                                        \
    (HF_FEATURE_FAIR | HF_FEATURE_CRASH_RELEASE | HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL)

/* What the callbacks of one lease saw. */
struct witness {
    atomic_int lost;
    atomic_int renewed;
    atomic_int reason;
    atomic_llong remaining_ms;
    atomic_llong at_ns;
    atomic_bool release_inside;
    atomic_bool leave_inside;
    atomic_int release_status;
    atomic_bool hold; /* stay inside the callback while set */
    atomic_bool inside;
};

struct world {
    struct fake_store *fake;
    struct hf_store *store;
    struct witness witness;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    world->fake = fake_new(ALL);
    world->store = fake_open(world->fake);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    hf_close(world->store);
    fake_free(world->fake);
    free(world);
    return 0;
}

static void on_lost(struct hf_lease *lease, enum hf_loss reason, void *data)
{
    struct witness *witness = data;
    struct hf_error err;

    atomic_store(&witness->inside, true);
    /* No lock is held: everything may be asked for. */
    atomic_store(&witness->remaining_ms, hf_lease_remaining_ms(lease));
    atomic_store(&witness->reason, hf_lease_loss(lease) == reason ? (int)reason : -1);
    (void)hf_lease_token(lease);
    (void)hf_lease_ttl_ms(lease);
    (void)hf_lease_fd(lease);
    if (hf_renew(lease, 0, &err) != HF_LOST || hf_keep(lease, &err) != HF_LOST)
        atomic_store(&witness->reason, -2);
    while (atomic_load(&witness->hold))
        check_pause_ms(1);
    atomic_store(&witness->at_ns, hf__now_ns());
    if (atomic_load(&witness->release_inside))
        atomic_store(&witness->release_status, (int)hf_release(lease, &err));
    else if (atomic_load(&witness->leave_inside))
        hf_leave(lease);
    atomic_fetch_add(&witness->lost, 1);
    atomic_store(&witness->inside, false);
}

static void on_renewed(struct hf_lease *lease, int64_t remaining_ms, void *data)
{
    struct witness *witness = data;

    atomic_store(&witness->remaining_ms, remaining_ms);
    if (hf_lease_loss(lease) == HF_LOSS_NONE)
        atomic_fetch_add(&witness->renewed, 1);
}

static struct hf_acquire_options watched(struct world *world, uint32_t ttl_ms)
{
    return (struct hf_acquire_options){.size = sizeof(struct hf_acquire_options),
                                       .ttl_ms = ttl_ms,
                                       .on_lost = on_lost,
                                       .on_renewed = on_renewed,
                                       .data = &world->witness};
}

static struct hf_lease *take(struct world *world, const struct hf_acquire_options *options)
{
    struct hf_lease *lease;

    assert_int_equal(hf_acquire(world->store, "job", options, &lease, NULL), HF_OK);
    return lease;
}

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
    struct hf_lease *lease = take(world, &options);
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
    (void)pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&world->witness.lost), 1);
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

#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(renews_at_a_third_of_the_ttl),
        with_store(retries_until_the_store_answers),
        with_store(gives_up_at_the_deadline),
        with_store(an_answer_after_the_deadline_does_not_count),
        with_store(told_once_with_the_reason),
        with_store(released_inside_the_callback),
        with_store(release_waits_for_the_callback),
        with_store(release_waits_for_a_renewal),
        with_store(a_loss_found_by_the_owner_is_announced),
        with_store(kept_from_now_on),
        with_store(detached_leases_are_not_kept),
        with_store(one_slow_lease_does_not_starve_the_others),
        with_store(many_leases_come_and_go),
        with_store(renewals_by_hand_move_the_keepers),
        with_store(closed_with_live_leases),
        with_store(closed_after_a_loss),
        with_store(closed_after_a_loss_was_announced),
        with_store(closed_before_a_loss_was_announced),
        with_store(no_keeper_is_started_during_the_close),
        with_store(closed_and_released_inside_the_callback),
    };

    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
