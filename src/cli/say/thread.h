/* thread.h - threads that only speak: how they start, and how one waits for them. */
#ifndef HF_CLI_SAY_THREAD_H
#define HF_CLI_SAY_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* A mutex, and a condition variable that counts by CLOCK_MONOTONIC. */
struct cli_condition {
    pthread_mutex_t lock;
    pthread_cond_t change;
};

/* Starts a thread that gets no signals. */
bool cli_thread_start(pthread_t *thread, void *(*fn)(void *), void *data);
void cli_condition_init(struct cli_condition *condition);
void cli_condition_clear(struct cli_condition *condition);
/* The point in time that is ms from now, for cli_condition_wait. */
struct timespec cli_condition_time(int64_t ms);
/* Waits with the lock held; false once that time has come. */
bool cli_condition_wait(struct cli_condition *condition, const struct timespec *until);

#endif /* HF_CLI_SAY_THREAD_H */
