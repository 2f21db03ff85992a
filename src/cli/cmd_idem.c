/* cmd_idem.c - `holdfast idem`: idempotency keys in the user's own database. */
#include "cli/migration.h"
#include "idem/idem.h"

#include <string.h>

static int idem_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_idem = {"idem", "sql --dialect D [options]",
                                         "make a retry harmless: idempotency keys in SQL",
                                         idem_main};
static const struct cli_command sql_command = {
    "idem sql", "--dialect D [options]", "print the migration that makes idempotency keys", NULL};

static int idem_sql(int argc, char **argv)
{
    struct hf__idem_sql what = {.keep_ms = HF__IDEM_KEEP_MS};
    struct cli_pack pack = {.schema_help = "where to put it (postgres); default: holdfast_idem",
                            .own = {0, "keep", CLI_DURATION, "DURATION",
                                    "what purge keeps unless told otherwise; default: 1d", NULL,
                                    &what.keep_ms, NULL}};
    int over = cli_parse_pack(&sql_command, &pack, argc, argv);
    struct hf_error err;
    char *text;

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

static void print_overview(void)
{
    puts("usage: holdfast idem sql --dialect D [options]\n"
         "\n"
         "Prints the SQL that makes a retry harmless: a key that comes twice has one effect.\n"
         "\n"
         "options:\n"
         "  -d, --dialect D            postgres, sqlite or mariadb\n"
         "      --schema S             where to put it (postgres); default: holdfast_idem\n"
         "      --keep DURATION        what purge keeps unless told otherwise; default: 1d\n"
         "      --down                 print the reverse\n"
         "      --no-transaction       without BEGIN and COMMIT: the tool has its own\n"
         "      --statements text|json json: a list of them, for migration tools\n"
         "  -h, --help                 show this help\n"
         "\n"
         "Try: holdfast idem sql --dialect sqlite | sqlite3 -bail app.db\n"
         "See \"man holdfast-idem\" for more.");
}

static int idem_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &command_idem;
    struct cli_shown shown;

    (void)context;
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_overview();
        return 0;
    }
    if (argc < 2)
        return cli_usage_error(command,
                               "the subcommand is missing; there is \"holdfast idem sql\"");
    if (strcmp(argv[1], "sql") != 0)
        return cli_usage_error(command,
                               "unknown idem command \"%s\"; there is \"holdfast idem sql\"",
                               cli_shown(&shown, argv[1]));
    return idem_sql(argc - 1, argv + 1);
}
