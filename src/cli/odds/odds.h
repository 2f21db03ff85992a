/* odds.h - what `holdfast odds` was asked, and the ways it answers. */
#ifndef HF_CLI_ODDS_H
#define HF_CLI_ODDS_H

#include "core/odds.h"

#include <stdio.h>

struct odds_question {
    struct hf__odds odds;
    uint64_t seed;
};

/* parse.c: "1e-4", "0.01%", "1/10000"; a share from 0 to 1. */
bool odds_parse_share(const char *text, double *out);
/* "10000/s", "20/m", "3/h", "1/d": per second in the end, above 0 and at most ODDS_RATE_MAX. */
#define ODDS_RATE_MAX 1e9
bool odds_parse_rate(const char *text, double *out);
/* The power by which longer pauses get rarer. */
#define ODDS_TAIL_MIN 0.1
#define ODDS_TAIL_MAX 10.0
bool odds_parse_tail(const char *text, double *out);

/* words.c: all of them return out. */
enum { ODDS_WORDS = 64 };
/* "1 per second", "one every 2.8s", "one every 4.1 years", "never". */
const char *odds_frequency(char out[ODDS_WORDS], double per_s);
/* "2.8s", "4.1 years". */
const char *odds_duration(char out[ODDS_WORDS], double seconds);
/* "one in 10,000", "one in 3.3", "all", "none". */
const char *odds_share_words(char out[ODDS_WORDS], double share);
/* "20,000,000". */
const char *odds_count(char out[ODDS_WORDS], double count);
/* Those rows that a store can be asked for: no ttl is longer than a day. */
int odds_rows(const struct hf__odds_story *story);

/* tell.c */
void odds_print(FILE *out, const struct odds_question *question,
                const struct hf__odds_story *story);
void odds_json(FILE *out, const struct odds_question *question, const struct hf__odds_story *story);

/* svg.c: false, with errno, if it cannot be written. */
bool odds_draw(FILE *out, const struct odds_question *question, const struct hf__odds_story *story);

#endif /* HF_CLI_ODDS_H */
