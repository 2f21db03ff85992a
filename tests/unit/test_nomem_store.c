/* test_nomem_store.c - the N-th allocation fails, for all N, while a store is opened, grows or is
 * repaired: every call says so or succeeds, and the store is as good as before. */
#include "nomem.h"

#include <holdfast/repair.h>
#include <stdio.h>
#include <sys/stat.h>

static bool open_and_close(void)
{
    struct hf_store *store;
    struct hf_error err;
    enum hf_status status = hf_open(url, &store, &err);

    if ((status == HF_OK) != (store != NULL))
        return false;
    hf_close(store);
    return fair(status, &err);
}

/* A bucket that splits: the table of remembered pages may fail to be made, which costs time
 * only. */
static bool growing(void)
{
    enum { LEASES = 200 };
    struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    struct hf_lease *leases[LEASES] = {0};
    struct hf_store *store;
    struct hf_error err;
    bool good = true;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    for (int i = 0; i < LEASES && good; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "g%d", i);
        good = fair(hf_acquire(store, name, &options, &leases[i], &err), &err);
    }
    for (int i = 0; i < LEASES; i++)
        if (leases[i] != NULL)
            good = hf_release(leases[i], &err) == HF_OK && good;
    hf_close(store);
    return good;
}

static void write_file(const char *name, const char *text)
{
    char path[400];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/store/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    (void)fclose(file);
}

/* A slot file of another boot without a token floor is refused, because nobody knows how far its
 * tokens went. That it is there must not be overlooked for want of memory. */
static bool another_boot(void)
{
    struct hf_store *store = NULL;
    struct hf_error err;
    char path[300];
    enum hf_status status;

    (void)snprintf(path, sizeof path, "%s/store", dir);
    if (mkdir(path, 0700) == 0)
        write_file("slots-00000000-0000-0000-0000-000000000000", "old");
    status = hf_open(url, &store, &err);
    hf_close(store);
    return status == HF_CORRUPT || (status == HF_NOMEM && has_failed());
}

static void another_boot_is_not_overlooked(void **state)
{
    (void)state;
    for_all_n(true, another_boot);
}

static uint64_t take_once(void)
{
    struct hf_store *store;
    struct hf_lease *lease;
    uint64_t token;

    assert_int_equal(hf_open(url, &store, NULL), HF_OK);
    assert_int_equal(hf_acquire(store, "job", NULL, &lease, NULL), HF_OK);
    token = hf_lease_token(lease);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    hf_close(store);
    return token;
}

/* A repair that cannot read what is there must not throw it away: tokens would go back. */
static void repair_does_not_forget(void **state)
{
    const uint64_t far = (uint64_t)1 << 60;

    (void)state;
    for (int n = 1; n == 1 || has_failed(); n++) {
        struct hf_error err;
        enum hf_status status;

        new_store();
        (void)take_once();
        assert_int_equal(hf_repair(url, far, &err), HF_OK);
        assert_true(take_once() > far);
        write_file("floor", "damaged"); /* from here on only the slot file knows */
        fail_nth(n);
        status = hf_repair(url, 0, &err);
        fail_none();
        check_row(fair(status, &err), n);
        if (status != HF_OK)
            check_row(hf_repair(url, 0, &err) == HF_OK, n);
        check_row(take_once() > far, n);
        check_remove_dir(dir);
    }
}

static void opening_a_new_store(void **state)
{
    (void)state;
    for_all_n(true, open_and_close);
}

static void opening_a_store_that_is_there(void **state)
{
    (void)state;
    for_all_n(false, open_and_close);
}

static void a_store_that_grows(void **state)
{
    (void)state;
    for_all_n(true, growing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_new_store),
        cmocka_unit_test(opening_a_store_that_is_there),
        cmocka_unit_test(another_boot_is_not_overlooked),
        cmocka_unit_test(repair_does_not_forget),
        cmocka_unit_test(a_store_that_grows),
    };

    return cmocka_run_group_tests_name("nomem_store", tests, NULL, NULL);
}
