/* What the etcd store decides without a server: base64, URLs, keys, answers, watches, verdicts. */
#include "base/base.h"
#include "stores/etcd/answer.h"
#include "stores/etcd/base64.h"
#include "stores/etcd/holds.h"
#include "stores/etcd/listener.h"
#include "stores/etcd/record.h"
#include "stores/etcd/text.h"
#include "stores/etcd/errors.h"

#include "../support/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bool good, const char *what)
{
    if (!good)
        fail_msg("not so: %s", what);
}

static void test_base64(void **state)
{
    static const char *const pairs[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg=x", "Z===", "====", "Zh==", "Zm9=", "Z*==", "Zm8=Zm8="};
    char text[32];
    size_t len;
    bool good = true;
    bool cut;

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        text[ec_base64_encode(text, pairs[i][0], strlen(pairs[i][0]))] = '\0';
        good = good && strcmp(text, pairs[i][1]) == 0;
        good = good && ec_base64_decode(text, sizeof text, pairs[i][1], &len) &&
               len == strlen(pairs[i][0]) && memcmp(text, pairs[i][0], len) == 0;
    }
    check(good, "base64 there and back");
    good = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        good = good && !ec_base64_decode(text, sizeof text, bad[i], &len);
    check(good, "base64 that no encoder makes is refused");
    check(!ec_base64_decode(text, 2, "Zm9v", &len), "so is what does not fit");
    check(ec_base64_decode_start(text, 5, "Zm9vYmFy", &len, &cut) && cut && len == 3 &&
              memcmp(text, "foo", 3) == 0 &&
              ec_base64_decode_start(text, 6, "Zm9vYmFy", &len, &cut) && !cut && len == 6 &&
              !ec_base64_decode_start(text, 6, "Zm9*", &len, &cut),
          "unless its start will do");
}

static void test_urls(void **state)
{
    struct ec_url url;
    struct hf_error err;

    (void)state;
    check(ec_url_parse("etcd://h", &url, &err) == HF_OK && url.common.host_count == 1 &&
              strcmp(url.endpoints[0], "http://h:2379") == 0 &&
              strcmp(url.prefix, "holdfast/") == 0,
          "a host alone: port, prefix and no TLS");
    check(ec_url_parse("etcd://u:p%40w@h1:1,[::1]:2/?ca=/c", &url, &err) == HF_OK && url.tls &&
              strcmp(url.endpoints[1], "https://[::1]:2") == 0 &&
              strcmp(url.common.user, "u") == 0 && strcmp(url.common.password, "p@w") == 0 &&
              strstr(url.common.shown, "p%40w") == NULL,
          "user, password, hosts and an authority; the password is not shown");
    check(ec_url_parse("etcd://h x:1", &url, &err) == HF_INVALID &&
              ec_url_parse("etcd://h#x", &url, &err) == HF_INVALID &&
              ec_url_parse("etcd://h:99999", &url, &err) == HF_INVALID &&
              ec_url_parse("etcd://h?prefix=a%1f", &url, &err) == HF_INVALID &&
              ec_url_parse("etcd://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", &url, &err) == HF_INVALID,
          "what is no host, port or prefix is refused");
    check(ec_url_parse("etcd://h?tls=off", &url, &err) == HF_OK && !url.tls &&
              ec_url_parse("etcd://h?tls=off&ca=/c", &url, &err) == HF_INVALID &&
              ec_url_parse("etcd://h?ca=/c&tls=off", &url, &err) == HF_INVALID &&
              ec_url_parse("etcd://h?cert=/c&key=/k&tls=on", &url, &err) == HF_OK && url.tls,
          "TLS is not both wanted and switched off, in whichever order");
}

static void test_numbers(void **state)
{
    static const struct {
        const char *json;
        int64_t number;
    } rows[] = {
        {"{\"n\":\"9223372036854775807\"}", INT64_MAX},
        {"{\"n\":\"-9223372036854775807\"}", -INT64_MAX},
        {"{\"n\":\"9223372036854775808\"}", 0},
        {"{\"n\":\"18446744073709551616\"}", 0},
        {"{\"n\":\"+1\"}", 0},
        {"{\"n\":\"1e3\"}", 0},
        {"{\"n\":\"--1\"}", 0},
        {"{\"n\":\"\"}", 0},
        {"{\"n\":true}", 0},
        {"{\"n\":[1]}", 0},
        {"{}", 0},
        {"{\"n\":5}", 5},
        {"{\"n\":-5}", -5},
        {"{\"n\":4294967296}", 4294967296}, /* a revision that is cut off would come twice */
        {"{\"n\":9007199254740992}", 9007199254740992},
        {"{\"n\":9007199254740994}", 0}, /* a JSON number of that size may be any of several */
        {"{\"n\":1e300}", 0},
        {"{\"n\":1.5}", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *json = ec_answer_parse(rows[i].json, strlen(rows[i].json));

        check_row(json != NULL && ec_answer_number(json, "n") == rows[i].number, i);
        cJSON_Delete(json);
    }
}

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
    check(keys.own_len == 8 &&
              memcmp(keys.own,
                     "p/a\x1f"
                     "0123",
                     8) == 0 &&
              keys.queue_len == 4 && memcmp(keys.queue_end, "p/a ", 4) == 0,
          "the keys of a lock");
    memcpy(kv.key, keys.own, keys.own_len);
    kv.key_len = keys.own_len;
    check(ec_key_name(&kv, "p/", name) && strcmp(name, "a") == 0 && !ec_key_name(&kv, "q/", name),
          "and back to its name");
    ec_said_format(value, &said);
    ec_said_parse(&again, value, strlen(value));
    check(again.kind == 'k' && again.ttl_ms == 5 && again.since_us == 7 &&
              strcmp(again.label, "a b") == 0,
          "a value there and back");
    ec_said_parse(&again, "hello, world", 12);
    check(again.kind == 0 && again.label[0] == '\0', "what holdfast does not write is foreign");
}

static enum ec_event feed(const char *text)
{
    struct ec_stream stream = {0};
    enum ec_event event;

    ec_stream_feed(&stream, text, strlen(text));
    event = stream.event;
    ec_stream_clear(&stream);
    return event;
}

static void test_streams(void **state)
{
    char *endless = malloc(EC_EVENT_MAX + 2);

    (void)state;
    check(feed("{\"result\":{\"created\":true}}\n") == EC_EVENT_CREATED &&
              feed("{\"result\":{\"created\":true}}") == EC_EVENT_NONE,
          "a watch begins, when its line is complete");
    check(
        feed("{\"result\":{}}\n{\"result\":{\"events\":[{\"kv\":{}},{\"type\":\"DELETE\"}]}}\n") ==
            EC_EVENT_HEARD,
        "a deletion is heard; a put is not one");
    check(feed("{\"result\":{\"canceled\":true,\"created\":true}}\n") == EC_EVENT_BROKEN &&
              feed("{\"result\":{\"compact_revision\":\"5\"}}\n") == EC_EVENT_BROKEN &&
              feed("{\"error\":{\"message\":\"x\"}}\n") == EC_EVENT_BROKEN &&
              feed("what?\n") == EC_EVENT_BROKEN,
          "cancelled, compacted, refused and garbage: broken");
    if (endless != NULL) {
        memset(endless, 'x', EC_EVENT_MAX + 1);
        endless[EC_EVENT_MAX + 1] = '\0';
        check(feed(endless) == EC_EVENT_BROKEN, "a line without end: broken");
    }
    free(endless);
}

static void test_verdicts(void **state)
{
    (void)state;
    check(ec_verdict(200, 0, "") == EC_FINE, "no error");
    check(ec_verdict(503, 14, "etcdserver: request timed out") == EC_UNSURE &&
              ec_verdict(503, 14, "etcdserver: leader changed") == EC_UNSURE &&
              ec_verdict(500, 2, "anything") == EC_UNSURE &&
              ec_verdict(502, 0, "Bad Gateway") == EC_UNSURE &&
              ec_verdict(200, 0, "an answer that is not JSON") == EC_UNSURE,
          "what may have been executed is unsure");
    check(ec_verdict(401, 16, "etcdserver: invalid auth token") == EC_SIGN_IN &&
              ec_verdict(403, 7, "etcdserver: permission denied") == EC_FORBIDDEN &&
              ec_verdict(404, 5, "etcdserver: requested lease not found") == EC_NO_LEASE &&
              ec_verdict(404, 0, "404 page not found") == EC_NO_GATEWAY,
          "what was certainly refused is known");
}

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
    check(holds.count == 1000 && ec_holds_find(&holds, owner) != NULL, "a thousand holds");
    check(!ec_holds_overdue(&holds, 2, 500), "none of the other lease is overdue");
    check(ec_holds_overdue(&holds, 1, 500) && !ec_holds_overdue(&holds, 1, 500),
          "one of the first is, and is told once");
    for (int i = 0; i < 1000; i++) {
        struct ec_hold *hold;

        (void)snprintf(owner, sizeof owner, "%032d", i);
        hold = ec_holds_remove(&holds, owner);
        good = good && hold != NULL;
        free(hold);
    }
    check(good && holds.count == 0 && !ec_holds_use(&holds, 1), "all removed");
    ec_holds_release(&holds);
}

static void test_texts(void **state)
{
    static char big[EC_REQUEST_MAX];
    struct ec_text text;

    (void)state;
    ec_text_clear(&text);
    ec_text_string(&text, "a\"b\\\n");
    check(strcmp(text.data, "\"a\\\"b\\\\\\u000a\"") == 0, "JSON strings are escaped");
    ec_text_base64(&text, big, sizeof big);
    check(text.cut, "what does not fit is cut and says so");
}

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
        cmocka_unit_test(test_base64),        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_keys),
        cmocka_unit_test(test_streams),       cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_table),         cmocka_unit_test(test_texts),
        cmocka_unit_test(test_cover),         cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_record_order),  cmocka_unit_test(test_record_keys),
        cmocka_unit_test(test_record_expiry),
    };

    return cmocka_run_group_tests_name("etcd_pure", tests, NULL, NULL);
}
