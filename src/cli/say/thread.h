/* thread.h - threads that only speak: how they start, and how one waits for them. */
#ifndef HF_CLI_SAY_THREAD_H
#define HF_CLI_SAY_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* A lock, and a condition that counts by CLOCK_MONOTONIC. */
struct run_bell {
    pthread_mutex_t lock;
    pthread_cond_t change;
};

/* Starts a thread that gets no signals. */
bool run_thread_start(pthread_t *thread, void *(*fn)(void *), void *data);
void run_bell_init(struct run_bell *bell);
void run_bell_clear(struct run_bell *bell);
/* The time so long from now, for run_bell_wait. */
struct timespec run_bell_time(int64_t ms);
/* Waits with the lock held; false if it is time. */
bool run_bell_wait(struct run_bell *bell, const struct timespec *until);

#endif /* HF_CLI_SAY_THREAD_H */
