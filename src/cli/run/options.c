/* options.c - the options of a job, and the words after them. */
#include "cli/run/job.h"

#include <string.h>

const char *const run_leftover_words[] = {"wait", "term", "release", NULL};

/* How many words stand before the dashes; -1: there are none. */
static int find_dashes(char **words)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], "--") == 0)
            return i;
    return -1;
}

int run_find_command(const struct cli_command *command, struct run_options *options, char **words,
                     bool dashes)
{
    bool several = options->names.all || options->names.any;
    int count = find_dashes(words);
    struct cli_shown shown;
    int bad;

    if (words[0] == NULL || count == 0 || (dashes && count < 0))
        return cli_usage_error(command, "the name of the lock is missing");
    if (words[1] == NULL || (several && count < 0))
        return cli_usage_error(
            command, "\"%s\" is the name of the lock; put \"--\" and the command after it",
            cli_shown(&shown, words[0]));
    if (!several && count != 1)
        return cli_usage_error(
            command, "\"--\" is missing before \"%s\"; options go before the name of the lock",
            cli_shown(&shown, words[1]));
    bad = take_find_names(command, &options->names, words, (size_t)count);
    if (bad)
        return bad;
    options->name = options->names.list[0];
    words += count + 1;
    if (words[0] == NULL || words[0][0] == '\0')
        return cli_usage_error(command, "the command is missing after \"--\"");
    options->command = words;
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
