/* test_url.c - taking URLs apart, and keeping their passwords to ourselves. */
#include "../support/check.h"
#include "base/base.h"

#include <string.h>

static void schemes(void **state)
{
    static const struct {
        const char *url;
        size_t len;
    } rows[] = {{"file:/x", 4},   {"redis+unix:///x", 10},
                {"a.b-c+1:x", 7}, {"x:", 1},
                {"", 0},          {":", 0},
                {"file", 0},      {"File:/x", 0},
                {"1file:/x", 0},  {"/tmp/x", 0},
                {"/tmp/a:b", 0},  {"fi le:/x", 0},
                {"host:6379", 4}, {"fi\xc3\xa4:x", 0},
                {"../x:y", 0}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(hf__url_scheme_len(rows[i].url) == rows[i].len, i);
}

static void rest(void **state)
{
    (void)state;
    assert_string_equal(hf__url_rest("file:/x", "file"), "/x");
    assert_string_equal(hf__url_rest("file:", "file"), "");
    assert_null(hf__url_rest("files:/x", "file"));
    assert_null(hf__url_rest("fil:/x", "file"));
    assert_null(hf__url_rest("file", "file"));
    assert_null(hf__url_rest("", ""));
}

/* What has no password comes out as it went in: a child gets this text as its HOLDFAST_STORE. */
static void nothing_to_hide(void **state)
{
    static const char *const urls[] = {
        "",
        "file:/var/lib/x",
        "file:/a:b@c/d?shared=group",
        "file:///a/b",
        "redis://host:6379/0",
        "redis://host",
        "redis://user@host:6379",
        "redis://host:6379?prefix=a%40b",
        "redis://host:6379/3?prefix=a:b%40c&x=y",
        "redis://[::1]:6379/0",
        "redlock://h1,h2,h3?prefix=a@b",
        "etcd://host/pre@fix",
        "file:/srv/a:b@c",
        "redlock://h1:1,h2:2,h3:3?prefix=a%40b",
        "redis://host?password_file=/etc/secret&max_ttl=60s",
        "zookeeper://h1:2181,h2:2181/chroot",
        "redis://host?a=b&&c&=d&",
        "not a url",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        char out[128];

        hf__url_redact(out, sizeof out, urls[i]);
        if (strcmp(out, urls[i]) != 0)
            print_error("became: %s\n", out);
        check_row(strcmp(out, urls[i]) == 0, i);
    }
}

static void passwords_are_removed(void **state)
{
    static const struct {
        const char *url;
        const char *shown;
    } rows[] = {
        {"redis://user:secret@host:6379/0", "redis://user@host:6379/0"},
        {"redis://:secret@host", "redis://@host"},
        {"redis://user:@host", "redis://user@host"},
        {"redis://:secret@", "redis://@"},
        {"redis+unix://:secret@/run/redis.sock", "redis+unix://@/run/redis.sock"},
        {"rediss://u:secret@host:1?tls=1", "rediss://u@host:1?tls=1"},
        {"redis://u:se:cr:et@host", "redis://u@host"},
        {"redis://host?password=secret", "redis://host?password=***"},
        {"redis://host?a=b&PassWord=secret&c=d", "redis://host?a=b&PassWord=***&c=d"},
        {"postgres://h/db?sslpassword=secret", "postgres://h/db?sslpassword=***"},
        {"redis://u:secret@h?password=secret2", "redis://u@h?password=***"},
        {"redis://host?password=", "redis://host?password=***"},
        {"redis://host?password", "redis://host?password"},
        {"redis://h?password_file=/x&password=secret", "redis://h?password_file=/x&password=***"},
        {"file:/x?password=secret", "file:/x?password=***"},
        {"redis://u:p@ssword:secret@h1:1,h2:2", "redis://u@h1:1,h2:2"},
        {"postgres://h?listen=postgres%3A%2F%2Fu%3Asecret%40d%2Fx&a=b",
         "postgres://h?listen=***&a=b"},
        {"postgres://h?listen=postgres%3A%2F%2Fd%3Fpassword%3Dsecret", "postgres://h?listen=***"},
        {"postgres://h?listen=postgres%3A%2F%2Fu%40d%3A5432%2Fx",
         "postgres://h?listen=postgres%3A%2F%2Fu%40d%3A5432%2Fx"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[128];

        hf__url_redact(out, sizeof out, rows[i].url);
        if (strcmp(out, rows[i].shown) != 0)
            print_error("became: %s\n", out);
        check_row(strcmp(out, rows[i].shown) == 0, i);
    }
}

/* People forget to escape what is in their passwords. Then more may be hidden than need be, but
 * never less. */
static void careless_passwords_are_removed_too(void **state)
{
    static const char *const urls[] = {
        "redis://u:SEC@RET@host:6379",
        "redis://u:SEC/RET@host:6379/0",
        "redis://u:SEC?RET@host:6379",
        "redis://u:SEC#RET@host",
        "redis://:SEC/RET@host",
        "redis://:SEC?RET@host",
        "redis://u:SEC/x@RET@host",
        "redis://u:x/SEC@y@RET@host",
        "redis://u:SEC:RET@host",
        "redis://u:SEC?a=RET&b=c@host",
        "REDIS://u:SECRET@host",
        "Redis://:SECRET@host",
        "redis://host?password=SEC?RET",
        "redis://host?password=SEC/RET@x",
        "redis://host?password=SEC=RET",
        "redis://host?xpasswordx=SECRET",
        "redis://host?password_file_password=SECRET",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        char out[128];

        hf__url_redact(out, sizeof out, urls[i]);
        if (strstr(out, "SEC") != NULL || strstr(out, "RET") != NULL)
            print_error("shows: %s\n", out);
        check_row(strstr(out, "SEC") == NULL && strstr(out, "RET") == NULL, i);
    }
}

/* What is said about a URL that is refused ends with its hosts. */
static void brief(void **state)
{
    static const struct {
        const char *url;
        const char *brief;
        bool clear;
    } rows[] = {
        {"redis://host:6379/0?a=b", "redis://host:6379", true},
        {"redis://u:p@host/0", "redis://u@host", true},
        {"redis://u:p@p@host?a=b", "redis://u@host", true},
        {"redis://[::1]:6379", "redis://[::1]:6379", true},
        {"redis://u:p@[::1]:6379/0?a=b@c", "redis://u", false},
        {"redis://u:p/p@host", "redis://u@host", false},
        {"redis://u:12/p@host", "redis://u@host", false},
        {"redis://u:p?p@host", "redis://u", false},
        {"redis://u:p#p@host/x", "redis://u@host", false},
        {"redis://host:6379?a=b@c", "redis://host", false},
        {"redis://host?a=b@c", "redis://host", true},
        {"redis://us#er:p@host/x", "redis://us", false},
        {"redis://us/er:p@host/x", "redis://us", false},
        {"redis://us?a=er:p@host/x", "redis://us", false},
        {"redis://[::1]:6379?a=b@c", "redis://[", false},
        {"etcd://host/pre:1/fix@c", "etcd://host", false},
        {"redis://host:secret", "redis://host", true},
        {"redis:u:p@host", "redis:", false},
        {"redis:/u:p@host", "redis:", false},
        {"user:p@host", "user:", false},
        {"file:/x:y@z", "file:", true},
        {"file:/x?y", "file:", true},
        {"no url", "", true},
        {"", "", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[128];

        hf__url_brief(out, sizeof out, rows[i].url);
        if (strcmp(out, rows[i].brief) != 0)
            print_error("became: %s\n", out);
        check_row(strcmp(out, rows[i].brief) == 0, i);
        check_row(hf__url_is_clear(rows[i].url) == rows[i].clear, i);
        for (size_t size = 1; size < 8; size++) {
            hf__url_brief(out, size, rows[i].url);
            check_row(strlen(out) < size, i);
        }
    }
}

static void redaction_never_writes_behind(void **state)
{
    static const char url[] = "redis://user:secret@host:6379/0?password=x&a=b";

    (void)state;
    for (size_t size = 1; size < sizeof url + 8; size++) {
        char out[sizeof url + 16];

        memset(out, '#', sizeof out);
        hf__url_redact(out, size, url);
        check_row(strlen(out) < size, size);
        check_row(out[size] == '#', size);
        check_row(strstr(out, "secret") == NULL, size);
    }
}

static void decode(void **state)
{
    static const struct {
        const char *in;
        const char *out; /* NULL: refused */
    } rows[] = {{"", ""},           {"a%20b", "a b"}, {"%41%6a%6A", "Ajj"},
                {"100%25", "100%"}, {"%", NULL},      {"%4", NULL},
                {"%zz", NULL},      {"a%00b", NULL},  {"%c3%bc", "\xc3\xbc"},
                {"a+b", "a+b"},     {"%2", NULL},     {"%%41", NULL},
                {"%2541", "%41"},   {"%-1", NULL},    {"%0x", NULL}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[32];

        (void)snprintf(text, sizeof text, "%s", rows[i].in);
        check_row(hf__url_decode(text) == (rows[i].out != NULL), i);
        check_row(rows[i].out == NULL || strcmp(text, rows[i].out) == 0, i);
    }
}

static void encode_and_back(void **state)
{
    char all[256];
    char out[3 * 255 + 1];

    (void)state;
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    assert_true(hf__url_encode(out, sizeof out, all));
    assert_int_equal(
        strspn(out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%"),
        strlen(out));
    assert_true(hf__url_decode(out));
    assert_string_equal(out, all);
    assert_true(hf__url_encode(out, 4, "abc"));
    assert_false(hf__url_encode(out, 3, "abc"));
    assert_true(hf__url_encode(out, 4, "/"));
    assert_string_equal(out, "%2F");
    assert_false(hf__url_encode(out, 3, "/"));
    assert_true(hf__url_encode(out, 1, ""));
    assert_false(hf__url_encode(out, 0, ""));
}

static bool collect(const char *key, const char *value, void *data)
{
    char *seen = data;

    (void)snprintf(seen + strlen(seen), 256 - strlen(seen), "[%s|%s]", key, value);
    return strcmp(key, "stop") != 0;
}

static void params(void **state)
{
    static const struct {
        const char *query;
        bool ok;
        const char *seen;
    } rows[] = {{"", true, ""},
                {"a=b", true, "[a|b]"},
                {"a=b&c=d", true, "[a|b][c|d]"},
                {"a", true, "[a|]"},
                {"a=", true, "[a|]"},
                {"=b", true, "[|b]"},
                {"&&a=b&&", true, "[a|b]"},
                {"a=b=c", true, "[a|b=c]"},
                {"a%3d=%26", true, "[a=|&]"},
                {"a=%zz&c=d", false, ""},
                {"a=b&stop=1&c=d", false, "[a|b][stop|1]"}};
    char longest[2100];
    char seen[256];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        seen[0] = '\0';
        check_row(hf__url_params(rows[i].query, collect, seen) == rows[i].ok, i);
        check_row(strcmp(seen, rows[i].seen) == 0, i);
    }
    memset(longest, 'x', sizeof longest);
    longest[1023] = '\0';
    seen[0] = '\0';
    assert_true(hf__url_params(longest, collect, seen));
    longest[1023] = 'x';
    longest[1024] = '\0';
    assert_false(hf__url_params(longest, collect, seen)); /* over 1 KiB */
}

static void hosts_have_ports(void **state)
{
    static const struct {
        const char *text, *host;
        unsigned port;
    } good[] = {{"h", "h", 7},
                {"h:1", "h", 1},
                {"10.0.0.1:65535", "10.0.0.1", 65535},
                {"[::1]", "::1", 7},
                {"[::1]:80", "::1", 80}};
    static const char *const bad[] = {"",       ":1",    "h:",   "h:0",   "h:65536",
                                      "h:x",    "h:1:2", "[::1", "[]:80", "[::1]x",
                                      "[::1]:", "h:-1",  "h:+1", "h:1 ",  "h:000000001"};
    char host[16];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        unsigned port = 7;

        assert_true(hf__url_host(good[i].text, strlen(good[i].text), host, sizeof host, &port));
        assert_string_equal(host, good[i].host);
        assert_int_equal(port, good[i].port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned port = 7;

        if (hf__url_host(bad[i], strlen(bad[i]), host, sizeof host, &port))
            fail_msg("\"%s\" was accepted", bad[i]);
    }
    assert_false(hf__url_host("sixteen-letters-", 16, host, sizeof host, &(unsigned){0}));
}

static void users_have_passwords(void **state)
{
    char user[8];
    char password[8];
    bool has_password;

    (void)state;
    assert_true(hf__url_user("a%3Ab:c%40d", 11, user, password, sizeof user, &has_password));
    assert_string_equal(user, "a:b");
    assert_string_equal(password, "c@d");
    assert_true(has_password);
    assert_true(hf__url_user(":x:y", 4, user, password, sizeof user, &has_password));
    assert_string_equal(user, "");
    assert_string_equal(password, "x:y");
    assert_true(hf__url_user("only", 4, user, password, sizeof user, &has_password));
    assert_false(has_password);
    assert_false(hf__url_user("too-long", 8, user, password, sizeof user, &has_password));
    assert_false(hf__url_user("a:too-long", 10, user, password, sizeof user, &has_password));
    assert_false(hf__url_user("a:%zz", 5, user, password, sizeof user, &has_password));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes),
        cmocka_unit_test(rest),
        cmocka_unit_test(nothing_to_hide),
        cmocka_unit_test(passwords_are_removed),
        cmocka_unit_test(careless_passwords_are_removed_too),
        cmocka_unit_test(brief),
        cmocka_unit_test(redaction_never_writes_behind),
        cmocka_unit_test(decode),
        cmocka_unit_test(encode_and_back),
        cmocka_unit_test(params),
        cmocka_unit_test(hosts_have_ports),
        cmocka_unit_test(users_have_passwords),
    };

    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
