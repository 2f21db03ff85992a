/* spare.c - the spare watchdog: ends the tree if the supervisor and the watchdog are both killed,
 * or both stopped.
 *
 * That takes a cgroup, because nobody but a parent can reach a tree otherwise. Most commands are
 * over in a moment, so it is started only when CMD has run for a while.
 *
 * A forked child of a process that has threads: only async-signal-safe calls here. */
#include "cli/run/supervise.h"

#include "base/base.h"

#include <poll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SPARE_AFTER_MS = 100,
    LAGS = 2,           /* the supervisor comes after one lag, then we do */
    CHECK_MS = 20,      /* between two checks of the plan, when its time is near ... */
    CHECK_MAX_MS = 1000 /* ... and at most, because it may have changed */
};

_Noreturn static void watch(struct run_supervisor *s, pid_t supervisor);

int64_t run_spare_at(const struct run_supervisor *s)
{
    return s->cgroup.fd < 0 ? HF_NEVER : hf__now_ns() + SPARE_AFTER_MS * HF__NS_PER_MS;
}

void run_spare_start(struct run_supervisor *s)
{
    sigset_t all, mine;
    pid_t self = getpid();
    pid_t pid;

    s->spare_at_ns = HF_NEVER;
    if (!atomic_load(&s->page->in_cgroup) || s->watchdog <= 0 ||
        s->foreign.count == RUN_FOREIGN_MAX)
        return;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &mine);
    pid = fork();
    if (pid == 0)
        watch(s, self);
    (void)sigprocmask(SIG_SETMASK, &mine, NULL);
    if (pid <= 0)
        return; /* there are two others */
    s->spare = pid;
    s->foreign.list[s->foreign.count++] = pid;
}

void run_spare_end(struct run_supervisor *s)
{
    if (s->spare > 0 && cli_kill(s->spare, SIGKILL) == 0)
        (void)waitpid(s->spare, NULL, 0);
    s->spare = 0;
}

/* When to check again; the plan may change meanwhile. */
static int pause_ms(const struct run_supervisor *s, int64_t now_ns)
{
    int64_t due_ns = hf__time_add(run_plan_of(s->page).kill_ns, LAGS * run_lag_ns(s));
    int64_t left_ms = (due_ns - now_ns) / HF__NS_PER_MS;

    if (left_ms > CHECK_MAX_MS)
        return CHECK_MAX_MS;
    return left_ms < CHECK_MS ? CHECK_MS : (int)left_ms;
}

_Noreturn static void watch(struct run_supervisor *s, pid_t supervisor)
{
    struct pollfd lives[2] = {{.fd = pidfd_open(supervisor, 0), .events = POLLIN},
                              {.fd = pidfd_open(s->watchdog, 0), .events = POLLIN}};

    (void)setsid();
    (void)prctl(PR_SET_NAME, "holdfast-spare", 0, 0, 0);
    run_close_others((int[]){lives[0].fd, lives[1].fd, s->cgroup.fd}, 3);
    if (lives[0].fd < 0 || lives[1].fd < 0 || getppid() != supervisor)
        _exit(0);
    for (;;) {
        int64_t now_ns = hf__now_ns();
        struct run_plan plan = run_plan_of(s->page);
        bool late = now_ns >= hf__time_add(plan.kill_ns, LAGS * run_lag_ns(s));
        bool alone;

        if (late)
            (void)run_page_begin(s->page, &plan, now_ns);
        alone = lives[0].fd < 0 && lives[1].fd < 0;
        if (late || alone)
            (void)run_cgroup_kill(&s->cgroup);
        if (late && lives[1].fd >= 0) /* a watchdog that is late is a watchdog that was stopped */
            (void)pidfd_send_signal(lives[1].fd, SIGCONT, NULL, 0);
        if (alone && run_cgroup_remove(&s->cgroup))
            _exit(0);
        (void)poll(lives, 2, alone ? CHECK_MS : pause_ms(s, now_ns));
        for (int i = 0; i < 2; i++) {
            if (lives[i].revents)
                lives[i].fd = -1;
        }
    }
}
