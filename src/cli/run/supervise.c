/* supervise.c - the supervisor: starts the watchdog, keeps the lease, forwards signals.
 *
 * The watchdog ends the tree. The supervisor only says why, and takes over when the watchdog does
 * not act (it may be stopped) or is dead. */
#include "cli/run/supervise.h"

#include "base/base.h"
#include "core/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS_MAX = 16,         /* read from the socket at once */
    LEFTOVER_NAME_MS = 200, /* most of what CMD leaves behind is just about to end */
    LATE_CHECK_MS = 5       /* how often we look at a watchdog that is late */
};

static bool start_watchdog(struct run_supervisor *s);
static void begin_watchdog(struct run_supervisor *s, const int link[2]);
static bool note_foreign_children(struct run_foreign *foreign);
static void arm_timer(struct run_supervisor *s);
static void keep_from_start(struct run_supervisor *s);
static void wait_for_something(struct run_supervisor *s);
static void check_start(struct run_supervisor *s);
static void hear_signals(struct run_supervisor *s);
static void hear_watchdog(struct run_supervisor *s);
static void hear_clock(struct run_supervisor *s);
static void command_exited(struct run_supervisor *s);
static void command_stopped(struct run_supervisor *s);
static void close_end(int *fd);

bool run_supervise(struct run_job *job, struct run_outcome *outcome)
{
    struct run_supervisor s = {.job = job,
                               .page = job->page,
                               .outcome = outcome,
                               .lost_fd = -1,
                               .keep_at_ns = HF_NEVER,
                               .spare_at_ns = HF_NEVER,
                               .name_at_ns = HF_NEVER};

    outcome->terminal = run_has_terminal();
    run_page_init(s.page, job->options);
    if (job->lease != NULL) {
        run_page_publish(s.page, job->take.leases, job->take.taken);
        s.keep_at_ns = run_keep_at_ns(s.page, job->options->take.ttl_ms);
    }
    if (!start_watchdog(&s))
        return false;
    run_watch_above(&s);
    keep_from_start(&s);
    while (!s.gone)
        wait_for_something(&s);
    run_keep_end(&s);
    run_spare_end(&s);
    check_start(&s);
    outcome->status = atomic_load(&s.page->command_status);
    outcome->start_errno = atomic_load(&s.page->start_errno);
    outcome->exec_errno = atomic_load(&s.page->exec_errno);
    outcome->cause = (enum run_cause)atomic_load(&s.page->cause);
    if (outcome->cause == RUN_LOST)
        outcome->lost = true;
    job->watchdog = s.watchdog;
    run_signals_leave_children(&job->signals);
    close_end(&s.link);
    close_end(&s.timer);
    close_end(&s.cgroup.fd); /* the watchdog has removed it */
    return true;
}

void run_supervise_end(const struct run_job *job)
{
    /* It has nothing left to do. SIGKILL, because it may be stopped. */
    if (job->watchdog > 0 && cli_kill(job->watchdog, SIGKILL) == 0)
        (void)waitpid(job->watchdog, NULL, 0);
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static bool start_watchdog(struct run_supervisor *s)
{
    int link[2];
    sigset_t all, mine;

    s->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->timer < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0) {
        cli_stderr_say(s->job->writer, "cannot start the watchdog: %s", strerror(errno));
        return false;
    }
    if (!note_foreign_children(&s->foreign)) {
        cli_stderr_say(s->job->writer, "cannot tell which children are from before: %s",
                       strerror(errno));
        return false;
    }
    run_cgroup_make(&s->cgroup);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    run_signals_watch_children(&s->job->signals);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &mine);
    s->watchdog = fork();
    if (s->watchdog == 0)
        begin_watchdog(s, link);
    (void)sigprocmask(SIG_SETMASK, &mine, NULL);
    if (s->watchdog < 0) {
        cli_stderr_say(s->job->writer, "cannot start the watchdog: %s", strerror(errno));
        (void)run_cgroup_remove(&s->cgroup);
        return false;
    }
    s->foreign.watchdog = s->watchdog;
    s->spare_at_ns = run_spare_at(s);
    s->link = link[0];
    (void)close(link[1]);
    /* Only the watchdog has the write end: a supervisor that is stopped must not keep it open. */
    for (int i = 0; i < 2; i++) {
        close_end(&s->job->lost_pipe[i]);
        close_end(&s->job->output[i]);
    }
    return true;
}

static void begin_watchdog(struct run_supervisor *s, const int link[2])
{
    struct run_job *job = s->job;
    struct run_watchdog watchdog = {.page = s->page,
                                    .signals = &job->signals,
                                    .cgroup = &s->cgroup,
                                    .command = job->options->command,
                                    .environment = job->environment,
                                    .group = s->outcome->terminal ? getpgrp() : 0,
                                    .link = link[1],
                                    .above = job->hold_count > 0 ? job->holds[0].lost_fd : -1,
                                    .lost_read = job->lost_pipe[0],
                                    .lost_write = job->lost_pipe[1],
                                    .output = {job->output[0], job->output[1]},
                                    .life_fd = job->life_fd};

    (void)close(link[0]);
    run_watchdog_main(&watchdog);
}

/* `helper & exec holdfast run ...` leaves us with a child that is not part of the tree. False, with
 * errno, if not all of them are known: they would be ended with the tree. */
static bool note_foreign_children(struct run_foreign *foreign)
{
    struct run_tree tree;
    siginfo_t info;
    pid_t self = getpid();

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
        return true;
    if (!run_tree_find(&tree, self, NULL))
        run_children_find(&tree, NULL, 0);
    for (size_t i = 0; i < tree.count; i++) {
        if (tree.list[i].parent != self)
            continue;
        if (foreign->count == RUN_FOREIGN_MAX) {
            errno = E2BIG;
            return false;
        }
        foreign->list[foreign->count++] = tree.list[i].pid;
    }
    return true;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Wakes us for the keeper, for the names, and for the plan if the watchdog does not follow it. */
static void arm_timer(struct run_supervisor *s)
{
    struct run_plan plan = run_plan_of(s->page);
    bool began = atomic_load(&s->page->began_ns) != 0;
    int64_t now_ns = hf__now_ns();
    int64_t plan_ns = hf__time_add(began ? plan.kill_ns : plan.term_ns, run_lag_ns(s));
    struct itimerspec at = {0};
    int64_t at_ns;

    if (plan_ns <= now_ns)
        plan_ns = now_ns + LATE_CHECK_MS * HF__NS_PER_MS;
    at_ns = earlier(plan_ns, earlier(earlier(s->keep_at_ns, s->spare_at_ns), s->name_at_ns));
    if (at_ns != HF_NEVER) {
        at.it_value.tv_sec = at_ns / HF__NS_PER_S;
        at.it_value.tv_nsec = at_ns % HF__NS_PER_S;
    }
    (void)timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* A keeper that is needed in any case is started while the watchdog starts CMD. */
static void keep_from_start(struct run_supervisor *s)
{
    check_start(s);
    if (s->job->hooks.keeps && s->keep_at_ns != HF_NEVER)
        run_keep(s, hf__now_ns());
}

static void wait_for_something(struct run_supervisor *s)
{
    enum { SIGNALS, WATCHDOG, TIMER, LOST, COUNT };
    struct pollfd fds[COUNT] = {{.fd = s->job->signals.fd, .events = POLLIN},
                                {.fd = s->link, .events = POLLIN},
                                {.fd = s->timer, .events = POLLIN},
                                {.fd = s->lost_fd, .events = POLLIN}};

    arm_timer(s);
    while (poll(fds, COUNT, -1) < 0 && errno == EINTR)
        continue;
    check_start(s);
    if (fds[WATCHDOG].revents)
        hear_watchdog(s);
    if (s->gone)
        return;
    if (fds[SIGNALS].revents)
        hear_signals(s);
    if (fds[LOST].revents && s->lost_fd >= 0)
        run_lease_lost(s);
    hear_clock(s);
}

/* We may have slept since the grant. If the lease did not last until CMD was executed, it never
 * will be; there is nothing to keep or to end then. */
static void check_start(struct run_supervisor *s)
{
    if (s->said_why || run_page_decide(s->page, hf__now_ns(), false) != RUN_START_REFUSED)
        return;
    s->said_why = true;
    s->outcome->lost = true;
    s->keep_at_ns = HF_NEVER;
    run_events_lost(s->job, "expired before the command could be started");
    cli_stderr_say(s->job->writer, "lock \"%s\" expired before %s could be started",
                   s->job->options->name, s->job->options->command[0]);
}

static bool ends(int number)
{
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

static void hear_signals(struct run_supervisor *s)
{
    int number;
    bool from_kernel;

    while (run_signals_take(&s->job->signals, &number, &from_kernel)) {
        if (ends(number) && (s->outcome->told_to_end == 0 || s->outcome->told_to_end == SIGHUP))
            s->outcome->told_to_end = number;
        if (number == SIGCHLD) {
            /* A watchdog that somebody stopped is of no use. If it died, the socket tells, and its
             * number is ours to use until all that it said was read: it is not reaped here. */
            siginfo_t info = {.si_pid = 0};

            if (waitid(P_PID, (id_t)s->watchdog, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid > 0)
                (void)cli_kill(s->watchdog, SIGCONT);
        } else if (!(from_kernel && s->outcome->terminal) || s->exited ||
                   atomic_load(&s->page->start) == RUN_START_OPEN) {
            /* CMD has already got what the terminal sent, unless it was not there yet; what is left
             * after CMD may not have got it. */
            run_tell(s, number);
        } else if (number == SIGHUP) {
            run_tell(s, RUN_WORD_HANGUP);
        }
    }
}

static void hear_watchdog(struct run_supervisor *s)
{
    unsigned char words[WORDS_MAX];
    ssize_t got = recv(s->link, words, sizeof words, MSG_DONTWAIT);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        run_watchdog_died(s);
        return;
    }
    for (ssize_t i = 0; i < got && !s->gone; i++) {
        if (words[i] == RUN_WORD_BEGAN)
            run_say_why(s);
        else if (words[i] == RUN_WORD_EXITED)
            command_exited(s);
        else if (words[i] == RUN_WORD_REFUSED)
            run_say_refused(s);
        else if (words[i] == RUN_WORD_STOPPED)
            command_stopped(s);
        else if (words[i] == RUN_WORD_GONE)
            s->gone = true;
    }
}

static void hear_clock(struct run_supervisor *s)
{
    struct run_plan plan = run_plan_of(s->page);
    int64_t now_ns = hf__now_ns();

    if (now_ns >= s->keep_at_ns)
        run_keep(s, now_ns);
    if (now_ns >= s->spare_at_ns)
        run_spare_start(s);
    if (now_ns >= s->name_at_ns)
        run_name_leftovers(s);
    run_take_over(s, &plan, now_ns);
}

/* The ending began without us asking for it. */
void run_say_why(struct run_supervisor *s)
{
    const struct run_options *options = s->job->options;
    char text[32];

    if (s->said_why)
        return;
    s->said_why = true;
    switch ((enum run_cause)atomic_load(&s->page->cause)) {
    case RUN_MAX_RUNTIME:
        (void)hf__format_duration(text, sizeof text, options->max_runtime_ms);
        cli_stderr_say(s->job->writer,
                       "%s has run for %s, as long as --max-runtime allows; ending it",
                       options->command[0], text);
        break;
    case RUN_LOST:
        if (s->job->held != NULL) {
            s->said_why = false;
            run_lease_lost(s);
            break;
        }
        run_events_lost(s->job, "could not be renewed in time");
        cli_stderr_say(s->job->writer,
                       "lock \"%s\" could not be renewed in time; ending %s before the deadline",
                       options->name, options->command[0]);
        break;
    case RUN_NOT_ENDING:
    case RUN_LEFTOVERS:
    case RUN_ORPHANED:
        break;
    }
}

/* CMD is gone, but something it started is not. */
static void command_exited(struct run_supervisor *s)
{
    s->exited = true;
    switch ((enum run_leftover)s->job->options->leftover) {
    case RUN_LEFTOVER_WAIT:
        s->name_at_ns = hf__now_ns() + LEFTOVER_NAME_MS * HF__NS_PER_MS;
        break;
    case RUN_LEFTOVER_TERM:
        run_page_order(s->page, RUN_LEFTOVERS);
        run_tell(s, RUN_WORD_ORDER);
        break;
    case RUN_LEFTOVER_RELEASE:
        if (atomic_load(&s->page->began_ns) != 0)
            break;
        /* Without the watchdog nobody ends them any more. */
        (void)cli_kill(s->watchdog, SIGKILL);
        (void)waitpid(s->watchdog, NULL, 0);
        s->watchdog = -1;
        s->gone = true;
        run_cgroup_dissolve(&s->cgroup);
        break;
    }
}

/* CMD wanted the terminal in the background. */
static void command_stopped(struct run_supervisor *s)
{
    if (!s->outcome->terminal)
        return;
    run_stop_with_command(atomic_load(&s->page->stopped_by));
    run_tell(s, SIGCONT); /* whoever woke us meant CMD as well */
}

void run_tell(struct run_supervisor *s, int word)
{
    unsigned char byte = (unsigned char)word;

    if (s->link >= 0)
        (void)send(s->link, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}
