/* test_etcd_text.c - the JSON of requests. */
#include "stores/etcd/text.h"

#include "../support/check.h"
#include <string.h>

static void test_texts(void **state)
{
    static char big[EC_REQUEST_MAX];
    struct ec_text text;

    (void)state;
    ec_text_clear(&text);
    ec_text_string(&text, "a\"b\\\n");
    check_that(strcmp(text.data, "\"a\\\"b\\\\\\u000a\"") == 0, "JSON strings are escaped");
    ec_text_base64(&text, big, sizeof big);
    check_that(text.cut, "what does not fit is cut and says so");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests_name("etcd text", tests, NULL, NULL);
}
