/* test_redis_keys.c - which keys belong to a lock. */
#include "stores/redis/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* All keys of a lock are in one slot, and two locks never share one. */
static void test_keys(void **state)
{
    static const char *const names[] = {"x",   "a{b",  "user{42}mail", "42",
                                        "{x}", "x{x}", "{a{b}",        "a:t"};
    struct rd_keys keys[sizeof names / sizeof *names];
    const char *why;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char back[HF_NAME_MAX + 1];
        char wake[RD_SIDE_MAX];
        bool is_counter;

        assert_true(rd_keys_make(&keys[i], "", names[i], &why));
        rd_keys_wake(wake, &keys[i], "00112233445566778899aabbccddeeff");
        assert_int_equal(rd_slot(keys[i].counter), rd_slot(names[i]));
        assert_int_equal(rd_slot(keys[i].queue), rd_slot(names[i]));
        assert_int_equal(rd_slot(wake), rd_slot(names[i]));
        assert_true(rd_keys_name(back, "", keys[i].counter, &is_counter));
        assert_true(is_counter);
        assert_string_equal(back, names[i]);
        assert_true(rd_keys_name(back, "", keys[i].queue, &is_counter));
        assert_false(is_counter);
        assert_false(rd_keys_name(back, "", keys[i].leases, &is_counter));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(keys[i].counter, keys[j].counter);
            assert_string_not_equal(keys[i].queue, keys[j].queue);
        }
    }
    assert_false(rd_keys_make(&keys[0], "", "a}b", &why));
    assert_false(rd_keys_make(&keys[0], "", "{}", &why));
    assert_false(rd_keys_make(&keys[0], "holdfast:", "{x", &why));
    assert_false(rd_keys_make(&keys[0], "holdfast:", "inc", &why));
    assert_true(rd_keys_make(&keys[0], "holdfast:", "x", &why));
}

static void test_slots(void **state)
{
    char tag[RD_TAG_MAX];

    (void)state;
    assert_int_equal(rd_slot("123456789"), 0x31C3); /* from the cluster specification */
    assert_int_equal(rd_slot("foo{hash_tag}"), rd_slot("bar{hash_tag}zap"));
    for (unsigned slot = 0; slot < RD_SLOTS; slot += 997) {
        rd_slot_tag(tag, slot);
        assert_int_equal(rd_slot(tag), slot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_slots),
    };

    return cmocka_run_group_tests_name("redis_keys", tests, NULL, NULL);
}
