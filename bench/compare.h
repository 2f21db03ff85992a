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

/* What is compared: two functions in turns, how often, and how many calls each time. */
struct comparison {
    compare_fn *plain;
    compare_fn *ours;
    void *data; /* of both */
    int rounds; /* COMPARE_ROUNDS_MAX at the most */
    int batch;
};

/* Medians, in microseconds per call. */
struct compared {
    double plain_us;
    double ours_us;
    double ratio;
};

static inline double compare_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* Batches of both in turns, in the order A B B A. The ratio is the median of the rounds' ratios:
 * a round that was disturbed does not count. */
static inline struct compared compare(const struct comparison *c)
{
    static double first[COMPARE_ROUNDS_MAX];
    static double second[COMPARE_ROUNDS_MAX];
    static double ratios[COMPARE_ROUNDS_MAX];

    (void)compare_batch(c->plain, c->data, c->batch);
    (void)compare_batch(c->ours, c->data, c->batch);
    for (int i = 0; i < c->rounds; i++) {
        first[i] = compare_batch(c->plain, c->data, c->batch);
        second[i] = compare_batch(c->ours, c->data, c->batch);
        second[i] += compare_batch(c->ours, c->data, c->batch);
        first[i] += compare_batch(c->plain, c->data, c->batch);
        ratios[i] = second[i] / first[i];
    }
    return (struct compared){.plain_us = compare_median(first, c->rounds) / 2,
                             .ours_us = compare_median(second, c->rounds) / 2,
                             .ratio = compare_median(ratios, c->rounds)};
}

/* Compares, and prints both and their ratio against its bound (0: no bound). */
static inline void compare_print(const char *what, const struct comparison *c, double limit)
{
    struct compared result = compare(c);
    char name[128];

    (void)snprintf(name, sizeof name, "%s, plain", what);
    fact(name, result.plain_us, "us");
    (void)snprintf(name, sizeof name, "%s, fenced", what);
    fact(name, result.ours_us, "us");
    (void)snprintf(name, sizeof name, "%s: fenced / plain", what);
    if (limit > 0)
        at_most(name, result.ratio, limit, "x");
    else
        fact(name, result.ratio, "x");
}

#endif /* HF_BENCH_COMPARE_H */
