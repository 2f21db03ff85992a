/* test_postgres_row.c - what libpq says of a connection that failed: which of it passes. */
#include "stores/postgres/postgres.h"

#include "../support/check.h"

/* What libpq said of a connection that failed, as a status. */
static enum hf_status status_of(const char *text, char why[PG_WHY_SIZE])
{
    char state[PG_STATE_SIZE];
    struct hf_error err;

    pg_connect_error(text, state, why);
    return pg_error_fail(state, why, NULL, "postgres://h", &err);
}

#define HOST "connection to server at \"10.0.0.1\", port 5432 failed: "

static void test_what_passes(void **state)
{
    static const char *const passing[] = {
        HOST "FATAL:  53300: sorry, too many clients already\nLOCATION:  x",
        HOST "FATAL:  53300: remaining connection slots are reserved for superusers\n",
        HOST "FATAL:  57P03: the database system is starting up\n",
        HOST "FATAL:  57P03: the database system is in recovery mode\n",
        HOST "FATAL:  57P03: the database system is shutting down\n",
        HOST "FATAL:  57P01: terminating connection due to administrator command\n",
        HOST "SSL SYSCALL error: EOF detected\n",
        HOST "SSL SYSCALL error: Connection reset by peer\n",
        HOST "SSL error: unexpected eof while reading\n",
        HOST "SSL connection has been closed unexpectedly\n",
        HOST "Connection refused\n\tIs the server running on that host?\n",
        HOST "FATAL:  28000: no pg_hba.conf entry\n" HOST "FATAL:  57P03: starting up\n",
        HOST "FATAL:  53300: sorry\n" HOST "FATAL:  28P01: password authentication failed\n",
    };
    char why[PG_WHY_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (status_of(passing[i], why) != HF_UNREACHABLE)
            fail_msg("does not pass: %s", passing[i]);
    (void)status_of(passing[2], why);
    assert_string_equal(why, "the database system is starting up");
}

static void test_what_does_not(void **state)
{
    static const char *const lasting[] = {
        HOST "FATAL:  28P01: password authentication failed for user \"app\"\n",
        HOST "FATAL:  28000: no pg_hba.conf entry for host\n",
        HOST "server does not support SSL, but SSL was required\n",
        HOST "SSL error: certificate verify failed\n",
        HOST "SSL error: tlsv1 alert unknown ca\n",
        HOST "server certificate for \"a\" does not match host name \"b\"\n",
    };
    char why[PG_WHY_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        if (status_of(lasting[i], why) != HF_DENIED)
            fail_msg("is not denied: %s", lasting[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_passes),
        cmocka_unit_test(test_what_does_not),
    };

    return cmocka_run_group_tests_name("postgres row", tests, NULL, NULL);
}
