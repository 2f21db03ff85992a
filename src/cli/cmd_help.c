/* cmd_help.c - holdfast help: the overview, the stores, or the options of one command. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const char stores[] =
    "A store is where locks live: --store URL, or $HOLDFAST_STORE. Jobs that must not\n"
    "run at the same time name the same one.\n"
    "\n"
    "  file:DIR            a directory, for the processes of one machine. The\n"
    "                      default; no server. A killed job's lock is free at once\n"
    "  redis://HOST:6379   for several machines, with Redis: fast, many locks. After\n"
    "                      a restart it grants nothing for a minute. Also rediss:\n"
    "                      (TLS), redis+unix:, redis+sentinel:, and clusters\n"
    "  redlock://H1,H2,H3  a majority of independent Redis masters: one may die.\n"
    "                      It keeps no records: no \"once\", no \"elect --address\"\n"
    "  etcd://H1,H2,H3     for several machines, with etcd: the cluster survives the\n"
    "                      loss of a member, and forgets nothing\n"
    "  zookeeper://H1,H2   the same, with ZooKeeper; \"acquire\" does not work there\n"
    "  postgres://HOST/DB  for several machines, with PostgreSQL: no extra server,\n"
    "                      and locks are rows that you can look at\n"
    "  https://HOST        any of these behind \"holdfast serve\", for machines that\n"
    "                      do not reach it themselves. Also http:, http+unix:///SOCK\n"
    "\n"
    "Passwords: user:password@ in the URL, or ?password_file=FILE.\n"
    "Try: holdfast --store redis://localhost status\n"
    "For more, see \"man holdfast-redis\", and likewise for file, etcd, zookeeper,\n"
    "postgres and http.\n";

static int help_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_help = {"help", "[COMMAND | stores]",
                                         "explain holdfast, one of its commands, or the stores",
                                         help_main};

static int help_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_option options[] = {{.name = NULL}};
    const char *about;
    const struct cli_command *command = &command_help;
    int parsed = cli_parse_operand(command, options, argc, argv, &about);
    const struct cli_command *subject;
    char ask[] = "--help";
    char *words[] = {NULL, ask, NULL};

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (about == NULL) {
        cli_print_overview(stdout);
        return EXIT_SUCCESS;
    }
    if (strcmp(about, "stores") == 0) {
        fputs(stores, stdout);
        return EXIT_SUCCESS;
    }
    subject = cli_find(about);
    if (subject == NULL)
        return cli_unknown_command(command, NULL, about);
    words[0] = (char *)subject->name;
    return subject->main(context, 2, words);
}
