/* cmd_help.c - holdfast help: the overview, or the options of one command. */
#include "cli/cli.h"

#include <stdlib.h>

int cmd_help(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_option options[] = {{.name = NULL}};
    const char *about;
    const struct cli_command *command = cli_find("help");
    int parsed = cli_parse_operand(command, options, argc, argv, &about);
    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (!about) {
        cli_print_overview(stdout);
        return EXIT_SUCCESS;
    }
    const struct cli_command *subject = cli_find(about);
    if (!subject)
        return cli_unknown_command(command, about);
    char ask[] = "--help";
    char *words[] = {(char *)subject->name, ask, NULL};
    return subject->main(context, 2, words);
}
