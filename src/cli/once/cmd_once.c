/* cmd_once.c - holdfast once: a command that should succeed once, or once per period, on any number
 * of machines. once.h shows the parts. */
#include "cli/once/once.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_CODE_MAX = 255 };

static int read_request(struct once *once, int argc, char **argv, bool *go_on);
static int check_request(struct once *once);
static bool asks(const struct once_request *ask);

static int once_main(const struct cli_context *context, int argc, char **argv)
{
    struct once *once = calloc(1, sizeof *once);
    bool go_on = false;
    int exit_code;

    if (once == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    once->work.began_ns = hf__now_ns();
    once->work.guess_ms = hf__wall_us() / 1000;
    once->command = &command_once;
    once->ask = (struct once_request){.run = {.take = TAKE_DEFAULTS}};
    exit_code = read_request(once, argc, argv, &go_on);
    if (!go_on) {
        /* answered */
    } else if (once->ask.show) {
        exit_code = once_show(once, context);
    } else if (once->ask.history) {
        exit_code = once_history(once, context);
    } else if (once->ask.check) {
        exit_code = once_check(once, context);
    } else if (once->ask.clear) {
        exit_code = once_clear(once, context);
    } else {
        exit_code = once_run(once, context);
    }
    free(once->work.zone_data);
    free(once);
    return exit_code;
}

const struct cli_command command_once = {
    "once", "[options] KEY -- CMD [ARG...]",
    "run a command until it has succeeded once, or once per period", once_main};

static bool is_among(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

/* Whether KEY stands for a question, before it or after it, and not for a command: then options may
 * follow it as well. */
static bool is_question(const struct once_request *ask, char **words)
{
    static const char *const questions[] = {"--show", "--history", "--check", "--clear", NULL};
    bool found = asks(ask);

    for (; *words != NULL && strcmp(*words, "--") != 0; words++)
        found = found || is_among(*words, questions);
    return found && *words == NULL;
}

static int parse(struct once_request *ask, const struct cli_option *table, int argc, char **argv)
{
    bool dashes = false;
    int first = cli_parse(&command_once, table, argc, argv, &dashes);

    if (first < 0)
        return first;
    if (is_question(ask, argv + first))
        return cli_parse_operand(&command_once, table, argc, argv, &ask->run.name);
    return run_find_command(&command_once, &ask->run, argv + first, dashes) ? -1 : 0;
}

static int read_request(struct once *once, int argc, char **argv, bool *go_on)
{
    static const char *const on_crash[] = {"rerun", "hold", NULL};
    struct once_request *ask = &once->ask;
    const struct cli_option table[] = {
        {0, "per", CLI_DURATION, "PERIOD", "once in each: 1h, 1d, 7d, ...; default: only once",
         NULL, &ask->per_ms, &ask->per_given},
        {0, "at", CLI_TEXT, "HH:MM", "when a period of whole days begins; default: 00:00", NULL,
         &ask->at, NULL},
        {0, "tz", CLI_TEXT, "ZONE", "the time zone of --at; default: UTC", NULL, &ask->tz, NULL},
        {0, "slack", CLI_DURATION, "DURATION",
         "from this long before a period it is the one meant; default: a quarter of it, at most "
         "15m",
         NULL, &ask->slack_ms, &ask->slack_given},
        {0, "start-by", CLI_DURATION, "DURATION",
         "do not start later than this after the period began; default: one period", NULL,
         &ask->start_by_ms, &ask->start_by_given},
        {0, "retries", CLI_NUMBER, "N", "run CMD again if it fails, up to N times; default: 0",
         NULL, &ask->retries, NULL},
        {0, "retry-after", CLI_DURATION, "DURATION", "wait this long before that; default: 0s",
         NULL, &ask->retry_after_ms, NULL},
        {0, "on-crash", CLI_CHOICE, "WHAT",
         "if a run began and never ended: rerun (default) or hold", on_crash, &ask->on_crash, NULL},
        {0, "keep", CLI_DURATION, "DURATION",
         "keep the outcome this long; default: 30 periods or 30d; without --per, for ever", NULL,
         &ask->keep_ms, &ask->keep_given},
        {0, "output", CLI_FLAG, NULL, "keep the last 32 KiB that CMD writes with the outcome", NULL,
         &ask->output, NULL},
        {0, "done-exit", CLI_NUMBER, "CODE", "exit code if it is already done; default: 0", NULL,
         &ask->done_exit, NULL},
        RUN_OPTIONS(&ask->run),
        {0, "show", CLI_FLAG, NULL, "show the last slot of KEY, or --slot", NULL, &ask->show, NULL},
        {0, "history", CLI_FLAG, NULL, "show all slots of KEY that are on record", NULL,
         &ask->history, NULL},
        {0, "check", CLI_FLAG, NULL, "exit 0 if the last slot that is due is done, else 1", NULL,
         &ask->check, NULL},
        {0, "late", CLI_DURATION, "DURATION",
         "with --check: a slot has to be done this long after it began; default: one period", NULL,
         &ask->late_ms, &ask->late_given},
        {0, "clear", CLI_FLAG, NULL, "let a slot that is held, or --slot, be run again", NULL,
         &ask->clear, NULL},
        {0, "reason", CLI_TEXT, "TEXT", "with --clear: why; it is kept on record", NULL,
         &ask->reason, NULL},
        {0, "slot", CLI_TEXT, "SLOT", "with --show and --clear: which one, for instance 2026-11-17",
         NULL, &ask->slot, NULL},
        {0, "json", CLI_FLAG, NULL, "with --show, --history and --check: print JSON", NULL,
         &ask->json, NULL},
        {.name = NULL}};
    int parsed = parse(ask, table, argc, argv);
    int bad;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    bad = check_request(once);
    *go_on = !bad;
    return bad;
}

static bool asks(const struct once_request *ask)
{
    return ask->show || ask->history || ask->check || ask->clear;
}

static int check_question(const struct once_request *ask)
{
    const struct cli_command *command = &command_once;

    if (ask->show + ask->history + ask->check + ask->clear > 1)
        return cli_usage_error(command,
                               "--show, --history, --check and --clear cannot be used together");
    if (ask->check && !ask->per_given)
        return cli_usage_error(command, "--check needs --per");
    if (ask->clear && (ask->reason == NULL || ask->reason[0] == '\0'))
        return cli_usage_error(command, "--clear needs --reason TEXT: it is kept on record");
    if (ask->slot != NULL && (ask->history || ask->check))
        return cli_usage_error(command, "--slot is for --show and --clear");
    if (ask->slot != NULL && (ask->slot[0] == '\0' || strlen(ask->slot) > HF__ONCE_SLOT_MAX))
        return cli_usage_error(command, "--slot: \"%s\" is not a slot; --history shows them",
                               ask->slot);
    return 0;
}

static int check_request(struct once *once)
{
    struct once_request *ask = &once->ask;
    const struct cli_command *command = &command_once;
    int bad = 0;

    if (asks(ask))
        bad = check_question(ask);
    else if (ask->slot != NULL || ask->reason != NULL || ask->late_given || ask->json)
        bad = cli_usage_error(command, "--slot, --reason, --late and --json are for --show, "
                                       "--history, --check and --clear");
    if (!bad && ask->done_exit > EXIT_CODE_MAX)
        bad = cli_usage_error(command, "--done-exit: an exit code is 0 to %d", EXIT_CODE_MAX);
    if (!bad)
        bad = run_check_options(command, &ask->run);
    once->work.name = ask->run.name;
    return bad ? bad : once_settings(once);
}
