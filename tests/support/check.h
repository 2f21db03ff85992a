/* check.h - cmocka with the headers it needs, and what most tests want. */
#ifndef HF_TESTS_CHECK_H
#define HF_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Fails with the index of a table's row, which cmocka's own assertions do not tell. */
#define check_row(condition, row)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("row %zu: %s\n", (size_t)(row), #condition);                               \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* Fails with words that say what is not so. */
#define check_that(condition, words)                                                               \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("not so: %s", (words));                                                       \
    } while (0)

/* Polls until the condition holds, ten seconds at most. */
#define check_soon(condition)                                                                      \
    do {                                                                                           \
        int tries_ = 0;                                                                            \
        while (!(condition) && tries_++ < 10000)                                                   \
            check_pause_ms(1);                                                                     \
        assert_true(condition);                                                                    \
    } while (0)

void check_pause_ms(long ms);

/* A fresh folder in TMPDIR, and its end with everything in it. */
void check_temp_dir(char *out, size_t size);
void check_remove_dir(const char *path);

#endif /* HF_TESTS_CHECK_H */
