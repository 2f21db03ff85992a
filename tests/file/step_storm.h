/* step_storm.h - threads of several processes that take, hold, renew, break and give back locks of
 * one page, and are killed, stopped or held up at random steps; and a referee in memory of its own.
 *
 * Two things would be false alarms, and are not: a renewal that shortens is told to the referee
 * before it is made, since the lock may have gone on before its caller is back; and every hold has
 * a note of its own with its own deadline. */
#ifndef HF_TESTS_STEP_STORM_H
#define HF_TESTS_STEP_STORM_H

#include "../support/faultkit.h"
#include <stdatomic.h>

#define STORM_PROCESSES 3
#define STORM_THREADS   2
#define STORM_LOCKS     2
#define STORM_HOLDS_MIN 50 /* fewer prove nothing */
#define STORM_OTHERS                                                                               \
    24 /* names of the same page, which come and go: slots are given away, pages split */

/* What is done wrong on purpose: the referee must notice. */
enum storm_mutant {
    MUTANT_NONE,
    MUTANT_STORE,       /* a word is stored to, whatever it is now */
    MUTANT_TOKEN_ALONE, /* only the token is compared */
    MUTANT_NOT_WAITED,  /* a waiter does not set *waited* */
    MUTANT_RENEW_DROPS, /* a renewal drops it */
    MUTANT_NOT_MARKED,  /* nothing is marked as moving */
    MUTANT_NO_BYTE,     /* a hand-over does not wake */
};

struct storm_plan {
    bool mapped;
    bool kills;
    bool stops;
    uint32_t ttl_ms;
    int64_t for_ms;
    enum storm_mutant mutant;
};

struct storm_note {
    atomic_int lock; /* -1: none */
    atomic_ullong token;
    atomic_llong until_ns; /* valid before this */
};

struct storm_process {
    pid_t pid;
    atomic_int doomed; /* set before it kills itself: its holds may be followed at once */
    int64_t go_on_ns;  /* when it is continued; 0: it is not stopped */
    struct storm_note notes[STORM_THREADS];
};

struct step_storm {
    struct storm_plan plan;
    const char *dir;
    char others[STORM_OTHERS][24];
    atomic_int over;
    atomic_int broken;
    char text[400]; /* the first breach */
    atomic_ullong last[STORM_LOCKS];
    atomic_ullong revoked[STORM_LOCKS]; /* the last token that was broken */
    atomic_long holds, waits, renewals, breaks, kills, stops, woken_by_clock;
    struct storm_process processes[STORM_PROCESSES];
};

/* Runs a storm to its end, or to the first breach. What it returns lives until step_storm_free. */
struct step_storm *step_storm_run(const struct storm_plan *plan);
void step_storm_free(struct step_storm *storm);
const char *step_storm_name(int lock);

#endif /* HF_TESTS_STEP_STORM_H */
