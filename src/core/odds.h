/* odds.h - how often a lease is violated by pauses that outlast it: arithmetic, and a simulation.
 *
 * The model. One operation takes one lease, and a share `pause` of operations is paused for longer
 * than `ttl_s` before it writes. Longer pauses get rarer by a power of their length:
 *
 *     share(t) = pause * (ttl_s / t) ^ tail,  at most 1
 *
 * a Pareto tail, as pauses of collectors, hypervisors and swapped pages have. Nothing renews the
 * lease of a process that stands still, so an operation violates its lease if its pause outlasts
 * it. Pure: randomness comes from the seed. */
#ifndef HF_CORE_ODDS_H
#define HF_CORE_ODDS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HF__ODDS_ROWS = 4,        /* the ttl, and what doubling it once, twice, thrice buys */
    HF__ODDS_EVENTS = 100000, /* violations a simulation is meant to see */
};
#define HF__ODDS_LONGEST_S (100.0 * 365.25 * 86400.0) /* it ends after this, whatever it saw */

struct hf__odds {
    double ttl_s;      /* above 0 */
    double pause;      /* 0 to 1: the share of operations that is paused beyond the ttl */
    double rate_per_s; /* operations; above 0 */
    double tail;       /* above 0; a pause of twice the length is 2^tail times as rare */
};

struct hf__odds_row {
    double ttl_s;
    double per_s;      /* violations each second, by arithmetic */
    uint64_t seen;     /* by simulation, of the same pauses in every row */
    double seen_per_s; /* that, by its length */
};

/* What a simulation saw. */
struct hf__odds_story {
    struct hf__odds_row rows[HF__ODDS_ROWS];
    double seconds;     /* of simulated time */
    double operations;  /* in that time */
    double first_s;     /* when the first violation came; < 0: none did */
    double longest_s;   /* the longest pause that violated the lease; < 0: none did */
    uint64_t busiest;   /* violations in the worst second */
    bool whole_seconds; /* false: it was over before a second was, and busiest means nothing */
};

/* The natural logarithm of a normal number above 0: without libm, which nothing else here needs. */
double hf__odds_ln(double x);
/* The share of operations that is paused for longer than t_s. */
double hf__odds_share(const struct hf__odds *odds, double t_s);
void hf__odds_tell(const struct hf__odds *odds, uint64_t seed, struct hf__odds_story *out);

#endif /* HF_CORE_ODDS_H */
