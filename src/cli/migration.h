/* migration.h - how commands print an SQL migration: for a client, or for a migration tool. */
#ifndef HF_CLI_MIGRATION_H
#define HF_CLI_MIGRATION_H

#include "cli/cli.h"

/* How it is printed, as the options say. */
struct cli_migration {
    bool no_transaction; /* without BEGIN and COMMIT: the tool has its own */
    int statements;      /* CLI_STATEMENTS_...: index into cli_statements */
};

/* A pack of SQL: what the options of its `sql` command say, of all packs and one of its own. */
struct cli_pack {
    const char *schema_help;
    struct cli_option own; /* without a name: it has none */
    int dialect;           /* enum hf__dialect */
    const char *schema;    /* NULL: the pack's */
    bool down;             /* the reverse */
    struct cli_migration how;
};

enum { CLI_STATEMENTS_TEXT, CLI_STATEMENTS_JSON };
extern const char *const cli_statements[]; /* the choices of --statements */
extern const char *const cli_dialects[];   /* and of --dialect, in the order of enum hf__dialect */

/* Lines of the tables of commands. */
#define CLI_DIALECT_OPTION(dialect, given)                                                         \
    {                                                                                              \
        'd', "dialect", CLI_CHOICE, "D", "postgres, sqlite or mariadb", cli_dialects, dialect,     \
            given                                                                                  \
    }
#define CLI_MIGRATION_OPTIONS(how, down)                                                           \
    {0, "down", CLI_FLAG, NULL, "print the reverse", NULL, down, NULL},                            \
        {0,                                                                                        \
         "no-transaction",                                                                         \
         CLI_FLAG,                                                                                 \
         NULL,                                                                                     \
         "leave out BEGIN and COMMIT: the tool has its own",                                       \
         NULL,                                                                                     \
         &(how)->no_transaction,                                                                   \
         NULL},                                                                                    \
    {                                                                                              \
        0, "statements", CLI_CHOICE, "text|json",                                                  \
            "json: print a list of them, for migration tools", cli_statements, &(how)->statements, \
            NULL                                                                                   \
    }

/* Reads the words of the command. Returns 0, or 1 more than the exit code: the matter is over. */
int cli_parse_pack(const struct cli_command *command, struct cli_pack *pack, int argc, char **argv);

/* Prints text, the words of a migration, on stdout; frees it. Returns the exit code. */
int cli_print_migration(const struct cli_migration *how, char *text);

#endif /* HF_CLI_MIGRATION_H */
