/* cmd_odds.c - `holdfast odds`: how often a lease will be violated, and what changes that. Asks no
 * store: it is arithmetic, and a simulation of core/odds.h. */
#include "cli/cli.h"
#include "cli/odds/odds.h"
#include "cli/say/svg.h"

#include <errno.h>
#include <string.h>

#define TAIL_DEFAULT 1.5
enum { SEED_DEFAULT = 1 };

/* The words that were given. */
struct words {
    int64_t ttl_ms;
    bool ttl_given;
    const char *pause, *rate, *tail, *svg;
    uint64_t seed;
    bool json;
};

static int odds_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_odds = {
    "odds", "--ttl DURATION --pause SHARE --rate RATE [options]",
    "tell how often a lease of this ttl will be violated", odds_main};

/* 0, or the exit code after a message. */
static int understand(const struct words *words, struct odds_question *question)
{
    const struct cli_command *command = &command_odds;
    struct hf__odds *odds = &question->odds;

    if (!words->ttl_given || words->pause == NULL || words->rate == NULL)
        return cli_usage_error(command, "--ttl, --pause and --rate are needed");
    if (!cli_check_ttl(command, words->ttl_ms))
        return EXIT_HF_USAGE;
    if (!odds_parse_share(words->pause, &odds->pause))
        return cli_usage_error(
            command, "--pause: \"%s\" is not a share of 0 to 1 such as 1e-4, 0.01%% or 1/10000",
            words->pause);
    if (!odds_parse_rate(words->rate, &odds->rate_per_s))
        return cli_usage_error(command,
                               "--rate: \"%s\" is not a rate such as 10000/s, 20/m, 3/h or 1/d, at "
                               "most 1e9/s",
                               words->rate);
    odds->tail = TAIL_DEFAULT;
    if (words->tail != NULL && !odds_parse_tail(words->tail, &odds->tail))
        return cli_usage_error(command, "--tail: \"%s\" is not a number from 0.1 to 10",
                               words->tail);
    odds->ttl_s = (double)words->ttl_ms / 1000;
    question->seed = words->seed;
    return 0;
}

static int answer(const struct odds_question *question, bool json, FILE *svg)
{
    struct hf__odds_story story;

    hf__odds_tell(&question->odds, question->seed, &story);
    if (json)
        odds_json(stdout, question, &story);
    else
        odds_print(stdout, question, &story);
    if (svg != NULL && !odds_draw(svg, question, &story)) {
        cli_error("cannot write the picture: %s", strerror(errno));
        return EXIT_HF_UNAVAILABLE;
    }
    return 0;
}

static int odds_main(const struct cli_context *context, int argc, char **argv)
{
    struct words words = {.seed = SEED_DEFAULT};
    const struct cli_option options[] = {
        {0, "ttl", CLI_DURATION, "DURATION", "how long a lease lasts", NULL, &words.ttl_ms,
         &words.ttl_given},
        {0, "pause", CLI_TEXT, "SHARE", "operations paused for longer than that: 1e-4, 0.01%", NULL,
         &words.pause, NULL},
        {0, "rate", CLI_TEXT, "RATE", "operations: 10000/s, 20/m, 3/h or 1/d", NULL, &words.rate,
         NULL},
        {0, "tail", CLI_TEXT, "POWER", "how fast longer pauses get rarer; default: 1.5", NULL,
         &words.tail, NULL},
        {0, "seed", CLI_NUMBER, "N", "of the simulation; default: 1", NULL, &words.seed, NULL},
        {0, "svg", CLI_TEXT, "FILE", "also draw it", NULL, &words.svg, NULL},
        CLI_JSON_OPTION(&words.json),
        {.name = NULL}};
    int first = cli_parse(&command_odds, options, argc, argv, NULL);
    struct odds_question question = {.seed = 0};
    FILE *svg = NULL;
    int exit_code;

    (void)context;
    if (first < 0)
        return cli_parse_exit(first);
    if (first < argc)
        return cli_one_too_many(&command_odds, argv[first]);
    exit_code = understand(&words, &question);
    if (exit_code != 0)
        return exit_code;
    if (words.svg != NULL && (svg = cli_svg_open(words.svg)) == NULL)
        return EXIT_HF_UNAVAILABLE;
    exit_code = answer(&question, words.json, svg);
    if (svg != NULL)
        (void)fclose(svg);
    return exit_code;
}
