/* records_library.c - records through libholdfast, which checks, counts and sends again. */
#include "../support/record.h"
#include "records.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hf_store *library_open(void)
{
    struct hf_store *store;
    struct hf_error err;

    assert_int_equal(hf_open(conform.url, &store, &err), HF_OK);
    return store;
}

static struct hf_lease *library_take(struct hf_store *store, const char *name, uint32_t ttl_ms,
                                     bool detached)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = ttl_ms, .no_keeper = true, .detached = detached};
    struct hf_lease *lease;

    assert_int_equal(hf_acquire(store, name, &options, &lease, NULL), HF_OK);
    return lease;
}

static bool copy_value(const struct hf_record *record, void *data)
{
    (void)snprintf(data, 32, "%s", (const char *)record->value);
    return true;
}

static bool says(struct hf_store *store, const char *name, const char *key, const char *value)
{
    char found[32] = "nothing";

    assert_int_equal(get_record(store, name, key, copy_value, found, NULL), HF_OK);
    return strcmp(found, value) == 0;
}

static void a_store_without_records_says_so(void **state)
{
    struct hf_store *store = library_open();
    struct hf_error err;
    struct hf_lease *lease;
    struct hf_record *record;
    char name[HF_NAME_MAX + 1], found[32];
    int64_t now_ms;

    (void)state;
    fresh_name(name, "declines");
    lease = library_take(store, name, LONG_TTL_MS, false);
    assert_int_equal(hf_record_put(lease, "k", "v", 1, 0, &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "records"));
    assert_int_equal(hf_record_get(store, name, "k", &record, &now_ms, &err), HF_UNSUPPORTED);
    assert_int_equal(hf_record_list(store, name, "", copy_value, found, &err), HF_UNSUPPORTED);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    hf_close(store);
}

static void refuses_what_is_no_record(void **state)
{
    static const char *const bad[] = {
        "", "a\n", "\x7f", "\x01",
        "01234567890123456789012345678901234567890123456789012345678901234"};
    struct hf_store *store = library_open();
    char *large = calloc(1, HF_RECORD_VALUE_MAX + 1);
    struct hf_lease *lease;
    char name[HF_NAME_MAX + 1], found[32] = "nothing";
    struct hf_error err;

    (void)state;
    assert_non_null(large);
    fresh_name(name, "invalid");
    lease = library_take(store, name, LONG_TTL_MS, false);
    for (size_t i = 0; i < COUNT(bad); i++) {
        check_row(hf_record_put(lease, bad[i], "v", 1, 0, &err) == HF_INVALID, i);
        check_row(get_record(store, name, bad[i], copy_value, found, &err) == HF_INVALID, i);
        check_row(i == 0 ||
                      hf_record_list(store, name, bad[i], copy_value, found, &err) == HF_INVALID,
                  i);
    }
    assert_int_equal(hf_record_put(lease, NULL, "v", 1, 0, &err), HF_INVALID);
    assert_int_equal(hf_record_put(lease, "k", "v", 1, -1, &err), HF_INVALID);
    assert_int_equal(hf_record_put(lease, "k", "v", 1, HF_RECORD_KEEP_MAX_MS + 1, &err),
                     HF_INVALID);
    assert_int_equal(hf_record_put(lease, "k", large, HF_RECORD_VALUE_MAX + 1, 0, &err),
                     HF_INVALID);
    assert_non_null(strstr(err.text, "64 KiB"));
    assert_int_equal(get_record(store, "", "k", copy_value, found, &err), HF_INVALID);
    assert_true(says(store, name, "k", "nothing"));
    /* And what is just within the limits is one. */
    assert_int_equal(
        hf_record_put(lease, bad[4] + 1, large, HF_RECORD_VALUE_MAX, HF_RECORD_KEEP_MAX_MS, &err),
        HF_OK);
    assert_int_equal(hf_record_put(lease, "empty", NULL, 0, 0, &err), HF_OK);
    assert_true(says(store, name, "empty", ""));
    assert_int_equal(hf_record_list(store, name, NULL, copy_value, found, &err), HF_OK);
    free(large);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    hf_close(store);
}

static void writes_again_and_again(void **state)
{
    struct hf_store *store = library_open();
    struct hf_lease *lease;
    char name[HF_NAME_MAX + 1], value[24];
    struct hf_record *record;
    int64_t now_ms = 0;

    (void)state;
    fresh_name(name, "again");
    for (int hold = 0; hold < 2; hold++) {
        lease = library_take(store, name, LONG_TTL_MS, false);
        for (int i = 0; i < 10; i++) {
            (void)snprintf(value, sizeof value, "%d.%d", hold, i);
            assert_int_equal(hf_record_put(lease, "k", value, strlen(value), 0, NULL), HF_OK);
            assert_true(says(store, name, "k", value));
        }
        assert_int_equal(hf_release(lease, NULL), HF_OK);
    }
    assert_int_equal(hf_record_get(store, name, "k", &record, &now_ms, NULL), HF_OK);
    assert_true(now_ms > 0);
    assert_string_equal(record->key, "k");
    assert_string_equal(record->value, value);
    hf_record_free(record);
    assert_int_equal(hf_record_get(store, name, "none", &record, &now_ms, NULL), HF_OK);
    assert_null(record);
    hf_close(store);
}

static void a_lease_that_ended_writes_nothing(void **state)
{
    struct hf_store *store = library_open();
    struct hf_lease *lease;
    char name[HF_NAME_MAX + 1];
    struct hf_error err;

    (void)state;
    fresh_name(name, "ended");
    lease = library_take(store, name, conform.short_ttl_ms, false);
    check_soon(hf_lease_loss(lease) != HF_LOSS_NONE);
    assert_int_equal(hf_record_put(lease, "k", "v", 1, 0, &err), HF_LOST);
    assert_true(says(store, name, "k", "nothing"));
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
    hf_close(store);
}

/* Two processes of one hold write in turn: the last one that wrote is on record, each time. */
static void who_adopts_a_lease_goes_on_writing(void **state)
{
    struct hf_store *first = library_open();
    struct hf_store *second = library_open();
    struct hf_lease *lease;
    struct hf_lease *adopted;
    char name[HF_NAME_MAX + 1], value[24];

    (void)state;
    fresh_name(name, "adopt");
    lease = library_take(first, name, LONG_TTL_MS, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_record_put(lease, "k", "first", 5, 0, NULL), HF_OK);
    assert_int_equal(
        hf_adopt(second, name, hf_lease_owner(lease), hf_lease_token(lease), &adopted, NULL),
        HF_OK);
    for (int i = 0; i < 6; i++) {
        (void)snprintf(value, sizeof value, "turn %d", i);
        assert_int_equal(hf_record_put(i % 2 ? lease : adopted, "k", value, strlen(value), 0, NULL),
                         HF_OK);
        assert_true(says(first, name, "k", value));
    }
    hf_leave(adopted);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    hf_close(first);
    hf_close(second);
}

void add_library_record_tests(struct suite *suite)
{
    if (!has(HF_FEATURE_RECORDS)) {
        ADD(suite, a_store_without_records_says_so);
        return;
    }
    ADD(suite, refuses_what_is_no_record);
    ADD(suite, writes_again_and_again);
    ADD(suite, a_lease_that_ended_writes_nothing);
    if (has(HF_FEATURE_DETACHED))
        ADD(suite, who_adopts_a_lease_goes_on_writing);
}
