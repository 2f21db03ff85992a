/* startup_signals.c - a signal that comes while the store is being opened.
 *
 * A name server or a server that does not answer holds us up for seconds, in code that knows
 * nothing of our signals. There is nothing to give back yet, so whoever is told to end ends: a
 * timer checks for the signal now and then. A thread would be nicer, but cost every run more than
 * all that the embedded store does. */
#include "cli/take/take.h"

#include "base/base.h"

#include <errno.h>
#include <unistd.h>

enum {
    FIRST_CHECK_MS = 200, /* most stores are open by then */
    CHECK_MS = 100
};

static void check_signal(int number, siginfo_t *info, void *context);

void take_startup_begin(struct take_startup *startup, int signal_fd, void (*last_words)(int number))
{
    struct sigaction action = {.sa_sigaction = check_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_ptr = startup};
    struct itimerspec when = {.it_value.tv_nsec = FIRST_CHECK_MS * HF__NS_PER_MS,
                              .it_interval.tv_nsec = CHECK_MS * HF__NS_PER_MS};

    startup->signal_fd = signal_fd;
    startup->last_words = last_words;
    startup->watched = timer_create(CLOCK_MONOTONIC, &event, &startup->timer) == 0;
    if (!startup->watched)
        return;
    (void)sigaction(SIGRTMIN, &action, &startup->before);
    (void)timer_settime(startup->timer, 0, &when, NULL);
}

void take_startup_end(struct take_startup *startup)
{
    if (!startup->watched)
        return;
    (void)timer_delete(startup->timer);
    (void)sigaction(SIGRTMIN, &startup->before, NULL);
}

static void check_signal(int number, siginfo_t *info, void *context)
{
    const struct take_startup *startup = info->si_value.sival_ptr;
    int error = errno;

    (void)context;
    number = info->si_code == SI_TIMER ? cli_pending_signal(startup->signal_fd) : 0;
    if (number && startup->last_words)
        startup->last_words(number);
    if (number)
        _exit(cli_die_of(number));
    errno = error;
}
