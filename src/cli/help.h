/* help.h - what --help prints, of one command and of a group of them. */
#ifndef HF_CLI_HELP_H
#define HF_CLI_HELP_H

#include "cli/cli.h"

/* --help itself, which every command has. */
extern const struct cli_option cli_help_option;

/* The help of a command on stdout; while a group's is being made, it gets the table instead. */
void cli_print_help(const struct cli_command *command, const struct cli_option *options);

/* What a group is, its commands, and the options of all of them, on stdout. */
void cli_print_group_help(const struct cli_group *group, const struct cli_context *context);

#endif /* HF_CLI_HELP_H */
