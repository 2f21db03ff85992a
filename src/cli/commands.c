/* commands.c - the table of commands. */
#include "cli/cli.h"

#include <string.h>

const struct cli_command cli_commands[] = {
    {"run", "[options] NAME -- CMD [ARG...]", "run a command while holding a lock", cmd_run},
    {"acquire", "[options] NAME", "take a lock and print what renews and releases it", cmd_acquire},
    {"keep", "[options] NAME", "take a lock for a script and renew it until the script ends",
     cmd_keep},
    {"renew", "[options] [NAME]", "extend a lease that 'acquire' took", cmd_renew},
    {"release", "[NAME]", "give back a lock that 'acquire' took", cmd_release},
    {"status", "[options] [NAME]", "show one lock, or the store as a whole", cmd_status},
    {"list", "[options] [PREFIX]", "list the locks that are held or waited for", cmd_list},
    {"repair", "[options]", "make a damaged store usable again, or end a quarantine", cmd_repair},
    {"fence", "COMMAND [ARG...]", "make a resource refuse a stale token", cmd_fence},
    {"idem", "sql --dialect D [options]", "make a retry harmless: idempotency keys in SQL",
     cmd_idem},
    {"trap", "[options]", "show on your own store why a lock alone is not enough", cmd_trap},
    {"help", "[COMMAND | stores]", "explain holdfast, one of its commands, or the stores",
     cmd_help},
    {"version", "[options]", "print the version", cmd_version},
    {NULL, NULL, NULL, NULL}};

const struct cli_command *cli_find(const char *name)
{
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}

int cli_unknown_command(const struct cli_command *asked_by, const char *word)
{
    const char *names[CLI_SUGGEST_MAX + 1];
    size_t count = 0;
    for (const struct cli_command *c = cli_commands; c->name && count < CLI_SUGGEST_MAX; c++)
        names[count++] = c->name;
    names[count] = NULL;

    struct cli_shown shown;
    const char *near = cli_suggest(word, names);
    word = cli_shown(&shown, word);
    if (near)
        return cli_usage_error(asked_by, "unknown command '%s'; did you mean '%s'?", word, near);
    return cli_usage_error(asked_by, "unknown command '%s'; 'holdfast help' lists them", word);
}

void cli_print_overview(FILE *out)
{
    fputs("usage: holdfast [--store URL] COMMAND [ARG...]\n"
          "\n"
          "Takes a lock, keeps it, and notices the moment it is lost.\n"
          "\n"
          "commands:\n",
          out);
    for (const struct cli_command *command = cli_commands; command->name; command++)
        fprintf(out, "  %-9s %s\n", command->name, command->summary);
    fputs("\n"
          "options:\n"
          "      --store URL  where the locks live, such as file:/var/lib/jobs; the default is\n"
          "                   $HOLDFAST_STORE, else the embedded store of this user\n"
          "  -h, --help       show this help\n"
          "  -V, --version    print the version\n"
          "\n"
          "Try: holdfast run nightly -- sh -c 'echo my token is $HOLDFAST_TOKEN'\n"
          "'holdfast help COMMAND' shows a command's options, 'holdfast help stores' where\n"
          "locks can live, 'man holdfast' the whole.\n",
          out);
}
