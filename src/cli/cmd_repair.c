/* cmd_repair.c - holdfast repair: make a damaged embedded store usable again. */
#include "cli/cli.h"

#include <stdlib.h>

int cmd_repair(const struct cli_context *context, int argc, char **argv)
{
    uint64_t above = 0;
    const char *operand;
    const struct cli_option options[] = {
        {.name = "above",
         .kind = CLI_NUMBER,
         .argument = "TOKEN",
         .target = &above,
         .help = "let new tokens start above this one: the highest a fence has admitted"},
        {.name = NULL}};
    const struct cli_command *command = cli_find("repair");
    int parsed = cli_parse_operand(command, options, argc, argv, &operand);
    if (parsed < 0)
        return cli_parse_exit(parsed);
    struct cli_shown shown;
    if (operand)
        return cli_usage_error(command, "one word too many: '%s'; --store names the store",
                               cli_shown(&shown, operand));

    struct hf_error report;
    if (hf_repair(context->store_url, above, &report) != HF_OK)
        return cli_fail(&report);
    puts(report.text);
    return EXIT_SUCCESS;
}
