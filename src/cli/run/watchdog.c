/* watchdog.c - the watchdog: starts CMD, reaps, and ends the tree when it is time.
 *
 * The watchdog must not share the supervisor's fate. It blocks every signal that can be blocked,
 * and it has a session of its own, so that neither Ctrl-C nor a `kill` of the group reaches it. It
 * leaves the session after CMD was started: CMD could not join the terminal's group from outside.
 * And it does leave: as long as somebody's parent is in the session, the kernel believes that there
 * is a shell to wake a stopped job, and does not end it when the real one dies.
 *
 * A forked child of a process that may have threads: only async-signal-safe calls here. */
#include "cli/run/run.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS_MAX = 16,     /* read from the socket at once */
    ROUND_MS = 2,       /* between two rounds of KILL ... */
    ROUNDS_QUICK = 500, /* ... this often; then some process is stuck */
    ROUND_SLOW_MS = 50, /* in the kernel, and we can only wait for it */
    LINGER_MS = 20,     /* how often we look for those in the cgroup who are not below us */
    KEPT_DESCRIPTORS = 7
};

struct state {
    struct run_watchdog *watchdog;
    struct run_page *page;
    pid_t self;
    pid_t command; /* 0: reaped, or never started */
    int children;  /* signalfd of SIGCHLD */
    int timer;
    int64_t armed_ns;
    pid_t first;     /* CMD, even once it is reaped */
    unsigned rounds; /* of KILL */
    bool told_exit;
    bool lingering; /* no child is left, but somebody is in the cgroup */
};

static void start_command(struct state *s);
static pid_t fork_into_cgroup(struct state *s);
static pid_t fork_here(struct state *s);
_Noreturn static void become_command(struct run_watchdog *watchdog, pid_t parent);
static void close_the_rest(const struct state *s);
static int64_t end_tree(struct state *s);
static void wait_for_something(struct state *s, int64_t until_ns);
static void reap(struct state *s);
static void hear(struct state *s);
static void command_stopped(struct state *s, int number);
static void forward(struct state *s, int number);
static void hang_up(struct state *s);
static void signal_command(struct state *s, int number);
static void signal_tree(struct state *s, int number);
static pid_t signal_found(const struct run_tree *tree, int number);
static void tell(struct state *s, unsigned char word);
static void close_lost(struct run_watchdog *watchdog);

_Noreturn void run_watchdog_main(struct run_watchdog *watchdog)
{
    struct state s = {.watchdog = watchdog, .page = watchdog->page, .self = getpid()};
    sigset_t children;

    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "holdfast-watch", 0, 0, 0);
    s.children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    s.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s.children < 0 || s.timer < 0)
        atomic_store(&s.page->start_errno, errno);
    else
        start_command(&s);
    (void)setsid();
    close_the_rest(&s);
    for (;;) {
        int64_t until_ns;
        int64_t linger_ns;

        reap(&s);
        until_ns = end_tree(&s);
        linger_ns = hf__now_ns() + LINGER_MS * HF__NS_PER_MS;
        wait_for_something(&s, s.lingering && linger_ns < until_ns ? linger_ns : until_ns);
    }
}

static void start_command(struct state *s)
{
    pid_t pid = fork_into_cgroup(s);

    if (pid < 0)
        pid = fork_here(s);
    if (pid < 0) {
        atomic_store(&s->page->start_errno, errno);
        return;
    }
    s->command = s->first = pid;
    atomic_store(&s->page->command_pid, pid);
}

_Noreturn static void begin_in_cgroup(void *data)
{
    struct state *s = data;

    if (run_cgroup_is_below(s->watchdog->cgroup))
        become_command(s->watchdog, s->self);
    atomic_store(&s->page->misplaced, 1);
    _exit(EXIT_HF_INTERNAL);
}

/* -1 if there is none, or it takes nobody: without the right to move a process, for instance. */
static pid_t fork_into_cgroup(struct state *s)
{
    struct run_cgroup *cgroup = s->watchdog->cgroup;
    pid_t pid;

    if (cgroup->fd < 0)
        return -1;
    pid = hf__spawn_into_cgroup(cgroup->fd, begin_in_cgroup, s);
    if (pid > 0 && !atomic_load(&s->page->misplaced)) {
        atomic_store(&s->page->in_cgroup, 1);
        return pid;
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    (void)run_cgroup_remove(cgroup);
    return -1;
}

/* vfork: CMD runs on our memory until it is executed, which saves copying the page tables. It only
 * makes system calls there and writes to the page. */
static pid_t fork_here(struct state *s)
{
    pid_t parent = s->self;
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

    if (pid == 0)
        become_command(s->watchdog, parent); /* NOLINT(clang-analyzer-unix.Vfork) */
    return pid;
}

_Noreturn static void become_command(struct run_watchdog *watchdog, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* The watchdog may have died before the line above took effect. */
    if (getppid() != parent)
        _exit(EXIT_HF_INTERNAL);
    (void)setpgid(0, watchdog->group);
    if (watchdog->lost_read >= 0)
        (void)fcntl(watchdog->lost_read, F_SETFD, 0);
    if (watchdog->life_fd >= 0)
        (void)fcntl(watchdog->life_fd, F_SETFD, 0);
    for (int i = 0; i < 2; i++) {
        if (watchdog->output[i] >= 0)
            (void)dup2(watchdog->output[i], STDOUT_FILENO + i);
    }
    run_signals_restore(watchdog->signals);
    if (run_page_decide(watchdog->page, hf__now_ns(), true) == RUN_START_REFUSED)
        _exit(EXIT_HF_LOST);
    (void)execvpe(watchdog->command[0], watchdog->command, watchdog->environment);
    atomic_store(&watchdog->page->exec_errno, errno);
    _exit(EXIT_HF_NOT_FOUND);
}

/* Everything the store has open is shared with the supervisor, byte-range locks included: if the
 * supervisor is killed inside the store, our copies would keep those locks. The life descriptor is
 * the one that must stay. */
static void close_the_rest(const struct state *s)
{
    int keep[KEPT_DESCRIPTORS] = {
        s->watchdog->link, s->watchdog->lost_write, s->watchdog->life_fd, s->children,
        s->timer,          s->watchdog->cgroup->fd, s->watchdog->above};

    run_close_others(keep, KEPT_DESCRIPTORS);
}

/* Does what the plan asks for now; returns when to look again. */
static int64_t end_tree(struct state *s)
{
    struct run_plan plan = run_plan_of(s->page);
    int64_t now_ns = hf__now_ns();
    int64_t pause_ms;

    if (atomic_load(&s->page->began_ns) == 0) {
        /* With --on-loss warn nothing ends, but the descriptor still tells of the loss. */
        if (now_ns >= atomic_load(&s->page->deadline_ns))
            close_lost(s->watchdog);
        if (now_ns < plan.term_ns) {
            int64_t deadline_ns = atomic_load(&s->page->deadline_ns);
            bool told = s->watchdog->lost_write < 0;

            return told || plan.term_ns < deadline_ns ? plan.term_ns : deadline_ns;
        }
        if (run_page_begin(s->page, &plan, now_ns)) {
            tell(s, RUN_WORD_BEGAN);
            if (plan.cause == RUN_LOST || plan.cause == RUN_ORPHANED)
                close_lost(s->watchdog);
            plan = run_plan_of(s->page);
            if (now_ns < plan.kill_ns)
                signal_tree(s, SIGTERM);
        } else {
            plan = run_plan_of(s->page);
        }
    }
    if (now_ns < plan.kill_ns)
        return plan.kill_ns;
    close_lost(s->watchdog);
    signal_tree(s, SIGKILL);
    s->rounds++;
    pause_ms = s->rounds < ROUNDS_QUICK ? ROUND_MS : ROUND_SLOW_MS;
    return hf__now_ns() + pause_ms * HF__NS_PER_MS;
}

static void wait_for_something(struct state *s, int64_t until_ns)
{
    enum { CHILDREN, LINK, TIMER, ABOVE, COUNT };
    struct pollfd fds[COUNT] = {{.fd = s->children, .events = POLLIN},
                                {.fd = s->watchdog->link, .events = POLLIN},
                                {.fd = s->timer, .events = POLLIN},
                                {.fd = s->watchdog->above, .events = POLLIN}};
    struct signalfd_siginfo info;
    uint64_t ticks;

    if (until_ns != s->armed_ns) {
        struct itimerspec at = {0};

        if (until_ns != HF_NEVER) {
            at.it_value.tv_sec = until_ns / HF__NS_PER_S;
            at.it_value.tv_nsec = until_ns % HF__NS_PER_S;
        }
        (void)timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &at, NULL);
        s->armed_ns = until_ns;
    }
    while (poll(fds, COUNT, -1) < 0 && errno == EINTR)
        continue;
    if (fds[CHILDREN].revents && read(s->children, &info, sizeof info) < 0)
        fds[CHILDREN].revents = 0; /* somebody was faster than the poll; reap finds out */
    if (fds[TIMER].revents && read(s->timer, &ticks, sizeof ticks) > 0)
        s->armed_ns = 0;
    if (fds[LINK].revents)
        hear(s);
    if (fds[ABOVE].revents) {
        s->watchdog->above = -1;
        if (s->page->on_loss != RUN_LOSS_WARN)
            run_page_order(s->page, RUN_LOST);
    }
}

/* Reaps whoever is dead; leaves when nobody is left. Orphans are adopted by us before their parent
 * can be waited for, so "no child" means that the whole tree is gone; but for those who went into
 * another PID namespace, and were adopted there. The cgroup knows of them. */
static void reap(struct state *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == s->command && WIFSTOPPED(status)) {
            command_stopped(s, WSTOPSIG(status));
        } else if (pid == s->command) {
            s->command = 0;
            atomic_store(&s->page->command_status, status);
        }
    }
    if (pid < 0 && errno == ECHILD) {
        if (run_cgroup_remove(s->watchdog->cgroup)) {
            tell(s, RUN_WORD_GONE);
            _exit(0);
        }
        s->lingering = true;
    }
    if (s->command == 0 && !s->told_exit) {
        s->told_exit = true;
        tell(s, RUN_WORD_EXITED);
    }
}

static void command_stopped(struct state *s, int number)
{
    if (number != SIGTTIN && number != SIGTTOU)
        return;
    atomic_store(&s->page->stopped_by, number);
    tell(s, RUN_WORD_STOPPED);
}

/* The end of the stream means that the supervisor is dead. */
static void hear(struct state *s)
{
    unsigned char words[WORDS_MAX];
    ssize_t got = recv(s->watchdog->link, words, sizeof words, MSG_DONTWAIT);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        (void)close(s->watchdog->link);
        s->watchdog->link = -1;
        run_page_order(s->page, RUN_ORPHANED);
    }
    for (ssize_t i = 0; i < got; i++) {
        if (words[i] == RUN_WORD_LOST)
            close_lost(s->watchdog);
        else if (words[i] == RUN_WORD_HANGUP)
            hang_up(s);
        else if (words[i] != RUN_WORD_ORDER)
            forward(s, words[i]);
    }
}

/* A process that is stopped would never see what is to end it. */
static bool needs_waking(int number)
{
    return number == SIGTERM || number == SIGHUP || number == SIGINT || number == SIGQUIT;
}

static void forward(struct state *s, int number)
{
    if (s->command == 0) {
        signal_tree(s, number);
        return;
    }
    signal_command(s, number);
    if (needs_waking(number))
        signal_command(s, SIGCONT);
}

/* The terminal is gone. The kernel tells the leader of the session, and the foreground group when
 * the leader ends. If the supervisor is the leader, nobody else was told; otherwise CMD was, if it
 * is still where we put it. */
static void hang_up(struct state *s)
{
    if (s->command == 0 || getsid(s->command) == getppid())
        signal_tree(s, SIGHUP);
    else if (getpgid(s->command) != s->watchdog->group)
        forward(s, SIGHUP);
    else
        signal_command(s, SIGCONT);
}

/* It is the watchdog that forwards, because only the process that reaps can know that the number of
 * CMD, or of its group, has not been given to another one. */
static void signal_command(struct state *s, int number)
{
    if (s->watchdog->group == 0)
        (void)cli_kill_group(s->command, number);
    if (s->watchdog->group != 0 || getpgid(s->command) != s->command) /* or it went to another */
        (void)cli_kill(s->command, number);
}

/* Where /proc does not tell of all, our own children can be found without it. */
static void signal_tree(struct state *s, int number)
{
    struct run_tree tree;
    bool all;
    pid_t refused;

    if (number == SIGKILL)
        (void)run_cgroup_kill(s->watchdog->cgroup);
    all = run_tree_find(&tree, s->self, NULL);
    refused = signal_found(&tree, number);
    if (!all) {
        run_cgroup_signal(s->watchdog->cgroup, number);
        if (s->command > 0 && s->watchdog->group == 0)
            (void)cli_kill_group(s->command, number);
        run_children_find(&tree, NULL, s->rounds < ROUNDS_QUICK ? s->first : 0);
        refused = signal_found(&tree, number);
    }
    if (refused > 0 && number == SIGKILL && atomic_exchange(&s->page->refused_pid, refused) == 0)
        tell(s, RUN_WORD_REFUSED);
}

static pid_t signal_found(const struct run_tree *tree, int number)
{
    pid_t refused = run_tree_signal(tree, number);

    if (needs_waking(number))
        (void)run_tree_signal(tree, SIGCONT);
    return refused;
}

static void tell(struct state *s, unsigned char word)
{
    if (s->watchdog->link >= 0)
        (void)send(s->watchdog->link, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void close_lost(struct run_watchdog *watchdog)
{
    if (watchdog->lost_write >= 0)
        (void)close(watchdog->lost_write);
    watchdog->lost_write = -1;
}
