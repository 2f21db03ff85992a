/* test_fence_rule.c - the rule, the caller's own storage, the sidecar's record, the quoting of
 * names. */
#include "fence/fence.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hf_fence_mark mark_of(uint64_t token, const char *issuer)
{
    struct hf_fence_mark mark = {.token = token, .admitted_us = 1};

    (void)snprintf(mark.issuer, sizeof mark.issuer, "%s", issuer);
    return mark;
}

static void decides(void **state)
{
    static const struct {
        uint64_t mark;
        const char *follows;
        uint64_t token;
        const char *issuer;
        enum hf_fence_verdict verdict;
        uint64_t after;
        const char *then;
    } cases[] = {
        {0, "", 1, "a", HF_FENCE_RAISE, 1, "a"},
        {0, "", 1, NULL, HF_FENCE_RAISE, 1, ""},
        {33, "a", 34, "a", HF_FENCE_RAISE, 34, "a"},
        {34, "a", 34, "a", HF_FENCE_ADMIT, 34, "a"},
        {34, "a", 33, "a", HF_FENCE_STALE, 34, "a"},
        {34, "a", 34, "", HF_FENCE_ADMIT, 34, "a"},
        {34, "a", 34, NULL, HF_FENCE_ADMIT, 34, "a"},
        {34, "a", 35, NULL, HF_FENCE_RAISE, 35, "a"},
        {34, "", 34, "b", HF_FENCE_RAISE, 34, "b"}, /* the same token, but now it says whose */
        {34, "", 33, "b", HF_FENCE_STALE, 34, ""},
        {34, "a", 35, "b", HF_FENCE_FOREIGN, 34, "a"},
        {34, "a", 33, "b", HF_FENCE_FOREIGN, 34, "a"}, /* not "stale": that has no meaning here */
        {34, "a", 0, "a", HF_FENCE_BAD, 34, "a"},
        {0, "", 0, "", HF_FENCE_BAD, 0, ""},
        {1ULL << 53, "a", (1ULL << 53) + 1, "a", HF_FENCE_RAISE, (1ULL << 53) + 1, "a"},
        {(1ULL << 53) + 1, "a", 1ULL << 53, "a", HF_FENCE_STALE, (1ULL << 53) + 1, "a"},
        {1, "", INT64_MAX, "", HF_FENCE_RAISE, INT64_MAX, ""},
        {INT64_MAX, "", INT64_MAX, "", HF_FENCE_ADMIT, INT64_MAX, ""},
        {INT64_MAX, "", INT64_MAX - 1, "", HF_FENCE_STALE, INT64_MAX, ""},
        {1, "", (uint64_t)INT64_MAX + 1, "", HF_FENCE_BAD, 1, ""},
        {1, "", UINT64_MAX, "", HF_FENCE_BAD, 1, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_fence_mark mark = mark_of(cases[i].mark, cases[i].follows);

        assert_int_equal(hf_fence_decide(&mark, cases[i].token, cases[i].issuer, 7),
                         cases[i].verdict);
        assert_true(mark.token == cases[i].after);
        assert_string_equal(mark.issuer, cases[i].then);
        assert_int_equal(mark.admitted_us, cases[i].after > cases[i].mark ? 7 : 1);
    }
}

/* A million random tokens: what is admitted never falls, what is refused is below the highest. */
static void never_falls(void **state)
{
    struct hf_fence_mark mark = {.token = 0};
    uint64_t random = 1;
    uint64_t highest = 0;

    (void)state;
    for (int i = 0; i < 1000000; i++) {
        uint64_t token;
        enum hf_fence_verdict verdict;

        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        token = 1 + (random >> 40) % (1 + (uint64_t)i);
        verdict = hf_fence_decide(&mark, token, NULL, i);
        assert_int_equal(verdict, token < highest    ? HF_FENCE_STALE
                                  : token == highest ? HF_FENCE_ADMIT
                                                     : HF_FENCE_RAISE);
        highest = token > highest ? token : highest;
        assert_true(mark.token == highest);
    }
}

struct row {
    struct hf_fence_mark mark;
    int saves;
    enum hf_status load_says;
    enum hf_status save_says;
};

static enum hf_status row_load(void *data, struct hf_fence_mark *mark, struct hf_error *err)
{
    struct row *row = data;

    *mark = row->mark;
    return row->load_says == HF_OK ? HF_OK : hf__fail(err, row->load_says, "no row");
}

static enum hf_status row_save(void *data, const struct hf_fence_mark *mark, struct hf_error *err)
{
    struct row *row = data;

    if (row->save_says != HF_OK)
        return hf__fail(err, row->save_says, "no save");
    row->mark = *mark;
    row->saves++;
    return HF_OK;
}

static void own_storage(void **state)
{
    struct row row = {.saves = 0};
    struct hf_fence_storage storage = {sizeof storage, "orders", row_load, row_save, &row};
    struct hf_fence_pass pass = {.size = sizeof pass, .token = 34, .issuer = "redis://a"};
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_fence_admit(&storage, &pass, &err), HF_OK);
    assert_int_equal(row.saves, 1);
    assert_int_equal(hf_fence_admit(&storage, &pass, &err), HF_OK);
    assert_int_equal(row.saves, 1); /* nothing rose, nothing is stored */
    pass.token = 33;
    assert_int_equal(hf_fence_admit(&storage, &pass, &err), HF_STALE);
    assert_non_null(strstr(err.text, "token 33 is stale: 34 was admitted at 20"));
    assert_non_null(strstr(err.text, "orders"));
    pass.token = 35;
    pass.issuer = "redis://b";
    assert_int_equal(hf_fence_admit(&storage, &pass, &err), HF_INVALID);
    assert_non_null(strstr(err.text, "fence reset"));
    pass.issuer = NULL;
    row.save_says = HF_UNREACHABLE;
    assert_int_equal(hf_fence_admit(&storage, &pass, &err), HF_UNREACHABLE);
    assert_string_equal(err.text, "no save");
    assert_true(row.mark.token == 34);
    row.load_says = HF_DENIED;
    assert_int_equal(hf_fence_admit(&storage, &pass, NULL), HF_DENIED);
}

static void record_round_trip(void **state)
{
    char slot[HF__FENCE_SLOT_SIZE];
    struct hf__fence_record in = {
        .seq = UINT64_MAX,
        .mark = {.token = INT64_MAX, .admitted_us = INT64_MIN, .issuer = ""},
        .pending = {.offset = INT64_MAX, .len = HF_FENCE_APPEND_MAX, .hash = UINT64_MAX}};
    struct hf__fence_record out;

    (void)state;
    memset(in.mark.issuer, '%', HF_FENCE_ISSUER_MAX); /* the longest when encoded */
    hf__fence_record_encode(slot, &in);
    assert_true(hf__fence_record_decode(slot, &out));
    assert_memory_equal(&in, &out, sizeof in);
    assert_int_equal(slot[HF__FENCE_SLOT_SIZE - 1], '\n');

    /* Any byte of the text that changes is noticed. The padding behind it may be anything. */
    for (char *c = slot; c < strstr(slot, " sum=") + strlen(" sum=") + 16; c++) {
        *c = (char)(*c ^ 1);
        assert_false(hf__fence_record_decode(slot, &out));
        *c = (char)(*c ^ 1);
    }
    memset(slot, 0, sizeof slot);
    assert_false(hf__fence_record_decode(slot, &out));
    memset(slot, 'x', sizeof slot);
    assert_false(hf__fence_record_decode(slot, &out));
    memcpy(slot + sizeof slot - 5, " sum=", 5);
    assert_false(hf__fence_record_decode(slot, &out));
}

static void newest_record(void **state)
{
    char slots[HF__FENCE_SLOTS * HF__FENCE_SLOT_SIZE];
    struct hf__fence_record record;
    bool unsettled;

    (void)state;
    for (uint64_t i = 0; i < HF__FENCE_SLOTS; i++)
        hf__fence_record_encode(slots + i * HF__FENCE_SLOT_SIZE,
                                &(struct hf__fence_record){.seq = 7 + i, .mark = {.token = i + 1}});
    assert_true(hf__fence_record_newest(slots, sizeof slots, &record, &unsettled));
    assert_true(record.mark.token == 3 && !unsettled);
    slots[2 * HF__FENCE_SLOT_SIZE + 20] ^= 1; /* torn while it was written */
    assert_true(hf__fence_record_newest(slots, sizeof slots, &record, &unsettled));
    assert_true(record.mark.token == 2);
    assert_true(hf__fence_record_newest(slots, sizeof slots - 100, &record, &unsettled));
    assert_false(hf__fence_record_newest(slots, 100, &record, &unsettled));
    hf__fence_record_encode(
        slots, &(struct hf__fence_record){.seq = 7, .pending = {.len = 4, .offset = 0}});
    assert_true(hf__fence_record_newest(slots, sizeof slots, &record, &unsettled));
    assert_true(unsettled);
}

/* A mark that names a URL, and passes that know the store by it, by its identity, or by both. */
static void urls_and_identities(void **state)
{
    static const struct {
        const char *mark, *issuer, *url, *judged, *left;
    } cases[] = {
        {"etcd://a", "id:etcd:1", "etcd://a", "id:etcd:1", ""},
        {"etcd://a", "id:etcd:1", "etcd://b", "id:etcd:1", "etcd://a"},
        {"etcd://a", "id:etcd:1", NULL, "id:etcd:1", "etcd://a"},
        {"etcd://a", NULL, "etcd://b", "etcd://b", "etcd://a"},
        {"etcd://a", "etcd://b", "etcd://a", "etcd://b", "etcd://a"},
        {"id:etcd:1", NULL, "etcd://a", "", "id:etcd:1"},
        {"id:etcd:1", "id:etcd:2", "etcd://a", "id:etcd:2", "id:etcd:1"},
        {"", NULL, "etcd://a", "", ""},
        {"", "id:etcd:1", "etcd://a", "id:etcd:1", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_fence_mark mark = mark_of(5, cases[i].mark);
        char judged[HF_FENCE_ISSUER_MAX + 1];

        hf__fence_settle(&mark, cases[i].issuer, cases[i].url, judged);
        assert_string_equal(judged, cases[i].judged);
        assert_string_equal(mark.issuer, cases[i].left);
        assert_int_equal(mark.token, 5);
    }
}

static void long_issuers(void **state)
{
    char longer[400];
    char one[HF_FENCE_ISSUER_MAX + 1];
    char two[HF_FENCE_ISSUER_MAX + 1];

    (void)state;
    memset(longer, 'h', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    hf__fence_issuer(one, longer);
    longer[sizeof longer - 2] = 'i';
    hf__fence_issuer(two, longer);
    assert_string_not_equal(one, two);
    assert_int_equal(strlen(one), HF_FENCE_ISSUER_MAX);
    hf__fence_issuer(one, NULL);
    assert_string_equal(one, "");
    longer[HF_FENCE_ISSUER_MAX] = '\0';
    hf__fence_issuer(one, longer);
    assert_string_equal(one, longer);
}

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
        cmocka_unit_test(decides),
        cmocka_unit_test(never_falls),
        cmocka_unit_test(own_storage),
        cmocka_unit_test(record_round_trip),
        cmocka_unit_test(newest_record),
        cmocka_unit_test(long_issuers),
        cmocka_unit_test(urls_and_identities),
        cmocka_unit_test(sql_names),
        cmocka_unit_test(sql_statements),
    };

    return cmocka_run_group_tests_name("fence rule", tests, NULL, NULL);
}
