/* keeper.c - a lease with a witness, for the tests of the keeper. */
#include "keeper.h"

#include <stdlib.h>

#define ALL                                                                                        \
    (HF_FEATURE_FAIR | HF_FEATURE_CRASH_RELEASE | HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL)

int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    world->fake = fake_new(ALL);
    world->store = fake_open(world->fake);
    *state = world;
    return 0;
}

int tear_down(void **state)
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

struct hf_acquire_options watched(struct world *world, uint32_t ttl_ms)
{
    return (struct hf_acquire_options){.size = sizeof(struct hf_acquire_options),
                                       .ttl_ms = ttl_ms,
                                       .on_lost = on_lost,
                                       .on_renewed = on_renewed,
                                       .data = &world->witness};
}

struct hf_lease *take(struct world *world, const struct hf_acquire_options *options)
{
    struct hf_lease *lease;

    assert_int_equal(hf_acquire(world->store, "job", options, &lease, NULL), HF_OK);
    return lease;
}
