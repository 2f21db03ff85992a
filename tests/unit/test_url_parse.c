/* test_url_parse.c - the whole URL of a store, by the table of its options. */
#include "../support/check.h"
#include "base/base.h"

#include <string.h>

/* A store's own struct. */
struct toy_url {
    struct hf__url at;
    char prefix[9];
    char password_file[64];
    bool verify;
    bool special; /* what node_timeout needs */
    int64_t max_ttl_ms, node_timeout_ms;
    uint64_t db;
};

static bool set_db(void *into, const char *value)
{
    struct toy_url *url = into;

    return hf__parse_u64(value, &url->db);
}

static bool is_special(const void *into)
{
    return ((const struct toy_url *)into)->special;
}

static const struct hf__url_option options[] = {
    HF__OPTION_TEXT("prefix", struct toy_url, prefix, 0),
    HF__OPTION_TEXT("password_file", struct toy_url, password_file, 1),
    HF__OPTION_SWITCH("verify", struct toy_url, verify),
    HF__OPTION_DURATION("max_ttl", struct toy_url, max_ttl_ms, 100, 86400000),
    {.name = "node_timeout",
     .type = HF__URL_DURATION,
     .offset = offsetof(struct toy_url, node_timeout_ms),
     .min = 1,
     .max = 10000,
     .fits = is_special},
    HF__OPTION_OWN("db", set_db),
    {.name = NULL}};

static const struct hf__url_form form = {
    .usage = "toy://HOST:PORT,HOST:PORT/PATH", .port = 4711, .options = options};

static enum hf_status parse(const char *text, struct toy_url *url, struct hf_error *err)
{
    *url = (struct toy_url){.verify = true, .max_ttl_ms = 60000};
    return hf__url_parse(text, &form, &url->at, url, err);
}

static void every_part_is_found(void **state)
{
    struct hf_error err;
    struct toy_url url;

    (void)state;
    assert_int_equal(
        parse("toy://me:pa%3Ass@one,[::1]:7,three:65535/a/b%20c?prefix=p%26q:&verify=off&"
              "max_ttl=1.5s&db=3&password_file=/x",
              &url, &err),
        HF_OK);
    assert_string_equal(err.text, "");
    assert_string_equal(url.at.user, "me");
    assert_string_equal(url.at.password, "pa:ss");
    assert_true(url.at.has_password);
    assert_int_equal(url.at.host_count, 3);
    assert_string_equal(url.at.hosts[0].host, "one");
    assert_int_equal(url.at.hosts[0].port, 4711);
    assert_string_equal(url.at.hosts[1].host, "::1");
    assert_int_equal(url.at.hosts[1].port, 7);
    assert_int_equal(url.at.hosts[2].port, 65535);
    assert_string_equal(url.at.path, "/a/b%20c");
    assert_string_equal(url.prefix, "p&q:");
    assert_false(url.verify);
    assert_int_equal(url.max_ttl_ms, 1500);
    assert_int_equal(url.db, 3);
    assert_string_equal(url.password_file, "/x");
    assert_null(strstr(url.at.shown, "pa%3A"));
    assert_non_null(strstr(url.at.shown, "three:65535/a/b"));
}

static void what_is_not_said_stays_as_it_was(void **state)
{
    struct toy_url url;

    (void)state;
    assert_int_equal(parse("toy://", &url, NULL), HF_OK);
    assert_int_equal(url.at.host_count, 0);
    assert_string_equal(url.at.user, "");
    assert_false(url.at.has_password);
    assert_string_equal(url.at.path, "");
    assert_true(url.verify);
    assert_int_equal(url.max_ttl_ms, 60000);
    assert_int_equal(parse("toy:///only/a/path?", &url, NULL), HF_OK);
    assert_int_equal(url.at.host_count, 0);
    assert_string_equal(url.at.path, "/only/a/path");
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *url, *said;
    } rows[] = {
        {"toy:h", "write toy://HOST:PORT,HOST:PORT/PATH"},
        {"toy:/h", "write toy://"},
        {"toy://h:port", "write toy://"},
        {"toy://h:0", "write toy://"},
        {"toy://h:65536", "write toy://"},
        {"toy://[::1", "write toy://"},
        {"toy://a,,b", "write toy://"},
        {"toy://a,", "write toy://"},
        {"toy://1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7", "at most 16 hosts"},
        {"toy://us%zzer@h", "does not start an escape"},
        {"toy://h?verify=maybe", "the option verify must be on or off"},
        {"toy://h?max_ttl=99ms", "the option max_ttl must be a duration from 100ms to 1d"},
        {"toy://h?max_ttl=soon", "the option max_ttl must be a duration"},
        {"toy://h?password_file=", "the option password_file is empty or too long"},
        {"toy://h?prefix=123456789", "the option prefix is empty or too long"},
        {"toy://h?db=x", "the option db has a wrong value"},
        {"toy://h?node_timeout=5ms", "the option node_timeout does not belong in this URL"},
        {"toy://h?verify=off&prefx=1", "the option \"prefx\" is unknown; did you mean prefix?"},
        {"toy://h?frob=1", "the option \"frob\" is unknown; known are prefix, password_file"},
        {"toy://h?S3cret=1", "an option is unknown; known are prefix"},
        {"toy://h?prefix=%z", "a % does not start an escape"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_error err;
        struct toy_url url;

        check_row(parse(rows[i].url, &url, &err) == HF_INVALID, i);
        if (strstr(err.text, rows[i].said) == NULL)
            print_error("%s\n", err.text);
        check_row(strstr(err.text, rows[i].said) != NULL, i);
        check_row(strncmp(err.text, "store toy:", 10) == 0, i);
    }
}

static void no_password_is_told(void **state)
{
    static const char *const urls[] = {
        "toy://u:s3cret@h:port",   "toy://u:s3cret@h?frob=1", "toy://u:s3cret@h?verify=s3cret",
        "toy://u:s3cret@a@b:port", "toy://u:s3cret%zz@h",     "toy:u:s3cret@h",
        "toy://u:s3cret"};

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        struct hf_error err;
        struct toy_url url;

        check_row(parse(urls[i], &url, &err) == HF_INVALID, i);
        check_row(strstr(err.text, "s3cret") == NULL, i);
    }
}

static void what_is_too_long_is_refused(void **state)
{
    char text[2 * HF__URL_MAX] = "toy://h/";
    struct hf_error err;
    struct toy_url url;

    (void)state;
    memset(text + 8, 'x', HF__URL_TEXT_MAX);
    assert_int_equal(parse(text, &url, &err), HF_INVALID);
    assert_non_null(strstr(err.text, "too long"));
    memset(text + 8, 'x', sizeof text - 9);
    text[7] = '?';
    assert_int_equal(parse(text, &url, &err), HF_INVALID);
    text[7] = 'h'; /* a host */
    text[HF__HOST_MAX + 8] = '\0';
    assert_int_equal(parse(text, &url, &err), HF_INVALID);
}

static void addresses(void **state)
{
    struct hf__address a, b;
    char text[64];

    (void)state;
    assert_true(hf__address_parse("[fe80::1]", 9, 5, &a));
    assert_true(hf__address_format(text, sizeof text, &a));
    assert_string_equal(text, "[fe80::1]:5");
    assert_true(hf__address_parse("[fe80::1]:5,x", 11, 7, &b));
    assert_true(hf__address_equal(&a, &b));
    assert_true(hf__address_parse("name:9", 6, 7, &b));
    assert_false(hf__address_equal(&a, &b));
    assert_true(hf__address_format(text, sizeof text, &b));
    assert_string_equal(text, "name:9");
    assert_false(hf__address_format(text, 6, &b));
    assert_false(hf__address_parse(":9", 2, 7, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_is_found),
        cmocka_unit_test(what_is_not_said_stays_as_it_was),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(no_password_is_told),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
