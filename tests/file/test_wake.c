/* test_wake.c - deaths in the instant of a hand-over: between the choice of the next waiter and the
 * byte that wakes it, and between the reservation and the look of the one behind. */
#include "../support/steps.h"
#include "stores/file/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "line"

struct part {
    const char *dir;
    const char *stop_at; /* a step; NULL: none */
    struct kit_hold hold;
    int64_t ahead_ns; /* how far ahead its clock is */
    void (*on_pipe)(int);
    bool block_pipe;
};

static void stand_in_line(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);
    struct kit_hold hold;
    struct hf_error err = {0};

    if (part->ahead_ns != 0) {
        kit_world.now_fake = true;
        kit_world.now_ns = hf__now_ns() + part->ahead_ns;
    }
    if (part->stop_at != NULL)
        steps_signal_at(part->stop_at, SIGSTOP);
    if (kit_take(base, NAME, 60000, -1, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    if (kit_drop(base, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    kit_close(base);
}

static pid_t join_line(struct hf_store_base *base, struct part *part, uint64_t in_line)
{
    pid_t pid = kit_spawn(stand_in_line, part);

    kit_until_waiting(base, NAME, in_line);
    return pid;
}

static atomic_int pipes; /* signals that the program's own handler has seen */

static void count_pipe(int number)
{
    (void)number;
    atomic_fetch_add(&pipes, 1);
}

/* Releases for another, stopped between the choice of the waiter and its wake-up. The program's
 * own dealings with SIGPIPE are none of the store's business: none comes, none is lost. */
static void release_slowly(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);
    struct hf_error err = {0};
    sigset_t pipe_set;
    sigset_t now;

    (void)sigemptyset(&pipe_set);
    (void)sigaddset(&pipe_set, SIGPIPE);
    (void)signal(SIGPIPE, part->on_pipe);
    if (part->block_pipe) {
        (void)sigprocmask(SIG_BLOCK, &pipe_set, NULL);
        (void)raise(SIGPIPE); /* one of its own, still to come */
    }
    steps_signal_at(part->stop_at, SIGSTOP);
    if (kit_drop(base, &part->hold, &err) != HF_OK)
        kit_die("%s", err.text);
    if (sigprocmask(SIG_BLOCK, NULL, &now) != 0 ||
        sigismember(&now, SIGPIPE) != (part->block_pipe ? 1 : 0))
        kit_die("the signal mask was changed");
    if (part->block_pipe)
        (void)sigprocmask(SIG_UNBLOCK, &pipe_set, NULL);
    if (atomic_load(&pipes) != (part->block_pipe ? 1 : 0))
        kit_die("%d signals instead of %d", atomic_load(&pipes), part->block_pipe ? 1 : 0);
    kit_close(base);
}

static void dead_waiter(void)
{
    const struct part cases[] = {
        {.on_pipe = SIG_DFL},
        {.on_pipe = count_pipe},
        {.on_pipe = SIG_IGN},
        {.on_pipe = count_pipe, .block_pipe = true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct part releaser = cases[i];
        struct part waiter = {.dir = kit_fast_dir()};
        struct hf_store_base *base = kit_open(waiter.dir);
        struct hf_error err = {0};
        pid_t pids[2];

        releaser.dir = waiter.dir;
        releaser.stop_at = "pass_head";
        kit_expect(kit_take_detached(base, NAME, 60000, &releaser.hold, &err), HF_OK, &err);
        pids[0] = join_line(base, &waiter, 1);
        pids[1] = kit_spawn(release_slowly, &releaser);
        kit_wait_stopped(pids[1]);
        assert_int_equal(kill(pids[0], SIGKILL), 0);
        (void)kit_wait(pids[0]);
        assert_int_equal(kill(pids[1], SIGCONT), 0);
        assert_int_equal(kit_wait(pids[1]), 0);
        (void)kit_pair(base, NAME);
        kit_close(base);
    }
}

/* The lock is reserved for one that dies before the next in line looks for somebody to watch:
 * nobody is left who would wake it. Its clock stands an hour ahead, so that the slow poll does not
 * come to its rescue within the time of this test. */
static void dead_predecessor(void)
{
    struct part first = {.dir = kit_fast_dir()};
    struct part second = {
        .dir = first.dir, .ahead_ns = 3600 * HF__NS_PER_S, .stop_at = "wait_tail"};
    struct hf_store_base *base = kit_open(first.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    pid_t pids[2];

    kit_expect(kit_take_detached(base, NAME, 60000, &hold, &err), HF_OK, &err);
    pids[0] = join_line(base, &first, 1);
    assert_int_equal(kill(pids[0], SIGSTOP), 0);
    /* It finds the hold expired, reserves the lock for the first, and draws its ticket: stop. */
    pids[1] = kit_spawn(stand_in_line, &second);
    kit_wait_stopped(pids[1]);
    assert_int_equal(kill(pids[0], SIGKILL), 0);
    (void)kit_wait(pids[0]);
    assert_int_equal(kill(pids[1], SIGCONT), 0);
    assert_int_equal(kit_wait(pids[1]), 0);
    kit_close(base);
}

/* With guarded words, and with mapped ones. */
static void twice(void (*test)(void))
{
    assert_int_equal(unsetenv("KIT_MAPPED"), 0);
    test();
    assert_int_equal(setenv("KIT_MAPPED", "1", 1), 0);
    test();
}

static void a_dead_waiter_raises_no_signal(void **state)
{
    (void)state;
    twice(dead_waiter);
}

static void a_dead_predecessor_is_noticed_at_once(void **state)
{
    (void)state;
    twice(dead_predecessor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_waiter_raises_no_signal),
        cmocka_unit_test(a_dead_predecessor_is_noticed_at_once),
    };

    return KIT_RUN(tests);
}
