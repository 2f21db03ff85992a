/* break_race.c - a hold that changes hands while somebody breaks it. */
#include "break.h"
#include "client/client.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RENEWALS 200 /* races of a break with renewals */
#define TOGETHER 5   /* holds that are renewed in one go */

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
    atomic_bool done;
};

static void *break_it(void *data)
{
    struct breaker *breaker = data;
    struct hf_broken broken;

    pthread_barrier_wait(breaker->go);
    breaker->status = break_token(breaker->store, breaker->hold, breaker->hold->grant.token,
                                  breaker->now, &broken);
    atomic_store(&breaker->done, true);
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

/* A renewal may be on its way when the break is: it is executed before, or refused. None erases the
 * mark, and none that is begun when the break has been answered is executed. */
static void break_while_renewing(struct hf_store_base *const stores[2], const struct hold *like)
{
    struct hold hold = hold_same(like);
    struct hf_broken again;
    pthread_barrier_t go;
    struct breaker breaker = {.store = stores[1], .hold = &hold, .go = &go};
    struct hold seen;
    pthread_t thread;

    assert_int_equal(pthread_barrier_init(&go, NULL, 2), 0);
    assert_int_equal(take(stores[0], &hold, LONG_TTL_MS, SOON_MS), HF_OK);
    seen = hold; /* the breaker reads the other one */
    assert_int_equal(pthread_create(&thread, NULL, break_it, &breaker), 0);
    pthread_barrier_wait(&go);
    while (!atomic_load(&breaker.done))
        (void)renew(stores[0], &seen, LONG_TTL_MS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(breaker.status, HF_OK);
    assert_int_equal(renew(stores[0], &seen, LONG_TTL_MS), HF_LOST);
    assert_int_equal(seen.grant.loss, HF_LOSS_BROKEN);
    assert_int_equal(break_token(stores[1], &hold, hold.grant.token, false, &again), HF_OK);
    assert_true(again.again);
    assert_int_equal(release(stores[0], &hold), HF_OK);
    pthread_barrier_destroy(&go);
}

static void no_renewal_erases_the_mark(void **state)
{
    struct hf_store_base *stores[] = {client_open(), client_open()};
    struct hold hold = hold_new("break and renew");

    (void)state;
    for (int round = 0; round < RENEWALS; round++)
        break_while_renewing(stores, &hold);
    client_close(stores[0]);
    client_close(stores[1]);
}

/* As the keeper does it. */
static void renew_together(struct hf_store_base *store, struct hold holds[TOGETHER],
                           enum hf_status results[TOGETHER])
{
    struct hf_claim claims[TOGETHER];
    struct hf_grant grants[TOGETHER];
    struct hf_error err;

    memset(grants, 0, sizeof grants);
    for (size_t i = 0; i < TOGETHER; i++) {
        claims[i] = claim_of(&holds[i], LONG_TTL_MS);
        grants[i].revocation = &holds[i].revocation;
    }
    (void)store->ops->renew_many(store, claims, grants, results, TOGETHER, &err);
    for (size_t i = 0; i < TOGETHER; i++)
        holds[i].grant.loss = grants[i].loss;
}

static void of_several_that_are_renewed_one_is_broken(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold holds[TOGETHER];
    enum hf_status results[TOGETHER];
    struct hf_broken broken;

    (void)state;
    for (int now = 0; now < 2 && HF__OPERATION(store->ops, renew_many) != NULL; now++) {
        for (size_t i = 0; i < TOGETHER; i++) {
            holds[i] = hold_new("break one of many");
            assert_int_equal(take(store, &holds[i], LONG_TTL_MS, 0), HF_OK);
        }
        renew_together(store, holds, results);
        assert_int_equal(break_token(other, &holds[2], holds[2].grant.token, now != 0, &broken),
                         HF_OK);
        renew_together(store, holds, results);
        for (size_t i = 0; i < TOGETHER; i++) {
            assert_int_equal(results[i], i == 2 ? HF_LOST : HF_OK);
            assert_int_equal(holds[i].grant.loss, i == 2 ? HF_LOSS_BROKEN : HF_LOSS_NONE);
            assert_string_equal(holds[i].revocation.by, i == 2 ? BREAKER : "");
        }
        for (size_t i = 0; i < TOGETHER; i++)
            assert_int_equal(release(store, &holds[i]), i == 2 && now ? HF_LOST : HF_OK);
    }
    client_close(store);
    client_close(other);
}

void add_break_race_tests(struct suite *suite)
{
    ADD(suite, a_hand_over_is_not_broken);
    ADD(suite, no_renewal_erases_the_mark);
    ADD(suite, of_several_that_are_renewed_one_is_broken);
    ADD(suite, what_changes_hands_is_not_broken);
}
