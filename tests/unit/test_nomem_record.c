/* test_nomem_record.c - the N-th allocation fails, for all N, while records are written, read and
 * listed: every call says so or succeeds, and what it said is what is on record. */
#include "../support/record.h"
#include "nomem.h"

#include <holdfast/record.h>
#include <string.h>

static bool count(const struct hf_record *record, void *data)
{
    *(int *)data += record->value_len == 5;
    return true;
}

static bool with_lease(struct hf_store *store, struct hf_lease *lease)
{
    struct hf_error err;
    enum hf_status status = HF_OK;
    int found = 0;

    for (int i = 0; i < 3 && status == HF_OK; i++) /* the second replaces the first */
        status = hf_record_put(lease, i < 2 ? "a" : "b", "value", 5, 0, &err);
    if (status != HF_OK)
        return fair(status, &err);
    status = get_record(store, "job", "a", count, &found, &err);
    if (status != HF_OK)
        return fair(status, &err) && found == 0;
    status = hf_record_list(store, "job", "", count, &found, &err);
    if (status != HF_OK)
        return fair(status, &err);
    return found == 3;
}

static bool records(void)
{
    struct hf_acquire_options by_hand = {.size = sizeof by_hand, .no_keeper = true};
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_acquire(store, "job", &by_hand, &lease, &err), &err);
    if (lease != NULL) {
        good = with_lease(store, lease) && good;
        good = hf_release(lease, &err) == HF_OK && good;
    }
    hf_close(store);
    return good;
}

static void the_first_records_of_a_store(void **state)
{
    (void)state;
    for_all_n(true, records);
}

static void records_that_are_there(void **state)
{
    (void)state;
    for_all_n(false, records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_records_of_a_store),
        cmocka_unit_test(records_that_are_there),
    };

    return cmocka_run_group_tests_name("nomem_record", tests, NULL, NULL);
}
