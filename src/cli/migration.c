/* migration.c - the options of the commands that print a migration, and the printing. */
#include "cli/migration.h"

#include "base/migration.h"

#include <stdlib.h>

const char *const cli_statements[] = {"text", "json", NULL};
const char *const cli_dialects[] = {"postgres", "sqlite", "mariadb", NULL};

int cli_parse_pack(const struct cli_command *command, struct cli_pack *pack, int argc, char **argv)
{
    bool dialect_given = false;
    const char *operand;
    const struct cli_option options[] = {
        CLI_DIALECT_OPTION(&pack->dialect, &dialect_given),
        {0, "schema", CLI_TEXT, "S", pack->schema_help, NULL, &pack->schema, NULL},
        CLI_MIGRATION_OPTIONS(&pack->how, &pack->down),
        pack->own,
        {.name = NULL}};
    int parsed = cli_parse_operand(command, options, argc, argv, &operand);

    if (parsed != 0)
        return cli_parse_exit(parsed) + 1;
    if (operand != NULL)
        return cli_one_too_many(command, operand) + 1;
    if (!dialect_given)
        return cli_usage_error(command, "--dialect is required") + 1;
    return 0;
}

int cli_print_migration(const struct cli_migration *how, char *text)
{
    const struct hf__migration_form form = {.no_transaction = how->no_transaction,
                                            .json = how->statements == CLI_STATEMENTS_JSON};
    struct hf_error err;
    /* fflush does not fail again over what fputs could not write. */
    bool failed = hf__migration_shape(&form, &text, &err) != HF_OK || fputs(text, stdout) == EOF;

    free(text);
    if (fflush(stdout) != 0 || failed) {
        cli_error("cannot write the migration");
        return EXIT_HF_UNAVAILABLE;
    }
    return 0;
}
