/* test_threads.c - many threads at one store and at one lease, over the real embedded store.
 * run: threads */
#include "../support/check.h"
#include "../support/fake_store.h"
#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WORK_MS 1500

enum { THREADS = 6, LOCKS = 3 };

struct shared {
    struct hf_store *store;
    int64_t until_ns;
    atomic_int inside[LOCKS];
    atomic_ullong last[LOCKS];
    atomic_uint holds;
    atomic_uint faults;
    atomic_uint lost;
    struct hf_lease *lease; /* used by everybody at once */
};

struct thread {
    pthread_t id;
    struct shared *shared;
    unsigned seed;
};

static unsigned next(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 8) % below;
}

static void count_lost(struct hf_lease *lease, enum hf_loss reason, void *data)
{
    (void)lease;
    (void)reason;
    atomic_fetch_add(&((struct shared *)data)->lost, 1);
}

static bool see(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (void)data;
    return true;
}

static void use_lease(struct shared *shared, struct hf_lease *lease, unsigned at, unsigned *seed)
{
    if (atomic_fetch_add(&shared->inside[at], 1) != 0)
        atomic_fetch_add(&shared->faults, 1);
    if (atomic_exchange(&shared->last[at], hf_lease_token(lease)) >= hf_lease_token(lease))
        atomic_fetch_add(&shared->faults, 1);
    if (hf_lease_remaining_ms(lease) <= 0 || hf_lease_loss(lease) != HF_LOSS_NONE)
        atomic_fetch_add(&shared->faults, 1);
    if (next(seed, 4) == 0 && hf_renew(lease, 0, NULL) != HF_OK)
        atomic_fetch_add(&shared->faults, 1);
    if (next(seed, 4) == 0)
        (void)hf_lease_fd(lease);
    if (next(seed, 4) == 0 && hf_keep(lease, NULL) != HF_OK)
        atomic_fetch_add(&shared->faults, 1);
    atomic_fetch_add(&shared->holds, 1);
    atomic_fetch_sub(&shared->inside[at], 1);
}

static void *work(void *data)
{
    struct thread *thread = data;
    struct shared *shared = thread->shared;

    while (hf__now_ns() < shared->until_ns) {
        unsigned at = next(&thread->seed, LOCKS);
        struct hf_acquire_options options = {.size = sizeof options,
                                             .ttl_ms = 20000,
                                             .wait_ms = next(&thread->seed, 2) ? 10000 : 0,
                                             .no_keeper = next(&thread->seed, 2) == 0,
                                             .on_lost = count_lost,
                                             .data = shared};
        char name[] = {(char)('a' + at), '\0'};
        struct hf_lease *lease;
        enum hf_status status = hf_acquire(shared->store, name, &options, &lease, NULL);

        if (status == HF_BUSY)
            continue;
        if (status != HF_OK) {
            atomic_fetch_add(&shared->faults, 1);
            continue;
        }
        use_lease(shared, lease, at, &thread->seed);
        if (hf_release(lease, NULL) != HF_OK)
            atomic_fetch_add(&shared->faults, 1);
        if (next(&thread->seed, 16) == 0 && hf_list(shared->store, "", see, NULL, NULL) != HF_OK)
            atomic_fetch_add(&shared->faults, 1);
    }
    return NULL;
}

static void run(struct shared *shared, void *(*main)(void *))
{
    struct thread threads[THREADS];

    shared->until_ns = hf__now_ns() + WORK_MS * HF__NS_PER_MS;
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.shared = shared, .seed = 5u + (unsigned)i};
        assert_int_equal(pthread_create(&threads[i].id, NULL, main, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i].id, NULL), 0);
}

static void many_threads_share_a_store(void **state)
{
    struct shared shared = {0};
    char dir[256];
    char url[300];

    (void)state;
    check_temp_dir(dir, sizeof dir);
    (void)snprintf(url, sizeof url, "file:%s/store", dir);
    assert_int_equal(hf_open(url, &shared.store, NULL), HF_OK);
    run(&shared, work);
    hf_close(shared.store);
    check_remove_dir(dir);
    assert_int_equal(atomic_load(&shared.faults), 0);
    assert_int_equal(atomic_load(&shared.lost), 0);
    assert_true(atomic_load(&shared.holds) > 20);
}

/* Everything that may be called on one lease, from everywhere, while the keeper renews it too. */
static void *pester(void *data)
{
    struct thread *thread = data;
    struct shared *shared = thread->shared;

    while (hf__now_ns() < shared->until_ns) {
        switch (next(&thread->seed, 5)) {
        case 0:
            if (hf_renew(shared->lease, 5000 + next(&thread->seed, 300), NULL) != HF_OK)
                atomic_fetch_add(&shared->faults, 1);
            break;
        case 1:
            if (hf_keep(shared->lease, NULL) != HF_OK)
                atomic_fetch_add(&shared->faults, 1);
            break;
        case 2:
            if (hf_lease_fd(shared->lease) < 0)
                atomic_fetch_add(&shared->faults, 1);
            break;
        case 3:
            if (hf_lease_remaining_ms(shared->lease) <= 0)
                atomic_fetch_add(&shared->faults, 1);
            break;
        default:
            if (hf_lease_loss(shared->lease) != HF_LOSS_NONE ||
                hf_lease_ttl_ms(shared->lease) < 5000)
                atomic_fetch_add(&shared->faults, 1);
            check_pause_ms(1);
            break;
        }
        atomic_fetch_add(&shared->holds, 1);
    }
    return NULL;
}

static void many_threads_share_a_lease(void **state)
{
    struct fake_store *fake = fake_new(HF_FEATURE_RENEW_TTL);
    struct shared shared = {.store = fake_open(fake)};
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 5000, .on_lost = count_lost, .data = &shared};

    (void)state;
    assert_int_equal(hf_acquire(shared.store, "job", &options, &shared.lease, NULL), HF_OK);
    run(&shared, pester);
    assert_int_equal(hf_release(shared.lease, NULL), HF_OK);
    hf_close(shared.store);
    fake_free(fake);
    assert_int_equal(atomic_load(&shared.faults), 0);
    assert_int_equal(atomic_load(&shared.lost), 0);
}

/* Leases are given back by their threads while the store is closed by another. */
static void *release_own(void *data)
{
    struct thread *thread = data;

    check_pause_ms(next(&thread->seed, 3));
    (void)!hf_renew(thread->shared->lease, 0, NULL);
    return NULL;
}

static void closing_races_with_a_lease(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        struct fake_store *fake = fake_new(HF_FEATURE_RENEW_TTL);
        struct shared shared = {.store = fake_open(fake)};
        struct hf_acquire_options options = {
            .size = sizeof options, .on_lost = count_lost, .data = &shared};
        struct thread thread = {.shared = &shared, .seed = round};

        assert_int_equal(hf_acquire(shared.store, "job", &options, &shared.lease, NULL), HF_OK);
        assert_int_equal(pthread_create(&thread.id, NULL, release_own, &thread), 0);
        check_pause_ms(round % 3);
        hf_close(shared.store);
        assert_int_equal(pthread_join(thread.id, NULL), 0);
        assert_int_equal(hf_lease_loss(shared.lease), HF_LOSS_CLOSED);
        assert_int_equal(hf_release(shared.lease, NULL), HF_LOST);
        assert_int_equal(atomic_load(&shared.lost), 1);
        assert_int_equal(fake_count(fake, FAKE_RELEASE), 1);
        fake_free(fake);
    }
}

static void *give_back(void *data)
{
    struct thread *thread = data;

    check_pause_ms(next(&thread->seed, 3));
    (void)!hf_release(thread->shared->lease, NULL);
    return NULL;
}

static void closing_races_with_a_release(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        struct fake_store *fake = fake_new(HF_FEATURE_RENEW_TTL);
        struct shared shared = {.store = fake_open(fake)};
        struct hf_acquire_options options = {
            .size = sizeof options, .on_lost = count_lost, .data = &shared};
        struct thread thread = {.shared = &shared, .seed = round};

        assert_int_equal(hf_acquire(shared.store, "job", &options, &shared.lease, NULL), HF_OK);
        assert_int_equal(pthread_create(&thread.id, NULL, give_back, &thread), 0);
        check_pause_ms(round % 3);
        hf_close(shared.store);
        assert_int_equal(pthread_join(thread.id, NULL), 0);
        assert_true(atomic_load(&shared.lost) <= 1);
        assert_true(fake_count(fake, FAKE_RELEASE) >= 1);
        assert_int_equal(fake_count(fake, FAKE_CLOSE), 1);
        fake_free(fake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_share_a_store),
        cmocka_unit_test(many_threads_share_a_lease),
        cmocka_unit_test(closing_races_with_a_lease),
        cmocka_unit_test(closing_races_with_a_release),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
