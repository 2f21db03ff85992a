/* fault.c - the embedded store behind a line that loses requests and answers. */
#include "fault.h"

#include <stdlib.h>

int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct hf_store_base *inner;
    struct hf_error err;

    check_temp_dir(world->dir, sizeof world->dir);
    (void)snprintf(world->url, sizeof world->url, "file:%s/store", world->dir);
    assert_int_equal(hf__registry_open(world->url, &inner, &err), HF_OK);
    world->faults = fault_wrap(inner);
    assert_int_equal(hf__store_wrap(fault_base(world->faults), world->url, &world->store, &err),
                     HF_OK);
    assert_int_equal(hf_open(world->url, &world->other, &err), HF_OK);
    *state = world;
    return 0;
}

int tear_down(void **state)
{
    struct world *world = *state;

    hf_close(world->store);
    hf_close(world->other);
    check_remove_dir(world->dir);
    free(world);
    return 0;
}

void on_lost(struct hf_lease *lease, enum hf_loss reason, void *data)
{
    struct world *world = data;

    (void)lease;
    atomic_store(&world->reason, (int)reason);
    atomic_fetch_add(&world->lost, 1);
}
