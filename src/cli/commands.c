/* commands.c - the table of commands. */
#include "cli/cli.h"

#include <string.h>

#define ENTRY(name) &command_##name,
const struct cli_command *const cli_commands[] = {CLI_COMMANDS(ENTRY) NULL};

const struct cli_command *cli_find(const char *name)
{
    for (const struct cli_command *const *command = cli_commands; *command != NULL; command++) {
        if (strcmp((*command)->name, name) == 0)
            return *command;
    }
    return NULL;
}

int cli_unknown_command(const struct cli_command *asked_by, const struct cli_group *group,
                        const char *word)
{
    const struct cli_command *const *commands = group != NULL ? group->commands : cli_commands;
    const char *above = group != NULL ? group->command->name : "";
    const char *space = group != NULL ? " " : "";
    const char *names[CLI_SUGGEST_MAX + 1];
    size_t count = 0;
    struct cli_shown shown;
    const char *near;

    for (; *commands != NULL && count < CLI_SUGGEST_MAX; commands++)
        names[count++] = cli_last_word(*commands);
    names[count] = NULL;

    near = cli_suggest(word, names);
    word = cli_shown(&shown, word);
    if (near != NULL)
        return cli_usage_error(asked_by, "unknown %s%scommand \"%s\"; did you mean \"%s\"?", above,
                               space, word, near);
    return cli_usage_error(asked_by, "unknown %s%scommand \"%s\"; \"holdfast help%s%s\" lists them",
                           above, space, word, space, above);
}

void cli_print_overview(FILE *out)
{
    fputs("usage: holdfast [--store URL] COMMAND [ARG...]\n"
          "\n"
          "Takes a lock, keeps it, and notices the moment it is lost.\n"
          "\n"
          "commands:\n",
          out);
    for (const struct cli_command *const *command = cli_commands; *command != NULL; command++)
        fprintf(out, "  %-9s %s\n", (*command)->name, (*command)->summary);
    fputs("\n"
          "options:\n"
          "      --store URL  where the locks live, such as file:/var/lib/jobs; default:\n"
          "                   $HOLDFAST_STORE, or else this user's embedded store\n"
          "  -h, --help       show this help\n"
          "  -V, --version    print the version\n"
          "\n"
          "Try: holdfast run nightly -- sh -c 'echo my token is $HOLDFAST_TOKEN'\n"
          "See \"holdfast help COMMAND\" for a command's options, \"holdfast help stores\" for\n"
          "where locks can live, and \"man holdfast\" for everything else.\n",
          out);
}
