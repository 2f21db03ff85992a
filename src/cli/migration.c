/* migration.c - prints a migration in the form that the options say. */
#include "cli/migration.h"

#include "base/migration.h"

#include <stdlib.h>

const char *const cli_statements[] = {"text", "json", NULL};
const char *const cli_dialects[] = {"postgres", "sqlite", "mariadb", NULL};

int cli_print_migration(const struct cli_migration *how, char *text)
{
    const struct hf__migration_form form = {.no_transaction = how->no_transaction,
                                            .json = how->statements == CLI_STATEMENTS_JSON};
    struct hf_error err;
    /* What fputs could not write is not there any more for fflush to fail at. */
    bool failed = hf__migration_shape(&form, &text, &err) != HF_OK || fputs(text, stdout) == EOF;

    free(text);
    if (fflush(stdout) != 0 || failed) {
        cli_error("cannot write the migration");
        return EXIT_HF_UNAVAILABLE;
    }
    return 0;
}
