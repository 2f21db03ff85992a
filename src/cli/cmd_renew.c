/* cmd_renew.c - holdfast renew: extend a lease that `acquire` took. */
#include "cli/detached.h"

#include <stdlib.h>

static int renew_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_renew = {"renew", "[options] [NAME]",
                                          "extend a lease taken with acquire", renew_main};

static int renew_main(const struct cli_context *context, int argc, char **argv)
{
    int64_t ttl_ms = 0;
    bool ttl_given = false;
    const char *name;
    const struct cli_option options[] = {
        {.name = "ttl",
         .kind = CLI_DURATION,
         .argument = "DURATION",
         .target = &ttl_ms,
         .given = &ttl_given,
         .help = "how long it lasts from now; default: as long as before"},
        {.name = NULL}};
    const struct cli_command *command = &command_renew;
    int parsed = cli_parse_operand(command, options, argc, argv, &name);
    struct cli_detached detached;
    struct hf_error err;
    int exit_code;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (ttl_given && !cli_check_ttl(command, ttl_ms))
        return EXIT_HF_USAGE;

    exit_code = cli_detached_open(&detached, context, command, name);
    if (exit_code)
        return exit_code;
    /* If one is lost, the others are of no use. */
    exit_code = detached.exit_code;
    for (size_t i = 0; i < detached.count; i++) {
        if (exit_code == 0 && hf_renew(detached.leases[i], (uint32_t)ttl_ms, &err) != HF_OK)
            exit_code = cli_fail(&err);
        hf_leave(detached.leases[i]);
    }
    hf_close(detached.store);
    return exit_code;
}
