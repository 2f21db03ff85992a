/* signals.c - being told to stop while there is something to give back or to clean up. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

int cli_catch_signals(void)
{
    static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction action;
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(&set, ending[i]);
    }
    action = (struct sigaction){.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        cli_error("cannot watch for signals: %s", strerror(errno));
    return fd;
}

int cli_pending_signal(int signal_fd)
{
    struct signalfd_siginfo info;
    ssize_t got = read(signal_fd, &info, sizeof info);

    return got == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

int cli_die_of(int number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    struct rlimit no_core = {0, 0};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    /* A core file of ours helps nobody and would hold the owner. */
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)sigaction(number, &action, NULL);
    (void)raise(number);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return 128 + number;
}
