/* test_client_lock.c - a lock and the place for its lease in one struct.
 * run: threads */
#include "client.h"

#include <holdfast/lock.h>
#include <pthread.h>
#include <string.h>

static struct hf_lock lock_of(const char *name)
{
    return (struct hf_lock){.size = sizeof(struct hf_lock), .name = name};
}

static void in_its_place_and_out_again(void **state)
{
    struct world *world = *state;
    struct hf_lock lock = lock_of("job");

    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_lock_acquire(world->store, &lock), HF_OK);
        assert_non_null(lock.lease);
        assert_int_equal(lock.token, hf_lease_token(lock.lease));
        assert_int_equal(hf_lock_acquire(world->store, &lock), HF_INVALID);
        assert_non_null(lock.lease);
        assert_int_equal(hf_lock_release(&lock), HF_OK);
        assert_null(lock.lease);
        assert_int_equal(hf_lock_release(&lock), HF_OK);
    }
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 2);
}

static void what_is_refused(void **state)
{
    struct world *world = *state;
    struct hf_lock lock = lock_of("job");
    struct hf_lock *const locks[] = {&lock};

    lock.size = 8;
    assert_int_equal(hf_lock_acquire(world->store, &lock), HF_INVALID);
    lock.size = sizeof lock;
    assert_int_equal(hf_lock_acquire_any(world->store, NULL, 0), HF_INVALID);
    assert_int_equal(hf_lock_acquire_all(world->store, NULL, 0), HF_INVALID);
    assert_int_equal(hf_lock_acquire_all(world->store, locks, 65), HF_INVALID);
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_BUSY});
    assert_int_equal(hf_lock_acquire(world->store, &lock), HF_BUSY);
    assert_non_null(strstr(lock.err.text, "job"));
    assert_null(lock.lease);
}

static void several(void **state)
{
    struct world *world = *state;
    struct hf_lock a = lock_of("a"), b = lock_of("b");
    struct hf_lock *const both[] = {&b, &a};

    assert_int_equal(hf_lock_acquire_all(world->store, both, 2), HF_OK);
    assert_string_equal(hf_lease_name(a.lease), "a");
    assert_string_equal(hf_lease_name(b.lease), "b");
    assert_int_equal(hf_lock_acquire_any(world->store, both, 2), HF_INVALID);
    assert_int_equal(hf_lock_release(&a), HF_OK);
    assert_int_equal(hf_lock_release(&b), HF_OK);
    assert_int_equal(hf_lock_acquire_any(world->store, both, 2), HF_OK);
    assert_true((a.lease != NULL) != (b.lease != NULL));
    assert_int_equal(hf_lock_release(a.lease != NULL ? &a : &b), HF_OK);
}

enum { RELEASERS = 3, ROUNDS = 10000 };

struct releasers {
    struct hf_lock lock;
    pthread_barrier_t start, end;
};

static void *release(void *data)
{
    struct releasers *all = data;
    intptr_t refused = 0;

    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&all->start);
        refused += hf_lock_release(&all->lock) != HF_OK;
        pthread_barrier_wait(&all->end);
    }
    return (void *)refused;
}

/* However many release at once, the lease is freed by one. */
static void one_of_many_releases(void **state)
{
    struct world *world = *state;
    struct releasers all = {.lock = lock_of("job")};
    pthread_t threads[RELEASERS];
    void *refused;

    assert_int_equal(pthread_barrier_init(&all.start, NULL, RELEASERS + 1), 0);
    assert_int_equal(pthread_barrier_init(&all.end, NULL, RELEASERS + 1), 0);
    for (size_t i = 0; i < RELEASERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, release, &all), 0);
    for (int round = 0; round < ROUNDS; round++) {
        assert_int_equal(hf_lock_acquire(world->store, &all.lock), HF_OK);
        pthread_barrier_wait(&all.start);
        pthread_barrier_wait(&all.end);
    }
    for (size_t i = 0; i < RELEASERS; i++) {
        assert_int_equal(pthread_join(threads[i], &refused), 0);
        assert_null(refused);
    }
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), ROUNDS);
    pthread_barrier_destroy(&all.start);
    pthread_barrier_destroy(&all.end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {with_store(in_its_place_and_out_again),
                                       with_store(what_is_refused), with_store(several),
                                       with_store(one_of_many_releases)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
