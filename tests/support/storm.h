/* storm.h - workers that take, hold and give back locks, and a ledger in shared memory that tells
 * afterwards and at every step whether the promises were kept. */
#ifndef HF_TESTS_STORM_H
#define HF_TESTS_STORM_H

#include "faultkit.h"
#include <stdatomic.h>

#define STORM_WORKERS 7
#define STORM_LOCKS   3

/* What a worker says of itself. Its killer sets `doomed` before the signal: a hold that ends that
 * way may be followed by another one at once. */
struct storm_worker {
    pid_t pid;
    atomic_int doomed;
    atomic_int lock; /* -1: holds none */
    atomic_ullong token;
    atomic_llong until_ns; /* valid before this */
};

struct storm {
    const char *dir;
    uint32_t ttl_ms;
    bool stops; /* workers are stopped too: answers may be late */
    atomic_int broken;
    char text[400]; /* the first breach */
    atomic_ullong last[STORM_LOCKS];
    atomic_int inside[STORM_LOCKS];
    atomic_long holds;
    atomic_long waits;
    struct storm_worker workers[STORM_WORKERS];
};

/* A ledger shared with the children. */
struct storm *storm_new(const char *dir, uint32_t ttl_ms);
void storm_free(struct storm *storm);
/* Starts worker i, again if it was there before. */
void storm_start(struct storm *storm, int i, uint64_t stream);
/* kill -9, as the ledger has to know it. */
void storm_kill(struct storm *storm, int i);
/* The storm is over: every lock can be had soon, tokens went on, FIFOs of the dead are swept. */
void storm_check(struct storm *storm);
const char *storm_lock_name(int lock);

#endif /* HF_TESTS_STORM_H */
