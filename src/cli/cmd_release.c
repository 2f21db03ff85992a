/* cmd_release.c - holdfast release: give back a lock that `acquire` took. */
#include "cli/detached.h"

#include <stdlib.h>

static int release_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_release = {"release", "[NAME]",
                                            "give back a lock taken with acquire", release_main};

static int release_main(const struct cli_context *context, int argc, char **argv)
{
    const char *name;
    const struct cli_option options[] = {{.name = NULL}};
    const struct cli_command *command = &command_release;
    int parsed = cli_parse_operand(command, options, argc, argv, &name);
    struct cli_detached detached;
    struct hf_error err;
    int exit_code;

    if (parsed < 0)
        return cli_parse_exit(parsed);

    exit_code = cli_detached_open(&detached, context, command, name);
    if (exit_code)
        return exit_code;
    if (hf_release_all(detached.leases, detached.count, &err) != HF_OK)
        exit_code = cli_fail(&err);
    else
        exit_code = detached.exit_code;
    hf_close(detached.store);
    return exit_code;
}
