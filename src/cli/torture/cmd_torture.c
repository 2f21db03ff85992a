/* cmd_torture.c - `holdfast torture`: the test that people can run on their own store. */
#include "cli/cli.h"
#include "cli/say/svg.h"
#include "cli/torture/parts.h"

#include "base/base.h"

#include <holdfast/repair.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    FOR_DEFAULT_MS = 30000,
    FOR_MIN_MS = 1000,
    TTL_DEFAULT_MS = 2000,
    WORKERS_MIN = 2,
    FREEZE_EXTRA_MS = 200,
    KILL_EVERY_MS = 200, /* where that is noticed at once */
    TORTURE_BROKEN = 1   /* exit: the store does not keep what a lock promises */
};

/* The words that were given. */
struct words {
    int64_t for_ms, ttl_ms;
    uint64_t workers, seed;
    bool ttl_given, seed_given;
    bool faults[TORTURE_FAULTS];
    bool json;
    const char *svg;
};

static int torture_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_torture = {
    "torture", "[options]", "find out whether your own store keeps what a lock promises",
    torture_main};

/* 0, or the exit code after a message. */
static int check_words(struct words *words)
{
    const struct cli_command *command = &command_torture;
    bool any = false;

    if (words->for_ms < FOR_MIN_MS)
        return cli_usage_error(command, "--for: at least 1s");
    if (words->workers < WORKERS_MIN || words->workers > TORTURE_WORKERS_MAX)
        return cli_usage_error(command, "--workers: from %d to %d", WORKERS_MIN,
                               TORTURE_WORKERS_MAX);
    if (!cli_check_ttl(command, words->ttl_ms))
        return EXIT_HF_USAGE;
    for (int i = 0; i < TORTURE_FAULTS; i++)
        any = any || words->faults[i];
    for (int i = 0; i < TORTURE_FAULTS; i++)
        words->faults[i] = words->faults[i] || !any;
    return 0;
}

/* So seldom that most of the time somebody can work: a dead or frozen holder keeps its lock for the
 * ttl, unless the store notices its death. */
static void set_faults(const struct words *words, unsigned features, struct torture_plan *plan)
{
    if (words->faults[TORTURE_KILL])
        plan->every_ms[TORTURE_KILL] =
            features & HF_FEATURE_CRASH_RELEASE ? KILL_EVERY_MS : plan->ttl_ms;
    if (words->faults[TORTURE_FREEZE])
        plan->every_ms[TORTURE_FREEZE] = plan->ttl_ms * 3 / 4;
    if (words->faults[TORTURE_CUT])
        plan->every_ms[TORTURE_CUT] = plan->ttl_ms * 3 / 4;
}

/* Opens the store once, so that what is wrong with it is said before anything begins. 0, or the
 * exit code after a message. */
static int meet_store(const struct cli_context *context, const struct words *words,
                      struct torture_plan *plan, char shown[CLI_URL_SIZE])
{
    int exit_code = 0;
    struct hf_store *store = cli_open(context, &exit_code);
    char longest[32];
    struct hf_error err;

    if (store == NULL)
        return exit_code;
    if (hf_quarantine(store, &err) != HF_OK)
        exit_code = cli_fail(&err);
    else if (words->ttl_given && words->ttl_ms > hf_store_max_ttl_ms(store))
        exit_code = cli_usage_error(
            &command_torture, "--ttl: this store grants at most %s",
            hf__format_duration(longest, sizeof longest, hf_store_max_ttl_ms(store)));
    plan->ttl_ms = hf_store_max_ttl_ms(store) < words->ttl_ms ? hf_store_max_ttl_ms(store)
                                                              : (uint32_t)words->ttl_ms;
    set_faults(words, hf_store_features(store), plan);
    (void)snprintf(shown, CLI_URL_SIZE, "%s", hf_store_url(store));
    hf_close(store);
    return exit_code;
}

static void set_plan(const struct cli_context *context, const struct words *words,
                     struct torture_plan *plan)
{
    uint64_t random;

    hf__random(&random, sizeof random);
    plan->url = context->store_url;
    plan->for_ns = hf__ms_to_ns(words->for_ms);
    plan->workers = (int)words->workers;
    plan->seed = words->seed_given ? words->seed : random % 1000000;
    plan->freeze_ms = FREEZE_EXTRA_MS;
    plan->until_overtaken = true;
    plan->frozen_max = plan->workers / 2;
    hf__random(&random, sizeof random);
    (void)snprintf(plan->prefix, sizeof plan->prefix, "holdfast-torture-%016" PRIx64, random);
}

/* Nothing was held, so nothing was shown: the trouble that came most often says why. */
static int say_no_holds(const struct torture_referee *referee)
{
    int worst = -1;

    for (int i = 0; i < TORTURE_STATUSES; i++)
        if (i != HF_OK && atomic_load(&referee->answers[i]) > 0 &&
            (worst < 0 ||
             atomic_load(&referee->answers[i]) > atomic_load(&referee->answers[worst])))
            worst = i;
    if (worst < 0) {
        cli_error("no lock was ever held, so nothing was found out");
        return EXIT_HF_UNAVAILABLE;
    }
    cli_error("no lock was ever held: %s", referee->troubles[worst]);
    return cli_exit_code((enum hf_status)worst);
}

static int tell(const struct torture_report *report, bool json, FILE *svg)
{
    if (json)
        torture_json(stdout, report);
    else
        torture_print(stdout, report);
    if (svg != NULL && !torture_draw(svg, report)) {
        cli_error("cannot write the picture: %s", strerror(errno));
        return EXIT_HF_UNAVAILABLE;
    }
    if (atomic_load(&report->referee->holds) == 0)
        return say_no_holds(report->referee);
    return report->sum.sound ? 0 : TORTURE_BROKEN;
}

static void announce(const struct torture_plan *plan, const char *shown)
{
    char for_text[32], ttl[32];

    printf("Torturing %s for %s: %d workers on %d locks with a ttl of %s, seed %" PRIu64 ".\n",
           shown, hf__format_duration(for_text, sizeof for_text, plan->for_ns / HF__NS_PER_MS),
           plan->workers, TORTURE_LOCKS, hf__format_duration(ttl, sizeof ttl, plan->ttl_ms),
           plan->seed);
    (void)fflush(stdout);
}

/* The exit code; it does not return if a signal ended it. */
static int torture(const struct torture_plan *plan, const char *shown, bool json, FILE *svg)
{
    static struct torture_story story;
    struct torture_referee *referee = torture_referee_new(plan);
    struct torture_sweeper sweeper;
    struct torture_sweep sweep;
    struct torture_report report = {
        .plan = plan, .referee = referee, .story = &story, .sweep = &sweep, .shown = shown};
    int number = 0;
    bool ran;
    int exit_code;

    if (referee == NULL || !torture_sweeper_start(&sweeper, plan)) {
        cli_error("cannot start: %s", strerror(errno));
        torture_referee_free(referee);
        return EXIT_HF_INTERNAL;
    }
    if (!json)
        announce(plan, shown);
    ran = torture_run(referee, &story);
    if (!ran)
        cli_error("cannot start a worker: %s", strerror(errno));
    if (story.stopped) /* the next one ends the sweep as well */
        number = cli_pending_signal(plan->stop_fd);
    torture_sweeper_finish(&sweeper, plan, &sweep);
    report.sum = torture_sum(referee);
    exit_code = tell(&report, json, svg);
    torture_referee_free(referee);
    (void)fflush(stdout);
    if (number != 0)
        return cli_die_of(number);
    return ran ? exit_code : EXIT_HF_INTERNAL;
}

static int torture_main(const struct cli_context *context, int argc, char **argv)
{
    struct words words = {
        .for_ms = FOR_DEFAULT_MS, .ttl_ms = TTL_DEFAULT_MS, .workers = TORTURE_WORKERS_DEFAULT};
    const struct cli_option options[] = {
        {0, "for", CLI_DURATION, "DURATION", "how long; default: 30s", NULL, &words.for_ms, NULL},
        {0, "freeze", CLI_FLAG, NULL, "freeze holders for longer than their ttl", NULL,
         &words.faults[TORTURE_FREEZE], NULL},
        {0, "kill", CLI_FLAG, NULL, "kill workers", NULL, &words.faults[TORTURE_KILL], NULL},
        {0, "cut", CLI_FLAG, NULL, "cut holders off from the store; default: all three", NULL,
         &words.faults[TORTURE_CUT], NULL},
        {0, "ttl", CLI_DURATION, "DURATION",
         "how long a lease lasts; default: 2s, or what the store grants", NULL, &words.ttl_ms,
         &words.ttl_given},
        {0, "workers", CLI_NUMBER, "N", "from 2 to 32; default: 8", NULL, &words.workers, NULL},
        {0, "seed", CLI_NUMBER, "N", "of what happens to whom; default: random", NULL, &words.seed,
         &words.seed_given},
        {0, "svg", CLI_TEXT, "FILE", "also draw it", NULL, &words.svg, NULL},
        CLI_JSON_OPTION(&words.json),
        {.name = NULL}};
    int first = cli_parse(&command_torture, options, argc, argv, NULL);
    struct torture_plan plan = {.stop_fd = -1};
    char shown[CLI_URL_SIZE];
    FILE *svg = NULL;
    int exit_code;

    if (first < 0)
        return cli_parse_exit(first);
    if (first < argc)
        return cli_one_too_many(&command_torture, argv[first]);
    if ((exit_code = check_words(&words)) != 0)
        return exit_code;
    if (words.svg != NULL && (svg = cli_svg_open(words.svg)) == NULL)
        return EXIT_HF_UNAVAILABLE;
    set_plan(context, &words, &plan);
    exit_code = meet_store(context, &words, &plan, shown);
    if (exit_code == 0) {
        plan.stop_fd = cli_catch_signals();
        exit_code = plan.stop_fd >= 0 ? torture(&plan, shown, words.json, svg) : EXIT_HF_INTERNAL;
    }
    if (svg != NULL)
        (void)fclose(svg);
    return exit_code;
}
