/* test_client_hold.c - a lock and the place for its lease in one struct.
 * run: threads */
#include "client.h"

#include <holdfast/hold.h>
#include <pthread.h>
#include <string.h>

static struct hf_hold hold_of(const char *name)
{
    return (struct hf_hold){.size = sizeof(struct hf_hold), .name = name};
}

static void in_its_place_and_out_again(void **state)
{
    struct world *world = *state;
    struct hf_hold hold = hold_of("job");

    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_hold_acquire(world->store, &hold), HF_OK);
        assert_non_null(hold.lease);
        assert_int_equal(hold.token, hf_lease_token(hold.lease));
        assert_int_equal(hf_hold_acquire(world->store, &hold), HF_INVALID);
        assert_non_null(hold.lease);
        assert_int_equal(hf_hold_release(&hold), HF_OK);
        assert_null(hold.lease);
        assert_int_equal(hf_hold_release(&hold), HF_OK);
    }
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 2);
}

static void what_is_refused(void **state)
{
    struct world *world = *state;
    struct hf_hold hold = hold_of("job");
    struct hf_hold *const holds[] = {&hold};

    hold.size = 8;
    assert_int_equal(hf_hold_acquire(world->store, &hold), HF_INVALID);
    hold.size = sizeof hold;
    assert_int_equal(hf_hold_acquire_any(world->store, NULL, 0), HF_INVALID);
    assert_int_equal(hf_hold_acquire_all(world->store, NULL, 0), HF_INVALID);
    assert_int_equal(hf_hold_acquire_all(world->store, holds, 65), HF_INVALID);
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_BUSY});
    assert_int_equal(hf_hold_acquire(world->store, &hold), HF_BUSY);
    assert_non_null(strstr(hold.err.text, "job"));
    assert_null(hold.lease);
}

static void several(void **state)
{
    struct world *world = *state;
    struct hf_hold a = hold_of("a"), b = hold_of("b");
    struct hf_hold *const both[] = {&b, &a};

    assert_int_equal(hf_hold_acquire_all(world->store, both, 2), HF_OK);
    assert_string_equal(hf_lease_name(a.lease), "a");
    assert_string_equal(hf_lease_name(b.lease), "b");
    assert_int_equal(hf_hold_acquire_any(world->store, both, 2), HF_INVALID);
    assert_int_equal(hf_hold_release(&a), HF_OK);
    assert_int_equal(hf_hold_release(&b), HF_OK);
    assert_int_equal(hf_hold_acquire_any(world->store, both, 2), HF_OK);
    assert_true((a.lease != NULL) != (b.lease != NULL));
    assert_int_equal(hf_hold_release(a.lease != NULL ? &a : &b), HF_OK);
}

static void *release(void *hold)
{
    return (void *)(intptr_t)hf_hold_release(hold);
}

/* However many release at once, the lease is freed by one. */
static void one_of_many_releases(void **state)
{
    struct world *world = *state;
    struct hf_hold hold = hold_of("job");

    for (int round = 0; round < 50; round++) {
        pthread_t threads[4];
        void *status;

        assert_int_equal(hf_hold_acquire(world->store, &hold), HF_OK);
        for (size_t i = 0; i < COUNT(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, release, &hold), 0);
        for (size_t i = 0; i < COUNT(threads); i++) {
            assert_int_equal(pthread_join(threads[i], &status), 0);
            assert_int_equal((intptr_t)status, HF_OK);
        }
    }
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {with_store(in_its_place_and_out_again),
                                       with_store(what_is_refused), with_store(several),
                                       with_store(one_of_many_releases)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
