/* Which lease of etcd's a hold lives on. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include "../support/check.h"
#include <stdio.h>

/* The owners of one attempt at several locks differ in their last byte only. A private lease is
 * dropped when the lock it was for is busy: that must never be the lease of another of them. */
static void test_private_leases(void **state)
{
    char owner[HF_OWNER_LEN + 1] = "0123456789abcdef0123456789abcd00";
    int64_t ids[256];

    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        (void)snprintf(owner + HF_OWNER_LEN - 2, 3, "%02x", i);
        ids[i] = ec_lease_id(owner);
        check_row(ids[i] > 0 && ids[i] == ec_lease_id(owner), i);
        for (unsigned j = 0; j < i; j++)
            check_row(ids[i] != ids[j], i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_private_leases)};

    return cmocka_run_group_tests_name("etcd_lease", tests, NULL, NULL);
}
