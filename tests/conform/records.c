/* records.c - what a holder leaves behind: who may write, in which order, and how long it stays. */
#include "records.h"

#include <stdlib.h>
#include <string.h>

enum hf_status put_for(struct hf_store_base *store, struct hold *hold, const char *key,
                       struct put put)
{
    int64_t end_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;
    bool unanswered = false;
    enum hf_status status;
    struct record seen;

    do {
        struct hf_record_write write = {.name = hold->name,
                                        .owner = hold->owner,
                                        .token = hold->grant.token,
                                        .number = put.number,
                                        .key = key,
                                        .value = put.value,
                                        .value_len = put.len > 0 ? put.len : strlen(put.value),
                                        .keep_ms = put.keep_ms,
                                        .deadline_ns =
                                            hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};

        status = store->ops->record_put(store, &write, &hold->err);
        unanswered |= status == HF_UNKNOWN;
    } while ((status == HF_UNKNOWN || status == HF_UNREACHABLE) && hf__now_ns() < end_ns);
    /* No answer says nothing: reading settles it, as libholdfast does. */
    if (status == HF_STALE && unanswered) {
        seen = read_record(store, hold->name, key);
        if (seen.token == hold->grant.token && seen.number == put.number)
            status = HF_OK;
        free_record(&seen);
    }
    return status;
}

static bool keep_copy(const struct hf_record *record, void *data)
{
    struct record *copy = data;

    copy->calls++;
    free(copy->value);
    copy->value = malloc(record->value_len + 1);
    if (copy->value == NULL || record->size < sizeof *record || strlen(record->key) > 64)
        abort();
    memcpy(copy->value, record->value, record->value_len + 1); /* with the NUL behind it */
    copy->len = record->value_len;
    copy->token = record->token;
    copy->number = record->number;
    copy->written_ms = record->written_ms;
    copy->until_ms = record->until_ms;
    (void)snprintf(copy->key, sizeof copy->key, "%s", record->key);
    return true;
}

struct record read_record(struct hf_store_base *store, const char *name, const char *key)
{
    struct hf_record_query query = {
        .name = name, .key = key, .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    struct record record = {.now_ms = -1};
    struct hf_error err;
    enum hf_status status =
        store->ops->record_get(store, &query, keep_copy, &record, &record.now_ms, &err);

    if (status != HF_OK)
        print_error("# get: %s\n", err.text);
    assert_int_equal(status, HF_OK);
    assert_true(record.calls <= 1);
    if (record.calls == 1)
        assert_string_equal(record.key, key);
    return record;
}

void free_record(struct record *record)
{
    free(record->value);
    record->value = NULL;
}

bool reads(struct hf_store_base *store, const char *name, const char *key, const char *value)
{
    struct record record = read_record(store, name, key);
    bool same = value == NULL ? record.calls == 0
                              : record.calls == 1 && record.len == strlen(value) &&
                                    strcmp(record.value, value) == 0;

    free_record(&record);
    return same;
}

static void a_record_is_written_read_and_replaced(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("record");
    struct record record;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_true(reads(store, hold.name, "k", NULL));
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 1, .value = "one"}), HF_OK);
    assert_true(reads(store, hold.name, "k", "one"));
    assert_true(reads(other, hold.name, "k", "one"));
    assert_true(reads(other, hold.name, "K", NULL));
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 2, .value = "two"}), HF_OK);
    record = read_record(other, hold.name, "k");
    assert_string_equal(record.value, "two");
    assert_true(record.token == hold.grant.token);
    assert_true(record.number == 2);
    assert_true(record.until_ms == 0);
    free_record(&record);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
    assert_true(reads(other, hold.name, "k", "two")); /* it stays */
    client_close(other);
}

/* A late copy of an earlier write undoes nothing, and a write is written once. */
static void what_is_not_newer_is_stale(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("order");
    static const struct {
        uint64_t number;
        enum hf_status status;
    } rows[] = {{5, HF_OK},    {4, HF_STALE}, {5, HF_STALE}, {1, HF_STALE},
                {9, HF_OK},    {5, HF_STALE}, {9, HF_STALE}, {10, HF_OK},
                {9, HF_STALE}, {11, HF_OK},   {2, HF_STALE}, {4294967297, HF_OK}};
    char value[24], last[24] = "";

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        (void)snprintf(value, sizeof value, "write %zu", i);
        check_row(put_for(store, &hold, "k",
                          (struct put){.number = rows[i].number, .value = value}) == rows[i].status,
                  i);
        if (rows[i].status == HF_OK)
            memcpy(last, value, sizeof last);
        check_row(reads(store, hold.name, "k", last), i);
    }
    /* Each key has an order of its own. */
    assert_int_equal(put_for(store, &hold, "other", (struct put){.number = 1, .value = "x"}),
                     HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    /* A later hold is above every number of this one. */
    assert_int_equal(take(store, &hold, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 1, .value = "next"}), HF_OK);
    assert_true(reads(store, hold.name, "k", "next"));
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

/* The first and the last of it: of what is there nothing changes, and nothing new appears. */
static void refused_as_lost(struct hf_store_base *store, struct hold *hold, const char *there)
{
    struct put put = {.number = 1000, .value = "not mine"};

    assert_int_equal(put_for(store, hold, "k", put), HF_LOST);
    assert_int_equal(put_for(store, hold, "new", put), HF_LOST);
    assert_true(reads(store, hold->name, "k", there));
    assert_true(reads(store, hold->name, "new", NULL));
    assert_non_null(strstr(hold->err.text, hold->name));
    assert_null(strstr(hold->err.text, hold->owner));
}

static void only_the_holder_writes(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("holder");
    struct hold thief;

    (void)state;
    hold.grant.token = 1; /* a lock that nobody ever held */
    (void)snprintf(hold.owner, sizeof hold.owner, "%032d", 7);
    refused_as_lost(store, &hold, NULL);
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 1, .value = "mine"}), HF_OK);
    thief = hold;
    thief.owner[0] = thief.owner[0] == '0' ? '1' : '0';
    refused_as_lost(store, &thief, "mine");
    thief = hold;
    thief.grant.token--; /* an owner alone is not the hold */
    refused_as_lost(store, &thief, "mine");
    thief.grant.token += 2;
    refused_as_lost(store, &thief, "mine");
    assert_int_equal(renew(store, &hold, 0), HF_OK); /* all that did nothing to it */
    assert_int_equal(release(store, &hold), HF_OK);
    refused_as_lost(store, &hold, "mine");
    client_close(store);
}

/* Nobody else wants the lock: the end of the hold is all that matters. */
static void an_expired_hold_writes_nothing(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("expired");
    int64_t end_ns;

    (void)state;
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    end_ns = hf__now_ns() + (conform.short_ttl_ms + SOON_MS) * HF__NS_PER_MS;
    while (is_held(store, hold.name) && hf__now_ns() < end_ns)
        check_pause_ms(5);
    refused_as_lost(store, &hold, NULL);
    client_close(store);
}

/* Its time is over while another hold of the same client goes on: an engine where both hang on one
 * session may still have it, and nobody may count on it all the same. */
static void an_expired_hold_beside_another_writes_nothing(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("unrenewed");
    struct hold kept = hold_new("kept");
    int64_t end_ns;

    (void)state;
    assert_int_equal(take(store, &kept, conform.short_ttl_ms, 0), HF_OK);
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    end_ns = hf__now_ns() + conform.short_ttl_ms * HF__NS_PER_MS;
    while (hf__now_ns() <= end_ns) {
        check_pause_ms(conform.short_ttl_ms / 8);
        (void)renew(store, &kept, 0); /* on a busy machine it may come too late */
    }
    refused_as_lost(store, &hold, NULL);
    (void)release(store, &kept);
    client_close(store);
}

/* It froze, and comes back when another has written: whatever its number is. */
static void a_former_holder_overwrites_nothing(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold frozen = hold_new("former");
    struct hold next = hold_same(&frozen);

    (void)state;
    assert_int_equal(take(store, &frozen, conform.short_ttl_ms, 0), HF_OK);
    assert_int_equal(take(other, &next, LONG_TTL_MS, conform.short_ttl_ms + SOON_MS), HF_OK);
    assert_int_equal(put_for(other, &next, "k", (struct put){.number = 1, .value = "done"}), HF_OK);
    refused_as_lost(store, &frozen, "done");
    assert_int_equal(release(other, &next), HF_OK);
    refused_as_lost(store, &frozen, "done");
    client_close(store);
    client_close(other);
}

static void any_bytes_up_to_the_limit(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("bytes");
    unsigned char *bytes = malloc(HF_RECORD_VALUE_MAX);
    struct record record;
    static const size_t sizes[] = {1, 2, 255, 4096, HF_RECORD_VALUE_MAX - 1, HF_RECORD_VALUE_MAX};

    (void)state;
    assert_non_null(bytes);
    hf__random(bytes, HF_RECORD_VALUE_MAX);
    for (size_t i = 0; i < 512; i++) /* and every byte there is, NUL first */
        bytes[i] = (unsigned char)i;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct put put = {.number = i + 1, .value = bytes, .len = sizes[i]};

        check_row(put_for(store, &hold, "k", put) == HF_OK, i);
        record = read_record(store, hold.name, "k");
        check_row(record.len == sizes[i] && memcmp(record.value, bytes, sizes[i]) == 0, i);
        check_row(record.value[record.len] == '\0', i);
        free_record(&record);
    }
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 99, .value = ""}), HF_OK);
    assert_true(reads(store, hold.name, "k", "")); /* there, and empty */
    free(bytes);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

/* As wide as a busy machine and a clock of whole seconds need it. */
static void the_clock_is_the_stores(void **state)
{
    enum { TICK_MS = 1000, WIDE_MS = 120000 };
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("clock");
    struct record before, record;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    before = read_record(store, hold.name, "k"); /* nothing there, and the clock all the same */
    assert_int_equal(before.calls, 0);
    assert_true(llabs(before.now_ms - hf__wall_us() / 1000) < WIDE_MS);
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 1, .value = "x"}), HF_OK);
    record = read_record(store, hold.name, "k");
    assert_true(record.written_ms >= before.now_ms - TICK_MS);
    assert_true(record.now_ms >= record.written_ms - TICK_MS);
    assert_true(record.now_ms < before.now_ms + WIDE_MS);
    free_record(&record);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

static void a_record_expires(void **state)
{
    enum { KEEP_MS = 1500, TICK_MS = 1000, LONG_MS = 3600000 };
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("keep");
    struct record record;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(
        put_for(store, &hold, "long", (struct put){.number = 1, .value = "x", .keep_ms = LONG_MS}),
        HF_OK);
    record = read_record(store, hold.name, "long");
    assert_int_equal(record.calls, 1);
    assert_in_range(record.until_ms - record.written_ms, LONG_MS, LONG_MS + TICK_MS);
    free_record(&record);
    for (uint64_t i = 2; i <= 4; i++) /* what replaces it is kept as long as that one says */
        assert_int_equal(
            put_for(store, &hold, i == 2 ? "short" : "changed",
                    (struct put){.number = i, .value = "y", .keep_ms = i == 4 ? 0 : KEEP_MS}),
            HF_OK);
    check_soon(reads(store, hold.name, "short", NULL));
    assert_int_equal(put_for(store, &hold, "short", (struct put){.number = 5, .value = "again"}),
                     HF_OK);
    check_pause_ms(KEEP_MS + TICK_MS); /* longer than "changed" was kept at first */
    assert_true(reads(store, hold.name, "short", "again"));
    assert_true(reads(store, hold.name, "changed", "y"));
    assert_true(reads(store, hold.name, "long", "x"));
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

static enum hf_status put_both(struct hf_store_base *store, struct hold *hold, uint64_t number,
                               const char *value)
{
    const struct hf_record_write write = {.name = hold->name,
                                          .owner = hold->owner,
                                          .token = hold->grant.token,
                                          .number = number,
                                          .key = "k",
                                          .value = value,
                                          .value_len = strlen(value),
                                          .deadline_ns =
                                              hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    struct hf_record_write first = write;

    first.key = "first";
    first.number--;
    return store->ops->record_put_both(store, &first, &write, &hold->err);
}

/* With the second the first is there; a first that is newer stays; and who may not write the second
 * has not lost or won anything by the first. */
static void two_records_in_one_step(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("both");

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(put_both(store, &hold, 2, "one"), HF_OK);
    assert_true(reads(store, hold.name, "k", "one"));
    assert_true(reads(store, hold.name, "first", "one"));
    assert_int_equal(put_for(store, &hold, "first", (struct put){.number = 9, .value = "newer"}),
                     HF_OK);
    assert_int_equal(put_both(store, &hold, 4, "two"), HF_OK);
    assert_true(reads(store, hold.name, "k", "two"));
    assert_true(reads(store, hold.name, "first", "newer"));
    assert_int_equal(put_both(store, &hold, 4, "three"), HF_STALE);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(put_both(store, &hold, 20, "lost"), HF_LOST);
    assert_true(reads(store, hold.name, "k", "two"));
    assert_true(reads(store, hold.name, "first", "newer"));
    client_close(store);
}

static bool puts_both(void)
{
    struct hf_store_base *store = client_open();
    size_t end =
        offsetof(struct hf_store_ops, record_put_both) + sizeof store->ops->record_put_both;
    bool can = store->ops->size >= end && store->ops->record_put_both != NULL;

    client_close(store);
    return can;
}

void add_record_tests(struct suite *suite)
{
    add_library_record_tests(suite);
    if (!has(HF_FEATURE_RECORDS))
        return;
    ADD(suite, a_record_is_written_read_and_replaced);
    ADD(suite, what_is_not_newer_is_stale);
    ADD(suite, only_the_holder_writes);
    ADD(suite, an_expired_hold_writes_nothing);
    ADD(suite, an_expired_hold_beside_another_writes_nothing);
    ADD(suite, a_former_holder_overwrites_nothing);
    ADD(suite, any_bytes_up_to_the_limit);
    ADD(suite, the_clock_is_the_stores);
    ADD(suite, a_record_expires);
    if (puts_both())
        ADD(suite, two_records_in_one_step);
    add_record_list_tests(suite);
}
