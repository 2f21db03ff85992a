/* test_client_audit.c - hf_audit: which facts are told, when it stops, what it answers. */
#include "../support/check.h"

#include <holdfast/audit.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FACTS_MAX = 64, KEY_SIZE = 64 };

struct heard {
    char keys[FACTS_MAX][KEY_SIZE];
    size_t count;
    size_t enough; /* 0: never */
};

static bool hear(const struct hf_fact *fact, void *data)
{
    struct heard *heard = data;

    assert_true(fact->size >= sizeof *fact);
    assert_non_null(fact->value);
    assert_non_null(fact->unit);
    assert_true(fact->source[0] != '\0');
    assert_non_null(fact->where);
    assert_true(fact->unknown == NULL || (fact->unknown[0] != '\0' && fact->value[0] == '\0'));
    assert_true(heard->count < FACTS_MAX);
    (void)snprintf(heard->keys[heard->count++], KEY_SIZE, "%s", fact->key);
    return heard->count != heard->enough;
}

static bool has(const struct heard *heard, const char *key)
{
    for (size_t i = 0; i < heard->count; i++)
        if (strcmp(heard->keys[i], key) == 0)
            return true;
    return false;
}

static void all_facts_about_a_store_that_is_not_there(void **state)
{
    struct heard heard = {.count = 0};
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_audit("file:/tmp/holdfast-no-such-store", NULL, hear, &heard, &err), HF_OK);
    assert_string_equal(heard.keys[0], "store.audit");
    assert_string_equal(heard.keys[1], "store.incarnation");
    assert_true(has(&heard, "file.exists") && has(&heard, "client.suspended"));
    assert_true(has(&heard, "store.refusal") && has(&heard, "store.latency_p99"));
    assert_int_not_equal(access("/tmp/holdfast-no-such-store", F_OK), 0);
}

static void only_what_decides(void **state)
{
    const struct hf_audit_options options = {.size = sizeof options, .scope = HF_AUDIT_DECISIVE};
    struct heard heard = {.count = 0};

    (void)state;
    assert_int_equal(hf_audit("file:/tmp/holdfast-no-such-store", &options, hear, &heard, NULL),
                     HF_OK);
    assert_true(has(&heard, "file.writable"));
    assert_false(has(&heard, "client.suspended") || has(&heard, "store.latency_p99"));
}

static void who_has_heard_enough_hears_no_more(void **state)
{
    (void)state;
    for (size_t enough = 1; enough < 8; enough++) {
        struct heard heard = {.enough = enough};
        struct hf_error err;

        assert_int_equal(hf_audit("file:/tmp/holdfast-no-such-store", NULL, hear, &heard, &err),
                         HF_OK);
        check_row(heard.count == enough, enough);
    }
}

static void what_is_no_store(void **state)
{
    struct heard heard = {.count = 0};
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_audit("nonsense", NULL, hear, &heard, &err), HF_INVALID);
    assert_int_equal(hf_audit("nosuch://host", NULL, hear, &heard, &err), HF_UNSUPPORTED);
    assert_int_equal(heard.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_facts_about_a_store_that_is_not_there),
        cmocka_unit_test(only_what_decides),
        cmocka_unit_test(who_has_heard_enough_hears_no_more),
        cmocka_unit_test(what_is_no_store),
    };

    return cmocka_run_group_tests_name("client_audit", tests, NULL, NULL);
}
