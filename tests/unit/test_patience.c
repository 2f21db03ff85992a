/* test_patience.c - waiting with a deadline and a cancel descriptor. */
#include "../support/check.h"
#include "base/base.h"
#include "base/patience.h"

#include <fcntl.h>
#include <holdfast/store.h>
#include <unistd.h>

#define SOON_NS (20 * HF__NS_PER_MS)
#define LATE_NS (60 * HF__NS_PER_S)

/* Two pipes: one to read from, one to be cancelled by. */
struct pipes {
    int in[2], cancel[2];
};

static void open_pipes(struct pipes *p)
{
    assert_int_equal(pipe2(p->in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(p->cancel, O_CLOEXEC), 0);
}

static void close_pipes(struct pipes *p)
{
    for (int i = 0; i < 2; i++) {
        (void)close(p->in[i]);
        (void)close(p->cancel[i]);
    }
}

static void feed(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

static void readiness_ends_a_wait(void **state)
{
    struct hf__patience patience = hf__patience_for(LATE_NS, -1);
    struct pipes p;

    (void)state;
    open_pipes(&p);
    feed(p.in[1]);
    assert_int_equal(hf__patience_wait(&patience, p.in[0], POLLIN), HF__WAITED_READY);
    patience.cancel_fd = p.cancel[0];
    assert_int_equal(hf__patience_wait(&patience, p.in[0], POLLIN), HF__WAITED_READY);
    patience.deadline_ns = 1; /* long past: what is there is there */
    assert_int_equal(hf__patience_wait(&patience, p.in[0], POLLIN), HF__WAITED_READY);
    close_pipes(&p);
}

static void a_hang_up_is_readiness(void **state)
{
    struct hf__patience patience = hf__patience_for(LATE_NS, -1);
    struct pipes p;

    (void)state;
    open_pipes(&p);
    (void)close(p.in[1]);
    p.in[1] = -1;
    assert_int_equal(hf__patience_wait(&patience, p.in[0], POLLIN), HF__WAITED_READY);
    close_pipes(&p);
}

static void the_deadline_ends_a_wait(void **state)
{
    struct hf__patience patience = hf__patience_for(SOON_NS, -1);
    struct pipes p;

    (void)state;
    open_pipes(&p);
    patience.cancel_fd = p.cancel[0];
    assert_int_equal(hf__patience_wait(&patience, p.in[0], POLLIN), HF__WAITED_TIMEOUT);
    assert_true(hf__now_ns() >= patience.deadline_ns);
    close_pipes(&p);
}

static void cancelling_comes_first(void **state)
{
    struct hf__patience patience = hf__patience_for(LATE_NS, -1);
    struct pipes p;

    (void)state;
    open_pipes(&p);
    patience.cancel_fd = p.cancel[0];
    assert_false(hf__patience_cancelled(&patience));
    feed(p.in[1]);
    feed(p.cancel[1]);
    assert_true(hf__patience_cancelled(&patience));
    assert_int_equal(hf__patience_wait(&patience, p.in[0], POLLIN), HF__WAITED_CANCELLED);
    patience.deadline_ns = 1; /* before the deadline too */
    assert_int_equal(hf__patience_wait(&patience, p.in[0], POLLIN), HF__WAITED_CANCELLED);
    assert_int_equal(hf__patience_pause(&patience, hf__now_ns() + LATE_NS), HF__WAITED_CANCELLED);
    close_pipes(&p);
}

static void several_are_told_apart(void **state)
{
    struct hf__patience patience = hf__patience_for(LATE_NS, -1);
    struct pipes p;
    struct pollfd fds[3] = {{.events = POLLIN}, {.fd = -1}, {.events = POLLIN}};

    (void)state;
    open_pipes(&p);
    fds[0].fd = p.cancel[0];
    fds[2].fd = p.in[0];
    feed(p.in[1]);
    assert_int_equal(hf__patience_poll(&patience, fds, 3), HF__WAITED_READY);
    assert_int_equal(fds[0].revents, 0);
    assert_int_equal(fds[1].revents, 0);
    assert_int_equal(fds[2].revents, POLLIN);
    close_pipes(&p);
}

static void a_pause_tells_whether_there_is_time_left(void **state)
{
    int64_t now_ns = hf__now_ns();
    struct hf__patience patience = {.deadline_ns = now_ns + LATE_NS, .cancel_fd = -1};

    (void)state;
    assert_int_equal(hf__patience_pause(&patience, now_ns + SOON_NS), HF__WAITED_READY);
    assert_true(hf__now_ns() >= now_ns + SOON_NS);
    patience.deadline_ns = hf__now_ns() + SOON_NS;
    assert_int_equal(hf__patience_pause(&patience, now_ns + LATE_NS), HF__WAITED_TIMEOUT);
    assert_true(hf__now_ns() < now_ns + LATE_NS);
    assert_int_equal(hf__patience_pause(&patience, patience.deadline_ns), HF__WAITED_TIMEOUT);
}

static void a_budget_becomes_a_deadline(void **state)
{
    int64_t before_ns = hf__now_ns();
    struct hf__patience some = hf__patience_for(SOON_NS, 7);
    struct hf__patience none = hf__patience_for(-5, -1);
    struct hf__patience never = hf__patience_for(HF_NEVER, -1);

    (void)state;
    assert_true(some.deadline_ns >= before_ns + SOON_NS);
    assert_int_equal(some.cancel_fd, 7);
    assert_true(none.deadline_ns >= before_ns && none.deadline_ns <= hf__now_ns());
    assert_int_equal(never.deadline_ns, HF_NEVER);
    assert_int_equal(hf__patience_until(&never, 5).deadline_ns, 5);
    assert_int_equal(hf__patience_until(&some, HF_NEVER).deadline_ns, some.deadline_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readiness_ends_a_wait),
        cmocka_unit_test(a_hang_up_is_readiness),
        cmocka_unit_test(the_deadline_ends_a_wait),
        cmocka_unit_test(cancelling_comes_first),
        cmocka_unit_test(several_are_told_apart),
        cmocka_unit_test(a_pause_tells_whether_there_is_time_left),
        cmocka_unit_test(a_budget_becomes_a_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
