/* test_explain.c - what one can tell from the sight of a lock. */
#include "../support/check.h"
#include "core/explain.h"

struct row {
    struct hf__sight sight;
    enum hf__seems seems;
    enum hf__next next;
    int64_t next_ms;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hf__explained out = hf__explain(&rows[i].sight);

        check_row(out.seems == rows[i].seems, i);
        check_row(out.next == rows[i].next, i);
        check_row(out.next_ms == rows[i].next_ms, i);
    }
}

static void what_happens_next(void **state)
{
    static const struct row rows[] = {
        {{.held = false}, HF__SEEMS_NOBODY, HF__NEXT_GRANT, 0},
        {{.waiters = 2}, HF__SEEMS_NOBODY, HF__NEXT_WAITER, 0},
        {{.quarantine = true, .quarantine_ms = 700, .waiters = 1},
         HF__SEEMS_NOBODY,
         HF__NEXT_QUARANTINE,
         700},
        /* Every ttl/3, and every 10s at the least. */
        {{.held = true, .ttl_ms = 30000, .remaining_ms = 25000, .renewed_ago_ms = 5000},
         HF__SEEMS_ALIVE,
         HF__NEXT_RENEWAL,
         5000},
        {{.held = true, .ttl_ms = 3000, .remaining_ms = 2900, .renewed_ago_ms = 100},
         HF__SEEMS_ALIVE,
         HF__NEXT_RENEWAL,
         900},
        {{.held = true, .ttl_ms = 3600000, .remaining_ms = 3590000, .renewed_ago_ms = 10000},
         HF__SEEMS_ALIVE,
         HF__NEXT_RENEWAL,
         0},
        {{.held = true, .ttl_ms = 3600000, .remaining_ms = 3500000, .renewed_ago_ms = 100000},
         HF__SEEMS_LATE,
         HF__NEXT_END,
         3500000},
        {{.held = true, .ttl_ms = 30000, .remaining_ms = 2000, .renewed_ago_ms = 28000},
         HF__SEEMS_LATE,
         HF__NEXT_END,
         2000},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void what_happens_next_to_odd_holds(void **state)
{
    static const struct row rows[] = {
        {{.held = true, .detached = true, .ttl_ms = 30000, .remaining_ms = 29000},
         HF__SEEMS_DETACHED,
         HF__NEXT_END,
         29000},
        {{.held = true, .remaining_ms = 4000, .renewed_ago_ms = -1},
         HF__SEEMS_UNKNOWN,
         HF__NEXT_END,
         4000},
        {{.held = true, .remaining_ms = -1, .renewed_ago_ms = -1},
         HF__SEEMS_UNKNOWN,
         HF__NEXT_UNKNOWN,
         -1},
        {{.held = true, .ttl_ms = 30000, .remaining_ms = -1, .renewed_ago_ms = 1000},
         HF__SEEMS_ALIVE,
         HF__NEXT_RENEWAL,
         9000},
        /* A key without a ttl never ends, whoever wrote it. */
        {{.held = true, .foreign = true, .endless = true, .remaining_ms = -1},
         HF__SEEMS_UNKNOWN,
         HF__NEXT_NEVER,
         -1},
        {{.held = true, .broken = true, .ttl_ms = 30000, .remaining_ms = 9000},
         HF__SEEMS_ALIVE,
         HF__NEXT_RELEASE,
         9000},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void tokens_that_tell_the_time(void **state)
{
    const int64_t now_us = 1794960469000000;
    int64_t at_us = 0;

    (void)state;
    assert_true(hf__token_time(1794960468000001u, now_us, &at_us));
    assert_int_equal(at_us, 1794960468000001);
    assert_true(hf__token_time((uint64_t)now_us + 5, now_us, &at_us)); /* clocks differ */
    assert_false(hf__token_time(0, now_us, &at_us));
    assert_false(hf__token_time(4711, now_us, &at_us));         /* a revision */
    assert_false(hf__token_time(0x500000007u, now_us, &at_us)); /* a czxid */
    assert_false(hf__token_time(INT64_MAX, now_us, &at_us));
    assert_false(hf__token_time(UINT64_MAX, now_us, &at_us));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_happens_next),
        cmocka_unit_test(what_happens_next_to_odd_holds),
        cmocka_unit_test(tokens_that_tell_the_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
