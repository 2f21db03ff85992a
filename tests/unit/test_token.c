/* test_token.c - which fencing token comes next. */
#include "../support/check.h"
#include "core/token.h"

static void the_largest_of_three(void **state)
{
    static const struct {
        uint64_t last;
        int64_t clock_us;
        uint64_t floor;
        uint64_t expected; /* 0: there is none */
    } rows[] = {
        {0, 0, 0, 1},
        {0, -1, 0, 1},
        {0, INT64_MIN, 0, 1}, /* a clock before 1970 counts for nothing */
        {5, 0, 0, 6},
        {5, 6, 0, 6},
        {5, 5, 0, 6}, /* never the same again, though the clock stands still */
        {5, 4, 0, 6}, /* nor less, though it goes back */
        {5, 100, 0, 100},
        {5, 100, 200, 200},
        {500, 100, 200, 501},
        {200, 0, 200, 201},
        {0, INT64_MAX, 0, HF__TOKEN_MAX},
        {HF__TOKEN_MAX - 1, 0, 0, HF__TOKEN_MAX},
        {HF__TOKEN_MAX, 0, 0, 0},
        {HF__TOKEN_MAX, INT64_MAX, HF__TOKEN_MAX, 0},
        {UINT64_MAX, 0, 0, 0},
        {0, 0, HF__TOKEN_MAX, HF__TOKEN_MAX},
        {0, 0, HF__TOKEN_MAX + 1, 0},
        {0, 0, UINT64_MAX, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t token = 0;

        check_row(hf__token_next(rows[i].last, rows[i].clock_us, rows[i].floor, &token) ==
                      (rows[i].expected != 0),
                  i);
        check_row(token == rows[i].expected, i); /* untouched if there is none */
    }
}

/* A clock that jumps about, also backwards: the sequence rises all the same. */
static void always_rising(void **state)
{
    uint64_t last = 0;
    uint64_t jump = 88172645463325252u;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t token;

        jump ^= jump << 13;
        jump ^= jump >> 7;
        jump ^= jump << 17;
        assert_true(hf__token_next(last, (int64_t)(jump >> 20) - (1LL << 42), jump >> 22, &token));
        assert_true(token > last && token <= HF__TOKEN_MAX);
        last = token;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_of_three),
        cmocka_unit_test(always_rising),
    };

    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
