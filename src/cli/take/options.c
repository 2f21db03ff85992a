/* options.c - the options that run, acquire and keep share. */
#include "cli/take/take.h"

enum { EXIT_CODE_MAX = 255 };

int take_check(const struct cli_command *command, const char *name, struct take_options *given)
{
    if (name == NULL)
        return cli_usage_error(command, "the name of the lock is missing");
    if (!cli_check_name(command, name) ||
        (given->ttl_given && !cli_check_ttl(command, given->ttl_ms)))
        return EXIT_HF_USAGE;
    if (given->busy_exit > EXIT_CODE_MAX)
        return cli_usage_error(command, "--busy-exit: an exit code is 0 to %d", EXIT_CODE_MAX);
    if (given->no_wait && given->wait_given)
        return cli_usage_error(command, "--no-wait and --wait cannot be used together");
    if (given->no_wait)
        given->wait_ms = 0;
    return 0;
}
