/* cmd_idem.c - `holdfast idem`: idempotency keys in the user's own database. */
#include "cli/migration.h"
#include "idem/idem.h"

static int idem_main(const struct cli_context *context, int argc, char **argv);
static int sql_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_idem = {"idem", "sql --dialect D [options]",
                                         "make a retry harmless: idempotency keys in SQL",
                                         idem_main};
static const struct cli_command sql_command = {"idem sql", "--dialect D [options]",
                                               "print the migration that makes idempotency keys",
                                               sql_main};
static const struct cli_command *const commands[] = {&sql_command, NULL};

static int idem_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_group group = {
        .command = &command_idem,
        .commands = commands,
        .example = "Try: holdfast idem sql --dialect sqlite | sqlite3 -bail app.db"};

    return cli_run_subcommand(&group, context, argc, argv);
}

static int sql_main(const struct cli_context *context, int argc, char **argv)
{
    struct hf__idem_sql what = {.keep_ms = HF__IDEM_KEEP_MS};
    struct cli_pack pack = {.schema_help = "the schema (postgres); default: holdfast_idem",
                            .own = {0, "keep", CLI_DURATION, "DURATION",
                                    "how long purge keeps keys unless told otherwise; default: 1d",
                                    NULL, &what.keep_ms, NULL}};
    int over = cli_parse_pack(&sql_command, &pack, argc, argv);
    struct hf_error err;
    char *text;

    (void)context;
    if (over != 0)
        return over - 1;
    if (what.keep_ms < 1)
        return cli_usage_error(&sql_command, "--keep: must be more than 0");
    what.dialect = (enum hf__dialect)pack.dialect;
    what.schema = pack.schema;
    what.down = pack.down;
    if (hf__idem_sql(&what, &text, &err) != HF_OK)
        return cli_fail(&err);
    return cli_print_migration(&pack.how, text);
}
