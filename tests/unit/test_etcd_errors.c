/* test_etcd_errors.c - what a refusal of etcd proves. */
#include "stores/etcd/errors.h"

#include "../support/check.h"

static void test_verdicts(void **state)
{
    (void)state;
    check_that(ec_verdict(200, 0, "") == EC_FINE, "no error");
    check_that(ec_verdict(503, 14, "etcdserver: request timed out") == EC_UNSURE &&
                   ec_verdict(503, 14, "etcdserver: leader changed") == EC_UNSURE &&
                   ec_verdict(500, 2, "anything") == EC_UNSURE &&
                   ec_verdict(502, 0, "Bad Gateway") == EC_UNSURE &&
                   ec_verdict(200, 0, "an answer that is not JSON") == EC_UNSURE,
               "what may have been executed is unsure");
    check_that(ec_verdict(401, 16, "etcdserver: invalid auth token") == EC_SIGN_IN &&
                   ec_verdict(403, 7, "etcdserver: permission denied") == EC_FORBIDDEN &&
                   ec_verdict(404, 5, "etcdserver: requested lease not found") == EC_NO_LEASE &&
                   ec_verdict(404, 0, "404 page not found") == EC_NO_GATEWAY,
               "what was certainly refused is known");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
    };

    return cmocka_run_group_tests_name("etcd errors", tests, NULL, NULL);
}
