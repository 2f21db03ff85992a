/* cmd_version.c - holdfast version. */
#include "cli/cli.h"

#include <holdfast/store.h>
#include <stdlib.h>

static int version_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_version = {"version", "[options]", "print the version",
                                            version_main};

static int version_main(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    const char *operand;
    const struct cli_option options[] = {CLI_JSON_OPTION(&json), {.name = NULL}};
    const struct cli_command *command = &command_version;
    int parsed = cli_parse_operand(command, options, argc, argv, &operand);

    (void)context;
    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (operand != NULL)
        return cli_one_too_many(command, operand);
    if (json)
        printf("{\"version\": \"%s\", \"store_abi\": %u}\n", hf_version(), HF_STORE_ABI);
    else
        printf("holdfast %s\n", hf_version());
    return EXIT_SUCCESS;
}
