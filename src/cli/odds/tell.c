/* tell.c - the odds, as text and as JSON. */
#include "cli/odds/odds.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>

/* A row of the table in words. */
struct cells {
    char ttl[ODDS_WORDS], plain[ODDS_WORDS], seen[ODDS_WORDS];
};

static int wider(int width, const char *text)
{
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

static void print_table(FILE *out, const struct hf__odds_story *story)
{
    struct cells cells[HF__ODDS_ROWS];
    int plain = wider(0, "by arithmetic"), seen = wider(0, "by simulation");
    int rows = odds_rows(story);

    for (int i = 0; i < rows; i++) {
        const struct hf__odds_row *row = &story->rows[i];

        (void)odds_duration(cells[i].ttl, row->ttl_s);
        plain = wider(plain, odds_frequency(cells[i].plain, row->per_s));
        if (row->seen > 0)
            (void)odds_frequency(cells[i].seen, row->seen_per_s);
        else
            (void)snprintf(cells[i].seen, sizeof cells[i].seen, "none seen");
        seen = wider(seen, cells[i].seen);
    }
    fprintf(out, "  %-6s  %-*s   %-17s  %s\n", "", plain + 2 + seen, "violations of the lease",
            "violations that", "waiting after");
    fprintf(out, "  %-6s  %-*s  %-*s   %-17s  %s\n", "ttl", plain, "by arithmetic", seen,
            "by simulation", "get past a fence", "a crash");
    for (int i = 0; i < rows; i++)
        fprintf(out, "  %-6s  %-*s  %-*s   %-17s  up to %s\n", cells[i].ttl, plain, cells[i].plain,
                seen, cells[i].seen, "0", cells[i].ttl);
}

/* What doubling the ttl buys, and what it costs. */
static void print_bargain(FILE *out, const struct hf__odds_story *story)
{
    const struct hf__odds_row *row = story->rows;
    char once[ODDS_WORDS], twice[ODDS_WORDS];

    if (row->per_s <= 0) {
        fputs("\nThat nothing is ever paused for so long is more than anybody can promise.\n", out);
    } else if (odds_rows(story) > 1) {
        (void)odds_duration(once, row[0].ttl_s);
        (void)odds_duration(twice, row[1].ttl_s);
        fprintf(out,
                "\nA ttl of %s instead of %s makes violations %.1f times as rare, and after a "
                "crash the lock\nis blocked for up to %s instead of %s.\n",
                twice, once, row[0].per_s / row[1].per_s, twice, once);
    } else {
        fputs("\nNo store grants a longer ttl than a day.\n", out);
    }
    fputs("No ttl makes violations impossible: pauses have no upper bound. A fence refuses the "
          "late write,\nat any ttl.\n",
          out);
}

static void print_simulation(FILE *out, const struct odds_question *question,
                             const struct hf__odds_story *story)
{
    char seconds[ODDS_WORDS], operations[ODDS_WORDS], first[ODDS_WORDS], longest[ODDS_WORDS];

    fprintf(out, "Simulated: %s with %s operations, seed %" PRIu64 ".",
            odds_duration(seconds, story->seconds), odds_count(operations, story->operations),
            question->seed);
    if (story->longest_s < 0) {
        fputs(" None was violated in that time.\n", out);
        return;
    }
    fprintf(out, " The first violation came after %s;\nthe longest pause lasted %s",
            odds_duration(first, story->first_s), odds_duration(longest, story->longest_s));
    if (story->whole_seconds)
        fprintf(out, "; the worst second had %" PRIu64, story->busiest);
    fputs(".\n", out);
}

void odds_print(FILE *out, const struct odds_question *question, const struct hf__odds_story *story)
{
    const struct hf__odds *odds = &question->odds;
    char rate[ODDS_WORDS], share[ODDS_WORDS], ttl[ODDS_WORDS];

    (void)odds_duration(ttl, odds->ttl_s);
    fprintf(out, "A lease of %s. Operations: %s; paused for longer than the lease: %s.\n\n", ttl,
            odds_frequency(rate, odds->rate_per_s), odds_share_words(share, odds->pause));
    print_table(out, story);
    fprintf(out,
            "\nA violation is a write that comes after its lease is over, when the lock may be "
            "another's.\nBy arithmetic: operations per second, times the share that is paused for "
            "longer than the ttl.\nThe model: the share of pauses longer than t is %g x (%s / "
            "t)^%g, a Pareto tail.\n",
            odds->pause, ttl, odds->tail);
    print_simulation(out, question, story);
    print_bargain(out, story);
}

void odds_json(FILE *out, const struct odds_question *question, const struct hf__odds_story *story)
{
    const struct hf__odds *odds = &question->odds;

    fprintf(out,
            "{\"ttl_ms\": %.0f, \"pause\": %.10g, \"rate_per_s\": %.10g, \"model\": {\"pauses\": "
            "\"pareto\", \"tail\": %.10g, \"seed\": %" PRIu64 "}, ",
            odds->ttl_s * 1000, odds->pause, odds->rate_per_s, odds->tail, question->seed);
    fprintf(out, "\"simulated\": {\"seconds\": %.10g, \"operations\": %.10g, \"first_s\": ",
            story->seconds, story->operations);
    if (story->longest_s < 0)
        fputs("null, \"longest_pause_s\": null", out);
    else
        fprintf(out, "%.10g, \"longest_pause_s\": %.10g", story->first_s, story->longest_s);
    if (story->whole_seconds)
        fprintf(out, ", \"worst_second\": %" PRIu64 "}, \"rows\": [", story->busiest);
    else
        fputs(", \"worst_second\": null}, \"rows\": [", out);
    for (int i = 0; i < odds_rows(story); i++) {
        const struct hf__odds_row *row = &story->rows[i];

        fprintf(out,
                "%s{\"ttl_ms\": %.0f, \"violations_per_s\": %.10g, \"simulated_violations\": "
                "%" PRIu64 ", \"simulated_per_s\": %.10g, \"fenced_violations\": 0, "
                "\"blocked_ms\": %.0f}",
                i > 0 ? ", " : "", row->ttl_s * 1000, row->per_s, row->seen, row->seen_per_s,
                row->ttl_s * 1000);
    }
    fputs("]}\n", out);
}
