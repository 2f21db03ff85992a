/* break_race.c - a hold that changes hands while somebody breaks it. */
#include "break.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that waits in line once go_fd can be read, takes the lock, and tells whether it could
 * renew it. */
static pid_t fork_waiter(const struct hold *like, int go_fd)
{
    pid_t pid = fork_child();

    if (pid == 0) {
        struct hf_store_base *store = client_try_open();
        struct hold hold = hold_same(like);
        char go;

        _exit(store == NULL || read(go_fd, &go, 1) != 1 ||
              take(store, &hold, LONG_TTL_MS, 6 * SOON_MS) != HF_OK ||
              renew(store, &hold, LONG_TTL_MS) != HF_OK || release(store, &hold) != HF_OK);
    }
    return pid;
}

/* The lock was released to a waiter that does not run just now: it is nobody's to break. */
static void a_hand_over_is_not_broken(void **state)
{
    struct hold hold = hold_new("break hand-over");
    struct hf_store_base *store;
    struct hf_broken broken;
    pid_t waiter;
    int status, go[2];

    (void)state;
    assert_int_equal(pipe(go), 0);
    waiter = fork_waiter(&hold, go[0]);
    assert_true(waiter > 0);
    store = client_open();
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(write(go[1], "g", 1), 1);
    await_line(store, hold.name, 1);
    assert_int_equal(kill(waiter, SIGSTOP), 0);
    assert_int_equal(release(store, &hold), HF_OK);
    for (int now = 0; now < 2; now++) {
        assert_int_equal(break_token(store, &hold, hold.grant.token, now != 0, &broken), HF_LOST);
        assert_int_equal(break_token(store, &hold, 0, true, &broken), HF_LOST);
    }
    assert_int_equal(kill(waiter, SIGCONT), 0);
    assert_int_equal(waitpid(waiter, &status, 0), waiter);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    client_close(store);
}

struct breaker {
    struct hf_store_base *store;
    const struct hold *hold;
    pthread_barrier_t *go;
    bool now;
    enum hf_status status;
};

static void *break_it(void *data)
{
    struct breaker *breaker = data;
    struct hf_broken broken;

    pthread_barrier_wait(breaker->go);
    breaker->status = break_token(breaker->store, breaker->hold, breaker->hold->grant.token,
                                  breaker->now, &broken);
    return NULL;
}

/* One holder gives the lock back while a break of its hold is on its way, and the next takes it:
 * whatever comes first, the next hold is none of the breaker's business. */
static void race(struct hf_store_base *const stores[3], const struct hold *like, int round)
{
    struct hold hold = hold_same(like);
    struct hold next = hold_same(like);
    pthread_barrier_t go;
    struct breaker breaker = {.store = stores[2], .hold = &hold, .go = &go, .now = round % 4 == 3};
    enum hf_status released;
    pthread_t thread;

    assert_int_equal(pthread_barrier_init(&go, NULL, 2), 0);
    assert_int_equal(take(stores[0], &hold, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, break_it, &breaker), 0);
    pthread_barrier_wait(&go);
    for (int i = 0; i < round % 7; i++)
        (void)sched_yield();
    released = release(stores[0], &hold);
    assert_int_equal(take(stores[1], &next, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(breaker.status == HF_OK || breaker.status == HF_LOST);
    /* Only a break at once takes it out of its holder's hands. */
    assert_int_equal(released, breaker.now && breaker.status == HF_OK ? HF_LOST : HF_OK);
    assert_int_equal(renew(stores[1], &next, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(stores[1], &next), HF_OK);
    pthread_barrier_destroy(&go);
}

/* CONFORM_RACES: how many; the long tests ask for 1,000. */
static void what_changes_hands_is_not_broken(void **state)
{
    struct hf_store_base *stores[] = {client_open(), client_open(), client_open()};
    struct hold hold = hold_new("break race");
    const char *asked = getenv("CONFORM_RACES");
    int rounds = asked != NULL ? atoi(asked) : 100;

    (void)state;
    for (int round = 0; round < rounds; round++)
        race(stores, &hold, round);
    for (size_t i = 0; i < COUNT(stores); i++)
        client_close(stores[i]);
}

void add_break_race_tests(struct suite *suite)
{
    ADD(suite, a_hand_over_is_not_broken);
    ADD(suite, what_changes_hands_is_not_broken);
}
