/* sql.c - `holdfast fence sql`: the migration that fences a table. */
#include "cli/fence/fence.h"
#include "cli/migration.h"

static int sql_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &command_fence_sql;
    struct fence_words words = {.count = 0};
    struct hf_fence_sql what = {.size = sizeof what};
    struct cli_migration how = {.no_transaction = false};
    int dialect = 0;
    bool dialect_given = false;
    struct hf_error err;
    char *text;
    const struct cli_option options[] = {
        CLI_DIALECT_OPTION(&dialect, &dialect_given),
        FENCE_TABLE_OPTIONS(&what.table, &what.schema),
        {0, "resource", CLI_TEXT, "R", "its name in enter(); default: the table's", NULL,
         &what.resource, NULL},
        {0, "key-column", CLI_TEXT, "C", "fence per key: one lock per value of this column", NULL,
         &what.key_column, NULL},
        {0, "per-row", CLI_FLAG, NULL, "add a column fence_token instead; guards UPDATE only", NULL,
         &what.per_row, NULL},
        CLI_MIGRATION_OPTIONS(&how, &what.down),
        {0, "last", CLI_FLAG, NULL, "with --down: remove what fenced tables share, too", NULL,
         &what.last, NULL},
        {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, &words);

    (void)context;
    if (over != 0)
        return over - 1;
    if (words.count > 0)
        return cli_one_too_many(command, words.operands[0]);
    if (!dialect_given || what.table == NULL)
        return cli_usage_error(command, "--dialect and --table are required");
    if (what.last && !what.down)
        return cli_usage_error(command, "--last needs --down");
    what.dialect = (enum hf_fence_dialect)dialect;
    what.no_transaction = how.no_transaction || how.statements == CLI_STATEMENTS_JSON;
    if (hf_fence_sql(&what, &text, &err) != HF_OK)
        return cli_fail(&err);
    return cli_print_migration(&how, text);
}

const struct cli_command command_fence_sql = {"fence sql", "--dialect D --table T [options]",
                                              "print the migration that fences a table", sql_main};
