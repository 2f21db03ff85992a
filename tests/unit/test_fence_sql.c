/* test_fence_sql.c - names in a migration are quoted, and its statements told apart. */
#include "fence/fence.h"

#include "../support/check.h"
#include <stdlib.h>
#include <string.h>

static void sql_names(void **state)
{
    static const struct {
        enum hf_fence_dialect dialect;
        const char *table;
        const char *expect;
    } cases[] = {
        {HF_FENCE_POSTGRES, "a\"b", "install('\"a\"\"b\"', NULL, NULL)"},
        {HF_FENCE_POSTGRES, "a'b", "install('\"a''b\"', NULL, NULL)"},
        {HF_FENCE_POSTGRES, "a\\'b", "install(E'\"a\\\\''b\"', NULL, NULL)"},
        {HF_FENCE_SQLITE, "a\"b",
         "CREATE TRIGGER \"holdfast_insert_a\"\"b\" BEFORE INSERT ON \"a\"\"b\""},
        {HF_FENCE_MARIADB, "a`b", "ON `a``b`"},
        {HF_FENCE_MARIADB, "a\\b", "CONVERT(X'615c62' USING utf8mb4)"},
        {HF_FENCE_SQLITE, "@RESOURCE@", "ON \"@RESOURCE@\""}, /* a name is not a template */
    };
    struct hf_error err;
    char *text;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_fence_sql what = {
            .size = sizeof what, .dialect = cases[i].dialect, .table = cases[i].table};

        assert_int_equal(hf_fence_sql(&what, &text, &err), HF_OK);
        assert_non_null(strstr(text, cases[i].expect));
        assert_null(strstr(text, "@section"));
        free(text);
    }
    for (int dialect = 0; dialect < 3; dialect++)
        for (int kind = 0; kind < 8; kind++) {
            struct hf_fence_sql what = {.size = sizeof what,
                                        .dialect = (enum hf_fence_dialect)dialect,
                                        .table = "t",
                                        .per_row = kind & 1,
                                        .down = kind & 2,
                                        .last = kind & 4};

            assert_int_equal(hf_fence_sql(&what, &text, &err), HF_OK);
            assert_null(strchr(text, '@') != NULL ? strstr(text, "@T") : NULL);
            assert_true(strlen(text) > 20);
            free(text);
        }
}

static size_t count_statements(enum hf_fence_dialect dialect, const char *table, bool down)
{
    struct hf_fence_sql what = {.size = sizeof what,
                                .dialect = dialect,
                                .table = table,
                                .json = true,
                                .down = down,
                                .last = down};
    struct hf_error err;
    size_t count = 0;
    char *text;

    assert_int_equal(hf_fence_sql(&what, &text, &err), HF_OK);
    assert_null(strstr(text, "\n  \"DELIMITER"));
    assert_null(strstr(text, "\n  \"COMMIT"));
    for (const char *at = text; (at = strstr(at, "\n  \"")) != NULL; at++)
        count++;
    free(text);
    return count;
}

/* Statements are told apart by how their lines look: no name may look like that. */
static void sql_statements(void **state)
{
    static const char *const names[] = {
        "a;", "a//", " AS $holdfast$", "DO $up$", "$up$;",  "BEGIN", "END;",
        "--", "\\",  "DELIMITER //",   "\"",      "COMMIT;"};

    (void)state;
    for (int dialect = 0; dialect < 3; dialect++)
        for (int down = 0; down < 2; down++) {
            size_t count = count_statements((enum hf_fence_dialect)dialect, "t", down);

            assert_true(count > 1);
            for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                assert_int_equal(count_statements((enum hf_fence_dialect)dialect, names[i], down),
                                 count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sql_names),
        cmocka_unit_test(sql_statements),
    };

    return cmocka_run_group_tests_name("fence sql", tests, NULL, NULL);
}
