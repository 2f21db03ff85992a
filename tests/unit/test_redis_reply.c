/* test_redis_reply.c - replies, as they come over the wire. */
#include "stores/redis/wire/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

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
    struct rd_reader *reader;
    size_t fed = 0;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reader = rd_reader_open();
        if (rd_reader_feed(reader, bad[i], strlen(bad[i])) && rd_reader_next(reader, &reply))
            fail_msg("\"%s\" was accepted", bad[i]);
        assert_true(rd_reader_fault(reader)[0] != '\0');
        assert_false(rd_reader_feed(reader, ":1\r\n", 4));
        rd_reader_close(reader);
    }
    reader = rd_reader_open();
    assert_true(rd_reader_feed(reader, "$400000000\r\n", 12));
    while (rd_reader_feed(reader, chunk, sizeof chunk) && rd_reader_next(reader, &reply) &&
           reply == NULL)
        fed += sizeof chunk;
    assert_true(fed <= RD_REPLY_MAX_BYTES);
    rd_reader_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply),
        cmocka_unit_test(test_reply_limits),
    };

    return cmocka_run_group_tests_name("redis_reply", tests, NULL, NULL);
}
