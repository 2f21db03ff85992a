/* test_text.c - names, numbers, durations, hex, hashes and "did you mean". */
#include "../support/check.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static void hex_goes_both_ways(void **state)
{
    unsigned char raw[256];
    unsigned char back[256];
    char text[513];

    (void)state;
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (unsigned char)i;
    hf__hex_encode(text, raw, sizeof raw);
    assert_int_equal(strlen(text), 512);
    assert_int_equal(strspn(text, "0123456789abcdef"), 512);
    assert_true(hf__hex_decode(back, sizeof back, text));
    assert_memory_equal(raw, back, sizeof raw);
    hf__hex_encode(text, raw, 0);
    assert_string_equal(text, "");
}

static void hex_refuses_what_is_not_hex(void **state)
{
    static const char *const bad[] = {"",      "a",    "abc",  "abcde", "ab cd", "0x1f",
                                      "abc\n", "abcg", "ABCG", " abc",  "ab-1",  "abc\xff"};
    unsigned char out[2];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        check_row(!hf__hex_decode(out, sizeof out, bad[i]), i);
    assert_true(hf__hex_decode(out, sizeof out, "ABcd"));
    assert_int_equal(out[0], 0xab);
    assert_int_equal(out[1], 0xcd);
}

static void names(void **state)
{
    char longest[HF_NAME_MAX + 2];

    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[HF_NAME_MAX + 1] = '\0';
    assert_false(hf__name_valid(longest));
    longest[HF_NAME_MAX] = '\0';
    assert_true(hf__name_valid(longest));
    assert_true(hf__name_valid("a"));
    assert_true(hf__name_valid(" "));
    assert_true(hf__name_valid("gr\xc3\xbc\xc3\x9f/{x}%20*?"));
    assert_true(hf__name_valid("\xff\xfe")); /* bytes, not characters */
    assert_false(hf__name_valid(""));
    for (int c = 1; c < 256; c++) {
        char name[4] = {'a', (char)c, 'b', '\0'};

        check_row(hf__name_valid(name) == (c >= 0x20 && c != 0x7f), c);
    }
}

static void labels_are_cut_between_characters(void **state)
{
    static const struct {
        size_t size;
        const char *text;
        const char *expected;
    } rows[] = {
        {8, "abc", "abc"},
        {4, "abc", "abc"},
        {4, "abcd", "abc"},
        {1, "abc", ""},
        {8, "a\nb\x7f\x1b[m", "a?b??[m"},
        {3, "a\xc3\xbc", "a"},                        /* two bytes, room for one */
        {4, "a\xc3\xbc", "a\xc3\xbc"},                /* room for both */
        {5, "\xf0\x9f\x94\x92x", "\xf0\x9f\x94\x92"}, /* four and no more */
        {4, "\xf0\x9f\x94\x92x", ""},
        {3, "\x80\x80\x80\x80", "??"}, /* continuation bytes only */
        {8, "a\xc3", "a?"},            /* half a character */
        {8, "\xe4\xf6z", "??z"},       /* Latin 1 */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[16];

        memset(out, '#', sizeof out);
        hf__copy_printable(out, rows[i].size, rows[i].text);
        check_row(strcmp(out, rows[i].expected) == 0, i);
        check_row(out[rows[i].size] == '#', i); /* nothing written behind */
    }
}

/* One '?' for each character that steers a terminal, or turns the order of the others around. */
static void what_deceives_is_not_shown(void **state)
{
    static const char *const bad[] = {
        "\x01",         "\x1b",         "\x7f",         "\xc2\x80",     "\xc2\x85",
        "\xc2\x9b",     "\xc2\x9f",     "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f",
        "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac",
        "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8",
        "\xe2\x81\xa9"};
    static const char *const good[] = {"\xc2\xa0",     "\xc3\xbc", "\xe2\x82\xac",
                                       "\xe2\x80\x94", "\xd7\x90", "\xf0\x9f\x94\x92"};
    char text[16], out[16], expected[16];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        (void)snprintf(text, sizeof text, "a%sb", bad[i]);
        hf__copy_printable(out, sizeof out, text);
        check_row(strcmp(out, "a?b") == 0, i);
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        (void)snprintf(expected, sizeof expected, "a%sb", good[i]);
        hf__copy_printable(out, sizeof out, expected);
        check_row(strcmp(out, expected) == 0, i);
    }
}

static void numbers(void **state)
{
    static const char *const bad[] = {"",    "-1",
                                      "+1",  " 1",
                                      "1 ",  "0x1",
                                      "1.0", "18446744073709551616",
                                      "1e3", "99999999999999999999",
                                      "a"};
    uint64_t value = 42;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        check_row(!hf__parse_u64(bad[i], &value), i);
    assert_int_equal(value, 42); /* untouched by all of these */
    assert_true(hf__parse_u64("18446744073709551615", &value));
    assert_true(value == UINT64_MAX);
    assert_true(hf__parse_u64("00018", &value));
    assert_int_equal(value, 18);
    assert_true(hf__parse_u64("0", &value));
    assert_int_equal(value, 0);
}

static void durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"0", 0},
        {"0ms", 0},
        {"250ms", 250},
        {"30", 30000},
        {"30s", 30000},
        {"5m", 300000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"1.5s", 1500},
        {"0.25", 250},
        {"1.5ms", 1},
        {"0.9999999999999999999999s", 999},
        {"1.5h", 5400000},
        {"007s", 7000},
        {"9223372036854775ms", 9223372036854775},
        {"9223372036854s", 9223372036854000},
        {"106751991d", 106751991LL * 86400000},
        {"1h30m", 5400000},
        {"1m30s", 90000},
        {"1d2h3m4s5ms", 93784005},
        {"1m0s", 60000},
        {"1m1.5s", 61500},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = -1;

        check_row(hf__parse_duration_ms(rows[i].text, &ms), i);
        check_row(ms == rows[i].ms, i);
    }
}

static void durations_that_are_none(void **state)
{
    static const char *const bad[] = {
        "", " ", "s", "ms", "-1", "-1s", "+1s", "1 s", "1s ", " 1s", "1S", "1sec", "1min", "1.s",
        ".5s", "1..5s", "1,5s", "0x1", "1e3", "1h30", "30m1h", "1m2m", "1ms2s", "1h 30m", "1h-30m",
        "1h30mx", "inf", "nan", "1w", "1.5.", "1m s", "\x31\n", "1us",
        /* too large for the milliseconds of 64 bits, in each unit */
        "99999999999999999999", "9223372036854775808ms", "9223372036854776s", "153722867280913m",
        "2562047788016h", "106751991168d", "9223372036854775807d", "106751991167d24h"};
    int64_t ms = -7;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        check_row(!hf__parse_duration_ms(bad[i], &ms), i);
    assert_int_equal(ms, -7);
}

static void durations_for_people(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{0, "0ms"},
                {999, "999ms"},
                {1000, "1s"},
                {1500, "1.5s"},
                {5040, "5s"},
                {9999, "9.9s"},
                {10000, "10s"},
                {59999, "59s"},
                {60000, "1m"},
                {7200000, "2h"},
                {601000, "10m01s"},
                {200000, "3m20s"},
                {3599999, "59m59s"},
                {3720000, "1h02m"},
                {86399999, "23h59m"},
                {86400000, "1d"},
                {-1, "?"},
                {INT64_MIN, "?"},
                {INT64_MAX, "106751991167d07h"}};
    char out[32];
    char tiny[4];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(strcmp(hf__format_duration(out, sizeof out, rows[i].ms), rows[i].text) == 0, i);
    assert_string_equal(hf__format_duration(tiny, sizeof tiny, 123456), "2m0");
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

/* Names as people give them, of every length: no two alike in 64 bits, nor crowded in the low bits
 * that choose a bucket. */
static void hashes_do_not_collide(void **state)
{
    enum { NAMES = 200000, BUCKETS = 4096 };
    uint64_t *hashes = malloc(NAMES * sizeof *hashes);
    unsigned *load = calloc(BUCKETS, sizeof *load);

    (void)state;
    assert_non_null(hashes);
    assert_non_null(load);
    for (int i = 0; i < NAMES; i++) {
        char name[64];
        int len = snprintf(name, sizeof name, "%.*s%d", i % 48,
                           "shop/orders/nightly-job-number-of-tenant-0000000-", i);

        hashes[i] = hf__hash64(name, (size_t)len, 1);
        load[hashes[i] % BUCKETS]++;
    }
    for (int i = 0; i < BUCKETS; i++)
        check_row(load[i] < 3 * NAMES / BUCKETS, i);
    qsort(hashes, NAMES, sizeof *hashes, by_value);
    for (int i = 1; i < NAMES; i++)
        check_row(hashes[i] != hashes[i - 1], i);
    free(hashes);
    free(load);
}

/* As a checksum it must notice any single flipped bit, a cut, and a shift into zeros. */
static void hashes_notice_every_bit(void **state)
{
    unsigned char block[504] = {0};
    uint64_t zeros[COUNT(block) + 1];
    uint64_t whole;

    (void)state;
    for (size_t len = 0; len <= sizeof block; len++)
        zeros[len] = hf__hash64(block, len, 7);
    qsort(zeros, COUNT(zeros), sizeof *zeros, by_value);
    for (size_t i = 1; i < COUNT(zeros); i++)
        check_row(zeros[i] != zeros[i - 1], i);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)(i * 37);
    whole = hf__hash64(block, sizeof block, 7);
    assert_true(whole != hf__hash64(block, sizeof block, 8));
    for (size_t bit = 0; bit < 8 * sizeof block; bit++) {
        block[bit / 8] ^= (unsigned char)(1 << bit % 8);
        check_row(hf__hash64(block, sizeof block, 7) != whole, bit);
        block[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(hf__hash64(block, sizeof block, 7) == whole);
}

/* The hash of a name decides where it lies on the disk: it must not depend on where it lies in
 * memory. */
static void hashes_do_not_depend_on_alignment(void **state)
{
    static const char text[] = "a name of more than thirty-two bytes, as some are";
    char buf[sizeof text + 16];
    uint64_t expected = hf__hash64(text, sizeof text, 3);

    (void)state;
    for (size_t at = 0; at < 16; at++) {
        memcpy(buf + at, text, sizeof text);
        check_row(hf__hash64(buf + at, sizeof text, 3) == expected, at);
    }
}

static void distances(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {{"", "", 0},
                {"", "run", 3},
                {"run", "run", 0},
                {"run", "rnu", 1},
                {"run", "ru", 1},
                {"run", "runn", 1},
                {"run", "ran", 1},
                {"acquire", "aquire", 1},
                {"release", "relaese", 1},
                {"status", "stats", 1},
                {"list", "lsit", 1},
                {"renew", "release", 4},
                {"abcd", "badc", 2},
                {"--wait", "--watt", 1}};
    char longest[33];
    char too_long[34];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(hf__edit_distance(rows[i].a, rows[i].b) == rows[i].distance, i);
        check_row(hf__edit_distance(rows[i].b, rows[i].a) == rows[i].distance, i);
    }
    memset(longest, 'x', 32);
    longest[32] = '\0';
    memset(too_long, 'x', 33);
    too_long[33] = '\0';
    assert_int_equal(hf__edit_distance(longest, longest), 0);
    assert_int_equal(hf__edit_distance(longest, ""), 32);
    assert_true(hf__edit_distance(too_long, too_long) >= 32); /* not compared, never "alike" */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_goes_both_ways),
        cmocka_unit_test(hex_refuses_what_is_not_hex),
        cmocka_unit_test(names),
        cmocka_unit_test(labels_are_cut_between_characters),
        cmocka_unit_test(what_deceives_is_not_shown),
        cmocka_unit_test(numbers),
        cmocka_unit_test(durations),
        cmocka_unit_test(durations_that_are_none),
        cmocka_unit_test(durations_for_people),
        cmocka_unit_test(hashes_do_not_collide),
        cmocka_unit_test(hashes_notice_every_bit),
        cmocka_unit_test(hashes_do_not_depend_on_alignment),
        cmocka_unit_test(distances),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
