/* compare.h - two ways of doing a thing, measured in turns, so that a busy machine disturbs
 * both. */
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

/* Batches of both in turns, in the order A B B A. The ratio is the median of the rounds' ratios:
 * a round that was disturbed does not count. *plain and *ours are medians, in microseconds per
 * call. */
static inline double compare(compare_fn *plain_fn, compare_fn *our_fn, void *data, int rounds,
                             int batch, double *plain, double *ours)
{
    static double first[COMPARE_ROUNDS_MAX];
    static double second[COMPARE_ROUNDS_MAX];
    static double ratios[COMPARE_ROUNDS_MAX];

    (void)compare_batch(plain_fn, data, batch);
    (void)compare_batch(our_fn, data, batch);
    for (int i = 0; i < rounds; i++) {
        first[i] = compare_batch(plain_fn, data, batch);
        second[i] = compare_batch(our_fn, data, batch);
        second[i] += compare_batch(our_fn, data, batch);
        first[i] += compare_batch(plain_fn, data, batch);
        ratios[i] = second[i] / first[i];
    }
    qsort(first, (size_t)rounds, sizeof *first, compare_doubles);
    qsort(second, (size_t)rounds, sizeof *second, compare_doubles);
    qsort(ratios, (size_t)rounds, sizeof *ratios, compare_doubles);
    *plain = first[rounds / 2] / 2;
    *ours = second[rounds / 2] / 2;
    return ratios[rounds / 2];
}

/* Compares, and prints both and their ratio against its bound (0: no bound). */
static inline void compare_print(const char *what, compare_fn *plain_fn, compare_fn *our_fn,
                                 void *data, int rounds, int batch, double limit)
{
    double plain;
    double ours;
    double ratio = compare(plain_fn, our_fn, data, rounds, batch, &plain, &ours);
    char name[128];

    (void)snprintf(name, sizeof name, "%s, plain", what);
    fact(name, plain, "us");
    (void)snprintf(name, sizeof name, "%s, fenced", what);
    fact(name, ours, "us");
    (void)snprintf(name, sizeof name, "%s: fenced / plain", what);
    if (limit > 0)
        at_most(name, ratio, limit, "x");
    else
        fact(name, ratio, "x");
}

#endif /* HF_BENCH_COMPARE_H */
