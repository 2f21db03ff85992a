/* test_postgres_url.c - options that a URL of this kind does not have, and passwords at risk. */
#include "stores/postgres/postgres.h"

#include "../support/check.h"
#include <string.h>

static void test_passwords_at_risk(void **state)
{
    (void)state;
    assert_true(pg_password_at_risk("10.0.0.1", NULL, NULL));
    assert_true(pg_password_at_risk("10.0.0.1", "prefer", "prefer"));
    assert_true(pg_password_at_risk("fe80::1", "require", NULL));
    assert_true(pg_password_at_risk("::127.0.0.1", "verify-ca", NULL));
    assert_false(pg_password_at_risk("10.0.0.1", "verify-full", NULL));
    assert_false(pg_password_at_risk("10.0.0.1", "require", "require"));
    assert_false(pg_password_at_risk("127.0.0.1", NULL, NULL));
    assert_false(pg_password_at_risk("127.1.2.3", "disable", NULL));
    assert_false(pg_password_at_risk("::1", NULL, NULL));
    assert_false(pg_password_at_risk("", NULL, NULL));
}

static void refused(const char *url, const char *says)
{
    struct pg_url parsed;
    struct hf_error err;

    assert_int_equal(pg_url_parse(url, &parsed, &err), HF_INVALID);
    if (strstr(err.text, says) == NULL || strstr(err.text, "s3cret") != NULL)
        fail_msg("%s: %s", url, err.text);
}

static void test_unknown_options(void **state)
{
    struct pg_url parsed;
    struct hf_error err;

    (void)state;
    refused("postgres://h/db?max_tll=60s", "\"max_tll\" is unknown");
    refused("postgres://u:s3cret@h/db?sslmode=require&sslrootcret=x", "\"sslrootcret\" is unknown");
    refused("postgres://h/db?max_ttl=60s&nonsense=s3cret", "\"nonsense\" is unknown");
    refused("postgres://h/db?s3cret%20word=1", "not a URI");
    refused("postgres://u:pa?s3cret=1@h/db", "write @ as %40");
    refused("postgres://u:pa?x&s3cret=1@h/db", "write @ as %40");
    assert_int_equal(pg_url_parse("postgres://h/db?ssl=true&max_ttl=2s", &parsed, &err), HF_OK);
    assert_int_equal(parsed.max_ttl_ms, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passwords_at_risk),
        cmocka_unit_test(test_unknown_options),
    };

    return cmocka_run_group_tests_name("postgres url", tests, NULL, NULL);
}
