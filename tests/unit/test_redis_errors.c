/* test_redis_errors.c - what an error reply means. */
#include "stores/redis/errors.h"
#include "stores/redis/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict),
    };

    return cmocka_run_group_tests_name("redis_errors", tests, NULL, NULL);
}
