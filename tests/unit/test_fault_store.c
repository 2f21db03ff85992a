/* test_fault_store.c - the embedded store behind a line that loses requests and answers: what the
 * holder believes and what the store says must never let two hold at once.
 * run: threads, run: first */
#include "fault.h"

#include <stdlib.h>
#include <string.h>

static struct hf_acquire_options watched(struct world *world, uint32_t ttl_ms)
{
    return (struct hf_acquire_options){.size = sizeof(struct hf_acquire_options),
                                       .ttl_ms = ttl_ms,
                                       .on_lost = on_lost,
                                       .data = world};
}

static enum hf_status try_other(struct world *world, int64_t wait_ms, struct hf_lease **out)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 60000, .wait_ms = wait_ms};

    return hf_acquire(world->other, "job", &options, out, NULL);
}

/* It took effect and nobody heard of it: that is "unknown", and must not be called "busy". */
static void the_answer_to_an_acquire_is_lost(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 2000);
    struct hf_lease *lease;
    struct hf_lease *next;
    struct hf_error err;

    fault_add(
        world->faults,
        (struct fault){
            .call = FAULT_ACQUIRE, .from = 1, .times = 1, .after = true, .status = HF_UNKNOWN});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, &err), HF_UNKNOWN);
    assert_null(lease);
    assert_int_equal(fault_reached(world->faults, FAULT_ACQUIRE), 1);
    /* Held in the store by nobody who knows it, but not for longer than its ttl; a second attempt
     * has another owner and cannot be taken for the first. */
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, &err), HF_BUSY);
    assert_int_equal(try_other(world, 20000, &next), HF_OK);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

static void a_lost_request_leaves_nothing_behind(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease;
    struct hf_lease *next;
    struct hf_error err;

    fault_add(
        world->faults,
        (struct fault){.call = FAULT_ACQUIRE, .from = 1, .times = 1, .status = HF_UNREACHABLE});
    assert_int_equal(hf_acquire(world->store, "job", NULL, &lease, &err), HF_UNREACHABLE);
    assert_int_equal(fault_reached(world->faults, FAULT_ACQUIRE), 0);
    assert_int_equal(try_other(world, 0, &next), HF_OK);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

/* The grant was there, but its answer took longer than the ttl: it is given back, not used. */
static void an_acquire_that_takes_longer_than_its_ttl(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 200);
    struct hf_lease *lease;
    struct hf_lease *next;
    struct hf_error err;

    fault_add(world->faults,
              (struct fault){.call = FAULT_ACQUIRE, .from = 1, .times = 1, .delay_ms = 300});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, &err), HF_UNKNOWN);
    assert_null(lease);
    assert_int_equal(fault_made(world->faults, FAULT_RELEASE), 1);
    assert_int_equal(try_other(world, 0, &next), HF_OK);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

/* Renewals fail for a while, some of them after they took effect: nothing is lost. */
static void an_outage_shorter_than_the_ttl(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 4500);
    struct hf_lease *lease;
    struct hf_lease *next;

    fault_add(world->faults,
              (struct fault){
                  .call = FAULT_RENEW, .from = 1, .times = 3, .after = true, .status = HF_UNKNOWN});
    fault_add(world->faults,
              (struct fault){.call = FAULT_RENEW, .from = 4, .times = 3, .status = HF_UNREACHABLE});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    check_soon(fault_made(world->faults, FAULT_RENEW) >= 8);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_NONE);
    assert_int_equal(try_other(world, 0, &next), HF_BUSY);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_int_equal(atomic_load(&world->lost), 0);
}

/* They fail past the deadline: lost, and the holder knows before anybody else can have the lock. */
static void an_outage_longer_than_the_ttl(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 600);
    struct hf_lease *lease;
    struct hf_lease *next;
    uint64_t token;

    fault_add(world->faults,
              (struct fault){
                  .call = FAULT_RENEW, .from = 1, .times = UINT32_MAX, .status = HF_UNREACHABLE});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    token = hf_lease_token(lease);
    assert_int_equal(try_other(world, 20000, &next), HF_OK);
    assert_int_equal(hf_lease_remaining_ms(lease), 0); /* not one moment together */
    assert_true(hf_lease_token(next) > token);
    check_soon(atomic_load(&world->lost) == 1);
    assert_int_equal(atomic_load(&world->reason), HF_LOSS_UNREACHABLE);
    /* The line is good again: that gives the lease nothing back, and takes the other nothing. */
    fault_clear(world->faults);
    assert_int_equal(hf_renew(lease, 0, NULL), HF_LOST);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
    assert_int_equal(hf_renew(next, 0, NULL), HF_OK);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

/* Every renewal works and no answer comes: the store holds on, the holder lets go in time. */
static void renewals_that_nobody_hears_of(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 500);
    struct hf_lease *lease;
    struct hf_lease *next;

    fault_add(world->faults, (struct fault){.call = FAULT_RENEW,
                                            .from = 1,
                                            .times = UINT32_MAX,
                                            .after = true,
                                            .status = HF_UNKNOWN});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    check_soon(atomic_load(&world->lost) == 1);
    assert_int_equal(hf_lease_remaining_ms(lease), 0);
    assert_int_equal(hf_release(lease, NULL), HF_LOST); /* frees it in the store all the same */
    assert_int_equal(try_other(world, 20000, &next), HF_OK);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

/* Each renewal hangs to the end of the time it was given. */
static void renewals_that_hang(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 800);
    struct hf_lease *lease;
    struct hf_lease *next;

    fault_add(world->faults, (struct fault){.call = FAULT_RENEW,
                                            .from = 1,
                                            .times = UINT32_MAX,
                                            .status = HF_UNREACHABLE,
                                            .until_deadline = true});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    assert_int_equal(try_other(world, 20000, &next), HF_OK);
    assert_int_equal(hf_lease_remaining_ms(lease), 0);
    check_soon(atomic_load(&world->lost) == 1);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

static void the_answer_to_a_release_is_lost(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease;
    struct hf_lease *next;
    struct hf_error err;

    fault_add(
        world->faults,
        (struct fault){
            .call = FAULT_RELEASE, .from = 1, .times = 1, .after = true, .status = HF_UNKNOWN});
    assert_int_equal(hf_acquire(world->store, "job", NULL, &lease, NULL), HF_OK);
    assert_int_equal(hf_release(lease, &err), HF_UNKNOWN);
    assert_int_equal(err.code, HF_UNKNOWN);
    assert_int_equal(try_other(world, 0, &next), HF_OK);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

static void a_release_that_never_arrives(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 2000);
    struct hf_lease *lease;
    struct hf_lease *next;

    fault_add(
        world->faults,
        (struct fault){.call = FAULT_RELEASE, .from = 1, .times = 1, .status = HF_UNREACHABLE});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    assert_int_equal(hf_release(lease, NULL), HF_UNREACHABLE);
    assert_int_equal(try_other(world, 0, &next), HF_BUSY);
    assert_int_equal(try_other(world, 20000, &next), HF_OK); /* the ttl ends it */
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

/* A shorter ttl that may or may not count: the holder goes by the shorter one. */
static void a_shorter_renewal_without_an_answer(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = watched(world, 60000);
    struct hf_lease *lease;
    struct hf_lease *next;

    options.no_keeper = true;
    fault_add(world->faults,
              (struct fault){
                  .call = FAULT_RENEW, .from = 1, .times = 1, .after = true, .status = HF_UNKNOWN});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    assert_int_equal(hf_renew(lease, 500, NULL), HF_UNKNOWN);
    assert_true(hf_lease_remaining_ms(lease) <= 493);
    assert_int_equal(try_other(world, 20000, &next), HF_OK);
    assert_int_equal(hf_lease_remaining_ms(lease), 0);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
    assert_int_equal(hf_release(next, NULL), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_world(the_answer_to_an_acquire_is_lost),
        with_world(a_lost_request_leaves_nothing_behind),
        with_world(an_acquire_that_takes_longer_than_its_ttl),
        with_world(an_outage_shorter_than_the_ttl),
        with_world(an_outage_longer_than_the_ttl),
        with_world(renewals_that_nobody_hears_of),
        with_world(renewals_that_hang),
        with_world(the_answer_to_a_release_is_lost),
        with_world(a_release_that_never_arrives),
        with_world(a_shorter_renewal_without_an_answer),
    };

    return cmocka_run_group_tests_name("fault store", tests, NULL, NULL);
}
