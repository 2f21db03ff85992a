/* subcommands.c - commands that have commands of their own. */
#include "cli/help.h"

#include <stdlib.h>
#include <string.h>

int cli_run_subcommand(const struct cli_group *group, const struct cli_context *context, int argc,
                       char **argv)
{
    const struct cli_command *command = group->command;
    bool help = false;
    const struct cli_option options[] = {
        {.letter = 'h', .name = "help", .kind = CLI_FLAG, .target = &help}, {.name = NULL}};
    int first = cli_parse(command, options, argc, argv, NULL);

    if (first < 0)
        return cli_parse_exit(first);
    if (help) {
        cli_print_group_help(group, context);
        return EXIT_SUCCESS;
    }
    if (first == argc)
        return cli_usage_error(
            command, "the subcommand is missing; \"holdfast %s --help\" lists them", command->name);
    for (const struct cli_command *const *c = group->commands; *c != NULL; c++) {
        if (strcmp(argv[first], cli_last_word(*c)) == 0)
            return (*c)->main(context, argc - first, argv + first);
    }
    return cli_unknown_command(command, group, argv[first]);
}
