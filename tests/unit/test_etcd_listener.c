/* test_etcd_listener.c - which keys one watch covers. */
#include "stores/etcd/listener.h"

#include "../support/check.h"
#include <stdio.h>

/* Keys one by one while they fit, then the stretch that has them all. */
static void test_cover(void **state)
{
    struct ec_cover cover = {0};
    char key[16];

    (void)state;
    for (int i = 0; i < EC_COVER_MAX; i++) {
        int len = snprintf(key, sizeof key, "k%03d", 500 - 10 * i);

        assert_false(ec_cover_has(&cover, key, (size_t)len));
        ec_cover_add(&cover, key, (size_t)len);
        ec_cover_add(&cover, key, (size_t)len); /* once is enough */
        assert_true(ec_cover_has(&cover, key, (size_t)len));
        assert_int_equal(cover.count, i + 1);
    }
    assert_false(cover.stretch);
    assert_false(ec_cover_has(&cover, "k495", 4));
    ec_cover_add(&cover, "k700", 4);
    assert_true(cover.stretch);
    assert_true(ec_cover_has(&cover, "k495", 4));
    assert_true(ec_cover_has(&cover, "k350", 4));
    assert_true(ec_cover_has(&cover, "k700", 4));
    assert_false(ec_cover_has(&cover, "k7000", 5)); /* just behind the last */
    assert_false(ec_cover_has(&cover, "k349", 4));
    ec_cover_add(&cover, "k3", 2);
    assert_true(ec_cover_has(&cover, "k349", 4));
    assert_true(ec_cover_has(&cover, "k3", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover),
    };

    return cmocka_run_group_tests_name("etcd listener", tests, NULL, NULL);
}
