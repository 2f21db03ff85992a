/* test_nomem_once.c - the N-th allocation fails, for all N, while work is done once: every call
 * says so or succeeds, and what it said is what is on record. */
#include "nomem.h"

#include <holdfast/once.h>

/* A turn that fails for want of memory may be begun again; one that ends is over. */
static bool two_turns(struct hf_once *once)
{
    struct hf_error err;
    enum hf_status status;

    for (int i = 0; i < 2; i++) {
        status = hf_once_begin(once, &err);
        if (status == HF_NOMEM)
            status = hf_once_begin(once, &err);
        if (status != HF_OK)
            return fair(status, &err);
        if (i == 0 && hf_once_outcome(once) == HF_ONCE_DONE)
            return true; /* by the one before */
        if (hf_once_outcome(once) != HF_ONCE_RUN)
            return false;
        status =
            hf_once_end(once, i == 0 ? HF_ONCE_END_FAILURE : HF_ONCE_END_SUCCESS, 1, "x", 1, &err);
        if (status != HF_OK)
            return fair(status, &err);
    }
    return hf_once_outcome(once) == HF_ONCE_DONE && hf_once_on_record(once)->attempts >= 2;
}

static bool work_once(void)
{
    struct hf_once_options options = {
        .size = sizeof options, .per_ms = 86400000, .tz = "Europe/Berlin", .retries = 9};
    struct hf_store *store;
    struct hf_once *once;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_once_open(store, "job", &options, &once, &err), &err);
    if (once != NULL)
        good = two_turns(once) && good;
    hf_once_close(once);
    hf_close(store);
    return good;
}

static void work_that_is_done_once(void **state)
{
    (void)state;
    for_all_n(true, work_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_that_is_done_once),
    };

    return cmocka_run_group_tests_name("nomem_once", tests, NULL, NULL);
}
