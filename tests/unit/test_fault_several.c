/* test_fault_several.c - several locks over a bad line: what is lost while others are waited for,
 * and what is granted twice.
 * run: threads */
#include "fault.h"

#include <holdfast/several.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const char *const names[] = {"a", "b"};

static struct hf_lease *hold(struct hf_store *store, const char *name, int64_t wait_ms)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 60000, .wait_ms = wait_ms};
    struct hf_lease *lease;

    assert_int_equal(hf_acquire(store, name, &options, &lease, NULL), HF_OK);
    return lease;
}

static void give(struct hf_lease *lease)
{
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

static bool note_held(const struct hf_lock_info *info, void *data)
{
    *(bool *)data = info->held;
    return false;
}

static bool is_held(struct hf_store *store, const char *name)
{
    bool held = false;

    assert_int_equal(hf_inspect(store, name, note_held, &held, NULL), HF_OK);
    return held;
}

/* One that waits, in a thread of its own. */
struct waiter {
    pthread_t thread;
    struct hf_store *store;
    struct hf_acquire_options options;
    bool all; /* else any */
    enum hf_status status;
    struct hf_lease *leases[2];
    size_t which;
    struct hf_error err;
};

static void *wait_for(void *data)
{
    struct waiter *waiter = data;

    waiter->status = waiter->all ? hf_acquire_all(waiter->store, names, 2, &waiter->options,
                                                  waiter->leases, &waiter->err)
                                 : hf_acquire_any(waiter->store, names, 2, &waiter->options,
                                                  &waiter->leases[0], &waiter->which, &waiter->err);
    return NULL;
}

static void start(struct waiter *waiter, struct world *world, uint32_t ttl_ms)
{
    waiter->store = world->store;
    waiter->options.size = sizeof waiter->options;
    waiter->options.ttl_ms = ttl_ms;
    waiter->options.wait_ms = 30000;
    waiter->options.on_lost = on_lost;
    waiter->options.data = world;
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for, waiter), 0);
}

static enum hf_status finish(struct waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    return waiter->status;
}

/* a is held, b is waited for, and a cannot be renewed any more: the wait ends, long before its
 * time, and nothing is kept. */
static void a_loss_wakes_the_wait(void **state)
{
    struct world *world = *state;
    struct hf_lease *b = hold(world->other, "b", 0);
    struct waiter waiter = {.all = true};
    int64_t began_ns = hf__now_ns();

    fault_add(world->faults,
              (struct fault){
                  .call = FAULT_RENEW, .from = 1, .times = UINT32_MAX, .status = HF_UNREACHABLE});
    start(&waiter, world, 600);
    assert_int_equal(finish(&waiter), HF_LOST);
    assert_true(hf__now_ns() - began_ns < 15 * HF__NS_PER_S);
    assert_non_null(strstr(waiter.err.text, "\"a\""));
    assert_null(waiter.leases[0]);
    assert_null(waiter.leases[1]);
    assert_int_equal(atomic_load(&world->lost), 0); /* the caller never had it */
    assert_false(is_held(world->other, "a"));
    give(b);
    assert_false(is_held(world->other, "b"));
}

/* Whoever renews later does not matter: while b is waited for, a is kept. */
static void what_is_held_is_kept_during_the_wait(void **state)
{
    struct world *world = *state;

    for (int kind = 0; kind < 3; kind++) {
        struct hf_lease *b = hold(world->other, "b", 0);
        struct waiter waiter = {.all = true,
                                .options = {.no_keeper = kind == 1, .detached = kind == 2}};
        unsigned renewed = fault_made(world->faults, FAULT_RENEW);

        start(&waiter, world, 500);
        check_pause_ms(1200); /* twice its ttl */
        assert_true(is_held(world->other, "a"));
        give(b);
        assert_int_equal(finish(&waiter), HF_OK);
        assert_true(fault_made(world->faults, FAULT_RENEW) > renewed);
        assert_true(hf_all_remaining_ms(waiter.leases, 2) > 0);
        if (kind != 0) {
            /* From here on that is the caller's business. */
            renewed = fault_made(world->faults, FAULT_RENEW);
            check_pause_ms(300);
            assert_int_equal(fault_made(world->faults, FAULT_RENEW), renewed);
        }
        (void)!hf_release_all(waiter.leases, 2, NULL);
    }
}

static void a_wait_for_all_is_cancelled(void **state)
{
    struct world *world = *state;
    struct hf_lease *b = hold(world->other, "b", 0);
    struct waiter waiter = {.all = true, .options.cancel_fd = eventfd(0, EFD_CLOEXEC)};

    start(&waiter, world, 2000);
    check_soon(is_held(world->other, "a"));
    check_pause_ms(50);
    assert_int_equal(eventfd_write(waiter.options.cancel_fd, 1), 0);
    assert_int_equal(finish(&waiter), HF_CANCELLED);
    assert_false(is_held(world->other, "a"));
    (void)close(waiter.options.cancel_fd);
    give(b);
}

/* Whoever holds m must not wait for a: somebody with a may wait for m. */
static void what_is_not_above_is_only_tried(void **state)
{
    struct world *world = *state;
    struct hf_lease *a = hold(world->other, "a", 0);
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 2000, .wait_ms = 30000, .wait_above = "m"};
    struct hf_lease *leases[2];
    int64_t began_ns = hf__now_ns();

    assert_int_equal(hf_acquire_all(world->store, names, 2, &options, leases, NULL), HF_BUSY);
    assert_true(hf__now_ns() - began_ns < 15 * HF__NS_PER_S);
    assert_false(is_held(world->other, "b"));
    give(a);
}

/* Both answers are on their way when the first arrives. The second lock goes to the next in line at
 * once, and the caller never sees it. */
static void a_second_grant_is_passed_on(void **state)
{
    struct world *world = *state;
    struct hf_lease *a = hold(world->other, "a", 0);
    struct hf_lease *b = hold(world->other, "b", 0);
    struct waiter waiter = {.all = false};
    struct hf_lease *next;
    int64_t freed_ns;

    /* After the two tries that do not wait: those in the queues. */
    fault_add(world->faults,
              (struct fault){
                  .call = FAULT_ACQUIRE, .from = 3, .times = 2, .after = true, .delay_ms = 300});
    start(&waiter, world, 20000);
    check_soon(fault_made(world->faults, FAULT_ACQUIRE) == 4);
    check_pause_ms(100);
    freed_ns = hf__now_ns();
    give(a);
    give(b);
    assert_int_equal(finish(&waiter), HF_OK);
    next = hold(world->other, names[1 - waiter.which], 10000);
    assert_true(hf__now_ns() - freed_ns < 5 * HF__NS_PER_S); /* and not after its ttl */
    assert_string_equal(hf_lease_name(waiter.leases[0]), names[waiter.which]);
    assert_int_equal(fault_made(world->faults, FAULT_RELEASE), 1);
    give(next);
    give(waiter.leases[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_world(a_loss_wakes_the_wait), with_world(what_is_held_is_kept_during_the_wait),
        with_world(a_wait_for_all_is_cancelled), with_world(what_is_not_above_is_only_tried),
        with_world(a_second_grant_is_passed_on)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
