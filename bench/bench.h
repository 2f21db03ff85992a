/* bench.h - what the measuring programs share: a clock, and how a result is printed. */
#ifndef HF_BENCH_BENCH_H
#define HF_BENCH_BENCH_H

#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* A plain figure: name, value, unit. */
static inline void fact(const char *name, double value, const char *unit)
{
    printf("%s\t%.2f\t\t%s\t\n", name, value, unit);
    (void)fflush(stdout);
}

/* A figure with a bound it must keep. */
static inline void at_most(const char *name, double value, double limit, const char *unit)
{
    printf("%s\t%.2f\t<= %g\t%s\t%s\n", name, value, limit, unit, value <= limit ? "ok" : "MISS");
    (void)fflush(stdout);
}

static inline void at_least(const char *name, double value, double limit, const char *unit)
{
    printf("%s\t%.2f\t>= %g\t%s\t%s\n", name, value, limit, unit, value >= limit ? "ok" : "MISS");
    (void)fflush(stdout);
}

static inline void must(enum hf_status status, const struct hf_error *err)
{
    if (status == HF_OK)
        return;
    fprintf(stderr, "bench: %s\n", err->text);
    exit(1);
}

#endif /* HF_BENCH_BENCH_H */
