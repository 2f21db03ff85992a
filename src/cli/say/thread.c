/* thread.c - the threads of `run` that only speak: how they start, and how one waits for
 * them. */
#include "cli/say/thread.h"

#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

/* Signals are the main thread's. */
bool cli_thread_start(pthread_t *thread, void *(*fn)(void *), void *data)
{
    sigset_t all, mine;
    bool started;

    (void)sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mine);
    started = pthread_create(thread, NULL, fn, data) == 0;
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    return started;
}

void cli_condition_init(struct cli_condition *condition)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&condition->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition->change, &attributes);
    pthread_condattr_destroy(&attributes);
}

void cli_condition_clear(struct cli_condition *condition)
{
    pthread_cond_destroy(&condition->change);
    pthread_mutex_destroy(&condition->lock);
}

struct timespec cli_condition_time(int64_t ms)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * HF__NS_PER_MS;
    if (at.tv_nsec >= HF__NS_PER_S) {
        at.tv_sec++;
        at.tv_nsec -= HF__NS_PER_S;
    }
    return at;
}

bool cli_condition_wait(struct cli_condition *condition, const struct timespec *until)
{
    return pthread_cond_timedwait(&condition->change, &condition->lock, until) != ETIMEDOUT;
}
