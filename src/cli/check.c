/* check.c - words of the command line that mean the same in every command. */
#include "cli/cli.h"

#include "base/base.h"

#include <string.h>

bool cli_check_name(const struct cli_command *command, const char *name)
{
    size_t len = strlen(name);

    if (hf__name_valid(name))
        return true;
    if (len == 0)
        (void)cli_usage_error(command, "the name of the lock is empty");
    else if (len > HF_NAME_MAX)
        (void)cli_usage_error(command, "the name of the lock has %zu bytes; at most %d are allowed",
                              len, HF_NAME_MAX);
    else
        (void)cli_usage_error(command, "the name of the lock has a control character in it");
    return false;
}

bool cli_check_ttl(const struct cli_command *command, int64_t ttl_ms)
{
    char given[32];

    (void)hf__format_duration(given, sizeof given, ttl_ms);
    if (ttl_ms < HF_TTL_MIN_MS)
        (void)cli_usage_error(command, "--ttl: %s is too short; the shortest is 100ms", given);
    else if (ttl_ms > HF_TTL_MAX_MS)
        (void)cli_usage_error(command, "--ttl: %s is too long; the longest is 1d", given);
    else
        return true;
    return false;
}
