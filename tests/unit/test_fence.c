/* test_fence.c - the rule: what is admitted, and whose tokens they are. */
#include "fence/fence.h"

#include "../support/check.h"
#include <stdio.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decides),
        cmocka_unit_test(never_falls),
        cmocka_unit_test(urls_and_identities),
        cmocka_unit_test(long_issuers),
    };

    return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
