/* cmd_fence.c - `holdfast fence`: the check at the resource. */
#include "cli/fence/fence.h"

static int fence_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_fence = {"fence", "COMMAND [ARG...]",
                                          "make a resource refuse a stale token", fence_main};

#define ENTRY(name) &command_fence_##name,
static const struct cli_command *const commands[] = {FENCE_COMMANDS(ENTRY) NULL};

static int fence_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_group group = {
        .command = &command_fence,
        .commands = commands,
        .example = "Inside a job the token is known, so this is enough:\n"
                   "  holdfast run nightly -- holdfast fence write report.txt -- make-report"};

    return cli_run_subcommand(&group, context, argc, argv);
}
