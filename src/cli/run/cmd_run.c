/* cmd_run.c - holdfast run: a command under a lock.
 *
 * The story: take the lock (or find that a process above us holds it), start CMD under a watchdog,
 * keep the lease until the whole tree is gone, give the lock back. job.h tells it step by step, and
 * run.h shows the processes. */
#include "cli/run/at_least.h"

static int read_options(struct run_options *options, struct at_least *at_least, int argc,
                        char **argv, bool *go_on);

static int run_main(const struct cli_context *context, int argc, char **argv)
{
    struct run_options options = {.take = TAKE_DEFAULTS};
    struct at_least at_least = {.given = false};
    struct run_job job;
    bool go_on = false;
    int exit_code = read_options(&options, &at_least, argc, argv, &go_on);

    if (!go_on)
        return exit_code;
    if (!run_job_begin(&job, &options))
        return EXIT_HF_INTERNAL;
    if (run_job_open(&job, context, &exit_code))
        exit_code = at_least_run(&at_least, &job);
    return run_job_end(&job, exit_code);
}

const struct cli_command command_run = {"run", "[options] NAME... -- CMD [ARG...]",
                                        "run a command while holding a lock", run_main};

static int read_options(struct run_options *options, struct at_least *at_least, int argc,
                        char **argv, bool *go_on)
{
    const struct cli_option table[] = {TAKE_NAMES_OPTIONS(&options->names),
                                       RUN_OPTIONS(options),
                                       {0, "no-reenter", CLI_FLAG, NULL,
                                        "refuse if a process above this one holds the lock", NULL,
                                        &options->no_reenter, NULL},
                                       {0, "at-least", CLI_DURATION, "DURATION",
                                        "do not start again within this time after a start", NULL,
                                        &at_least->every_ms, &at_least->given},
                                       {.name = NULL}};
    bool dashes = false;
    int first = cli_parse(&command_run, table, argc, argv, &dashes);
    int bad;

    if (first < 0)
        return cli_parse_exit(first);
    bad = run_find_command(&command_run, options, argv + first, dashes);
    if (!bad)
        bad = run_check_options(&command_run, options);
    if (!bad)
        bad = at_least_check(&command_run, at_least);
    if (!bad && at_least->given && options->names.kind != TAKE_ONE)
        bad = cli_usage_error(&command_run, "--at-least is for one lock only");
    *go_on = !bad;
    return bad;
}
