/* signals.c - the signals of the supervisor, and how CMD gets back what we inherited. */
#include "cli/run/run.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/* Signals whose disposition we change. An inherited SIG_IGN for SIGCHLD would take the exit status
 * of CMD away; a message to a closed pipe, or to a terminal that stops background writers, must
 * not end or stop us with the lock in hand. */
static const struct {
    int number;
    void (*handler)(int);
} touched[RUN_TOUCHED] = {{SIGCHLD, SIG_DFL}, {SIGPIPE, SIG_IGN}, {SIGTTOU, SIG_IGN}};

bool run_signals_begin(struct run_signals *signals)
{
    struct sigaction action;

    (void)sigemptyset(&signals->watched);
    /* A blocked signal reaches a signalfd even if it is ignored, so what nohup(1) or a shell's "&"
     * ignored for us must not be watched. */
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++) {
        if (sigaction(forwarded[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(&signals->watched, forwarded[i]);
    }
    for (size_t i = 0; i < RUN_TOUCHED; i++) {
        action = (struct sigaction){.sa_handler = touched[i].handler};
        (void)sigaction(touched[i].number, &action, &signals->before[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &signals->watched, &signals->inherited);
    signals->fd = signalfd(-1, &signals->watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0)
        cli_error("cannot watch for signals: %s", strerror(errno));
    return signals->fd >= 0;
}

bool run_signals_take(struct run_signals *signals, int *number, bool *from_kernel)
{
    struct signalfd_siginfo info;

    if (read(signals->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    *number = (int)info.ssi_signo;
    *from_kernel = info.ssi_code == SI_KERNEL;
    return true;
}

void run_signals_watch_children(struct run_signals *signals)
{
    sigset_t children;

    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)sigaddset(&signals->watched, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &children, NULL);
    (void)signalfd(signals->fd, &signals->watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* It stays blocked: nothing happens to us because of it, and the next turn wants it again. */
void run_signals_leave_children(struct run_signals *signals)
{
    sigdelset(&signals->watched, SIGCHLD);
    (void)signalfd(signals->fd, &signals->watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

void run_signals_restore(const struct run_signals *signals)
{
    for (size_t i = 0; i < RUN_TOUCHED; i++)
        (void)sigaction(touched[i].number, &signals->before[i], NULL);
    (void)sigprocmask(SIG_SETMASK, &signals->inherited, NULL);
}
