/* client.h - what the tests of libholdfast over a made-up store share. */
#ifndef HF_TESTS_CLIENT_H
#define HF_TESTS_CLIENT_H

#include "../support/check.h"
#include "../support/fake_store.h"
#include "base/base.h"

struct world {
    struct fake_store *fake;
    struct hf_store *store;
};

/* A world per test, in *state. The store is closed once, and not as a forked child would. */
int set_up(void **state);
int tear_down(void **state);
#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Options of a lease that nobody keeps. */
struct hf_acquire_options by_hand(uint32_t ttl_ms);
/* Takes the lock "job", which must succeed; and gives it back, which must too. */
struct hf_lease *take(struct world *world, const struct hf_acquire_options *options);
void give(struct hf_lease *lease);

#endif /* HF_TESTS_CLIENT_H */
