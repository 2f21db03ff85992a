/* test_fence_admit.c - the rule over the caller's own storage. */
#include "fence/fence.h"

#include "../support/check.h"
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_storage),
    };

    return cmocka_run_group_tests_name("fence admit", tests, NULL, NULL);
}
