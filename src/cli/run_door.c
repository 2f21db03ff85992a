/* run_door.c - a signal that comes while the store is being opened.
 *
 * A name server or a server that does not answer holds us up for seconds, in code that knows
 * nothing of our signals. There is nothing to give back yet, so whoever is told to end ends: a
 * timer looks for the signal now and then. A thread would look better, but cost every run more than
 * all that the embedded store does. */
#include "cli/run.h"

#include "base/base.h"

#include <errno.h>
#include <unistd.h>

enum {
    FIRST_LOOK_MS = 200, /* most stores are open by then */
    LOOK_MS = 100
};

static void look(int number, siginfo_t *info, void *context);

void run_door_open(struct run_door *door, struct run_signals *signals)
{
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_ptr = signals};
    struct itimerspec when = {.it_value.tv_nsec = FIRST_LOOK_MS * HF__NS_PER_MS,
                              .it_interval.tv_nsec = LOOK_MS * HF__NS_PER_MS};
    door->watched = timer_create(CLOCK_MONOTONIC, &event, &door->timer) == 0;
    if (!door->watched)
        return;
    sigaction(SIGRTMIN, &action, &door->before);
    timer_settime(door->timer, 0, &when, NULL);
}

void run_door_close(struct run_door *door)
{
    if (!door->watched)
        return;
    timer_delete(door->timer);
    sigaction(SIGRTMIN, &door->before, NULL);
}

static void look(int number, siginfo_t *info, void *context)
{
    struct run_signals *signals = info->si_value.sival_ptr;
    bool from_kernel;
    int error = errno;
    (void)context;
    if (info->si_code == SI_TIMER && run_signals_take(signals, &number, &from_kernel))
        _exit(cli_die_of(number));
    errno = error;
}
