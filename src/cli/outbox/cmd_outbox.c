/* cmd_outbox.c - `holdfast outbox`: messages that are written in the user's own transactions. The
 * migration here; the relay in cmd_relay.c, what people decide in people.c. */
#include "cli/migration.h"
#include "cli/outbox/outbox.h"

static int outbox_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_outbox = {
    "outbox", "COMMAND [ARG...]", "send messages that were written in a transaction", outbox_main};

#define ENTRY(name) &command_outbox_##name,
static const struct cli_command *const commands[] = {OUTBOX_COMMANDS(ENTRY) NULL};

static int outbox_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_group group = {
        .command = &command_outbox,
        .commands = commands,
        .example = "A message is sent at least once: its UID tells the receiver of a second time.\n"
                   "Try: holdfast outbox sql --dialect sqlite | sqlite3 -bail app.db"};

    return cli_run_subcommand(&group, context, argc, argv);
}

static int sql_main(const struct cli_context *context, int argc, char **argv)
{
    struct cli_pack pack = {.schema_help = OUTBOX_SCHEMA_HELP};
    int over = cli_parse_pack(&command_outbox_sql, &pack, argc, argv);
    struct hf__outbox_sql what = {.schema = pack.schema, .down = pack.down};
    struct hf_error err;
    char *text;

    (void)context;
    if (over != 0)
        return over - 1;
    what.dialect = (enum hf__dialect)pack.dialect;
    if (hf__outbox_sql(&what, &text, &err) != HF_OK)
        return cli_fail(&err);
    return cli_print_migration(&pack.how, text);
}

const struct cli_command command_outbox_sql = {
    "outbox sql", "--dialect D [options]", "print the migration that makes an outbox", sql_main};
