/* cmd_outbox.c - `holdfast outbox`: messages that are written in the user's own transactions. The
 * migration here; the relay in cmd_relay.c, what people decide in people.c. */
#include "cli/migration.h"
#include "cli/outbox/outbox.h"

#include <string.h>

static int outbox_sql(const struct cli_context *context, int argc, char **argv);
static int outbox_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_outbox = {
    "outbox", "COMMAND [ARG...]", "send messages that were written in a transaction", outbox_main};
const struct cli_command outbox_commands[] = {
    [OUTBOX_SQL] = {"outbox sql", "--dialect D [options]",
                    "print the migration that makes an outbox", outbox_sql},
    [OUTBOX_RELAY] = {"outbox relay", "--db URL [options] (-- CMD [ARG...] | --http URL)",
                      "send what is in it", outbox_relay},
    [OUTBOX_LIST] = {"outbox list", "--db URL [options]", "show what failed, and what is dead",
                     outbox_list},
    [OUTBOX_RETRY] = {"outbox retry", "--db URL --reason TEXT UID",
                      "retry a message that failed, or is dead", outbox_retry},
    [OUTBOX_DROP] = {"outbox drop", "--db URL --reason TEXT UID", "give up on a message",
                     outbox_drop},
    {NULL, NULL, NULL, NULL}};

static int outbox_sql(const struct cli_context *context, int argc, char **argv)
{
    struct cli_pack pack = {.schema_help = "where to put it (postgres); default: holdfast_outbox"};
    int over = cli_parse_pack(&outbox_commands[OUTBOX_SQL], &pack, argc, argv);
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

static void print_overview(void)
{
    puts("usage: holdfast outbox COMMAND [ARG...]\n\n"
         "Sends messages that were written in the transactions they are about, at least once.\n\n"
         "commands:");
    for (const struct cli_command *c = outbox_commands; c->name != NULL; c++)
        printf("  %-7s %s\n", c->name + strlen("outbox "), c->summary);
    puts("\noptions, where they make sense:\n"
         "  -d, --dialect D            sql: postgres, sqlite or mariadb\n"
         "      --down                 sql: print the reverse\n"
         "      --no-transaction       sql: without BEGIN and COMMIT: the tool has its own\n"
         "      --statements text|json sql: json: a list of them, for migration tools\n"
         "      --schema S             where the outbox is (postgres); default: holdfast_outbox\n"
         "      --db URL               postgres://..., mariadb://... or sqlite:PATH\n"
         "      --name NAME            relay: its lock is outbox/NAME; default: main\n"
         "      --http URL             relay: POST messages there, instead of CMD\n"
         "      --parallel N           relay: keys at once; default: 8\n"
         "      --batch N              relay: messages per fetch; default: 500\n"
         "      --poll DURATION        relay: how often to look for new messages; default: 200ms\n"
         "      --timeout DURATION     relay: how long to wait for an answer; default: 30s\n"
         "      --attempts N           relay: after this many a message is dead; default: 20\n"
         "  -n, --no-wait              relay: fail at once if another holds the lock\n"
         "  -w, --wait DURATION        relay: wait for it at most this long\n"
         "  -E, --busy-exit CODE       relay: exit code if another holds it; default: 75\n"
         "      --ttl DURATION         relay: how long its lease lasts; default: 30s\n"
         "      --label TEXT           relay: what others see as the holder\n"
         "      --events FILE          relay: append a line of JSON for each event\n"
         "      --metrics FILE.prom    relay: keep figures for Prometheus in this file\n"
         "      --json                 list: as JSON\n"
         "      --reason TEXT          retry, drop: why; required, and kept\n"
         "  -h, --help                 show this help\n\n"
         "Try: holdfast outbox sql --dialect sqlite | sqlite3 -bail app.db\n"
         "See \"man holdfast-outbox\" for more.");
}

static int outbox_main(const struct cli_context *context, int argc, char **argv)
{
    struct cli_shown shown;

    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_overview();
        return 0;
    }
    if (argc < 2)
        return cli_usage_error(&command_outbox,
                               "the subcommand is missing: sql, relay, list, retry or drop");
    for (const struct cli_command *c = outbox_commands; c->name != NULL; c++)
        if (strcmp(argv[1], c->name + strlen("outbox ")) == 0)
            return c->main(context, argc - 1, argv + 1);
    return cli_usage_error(
        &command_outbox,
        "unknown outbox command \"%s\"; there are sql, relay, list, retry and drop",
        cli_shown(&shown, argv[1]));
}
