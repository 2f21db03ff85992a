/* fault.h - what the tests of libholdfast behind a bad line share: the embedded store, once behind
 * faults and once without. */
#ifndef HF_TESTS_FAULT_H
#define HF_TESTS_FAULT_H

#include "../support/check.h"
#include "../support/fault_store.h"
#include "client/client.h"
#include <stdatomic.h>

struct world {
    char dir[256];
    char url[300];
    struct fault_store *faults;
    struct hf_store *store; /* behind the faults */
    struct hf_store *other; /* has a good line */
    atomic_int lost;
    atomic_int reason;
};

/* A world per test, in *state. */
int set_up(void **state);
int tear_down(void **state);
#define with_world(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* For hf_acquire, with the world as its data: counts, and keeps the reason. */
void on_lost(struct hf_lease *lease, enum hf_loss reason, void *data);

#endif /* HF_TESTS_FAULT_H */
