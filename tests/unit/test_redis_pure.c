/* What the Redis store decides without a server: URLs, keys, slots, verdicts, replies. */
#include "stores/redis/keys.h"
#include "stores/redis/wire/reply.h"
#include "stores/redis/wire/request.h"
#include "stores/redis/script.h"
#include "stores/redis/url.h"
#include "stores/redis/errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void parses(const char *text, struct rd_url *url)
{
    struct hf_error err;

    if (rd_url_parse(text, url, &err) != HF_OK)
        fail_msg("%s: %s", text, err.text);
}

static void test_url(void **state)
{
    struct rd_url url;

    (void)state;
    parses("redis://db.example", &url);
    assert_string_equal(url.parts.hosts[0].host, "db.example");
    assert_int_equal(url.parts.hosts[0].port, 6379);
    assert_int_equal(url.max_ttl_ms, 60000);
    assert_true(url.verify);
    assert_false(url.tls || url.parts.has_password);

    parses("rediss://bob:p%40ss%3A%2F@[::1]:7000/5?prefix=a%3A&max_ttl=5m&ca=/x&verify=off", &url);
    assert_string_equal(url.parts.hosts[0].host, "::1");
    assert_int_equal(url.parts.hosts[0].port, 7000);
    assert_string_equal(url.parts.user, "bob");
    assert_string_equal(url.parts.password, "p@ss:/");
    assert_int_equal(url.db, 5);
    assert_string_equal(url.prefix, "a:");
    assert_int_equal(url.max_ttl_ms, 300000);
    assert_true(url.tls);
    assert_false(url.verify);
    assert_null(strstr(url.parts.shown, "p%40ss"));

    parses("redis://:pw@h", &url);
    assert_string_equal(url.parts.user, "");
    assert_true(url.parts.has_password);
    parses("redis+unix:///run/redis.sock?db=3", &url);
    assert_string_equal(url.parts.hosts[0].host, "/run/redis.sock");
    assert_int_equal(url.db, 3);
    parses("redis+sentinel://:pw@a,b:1,c/my%20master/7", &url);
    assert_int_equal(url.parts.host_count, 3);
    assert_int_equal(url.parts.hosts[0].port, 26379);
    assert_int_equal(url.parts.hosts[1].port, 1);
    assert_string_equal(url.master, "my master");
    assert_int_equal(url.db, 7);
}

static void test_url_refused(void **state)
{
    static const char *const bad[] = {"redis:",
                                      "redis://",
                                      "redis://:@",
                                      "redis://h:0",
                                      "redis://h:99999",
                                      "redis://h:x",
                                      "redis://h/x",
                                      "redis://h/70000",
                                      "redis://a,b",
                                      "redis://h?nonsense=1",
                                      "redis://h?max_ttl=2d",
                                      "redis://h?max_ttl=1ms",
                                      "redis://h?tls=maybe",
                                      "redis://[::1",
                                      "redis://[::1]x",
                                      "redis://u:%zz@h",
                                      "redis://h?cert=/x",
                                      "redis+unix://h",
                                      "redis+unix://h/x",
                                      "redis+unix://",
                                      "redis+sentinel://a",
                                      "redis+sentinel://a/",
                                      "redis+sentinel:///m",
                                      "etcd://h",
                                      "",
                                      "redis://h?prefix=%00"};
    struct rd_url url;
    struct hf_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rd_url_parse(bad[i], &url, &err) != HF_INVALID)
            fail_msg("\"%s\" was accepted", bad[i]);
}

static void test_password_sources(void **state)
{
    char path[] = "/tmp/test_redis_XXXXXX";
    int fd = mkstemp(path);
    struct rd_url url;
    struct hf_error err;
    char text[128];

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "first line\nsecond\n", 18), 18);
    (void)close(fd);
    (void)snprintf(text, sizeof text, "redis://h?password_file=%s", path);
    assert_int_equal(setenv(RD_PASSWORD_VARIABLE, "from env", 1), 0);
    parses(text, &url);
    assert_int_equal(rd_url_find_password(&url, &err), HF_OK);
    assert_string_equal(url.parts.password, "first line");
    parses("redis://h", &url);
    assert_int_equal(rd_url_find_password(&url, &err), HF_OK);
    assert_string_equal(url.parts.password, "from env");
    parses("redis://:own@h", &url);
    assert_int_equal(rd_url_find_password(&url, &err), HF_OK);
    assert_string_equal(url.parts.password, "own");
    (void)unlink(path);
    (void)unsetenv(RD_PASSWORD_VARIABLE);
}

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
        bool is_record;

        assert_true(rd_keys_make(&keys[i], "", names[i], &why));
        rd_keys_wake(wake, &keys[i], "00112233445566778899aabbccddeeff");
        assert_int_equal(rd_slot(keys[i].record), rd_slot(names[i]));
        assert_int_equal(rd_slot(keys[i].queue), rd_slot(names[i]));
        assert_int_equal(rd_slot(wake), rd_slot(names[i]));
        assert_true(rd_keys_name(back, "", keys[i].record, &is_record));
        assert_true(is_record);
        assert_string_equal(back, names[i]);
        assert_true(rd_keys_name(back, "", keys[i].queue, &is_record));
        assert_false(is_record);
        assert_false(rd_keys_name(back, "", keys[i].leases, &is_record));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(keys[i].record, keys[j].record);
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

/* The line of a script that has the text, counted from 1. */
static int line_of(const struct rd_script *script, const char *text)
{
    const char *at = strstr(script->text, text);
    int line = 1;

    assert_non_null(at);
    while (at-- > script->text)
        line += *at == '\n';
    return line;
}

static void test_verdict(void **state)
{
    struct hf__address address;
    struct hf_error err;
    unsigned slot;
    char text[256];

    (void)state;
    assert_int_equal(rd_verdict("NOSCRIPT No matching script."), RD_NOSCRIPT);
    assert_int_equal(rd_verdict("OOM command not allowed. script: abc, on @user_script:9."),
                     RD_OOM);
    assert_int_equal(rd_verdict("ERR Error running script (call to f_ab): @user_script:12: "
                                "@user_script: 12: -OOM command not allowed"),
                     RD_OOM);
    assert_int_equal(rd_verdict("MOVEDX 1 a:1"), RD_OTHER_ERROR);
    assert_true(rd_verdict_address("MOVED 3999 127.0.0.1:6381", &address, &slot));
    assert_int_equal(slot, 3999);
    assert_int_equal(address.port, 6381);
    assert_true(rd_verdict_address("ASK 1 ::1:6381", &address, &slot));
    assert_string_equal(address.host, "::1");
    assert_true(rd_verdict_address("MOVED 1 :6381", &address, &slot));
    assert_string_equal(address.host, "");
    assert_false(rd_verdict_address("MOVED 99999 a:1", &address, &slot));
    assert_false(rd_verdict_address("MOVED 1 a:0", &address, &slot));
    assert_false(rd_verdict_address("MOVED 1", &address, &slot));
    assert_false(rd_verdict_address("MOVED", &address, &slot));

    assert_int_equal(rd_verdict_fail("NOPERM this user has no permissions to run the 'evalsha' "
                                     "command",
                                     "x", "redis://h", &err),
                     HF_DENIED);
    assert_non_null(strstr(err.text, "+evalsha"));
    assert_int_equal(
        rd_verdict_fail("ERR ACL failure in script: User u has no permissions to run the "
                        "'set' command script: abc, on @user_script:9.",
                        "x", "redis://h", &err),
        HF_DENIED);
    assert_non_null(strstr(err.text, "+set"));
    (void)snprintf(text, sizeof text,
                   "NOPERM The user executing the script can't run this command or subcommand "
                   "script: %s, on @user_script:%d.",
                   rd_scripts[RD_SCRIPT_RENEW].sha1,
                   line_of(&rd_scripts[RD_SCRIPT_RENEW], "'PEXPIRE'"));
    assert_int_equal(rd_verdict_fail(text, "x", "redis://h", &err), HF_DENIED);
    assert_non_null(strstr(err.text, "+pexpire"));
}

/* Feeds a reply in pieces of every size: the same result each time. */
static void test_reply(void **state)
{
    static const char wire[] =
        "*4\r\n$4\r\nbusy\r\n:-7\r\n$-1\r\n*2\r\n+a\r\n$2\r\n12\r\n-ERR no\r\n";
    const size_t len = sizeof wire - 1;

    (void)state;
    for (size_t piece = 1; piece <= len; piece++) {
        struct rd_reader *reader = rd_reader_open();
        struct rd_reply *replies[2] = {NULL, NULL};
        size_t got = 0;

        for (size_t at = 0; at < len; at += piece) {
            struct rd_reply *reply;

            assert_true(rd_reader_feed(reader, wire + at, len - at < piece ? len - at : piece));
            while (rd_reader_next(reader, &reply) && reply != NULL)
                replies[got++] = reply;
        }
        assert_int_equal(got, 2);
        assert_false(rd_reader_pending(reader));
        assert_true(rd_reply_is(replies[0], "busy"));
        assert_int_equal(rd_reply_number(rd_reply_at(replies[0], 1), 0), -7);
        assert_int_equal(rd_reply_at(replies[0], 2)->type, RD_REPLY_NIL);
        assert_int_equal(rd_reply_number(rd_reply_at(rd_reply_at(replies[0], 3), 1), 0), 12);
        assert_int_equal(rd_reply_at(replies[0], 9)->type, RD_REPLY_NIL);
        assert_int_equal(replies[1]->type, RD_REPLY_ERROR);
        rd_reply_free(replies[0]);
        rd_reply_free(replies[1]);
        rd_reader_close(reader);
    }
}

static void test_reply_limits(void **state)
{
    static const char *const bad[] = {
        "?what\r\n",
        "*2000000000\r\n",
        "*70000\r\n",
        "$x\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        ":12x4\r\n"};
    struct rd_reply *reply;
    static char chunk[65536];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rd_reader *reader = rd_reader_open();
        bool fine =
            rd_reader_feed(reader, bad[i], strlen(bad[i])) && rd_reader_next(reader, &reply);

        if (fine)
            fail_msg("\"%s\" was accepted", bad[i]);
        assert_true(rd_reader_fault(reader)[0] != '\0');
        assert_false(rd_reader_feed(reader, ":1\r\n", 4));
        rd_reader_close(reader);
    }
    struct rd_reader *reader = rd_reader_open();
    size_t fed = 0;

    assert_true(rd_reader_feed(reader, "$400000000\r\n", 12));
    while (rd_reader_feed(reader, chunk, sizeof chunk) && rd_reader_next(reader, &reply) &&
           reply == NULL)
        fed += sizeof chunk;
    assert_true(fed <= RD_REPLY_MAX_BYTES);
    rd_reader_close(reader);
}

static void test_request(void **state)
{
    struct rd_request request = {0};
    char big[5000];

    (void)state;
    rd_request_begin(&request, 2);
    rd_request_word(&request, "GET");
    rd_request_number(&request, -12);
    assert_int_equal(request.len, strlen("*2\r\n$3\r\nGET\r\n$3\r\n-12\r\n"));
    assert_memory_equal(request.data, "*2\r\n$3\r\nGET\r\n$3\r\n-12\r\n", request.len);
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    for (int i = 0; i < 3000; i++)
        rd_request_word(&request, big);
    assert_true(request.failed); /* too long: it is said, not sent */
    rd_request_release(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_url_refused),
        cmocka_unit_test(test_password_sources),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_reply),
        cmocka_unit_test(test_reply_limits),
        cmocka_unit_test(test_request),
    };

    return cmocka_run_group_tests_name("redis_pure", tests, NULL, NULL);
}
