/* any.c - one of several locks: by the store's slot if it has one, else as the library does it. */
#include "client/client.h"
#include "conform.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SET = 4 }; /* locks of a set */

/* Some locks, each as one client holds it or wants it. */
struct set {
    struct hold holds[SET];
};

static struct set set_new(const char *stem)
{
    struct set set = {0};
    char name[HF_NAME_MAX + 1];

    fresh_name(name, stem);
    for (size_t i = 0; i < SET; i++)
        (void)snprintf(set.holds[i].name, sizeof set.holds[i].name, "%.100s#%zu", name, i);
    return set;
}

static struct set set_same(const struct set *other)
{
    struct set set = {0};

    for (size_t i = 0; i < SET; i++)
        set.holds[i] = hold_same(&other->holds[i]);
    return set;
}

static void take_set(struct hf_store_base *store, struct set *set, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(take(store, &set->holds[i], LONG_TTL_MS, SOON_MS), HF_OK);
}

static uint64_t waiters_of_set(struct hf_store_base *store, const struct set *set)
{
    uint64_t waiters = 0;

    for (size_t i = 0; i < SET; i++)
        waiters += waiters_of(store, set->holds[i].name);
    return waiters;
}

static size_t held_of_set(struct hf_store_base *store, const struct set *set)
{
    size_t held = 0;

    for (size_t i = 0; i < SET; i++)
        held += is_held(store, set->holds[i].name) ? 1 : 0;
    return held;
}

/* Until somebody stands in line; a store may count it once, or once for each lock. */
static void await_set(struct hf_store_base *store, const struct set *set, uint64_t more_than)
{
    if (has(HF_FEATURE_FAIR))
        check_soon(waiters_of_set(store, set) > more_than);
    else
        check_pause_ms(50);
}

/* Claims any of the set, with fresh owners. Whichever is granted is left in its hold. */
static enum hf_status take_any(struct hf_store_base *store, struct set *set, int64_t wait_ms,
                               int cancel_fd, size_t *which)
{
    int64_t until_ns = wait_ms > 0 ? hf__now_ns() + wait_ms * HF__NS_PER_MS : 0;
    unsigned char raw[HF_OWNER_LEN / 2];
    struct hf_claim claims[SET];
    struct hf_grant grant = {0};
    struct hf_error err;
    enum hf_status status;

    hf__random(raw, sizeof raw);
    for (size_t i = 0; i < SET; i++, raw[sizeof raw - 1]++) {
        hf__hex_encode(set->holds[i].owner, raw, sizeof raw);
        claims[i] = claim_of(&set->holds[i], LONG_TTL_MS);
        claims[i].token = 0;
        claims[i].cancel_fd = cancel_fd;
        claims[i].wait_until_ns = until_ns;
    }
    *which = SET;
    status = hf__any_ask(&(const struct hf_store){.base = store, .url = "suite:"}, claims, SET,
                         which, &grant, &err);
    assert_true(*which < SET);
    set->holds[*which].err = err;
    set->holds[*which].grant = grant;
    set->holds[*which].ttl_ms = LONG_TTL_MS;
    if (status == HF_OK && grant.owner[0] != '\0')
        memcpy(set->holds[*which].owner, grant.owner, sizeof grant.owner);
    return status;
}

/* One that waits for any of a set, or for one of it, with a thread and a client of its own. */
struct waiter {
    pthread_t thread;
    struct hf_store_base *store;
    struct set set;
    int only; /* -1: any */
    int cancel_fd;
    atomic_int status; /* -1 while it waits */
    size_t which;
    int64_t granted_ns;
};

static void *wait_in_line(void *data)
{
    struct waiter *waiter = data;
    enum hf_status status;

    if (waiter->only >= 0) {
        waiter->which = (size_t)waiter->only;
        status = take(waiter->store, &waiter->set.holds[waiter->only], LONG_TTL_MS, 6 * SOON_MS);
    } else {
        status =
            take_any(waiter->store, &waiter->set, 6 * SOON_MS, waiter->cancel_fd, &waiter->which);
    }
    waiter->granted_ns = hf__now_ns();
    atomic_store(&waiter->status, (int)status);
    return NULL;
}

static void start(struct waiter *waiter, const struct set *like, int only, int cancel_fd)
{
    waiter->set = set_same(like);
    waiter->store = client_open();
    waiter->only = only;
    waiter->cancel_fd = cancel_fd;
    atomic_store(&waiter->status, -1);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_in_line, waiter), 0);
}

static enum hf_status finish(struct waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    return (enum hf_status)atomic_load(&waiter->status);
}

static void finish_and_release(struct waiter *waiter)
{
    assert_int_equal(finish(waiter), HF_OK);
    assert_int_equal(release(waiter->store, &waiter->set.holds[waiter->which]), HF_OK);
    client_close(waiter->store);
}

static void any_takes_the_first_that_is_free(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct set theirs = set_new("any");
    struct set ours = set_same(&theirs);
    size_t which;

    (void)state;
    take_set(other, &theirs, 2);
    assert_int_equal(take_any(store, &ours, 0, -1, &which), HF_OK);
    assert_int_equal(which, 2);
    assert_true(ours.holds[2].grant.token > 0);
    assert_int_equal(held_of_set(other, &theirs), 3);
    assert_int_equal(waiters_of_set(other, &theirs), 0);
    assert_int_equal(renew(store, &ours.holds[2], LONG_TTL_MS), HF_OK);
    assert_int_equal(release(store, &ours.holds[2]), HF_OK);
    assert_int_equal(release(other, &theirs.holds[0]), HF_OK);
    check_soon(!is_held(store, ours.holds[0].name)); /* by its server, too */
    assert_int_equal(take_any(store, &ours, SOON_MS, -1, &which), HF_OK);
    assert_int_equal(which, 0);
    assert_int_equal(release(store, &ours.holds[0]), HF_OK);
    assert_int_equal(release(other, &theirs.holds[1]), HF_OK);
    client_close(store);
    client_close(other);
}

/* That a lock was used before is no reason to prefer it to one that was not. */
static void any_takes_a_new_one_in_its_turn(void **state)
{
    struct hf_store_base *store = client_open();
    struct set theirs = set_new("new");
    struct set ours = set_same(&theirs);
    size_t which;

    (void)state;
    for (size_t i = 1; i < SET; i++) {
        assert_int_equal(take(store, &theirs.holds[i], LONG_TTL_MS, SOON_MS), HF_OK);
        assert_int_equal(release(store, &theirs.holds[i]), HF_OK);
    }
    assert_int_equal(take_any(store, &ours, 0, -1, &which), HF_OK);
    assert_int_equal(which, 0);
    assert_int_equal(release(store, &ours.holds[0]), HF_OK);
    client_close(store);
}

static void any_of_none_that_is_free_is_busy(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct set theirs = set_new("none");
    struct set ours = set_same(&theirs);
    int64_t start_ns;
    size_t which;

    (void)state;
    take_set(other, &theirs, SET);
    assert_int_equal(take_any(store, &ours, 0, -1, &which), HF_BUSY);
    assert_non_null(strstr(ours.holds[which].err.text, "host/1/conform"));
    assert_non_null(strstr(ours.holds[which].err.text, ours.holds[which].name));
    assert_int_equal(waiters_of_set(other, &theirs), 0);
    start_ns = hf__now_ns();
    assert_int_equal(take_any(store, &ours, 300, -1, &which), HF_BUSY);
    assert_true(hf__now_ns() - start_ns >= 300 * HF__NS_PER_MS);
    assert_true(hf__now_ns() - start_ns < SOON_MS * HF__NS_PER_MS);
    assert_non_null(strstr(ours.holds[which].err.text, ours.holds[which].name));
    assert_int_equal(waiters_of_set(other, &theirs), 0);
    for (size_t i = 0; i < SET; i++)
        assert_int_equal(release(other, &theirs.holds[i]), HF_OK);
    assert_int_equal(held_of_set(other, &theirs), 0);
    client_close(store);
    client_close(other);
}

static void any_waits_for_all_of_them(void **state)
{
    struct hf_store_base *store = client_open();
    struct set set = set_new("line");

    (void)state;
    take_set(store, &set, SET);
    for (size_t i = 0; i < SET; i++) {
        struct waiter waiter = {0};
        int64_t in_line_ns;

        start(&waiter, &set, -1, -1);
        await_set(store, &set, 0);
        in_line_ns = hf__now_ns();
        assert_int_equal(atomic_load(&waiter.status), -1);
        check_pause_ms(300); /* for the request that brought it there */
        assert_int_equal(release(store, &set.holds[i]), HF_OK);
        assert_int_equal(finish(&waiter), HF_OK);
        assert_int_equal(waiter.which, i);
        assert_true(waiter.set.holds[i].grant.token > set.holds[i].grant.token);
        /* A try under way when we looked may rightly be what got it, in a store without queues. */
        if (has(HF_FEATURE_FAIR)) /* a relay counts a hundredth of the wait less */
            assert_true(waiter.set.holds[i].grant.sent_at_ns + 20 * HF__NS_PER_MS >= in_line_ns);
        assert_int_equal(waiters_of_set(store, &set), 0); /* the other queues are left */
        assert_int_equal(release(waiter.store, &waiter.set.holds[i]), HF_OK);
        client_close(waiter.store);
        assert_int_equal(take(store, &set.holds[i], LONG_TTL_MS, SOON_MS), HF_OK);
    }
    for (size_t i = 0; i < SET; i++)
        assert_int_equal(release(store, &set.holds[i]), HF_OK);
    client_close(store);
}

static void any_that_is_cancelled_leaves_every_queue(void **state)
{
    struct hf_store_base *store = client_open();
    struct set set = set_new("cancel");
    struct waiter waiter = {0};
    int cancel_fd = eventfd(0, EFD_CLOEXEC);

    (void)state;
    take_set(store, &set, SET);
    start(&waiter, &set, -1, cancel_fd);
    await_set(store, &set, 0);
    assert_int_equal(eventfd_write(cancel_fd, 1), 0);
    assert_int_equal(finish(&waiter), HF_CANCELLED);
    assert_non_null(strstr(waiter.set.holds[waiter.which].err.text, set.holds[waiter.which].name));
    assert_int_equal(waiters_of_set(store, &set), 0);
    for (size_t i = 0; i < SET; i++)
        assert_int_equal(release(store, &set.holds[i]), HF_OK);
    assert_int_equal(held_of_set(store, &set), 0);
    client_close(waiter.store);
    client_close(store);
    (void)close(cancel_fd);
}

/* Cancelled just when a lock becomes free: it has one, or nothing of it is left anywhere. */
static void any_that_is_cancelled_at_its_grant(void **state)
{
    enum { ROUNDS = 24, STEP_US = 100 };
    struct hf_store_base *store = client_open();
    struct set set = set_new("moment");
    int cancel_fd = eventfd(0, EFD_CLOEXEC);
    eventfd_t written;

    (void)state;
    for (size_t round = 0; round < ROUNDS; round++) {
        struct waiter waiter = {0};
        enum hf_status status;

        take_set(store, &set, SET);
        start(&waiter, &set, -1, cancel_fd);
        await_set(store, &set, 0);
        if (round % 3 == 0)
            assert_int_equal(eventfd_write(cancel_fd, 1), 0);
        assert_int_equal(release(store, &set.holds[round % SET]), HF_OK);
        (void)usleep((useconds_t)(round * STEP_US));
        if (round % 3 != 0)
            assert_int_equal(eventfd_write(cancel_fd, 1), 0);
        status = finish(&waiter);
        assert_int_equal(eventfd_read(cancel_fd, &written), 0);
        assert_true(status == HF_OK || status == HF_CANCELLED);
        assert_int_equal(held_of_set(store, &set), status == HF_OK ? SET : SET - 1);
        assert_int_equal(waiters_of_set(store, &set), 0);
        if (status == HF_OK)
            assert_int_equal(release(waiter.store, &waiter.set.holds[waiter.which]), HF_OK);
        client_close(waiter.store);
        for (size_t i = 0; i < SET; i++)
            if (i != round % SET)
                assert_int_equal(release(store, &set.holds[i]), HF_OK);
    }
    client_close(store);
    (void)close(cancel_fd);
}

/* All become free at once, and the one who stands in every queue wants one of them only: those
 * behind it get the others, and do not have to wait for anything. */
static void any_passes_on_what_it_does_not_need(void **state)
{
    struct hf_store_base *store = client_open();
    struct set set = set_new("pass");
    struct waiter all = {0};
    struct waiter one[SET] = {{0}};
    size_t got = 0;
    int64_t start_ns;

    (void)state;
    take_set(store, &set, SET);
    start(&all, &set, -1, -1);
    await_set(store, &set, 0);
    check_pause_ms(100);
    for (size_t i = 0; i < SET; i++) {
        uint64_t waiting = waiters_of_set(store, &set);

        start(&one[i], &set, (int)i, -1);
        await_set(store, &set, waiting);
    }
    start_ns = hf__now_ns();
    for (size_t i = 0; i < SET; i++)
        assert_int_equal(release(store, &set.holds[i]), HF_OK);
    finish_and_release(&all);
    for (size_t i = 0; i < SET; i++) {
        finish_and_release(&one[i]);
        got += one[i].granted_ns - start_ns < SOON_MS * HF__NS_PER_MS ? 1 : 0;
    }
    assert_int_equal(got, SET);
    assert_int_equal(held_of_set(store, &set), 0);
    client_close(store);
}

/* Whoever came first is served first, in whichever queue it stands. */
static void any_keeps_its_place(void **state)
{
    struct hf_store_base *store = client_open();
    struct set set = set_new("place");
    struct waiter first = {0}, second = {0};
    uint64_t waiting;

    (void)state;
    take_set(store, &set, SET);
    start(&first, &set, -1, -1);
    check_soon(waiters_of_set(store, &set) > 0);
    check_pause_ms(100); /* in all queues, if it takes them one by one */
    waiting = waiters_of_set(store, &set);
    start(&second, &set, 2, -1);
    await_set(store, &set, waiting);
    assert_int_equal(release(store, &set.holds[2]), HF_OK);
    assert_int_equal(finish(&first), HF_OK);
    assert_int_equal(first.which, 2);
    assert_int_equal(atomic_load(&second.status), -1);
    assert_int_equal(release(first.store, &first.set.holds[2]), HF_OK);
    finish_and_release(&second);
    for (size_t i = 0; i < SET; i++)
        if (i != 2)
            assert_int_equal(release(store, &set.holds[i]), HF_OK);
    client_close(first.store);
    client_close(store);
}

/* The child of the next test: waits for any of the set once somebody holds them all. */
static _Noreturn void wait_as_ghost(struct set *set, int go_fd)
{
    struct hf_store_base *store;
    size_t which;
    char go;

    if (read(go_fd, &go, 1) != 1 || (store = client_try_open()) == NULL)
        _exit(1);
    (void)take_any(store, set, 6 * SOON_MS, -1, &which);
    _exit(2);
}

/* A process that waits for all of them and is killed: those behind it get what is free, and do not
 * wait for its ghost in one queue after the other. */
static void any_that_dies_is_passed_over(void **state)
{
    struct set set = set_new("ghost");
    struct waiter behind = {0};
    struct hf_store_base *store;
    int64_t free_ns;
    int go[2];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(go), 0);
    pid = fork_child();
    if (pid == 0)
        wait_as_ghost(&set, go[0]);
    assert_true(pid > 0);
    store = client_open();
    take_set(store, &set, SET);
    assert_int_equal(write(go[1], "!", 1), 1);
    await_set(store, &set, 0);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    start(&behind, &set, -1, -1);
    for (size_t i = 0; i < SET; i++)
        assert_int_equal(release(store, &set.holds[i]), HF_OK);
    free_ns = hf__now_ns();
    finish_and_release(&behind);
    assert_true(behind.granted_ns - free_ns < 2 * SOON_MS * HF__NS_PER_MS);
    (void)close(go[0]);
    (void)close(go[1]);
    client_close(store);
}

void add_any_tests(struct suite *suite)
{
    ADD(suite, any_takes_the_first_that_is_free);
    ADD(suite, any_takes_a_new_one_in_its_turn);
    ADD(suite, any_of_none_that_is_free_is_busy);
    ADD(suite, any_waits_for_all_of_them);
    ADD(suite, any_that_is_cancelled_leaves_every_queue);
    ADD(suite, any_that_is_cancelled_at_its_grant);
    if (has(HF_FEATURE_FAIR)) {
        ADD(suite, any_passes_on_what_it_does_not_need);
        ADD(suite, any_keeps_its_place);
    }
    ADD(suite, any_that_dies_is_passed_over);
}
