/* test_redis_url.c - what a redis URL says. */
#include "stores/redis/url.h"

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
    /* A credential of a unit; a path from the root is none. */
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", "/tmp", 1), 0);
    (void)snprintf(text, sizeof text, "redis://h?password_file=%s", path + strlen("/tmp/"));
    parses(text, &url);
    assert_int_equal(rd_url_find_password(&url, &err), HF_OK);
    assert_string_equal(url.parts.password, "first line");
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", "/nowhere", 1), 0);
    parses(text, &url);
    assert_int_equal(rd_url_find_password(&url, &err), HF_INVALID);
    (void)unsetenv("CREDENTIALS_DIRECTORY");
    (void)unlink(path);
    (void)unsetenv(RD_PASSWORD_VARIABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_url_refused),
        cmocka_unit_test(test_password_sources),
    };

    return cmocka_run_group_tests_name("redis_url", tests, NULL, NULL);
}
