/* compare.h - two ways of doing a thing, measured in turns, so that a busy machine disturbs both.
 */
#ifndef HF_BENCH_COMPARE_H
#define HF_BENCH_COMPARE_H

#include "bench.h"

enum { COMPARE_ROUNDS_MAX = 400 };

typedef void compare_fn(void *data);

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline double compare_batch(compare_fn *fn, void *data, int batch)
{
    double start = now_us();

    for (int i = 0; i < batch; i++)
        fn(data);
    return (now_us() - start) / batch;
}

/* The median of each over `rounds` batches; *plain and *ours in microseconds per call. */
static inline void compare(compare_fn *plain_fn, compare_fn *our_fn, void *data, int rounds,
                           int batch, double *plain, double *ours)
{
    static double first[COMPARE_ROUNDS_MAX];
    static double second[COMPARE_ROUNDS_MAX];

    (void)compare_batch(plain_fn, data, batch);
    (void)compare_batch(our_fn, data, batch);
    for (int i = 0; i < rounds; i++) {
        first[i] = compare_batch(plain_fn, data, batch);
        second[i] = compare_batch(our_fn, data, batch);
    }
    qsort(first, (size_t)rounds, sizeof *first, compare_doubles);
    qsort(second, (size_t)rounds, sizeof *second, compare_doubles);
    *plain = first[rounds / 2];
    *ours = second[rounds / 2];
}

/* Prints both, and their ratio against its bound. */
static inline void compare_print(const char *what, double plain, double ours, double limit)
{
    char name[128];

    (void)snprintf(name, sizeof name, "%s, plain", what);
    fact(name, plain, "us");
    (void)snprintf(name, sizeof name, "%s, fenced", what);
    fact(name, ours, "us");
    (void)snprintf(name, sizeof name, "%s: fenced / plain", what);
    at_most(name, ours / plain, limit, "x");
}

#endif /* HF_BENCH_COMPARE_H */
