/* test_etcd_layout.c - how a lock, a hold and a break look in etcd. */
#include "stores/etcd/layout.h"

#include "../support/check.h"
#include <string.h>

static void test_keys(void **state)
{
    struct ec_keys keys;
    struct ec_kv kv = {.create_revision = 1};
    char name[HF_NAME_MAX + 1];
    struct ec_said said = {.owner = "0123456789abcdef0123456789abcdef",
                           .kind = 'k',
                           .ttl_ms = 5,
                           .since_us = 7,
                           .label = "a b"};
    struct ec_said again;
    char value[EC_VALUE_MAX];

    (void)state;
    ec_keys_make(&keys, "p/", "a", "0123");
    ec_keys_use(&keys, true);
    check_that(keys.own_len == 8 &&
                   memcmp(keys.own,
                          "p/a\x1f"
                          "0123",
                          8) == 0 &&
                   keys.queue_len == 4 && memcmp(keys.queue_end, "p/a ", 4) == 0,
               "the keys of a lock");
    memcpy(kv.key, keys.own, keys.own_len);
    kv.key_len = keys.own_len;
    check_that(ec_key_name(&kv, "p/", name) && strcmp(name, "a") == 0 &&
                   !ec_key_name(&kv, "q/", name),
               "and back to its name");
    ec_said_format(value, &said);
    ec_said_parse(&again, value, strlen(value));
    check_that(again.kind == 'k' && again.ttl_ms == 5 && again.since_us == 7 &&
                   strcmp(again.label, "a b") == 0,
               "a value there and back");
    ec_said_parse(&again, "hello, world", 12);
    check_that(again.kind == 0 && again.label[0] == '\0',
               "what holdfast does not write is foreign");
}

/* A hold that was revoked says by whom; a client that knows only "1" takes it for a stranger's. */
static void test_marks(void **state)
{
    struct ec_said said = {.owner = "0123456789abcdef0123456789abcdef",
                           .kind = 'd',
                           .ttl_ms = 5,
                           .since_us = 7,
                           .label = "a b",
                           .revoked = true,
                           .revocation = {.by = "me @ here", .reason = "why not", .at_ms = 9}};
    struct hf_revocation revocation;
    struct ec_said again;
    char value[EC_VALUE_MAX];
    char key[EC_KEY_MAX];
    char name[HF_NAME_MAX + 1];
    uint64_t token = 0;
    size_t len;

    (void)state;
    ec_said_format(value, &said);
    assert_string_equal(value,
                        "0123456789abcdef0123456789abcdef 2 d 5 7 9 a b\nme @ here\nwhy not");
    ec_said_parse(&again, value, strlen(value));
    assert_true(again.revoked && again.kind == 'd' && again.revocation.at_ms == 9);
    assert_string_equal(again.label, "a b");
    assert_string_equal(again.revocation.by, "me @ here");
    assert_string_equal(again.revocation.reason, "why not");
    memset(said.label, 'l', HF_LABEL_MAX);
    memset(said.revocation.by, 'b', HF_LABEL_MAX);
    memset(said.revocation.reason, 'r', HF_REASON_MAX);
    said.ttl_ms = HF_TTL_MAX_MS;
    said.since_us = said.revocation.at_ms = INT64_MAX;
    ec_said_format(value, &said);
    ec_said_parse(&again, value, strlen(value));
    assert_string_equal(again.revocation.reason, said.revocation.reason); /* the longest fits */

    len = ec_notice_key(key, "p/", "a", UINT64_C(0x1234));
    assert_true(ec_notice_parse(key, len, "p/", name, &token) && token == 0x1234);
    assert_string_equal(name, "a");
    assert_false(ec_notice_parse(key, len - 1, "p/", name, &token));
    assert_false(ec_notice_parse(key, len, "q/", name, &token));
    ec_notice_format(value, &again.revocation);
    ec_notice_read(&revocation, value);
    assert_string_equal(revocation.by, again.revocation.by);
    assert_string_equal(revocation.reason, again.revocation.reason);
    ec_notice_read(&revocation, "rubbish");
    assert_string_equal(revocation.by, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_marks),
    };

    return cmocka_run_group_tests_name("etcd layout", tests, NULL, NULL);
}
