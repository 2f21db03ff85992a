/* keeper.h - what the tests of the keeper share: a store that answers as it is told, and a witness
 * of what the callbacks of a lease saw. */
#ifndef HF_TESTS_KEEPER_H
#define HF_TESTS_KEEPER_H

#include "../support/check.h"
#include "../support/fake_store.h"
#include "base/base.h"

#include <stdatomic.h>

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

/* A world per test, in *state. */
int set_up(void **state);
int tear_down(void **state);
#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Options whose callbacks the world's witness sees. */
struct hf_acquire_options watched(struct world *world, uint32_t ttl_ms);
struct hf_lease *take(struct world *world, const struct hf_acquire_options *options);

#endif /* HF_TESTS_KEEPER_H */
