/* test_etcd_holds.c - the table of what a client holds. */
#include "stores/etcd/holds.h"

#include "../support/check.h"
#include <stdio.h>
#include <stdlib.h>

static void test_table(void **state)
{
    struct ec_holds holds = {0};
    char owner[HF_OWNER_LEN + 1];
    bool good = true;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct ec_hold *hold;

        (void)snprintf(owner, sizeof owner, "%032d", i);
        hold = ec_hold_new(owner, "a lock");
        if (hold == NULL)
            exit(1);
        hold->news.lease = 1 + i % 2;
        hold->news.until_ns = i == 500 ? 10 : 1000;
        ec_holds_add(&holds, hold);
    }
    check_that(holds.count == 1000 && ec_holds_find(&holds, owner) != NULL, "a thousand holds");
    check_that(!ec_holds_overdue(&holds, 2, 500), "none of the other lease is overdue");
    check_that(ec_holds_overdue(&holds, 1, 500) && !ec_holds_overdue(&holds, 1, 500),
               "one of the first is, and is told once");
    for (int i = 0; i < 1000; i++) {
        struct ec_hold *hold;

        (void)snprintf(owner, sizeof owner, "%032d", i);
        hold = ec_holds_remove(&holds, owner);
        good = good && hold != NULL;
        free(hold);
    }
    check_that(good && holds.count == 0 && !ec_holds_use(&holds, 1), "all removed");
    ec_holds_release(&holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests_name("etcd holds", tests, NULL, NULL);
}
