/* test_etcd_record.c - records as keys and values of etcd. */
#include "stores/etcd/layout.h"
#include "stores/etcd/record.h"

#include "../support/check.h"
#include <stdlib.h>
#include <string.h>

/* Bytes that mean something to nobody: as values of a record. */
static void test_damaged_records(void **state)
{
    static const char head[] = "0000000000000007 0000000000000001 1 5 6\n";
    static const char *const bad[] = {
        "",
        "\n",
        "1 7 1 5 6\nvalue",
        "0000000000000007 0000000000000001 1 5 6",
        "0000000000000000 0000000000000001 1 5 6\n",
        "000000000000000G 0000000000000001 1 5 6\n",
        "0000000000000007  0000000000000001 1 5 6\n",
        "0000000000000007 0000000000000001 2 5 6\n",
        "0000000000000007 0000000000000001 1 5\n6",
        "0000000000000007 0000000000000001 1 -5 6\n",
        "0000000000000007 0000000000000001 1 5 99999999999999999999\n"};
    struct hf_record record;
    char *large = calloc(1, sizeof head + HF_RECORD_VALUE_MAX + 1);

    (void)state;
    assert_non_null(large);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_row(!ec_record_parse(bad[i], strlen(bad[i]), &record), i);
    for (size_t len = 0; len < sizeof head - 1; len++)
        check_row(!ec_record_parse(head, len, &record), len);
    memcpy(large, head, sizeof head - 1);
    assert_true(ec_record_parse(large, sizeof head - 1 + HF_RECORD_VALUE_MAX, &record));
    assert_int_equal(record.value_len, HF_RECORD_VALUE_MAX);
    assert_false(ec_record_parse(large, sizeof head + HF_RECORD_VALUE_MAX, &record));
    free(large);
}

/* The order of the pairs is that of the values, byte by byte, and a pair by itself is just below
 * the values that begin with it. */
static void test_record_order(void **state)
{
    static const struct hf_record rows[] = {
        {.token = 1, .number = 1, .written_ms = 9, .until_ms = 9},
        {.token = 1, .number = 2},
        {.token = 1, .number = UINT64_MAX, .written_ms = INT64_MAX, .until_ms = INT64_MAX},
        {.token = 2, .number = 1},
        {.token = 10, .number = 1},
        {.token = 0x100, .number = 1},
        {.token = INT64_MAX, .number = 1},
    };
    char heads[sizeof rows / sizeof *rows][EC_HEAD_SIZE];
    struct hf_record again;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = ec_record_head(heads[i], &rows[i]);

        check_row(len < EC_HEAD_SIZE && ec_record_parse(heads[i], len, &again), i);
        check_row(again.token == rows[i].token && again.number == rows[i].number &&
                      again.written_ms == rows[i].written_ms &&
                      again.until_ms == rows[i].until_ms && again.value_len == 0,
                  i);
        for (size_t j = 0; j < i; j++)
            check_row(memcmp(heads[j], heads[i], EC_PAIR_LEN) < 0, i);
    }
}

static void test_record_keys(void **state)
{
    struct ec_record_key key;
    struct ec_record_key entry;
    struct ec_kv kv = {0};
    char name[HF_NAME_MAX + 1];
    const char *found;

    (void)state;
    ec_record_key(&key, "p/", "n", "k");
    assert_string_equal(key.text, "p/\x1en\x1fk");
    ec_expiry_key(&entry, "p/", "n", 255, "k");
    assert_string_equal(entry.text, "p/\x1dn\x1f"
                                    "00000000000000ff\x1fk");
    assert_true(ec_expiry_parse(entry.text, entry.len, "p/", "n", &found));
    assert_string_equal(found, "k");
    assert_false(ec_expiry_parse(entry.text, entry.len, "p/", "m", &found));
    assert_false(ec_expiry_parse(entry.text, entry.len - 1, "p/", "n", &found));
    assert_false(ec_expiry_parse(key.text, key.len, "p/", "n", &found));
    /* Neither is a lock. */
    memcpy(kv.key, key.text, kv.key_len = key.len);
    assert_false(ec_key_name(&kv, "p/", name));
    memcpy(kv.key, entry.text, kv.key_len = entry.len);
    assert_false(ec_key_name(&kv, "p/", name));
}

/* Kept for its time at least, by a clock of whole seconds. */
static void test_record_expiry(void **state)
{
    struct hf_record record = {.written_ms = 10000, .until_ms = 10001};

    (void)state;
    assert_false(ec_record_expired(&record, 0));
    assert_false(ec_record_expired(&record, 11000)); /* perhaps a moment after 10.999 */
    assert_true(ec_record_expired(&record, 12000));
    record.until_ms = 0;
    assert_false(ec_record_expired(&record, INT64_MAX));
    record.until_ms = INT64_MAX;
    assert_false(ec_record_expired(&record, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_record_order),
        cmocka_unit_test(test_record_keys),
        cmocka_unit_test(test_record_expiry),
    };

    return cmocka_run_group_tests_name("etcd record", tests, NULL, NULL);
}
