/* odds.c - how often a lease is violated by pauses that outlast it. */
#include "core/odds.h"

#include <string.h>

static double draw(uint64_t *state);
static double power(double base, double exponent);
static double ln_of_one_less(double x);
static double whole(double x);
static void simulate(const struct hf__odds *odds, uint64_t seed, struct hf__odds_story *story);
static void violated(double pause_s, struct hf__odds_story *story);

double hf__odds_share(const struct hf__odds *odds, double t_s)
{
    double share = odds->pause * power(odds->ttl_s / t_s, odds->tail);

    return share < 1 ? share : 1;
}

void hf__odds_tell(const struct hf__odds *odds, uint64_t seed, struct hf__odds_story *out)
{
    *out = (struct hf__odds_story){.first_s = -1, .longest_s = -1};
    for (int i = 0; i < HF__ODDS_ROWS; i++) {
        out->rows[i].ttl_s = odds->ttl_s * (double)(1 << i);
        out->rows[i].per_s = odds->rate_per_s * hf__odds_share(odds, out->rows[i].ttl_s);
    }
    out->seconds = HF__ODDS_EVENTS / out->rows[0].per_s; /* infinite if nothing is ever paused */
    if (!(out->seconds < HF__ODDS_LONGEST_S))
        out->seconds = HF__ODDS_LONGEST_S;
    out->whole_seconds = out->seconds >= 1;
    out->operations = out->seconds * odds->rate_per_s;
    simulate(odds, seed, out);
    for (int i = 0; i < HF__ODDS_ROWS; i++)
        out->rows[i].seen_per_s = (double)out->rows[i].seen / out->seconds;
}

/* How many operations go by before one is paused beyond the ttl is drawn at once: it has the same
 * distribution as drawing operation by operation, and one in a million costs no million draws. */
static void simulate(const struct hf__odds *odds, uint64_t seed, struct hf__odds_story *story)
{
    double log_of_going_by = ln_of_one_less(odds->pause);
    double operation = 0;
    double second = -1;
    uint64_t in_second = 0;

    if (odds->pause <= 0)
        return;
    for (int i = 0; i < 2 * HF__ODDS_EVENTS; i++) { /* twice what is expected never comes */
        operation += whole(hf__odds_ln(draw(&seed)) / log_of_going_by) + 1;
        if (!(operation <= story->operations))
            break;
        if (story->first_s < 0)
            story->first_s = operation / odds->rate_per_s;
        in_second = whole(operation / odds->rate_per_s) > second ? 1 : in_second + 1;
        second = whole(operation / odds->rate_per_s);
        if (in_second > story->busiest)
            story->busiest = in_second;
        violated(odds->ttl_s * power(draw(&seed), -1 / odds->tail), story);
    }
}

static void violated(double pause_s, struct hf__odds_story *story)
{
    if (pause_s > story->longest_s)
        story->longest_s = pause_s;
    for (int i = 0; i < HF__ODDS_ROWS; i++)
        story->rows[i].seen += pause_s >= story->rows[i].ttl_s;
}

/* Drawn evenly between 0 and 1, both excluded: splitmix64, whose state may be any number. */
static double draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0; /* 2^53 */
}

/* ---- what libm has, to about twelve digits ---- */

#define LN_2          0.69314718055994530942
#define MANTISSA_BITS 52
#define EXPONENT_BIAS 1023
#define EXPONENT_MAX  1022 /* beyond it powers are cut off */

static double two_to(int64_t exponent)
{
    uint64_t bits = (uint64_t)(exponent + EXPONENT_BIAS) << MANTISSA_BITS;
    double out;

    memcpy(&out, &bits, sizeof out);
    return out;
}

/* x is m * 2^e, and ln m comes from the series of its area tangent. */
double hf__odds_ln(double x)
{
    enum { TERMS = 30 };
    uint64_t bits;
    int64_t e;
    double s, term, sum = 0;

    memcpy(&bits, &x, sizeof bits);
    e = (int64_t)(bits >> MANTISSA_BITS) - EXPONENT_BIAS;
    x *= two_to(-e); /* from 1 to 2 */
    s = (x - 1) / (x + 1);
    term = s;
    for (int i = 1; i < TERMS; i += 2) {
        sum += term / i;
        term *= s * s;
    }
    return 2 * sum + (double)e * LN_2;
}

/* ln(1 - x), even of an x so small that 1 - x is 1; minus infinity of 1. */
static double ln_of_one_less(double x)
{
    if (x >= 1)
        return -1.0 / 0.0;
    if (x < 1e-5)
        return -x - x * x / 2 - x * x * x / 3;
    return hf__odds_ln(1 - x);
}

static double exponential(double x)
{
    enum { TERMS = 18 };
    int64_t e = (int64_t)(x / LN_2);
    double rest = x - (double)e * LN_2;
    double term = 1, sum = 1;

    if (e > EXPONENT_MAX || e < -EXPONENT_MAX)
        return e > 0 ? two_to(EXPONENT_MAX) : 0;
    for (int i = 1; i < TERMS; i++) {
        term *= rest / i;
        sum += term;
    }
    return sum * two_to(e);
}

static double power(double base, double exponent)
{
    return exponential(exponent * hf__odds_ln(base));
}

/* Without its fraction; x is not below 0. */
static double whole(double x)
{
    return x < 9007199254740992.0 ? (double)(int64_t)x : x;
}
