/* options.c - the options of a job, and the words after them. */
#include "cli/run/job.h"

#include <string.h>

const char *const run_leftover_words[] = {"wait", "term", "release", NULL};

int run_find_command(const struct cli_command *command, struct run_options *options, char **words,
                     bool dashes)
{
    bool again = words[0] != NULL && words[1] != NULL && strcmp(words[1], "--") == 0;
    struct cli_shown shown;

    if (words[0] == NULL || strcmp(words[0], "--") == 0 || (dashes && !again))
        return cli_usage_error(command, "the name of the lock is missing");
    options->name = words[0];
    if (words[1] == NULL)
        return cli_usage_error(
            command, "\"%s\" is the name of the lock; put \"--\" and the command after it",
            cli_shown(&shown, options->name));
    if (!again)
        return cli_usage_error(
            command, "\"--\" is missing before \"%s\"; options go before the name of the lock",
            cli_shown(&shown, words[1]));
    if (words[2] == NULL || words[2][0] == '\0')
        return cli_usage_error(command, "the command is missing after \"--\"");
    options->command = words + 2;
    return 0;
}

int run_check_options(const struct cli_command *command, struct run_options *options)
{
    char why[RUN_WHY_SIZE];
    int bad = take_check(command, options->name, &options->take);

    if (!bad)
        bad = events_check(command, &options->events);
    if (!bad)
        bad = audit_require_check(command, &options->require);
    if (bad)
        return bad;
    if (options->skip_ok)
        options->take.busy_exit = 0;
    run_choose_grace(options);
    if (options->grace_ms > HF_TTL_MAX_MS)
        return cli_usage_error(command, "--grace: at most 1d");
    if (options->max_runtime_given && options->max_runtime_ms == 0)
        return cli_usage_error(command, "--max-runtime: must be more than 0");
    return run_timing_fits(options, why, sizeof why) ? 0 : cli_usage_error(command, "%s", why);
}
