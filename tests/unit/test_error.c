/* test_error.c - the caller's error, and the words for each status. */
#include "../support/check.h"
#include "base/base.h"

#include <string.h>

static void filled_and_cleared(void **state)
{
    struct hf_error err = {.code = HF_QUARANTINE, .retry_after_ms = 7, .text = "old"};

    (void)state;
    assert_int_equal(hf__fail(&err, HF_BUSY, "lock \"%s\": %d", "x", 42), HF_BUSY);
    assert_int_equal(err.code, HF_BUSY);
    assert_int_equal(err.retry_after_ms, 0);
    assert_string_equal(err.text, "lock \"x\": 42");
    err.retry_after_ms = 9;
    assert_int_equal(hf__ok(&err), HF_OK);
    assert_int_equal(err.code, HF_OK);
    assert_int_equal(err.retry_after_ms, 0);
    assert_string_equal(err.text, "");
    assert_int_equal(hf__nomem(&err), HF_NOMEM);
    assert_int_equal(err.code, HF_NOMEM);
    assert_true(err.text[0] != '\0');
}

static void null_is_fine(void **state)
{
    (void)state;
    assert_int_equal(hf__fail(NULL, HF_LOST, "%s", "x"), HF_LOST);
    assert_int_equal(hf__nomem(NULL), HF_NOMEM);
    assert_int_equal(hf__ok(NULL), HF_OK);
}

static void long_texts_are_cut(void **state)
{
    struct {
        struct hf_error err;
        char behind[8];
    } box;
    char text[1000];

    (void)state;
    memset(&box, '#', sizeof box);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(hf__fail(&box.err, HF_CORRUPT, "%s", text), HF_CORRUPT);
    assert_int_equal(strlen(box.err.text), HF_ERROR_TEXT_SIZE - 1);
    assert_memory_equal(box.behind, "########", 8);
}

static void a_lock_and_its_store_are_named(void **state)
{
    struct hf_error err;

    (void)state;
    assert_int_equal(
        hf__fail_lock(&err, HF_BUSY, "nightly", "redis://h", " is held by %s, for %s", "me", "3s"),
        HF_BUSY);
    assert_int_equal(err.code, HF_BUSY);
    assert_string_equal(err.text, "lock \"nightly\" in store redis://h is held by me, for 3s");
    (void)hf__fail_lock(&err, HF_UNREACHABLE, NULL, "redis://h", ": no answer");
    assert_string_equal(err.text, "store redis://h: no answer");
    (void)hf__fail_lock(&err, HF_UNKNOWN, "", "redis://h", ": %s", err.text); /* of itself */
    assert_string_equal(err.text, "store redis://h: store redis://h: no answer");
    (void)hf__fail_lock(&err, HF_DENIED, "a\033[2Jb", "file:/\r", ": no");
    assert_string_equal(err.text, "lock \"a?[2Jb\" in store file:/?: no");
    (void)hf__fail_lock(&err, HF_INVALID, "a", NULL, ": no");
    assert_string_equal(err.text, "lock \"a\": no");
    assert_int_equal(hf__fail_lock(NULL, HF_LOST, "x", "y", ": z"), HF_LOST);
}

static void every_store_refuses_in_the_same_words(void **state)
{
    struct hf_error err;

    (void)state;
    assert_int_equal(hf__fail_not_broken(&err, "a", "b:", 7, HF__HELD_WITH_OTHER_TOKEN), HF_LOST);
    assert_string_equal(err.text,
                        "lock \"a\" in store b: is held with another token: nothing was broken");
    (void)hf__fail_not_broken(&err, "a", "b:", 0, HF__HELD_WITH_OTHER_TOKEN);
    assert_string_equal(
        err.text, "lock \"a\" in store b: is held by holdfast, with a token: nothing was broken");
    assert_int_equal(hf__fail_old_record(&err, "a", "b:", "k"), HF_STALE);
    assert_string_equal(err.text,
                        "lock \"a\" in store b:: its record \"k\" is as new as this one, or newer");
}

/* What to do about it stands at the end: that is what must not be cut. */
static void long_names_and_urls_make_room(void **state)
{
    struct hf_error err;
    char name[256], url[1000];
    size_t name_len[] = {5, 255, 255, 5, 150};
    size_t url_len[] = {5, 5, 999, 999, 150};

    (void)state;
    for (size_t i = 0; i < COUNT(name_len); i++) {
        memset(name, 'n', name_len[i]);
        memset(url, 'u', url_len[i]);
        name[name_len[i]] = url[url_len[i]] = '\0';
        (void)hf__fail_lock(&err, HF_CORRUPT, name, url, ": what to do");
        check_row(strstr(err.text, ": what to do") != NULL, i);
        check_row(strspn(err.text + 6, "n") >= (name_len[i] < 100 ? name_len[i] : 100), i);
        check_row(strspn(strstr(err.text, "store ") + 6, "u") >=
                      (url_len[i] < 100 ? url_len[i] : 100),
                  i);
        check_row(name_len[i] + url_len[i] < 250 || strlen(err.text) >= HF_ERROR_TEXT_SIZE - 3, i);
    }
    memset(url, 'w', sizeof url - 1); /* words that leave no room */
    url[sizeof url - 1] = '\0';
    (void)hf__fail_lock(&err, HF_CORRUPT, "name", "store", ": %s", url);
    assert_int_equal(strlen(err.text), HF_ERROR_TEXT_SIZE - 1);
}

static void every_status_has_words(void **state)
{
    static const enum hf_status all[] = {
#define X(symbol, value, text) symbol,
        HF_STATUS_MAP(X)
#undef X
    };

    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        assert_int_equal(all[i], i); /* the numbers are part of the interface: no gaps */
        assert_int_equal(strncmp(hf_status_name(all[i]), "HF_", 3), 0);
        assert_true(strlen(hf_status_text(all[i])) > 1);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(hf_status_name(all[i]), hf_status_name(all[j]));
            assert_string_not_equal(hf_status_text(all[i]), hf_status_text(all[j]));
        }
    }
    assert_string_equal(hf_status_name(HF_BUSY), "HF_BUSY");
    assert_string_equal(hf_status_text(HF_BUSY), "held by another");
    assert_non_null(hf_status_name((enum hf_status)99));
    assert_non_null(hf_status_text((enum hf_status)99));
}

static void every_loss_has_words(void **state)
{
    static const enum hf_loss all[] = {
#define X(symbol, value, text) symbol,
        HF_LOSS_MAP(X)
#undef X
    };

    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        assert_int_equal(all[i], i);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(hf_loss_text(all[i]), hf_loss_text(all[j]));
    }
    assert_non_null(hf_loss_text((enum hf_loss)99));
}

/* These numbers are compiled into callers. */
static void numbers_do_not_move(void **state)
{
    (void)state;
    assert_int_equal(HF_OK, 0);
    assert_int_equal(HF_LOST, 2);
    assert_int_equal(HF_UNKNOWN, 5);
    assert_int_equal(HF_INVALID, 9);
    assert_int_equal(HF_NOMEM, 12);
    assert_int_equal(HF_LOSS_CLOSED, 6);
    assert_string_equal(hf_version(), HF_VERSION_STRING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filled_and_cleared),
        cmocka_unit_test(null_is_fine),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(every_status_has_words),
        cmocka_unit_test(every_loss_has_words),
        cmocka_unit_test(numbers_do_not_move),
        cmocka_unit_test(a_lock_and_its_store_are_named),
        cmocka_unit_test(every_store_refuses_in_the_same_words),
        cmocka_unit_test(long_names_and_urls_make_room),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
