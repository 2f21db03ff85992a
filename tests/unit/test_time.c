/* test_time.c - the clocks, sums that do not overflow, and polling until a deadline. */
#include "../support/check.h"
#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void clocks_go_forward(void **state)
{
    int64_t before = hf__now_ns();
    int64_t wall = hf__wall_us();

    (void)state;
    assert_true(before > 0);
    assert_true(wall > 1600000000LL * 1000000); /* microseconds, not milli and not nano */
    assert_true(wall < 16000000000LL * 1000000);
    for (int i = 0; i < 10000; i++) {
        int64_t now = hf__now_ns();

        assert_true(now >= before);
        before = now;
    }
    hf__sleep_ns(2 * HF__NS_PER_MS);
    assert_true(hf__now_ns() - before >= 2 * HF__NS_PER_MS);
}

static void sums_stop_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(hf__time_add(1, 2), 3);
    assert_int_equal(hf__time_add(-5, 2), -3);
    assert_true(hf__time_add(INT64_MAX, 0) == INT64_MAX);
    assert_true(hf__time_add(INT64_MAX, 1) == INT64_MAX);
    assert_true(hf__time_add(INT64_MAX - 1, 1) == INT64_MAX);
    assert_true(hf__time_add(INT64_MAX, INT64_MAX) == INT64_MAX);
    assert_true(hf__time_add(INT64_MIN, INT64_MAX) == -1);
}

static void lengths_stop_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(hf__ms_to_ns(0), 0);
    assert_int_equal(hf__ms_to_ns(1500), 1500000000);
    assert_int_equal(hf__ms_to_ns(9223372036854), 9223372036854000000);
    assert_int_equal(hf__ms_to_ns(9223372036855), INT64_MAX);
    assert_int_equal(hf__ms_to_ns(INT64_MAX), INT64_MAX);
}

static void poll_keeps_its_deadline(void **state)
{
    int64_t start = hf__now_ns();
    int ends[2];
    struct pollfd fd = {.events = POLLIN};

    (void)state;
    assert_int_equal(pipe(ends), 0);
    fd.fd = ends[0];
    assert_int_equal(hf__poll_until(&fd, 1, start + 30 * HF__NS_PER_MS), 0);
    assert_true(hf__now_ns() >= start + 30 * HF__NS_PER_MS);
    assert_true(hf__now_ns() < start + 10 * HF__NS_PER_S);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(hf__poll_until(&fd, 1, INT64_MAX), 1);
    /* A deadline in the past, however far, still polls once. */
    assert_int_equal(hf__poll_until(&fd, 1, 0), 1);
    assert_int_equal(hf__poll_until(&fd, 1, INT64_MIN), 1);
    assert_int_equal(read(ends[0], (char[1]){0}, 1), 1);
    assert_int_equal(hf__poll_until(&fd, 1, INT64_MIN), 0);
    assert_int_equal(hf__poll_until(NULL, 0, -1), 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void on_signal(int number)
{
    (void)number;
}

struct nuisance {
    pthread_t target;
    volatile bool stop;
};

static void *send_signals(void *data)
{
    struct nuisance *nuisance = data;

    while (!__atomic_load_n(&nuisance->stop, __ATOMIC_SEQ_CST)) {
        pthread_kill(nuisance->target, SIGUSR1);
        check_pause_ms(1);
    }
    return NULL;
}

static void poll_is_restarted_after_a_signal(void **state)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct nuisance nuisance = {.target = pthread_self()};
    int64_t start;
    pthread_t thread;

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, send_signals, &nuisance), 0);
    start = hf__now_ns();
    assert_int_equal(hf__poll_until(NULL, 0, start + 50 * HF__NS_PER_MS), 0);
    assert_true(hf__now_ns() >= start + 50 * HF__NS_PER_MS);
    __atomic_store_n(&nuisance.stop, true, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
}

static void random_is_not_constant(void **state)
{
    unsigned char a[300] = {0};
    unsigned char b[300] = {0};

    (void)state;
    hf__random(a, sizeof a);
    hf__random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a + 268, (unsigned char[32]){0}, 32); /* filled to the end */
    hf__random(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_go_forward),
        cmocka_unit_test(sums_stop_at_the_end),
        cmocka_unit_test(lengths_stop_at_the_end),
        cmocka_unit_test(poll_keeps_its_deadline),
        cmocka_unit_test(poll_is_restarted_after_a_signal),
        cmocka_unit_test(random_is_not_constant),
    };

    return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
