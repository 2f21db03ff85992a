/* test_redis_request.c - commands, as they go over the wire. */
#include "stores/redis/wire/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

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
        cmocka_unit_test(test_request),
    };

    return cmocka_run_group_tests_name("redis_request", tests, NULL, NULL);
}
