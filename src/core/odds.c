/* odds.c - how often a lease is violated by pauses that outlast it. */
#include "core/odds.h"

#include <math.h>

static double draw(uint64_t *state);
static void simulate(const struct hf__odds *odds, uint64_t seed, struct hf__odds_story *story);
static void violated(double pause_s, struct hf__odds_story *story);

double hf__odds_share(const struct hf__odds *odds, double t_s)
{
    double share = odds->pause * pow(odds->ttl_s / t_s, odds->tail);

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
    double log_of_going_by = log1p(-odds->pause);
    double operation = 0;
    double second = -1;
    uint64_t in_second = 0;

    if (odds->pause <= 0)
        return;
    for (int i = 0; i < 2 * HF__ODDS_EVENTS; i++) { /* twice what is expected never comes */
        operation += floor(log(draw(&seed)) / log_of_going_by) + 1;
        if (!(operation <= story->operations))
            break;
        if (story->first_s < 0)
            story->first_s = operation / odds->rate_per_s;
        in_second = floor(operation / odds->rate_per_s) > second ? 1 : in_second + 1;
        second = floor(operation / odds->rate_per_s);
        if (in_second > story->busiest)
            story->busiest = in_second;
        violated(odds->ttl_s * pow(draw(&seed), -1 / odds->tail), story);
    }
}

static void violated(double pause_s, struct hf__odds_story *story)
{
    if (pause_s > story->longest_s)
        story->longest_s = pause_s;
    for (int i = 0; i < HF__ODDS_ROWS; i++)
        story->rows[i].seen += pause_s >= story->rows[i].ttl_s;
}

/* Evenly from between 0 and 1, without either: splitmix64, whose state may be any number. */
static double draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0; /* 2^53 */
}
