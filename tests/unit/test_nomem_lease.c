/* test_nomem_lease.c - the N-th allocation fails, for all N, while locks are taken, kept and given
 * back: every call says so or succeeds, nothing is lost or leaked. */
#include "nomem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool see(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (void)data;
    return true;
}

static bool with_lease(struct hf_store *store, const struct hf_acquire_options *options)
{
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status = hf_acquire(store, "job", options, &lease, &err);
    bool good = fair(status, &err);

    if (status != HF_OK)
        return good && lease == NULL;
    (void)hf_lease_fd(lease); /* -1 for want of a descriptor is allowed */
    good = good && fair(hf_renew(lease, 0, &err), &err);
    good = good && fair(hf_keep(lease, &err), &err);
    good = good && fair(hf_list(store, "", see, NULL, &err), &err);
    good = good && fair(hf_inspect(store, "job", see, NULL, &err), &err);
    good = good && hf_lease_remaining_ms(lease) > 0;
    /* Giving back always works. */
    return hf_release(lease, &err) == HF_OK && good;
}

static bool a_whole_life(void)
{
    struct hf_acquire_options by_hand = {.size = sizeof by_hand, .no_keeper = true};
    struct hf_store *store;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = with_lease(store, NULL) && with_lease(store, &by_hand);
    hf_close(store);
    return good;
}

/* More leases than the keeper's heap has room for, so that it has to grow. */
static bool many_leases(void)
{
    enum { LEASES = 20 };
    struct hf_lease *leases[LEASES] = {0};
    struct hf_store *store;
    struct hf_error err;
    bool good = true;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    for (int i = 0; i < LEASES && good; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "job%d", i);
        good = fair(hf_acquire(store, name, NULL, &leases[i], &err), &err);
    }
    for (int i = 0; i < LEASES; i++)
        if (leases[i] != NULL)
            good = hf_release(leases[i], &err) == HF_OK && good;
    hf_close(store);
    return good;
}

/* Waiting costs memory too. The wait ends by itself: nobody gives the lock back. */
static bool a_wait(void)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = 2};
    struct hf_store *store;
    struct hf_store *other = NULL;
    struct hf_lease *lease = NULL;
    struct hf_lease *late = NULL;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_open(url, &other, &err), &err);
    if (other != NULL && fair(hf_acquire(store, "job", NULL, &lease, &err), &err) &&
        lease != NULL) {
        enum hf_status status = hf_acquire(other, "job", &options, &late, &err);

        good = good && late == NULL && (status == HF_BUSY || fair(status, &err));
        good = hf_release(lease, &err) == HF_OK && good;
        /* Nothing of the wait is left in the way. */
        status = hf_acquire(other, "job", NULL, &late, &err);
        good = good && fair(status, &err);
        good = hf_release(late, &err) == HF_OK && good;
    }
    hf_close(other);
    hf_close(store);
    return good;
}

static bool detached(void)
{
    struct hf_acquire_options options = {.size = sizeof options, .detached = true};
    char owner[HF_OWNER_LEN + 1];
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    uint64_t token;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_acquire(store, "job", &options, &lease, &err), &err);
    if (lease != NULL) {
        memcpy(owner, hf_lease_owner(lease), sizeof owner);
        token = hf_lease_token(lease);
        hf_leave(lease);
        good = good && fair(hf_adopt(store, "job", owner, token, &lease, &err), &err);
        if (lease == NULL) /* now there is memory again */
            good = good && hf_adopt(store, "job", owner, token, &lease, &err) == HF_OK;
        good = good && hf_release(lease, &err) == HF_OK;
    }
    hf_close(store);
    return good;
}

static bool traced(void)
{
    bool good;

    (void)setenv("HOLDFAST_TRACE", "1", 1);
    good = a_whole_life();
    (void)unsetenv("HOLDFAST_TRACE");
    return good;
}

/* hf_close tells every lease, whatever is short. */
static bool closed_with_leases(void)
{
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_acquire(store, "job", NULL, &lease, &err), &err);
    hf_close(store);
    if (lease != NULL)
        good = good && hf_lease_loss(lease) == HF_LOSS_CLOSED;
    return (lease == NULL || hf_release(lease, &err) == HF_LOST) && good;
}

static void taking_and_giving_back(void **state)
{
    (void)state;
    for_all_n(false, a_whole_life);
}

static void taking_many(void **state)
{
    (void)state;
    for_all_n(false, many_leases);
}

static void waiting(void **state)
{
    (void)state;
    for_all_n(false, a_wait);
}

static void detached_and_adopted(void **state)
{
    (void)state;
    for_all_n(false, detached);
}

static void with_a_trace(void **state)
{
    int saved = dup(STDERR_FILENO);

    (void)state;
    assert_non_null(freopen("/dev/null", "w", stderr));
    for_all_n(false, traced);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
}

static void closing_with_live_leases(void **state)
{
    (void)state;
    for_all_n(false, closed_with_leases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taking_and_giving_back),
        cmocka_unit_test(taking_many),
        cmocka_unit_test(waiting),
        cmocka_unit_test(detached_and_adopted),
        cmocka_unit_test(with_a_trace),
        cmocka_unit_test(closing_with_live_leases),
    };

    return cmocka_run_group_tests_name("nomem_lease", tests, NULL, NULL);
}
