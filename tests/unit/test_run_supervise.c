/* test_run_supervise.c - the supervisor of `holdfast run` and a watchdog that dies at a bad moment.
 *
 * kill(2) is the test's: a mistake here would be a signal to every process of the machine. */
#include "../support/check.h"
#include "cli/run/supervise.c"

static pid_t reached; /* whom the last kill was for; 0: there was none */

int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number)
{
    (void)number;
    reached = pid;
    return 0;
}

static struct run_page page;
static struct run_options options = {.leftover = RUN_LEFTOVER_RELEASE};
static struct run_job job = {
    .options = &options, .lost_pipe = {-1, -1}, .output = {-1, -1}, .life_fd = -1};
static struct run_outcome outcome;
static int watchdogs_end;

/* A supervisor whose watchdog is a child that has just ended, with SIGCHLD pending. */
static struct run_supervisor bereaved(void)
{
    struct run_supervisor s = {.job = &job, .page = &page, .outcome = &outcome, .lost_fd = -1};
    int link[2];
    siginfo_t info;

    outcome = (struct run_outcome){.status = 0};
    job.writer = cli_stderr_open();
    assert_non_null(job.writer);
    reached = 0;
    assert_true(run_signals_begin(&job.signals));
    run_signals_watch_children(&job.signals);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, link), 0);
    s.link = link[0];
    watchdogs_end = link[1];
    s.watchdog = fork();
    if (s.watchdog == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)s.watchdog, &info, WEXITED | WNOWAIT), 0);
    return s;
}

static void clean_up(struct run_supervisor *s)
{
    if (s->link >= 0)
        (void)close(s->link);
    (void)close(watchdogs_end);
    (void)close(job.signals.fd);
    cli_stderr_close(job.writer);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

/* Its end was noticed before its last words were read. */
static void the_watchdog_is_reaped_before_it_is_heard(void **state)
{
    static const unsigned char words[] = {RUN_WORD_EXITED, RUN_WORD_GONE};
    struct run_supervisor s = bereaved();
    pid_t watchdog = s.watchdog;

    (void)state;
    hear_signals(&s);
    assert_int_equal(write(watchdogs_end, words, sizeof words), sizeof words);
    hear_watchdog(&s);
    assert_true(s.gone);
    assert_true(reached == 0 || reached == watchdog);
    clean_up(&s);
}

/* Another child of ours is stopped when the watchdog is gone already. */
static void a_stopped_stranger_is_not_taken_for_the_watchdog(void **state)
{
    struct run_supervisor s = bereaved();
    pid_t watchdog = s.watchdog;
    siginfo_t info;
    pid_t stranger;

    (void)state;
    hear_signals(&s);
    stranger = fork();
    if (stranger == 0) {
        (void)raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitid(P_PID, (id_t)stranger, &info, WSTOPPED | WNOWAIT), 0);
    hear_signals(&s);
    assert_true(reached == 0 || reached == watchdog);
    (void)__real_kill(stranger, SIGKILL);
    (void)waitpid(stranger, NULL, 0);
    clean_up(&s);
}

static void nobody_but_one_process_or_group_is_reached(void **state)
{
    static const pid_t everybody[] = {-2, -1, 0, 1};

    (void)state;
    for (size_t i = 0; i < COUNT(everybody); i++) {
        reached = 0;
        check_row(cli_kill(everybody[i], SIGKILL) == -1 && errno == ESRCH && reached == 0, i);
        check_row(cli_kill_group(everybody[i], SIGKILL) == -1 && errno == ESRCH && reached == 0, i);
    }
    assert_int_equal(cli_kill(4711, SIGTERM), 0);
    assert_int_equal(reached, 4711);
    assert_int_equal(cli_kill_group(4711, SIGTERM), 0);
    assert_int_equal(reached, -4711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_watchdog_is_reaped_before_it_is_heard),
        cmocka_unit_test(a_stopped_stranger_is_not_taken_for_the_watchdog),
        cmocka_unit_test(nobody_but_one_process_or_group_is_reached),
    };

    return cmocka_run_group_tests_name("run_supervise", tests, NULL, NULL);
}
