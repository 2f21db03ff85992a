/* test_fence_text.c - the mark of a fenced key as a text: what is judged by it, and what replaces
 * it. */
#include "core/fence_text.h"
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char made[HF__FENCE_TEXT_SIZE];
static struct hf_fence_mark seen;

static enum hf_status judge(enum hf_fence_op op, const char *text, uint64_t token,
                            const char *issuer)
{
    struct hf_fence_request request = {
        .op = op, .token = token, .issuer = issuer, .issuer_url = "", .reason = "because"};

    return hf__fence_judge(&request, text, 77, &seen, made);
}

static void raises(void **state)
{
    (void)state;
    assert_int_equal(judge(HF_FENCE_SET, NULL, 5, "a"), HF_OK);
    assert_string_equal(made, "1 5 77 a\n");
    assert_int_equal(judge(HF_FENCE_SET, "1 5 60 a\n", 5, "a"), HF_OK);
    assert_string_equal(made, ""); /* it stays */
    assert_int_equal(judge(HF_FENCE_DEL, "1 5 60 a\n", 6, ""), HF_OK);
    assert_string_equal(made, "1 6 77 a\n");
    assert_int_equal(judge(HF_FENCE_ENTER_KEY, "1 5 60 \n", 5, "b"), HF_OK);
    assert_string_equal(made, "1 5 60 b\n");
    assert_int_equal(judge(HF_FENCE_SET, "1 9223372036854775806 60 \n", HF_FENCE_TOKEN_MAX, ""),
                     HF_OK);
    assert_string_equal(made, "1 9223372036854775807 77 \n");
}

static void refuses(void **state)
{
    (void)state;
    assert_int_equal(judge(HF_FENCE_SET, "1 5 60 a\n", 4, "a"), HF_STALE);
    assert_true(seen.token == 5 && seen.admitted_us == 60);
    assert_string_equal(seen.issuer, "a");
    assert_int_equal(judge(HF_FENCE_SET, "1 5 60 a\n", 6, "b"), HF_INVALID);
    assert_string_equal(seen.issuer, "a");
    assert_string_equal(made, "");
}

static void reads(void **state)
{
    (void)state;
    assert_int_equal(judge(HF_FENCE_READ_KEY, "1 5 60 a\n", 0, ""), HF_OK);
    assert_true(seen.token == 5);
    assert_int_equal(judge(HF_FENCE_READ_KEY, NULL, 0, ""), HF_OK);
    assert_true(seen.token == 0);
}

/* The last resets stay on record, whatever is raised since. */
static void resets(void **state)
{
    char text[HF__FENCE_TEXT_SIZE] = "1 5 60 a\n";
    size_t lines = 0;

    (void)state;
    assert_int_equal(judge(HF_FENCE_RESET_KEY, text, 0, "b"), HF_OK);
    assert_string_equal(made, "1 0 77 b\n77 5 a -> 0 b: because\n");
    for (int i = 0; i < 2 * HF__FENCE_RESETS_MAX; i++) {
        memcpy(text, made, sizeof text);
        assert_int_equal(judge(HF_FENCE_RESET_KEY, text, 3, "b"), HF_OK);
    }
    memcpy(text, made, sizeof text);
    assert_int_equal(judge(HF_FENCE_SET, text, 4, "b"), HF_OK);
    for (const char *at = made; *at != '\0'; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 1 + HF__FENCE_RESETS_MAX);
}

static void longest(void **state)
{
    char issuer[HF_FENCE_ISSUER_MAX + 1] = "";
    char reason[HF_FENCE_REASON_MAX + 1] = "";
    char text[HF__FENCE_TEXT_SIZE] = "";
    struct hf_fence_request request = {.op = HF_FENCE_RESET_KEY,
                                       .token = HF_FENCE_TOKEN_MAX,
                                       .issuer = issuer,
                                       .issuer_url = "",
                                       .reason = reason};

    (void)state;
    memset(issuer, 'i', HF_FENCE_ISSUER_MAX);
    memset(reason, 'r', HF_FENCE_REASON_MAX);
    for (int i = 0; i < 2 * HF__FENCE_RESETS_MAX; i++) {
        memcpy(text, made, sizeof text);
        assert_int_equal(hf__fence_judge(&request, i > 0 ? text : NULL, INT64_MAX, &seen, made),
                         HF_OK);
    }
    assert_true(made[strlen(made) - 1] == '\n');
    memcpy(text, made, sizeof text);
    assert_int_equal(judge(HF_FENCE_READ_KEY, text, 0, ""), HF_OK);
    assert_string_equal(seen.issuer, issuer);
}

static void damaged(void **state)
{
    static const char *const texts[] = {"",           "1",
                                        "2 5 60 a\n", "1 x 60 a\n",
                                        "1 5 60 a",   "1 5\n60 a\n",
                                        "rubbish\n",  "1 5 60\n",
                                        "1 -5 6 a\n", "1 9223372036854775808 60 a\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(judge(HF_FENCE_SET, texts[i], 5, "a"), HF_CORRUPT);
        assert_int_equal(judge(HF_FENCE_RESET_KEY, texts[i], 0, "a"), HF_OK);
        assert_string_equal(made, "1 0 77 a\n77 0  -> 0 a: because\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raises), cmocka_unit_test(refuses), cmocka_unit_test(reads),
        cmocka_unit_test(resets), cmocka_unit_test(longest), cmocka_unit_test(damaged),
    };

    return cmocka_run_group_tests_name("fence_text", tests, NULL, NULL);
}
