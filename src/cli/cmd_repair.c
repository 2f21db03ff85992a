/* cmd_repair.c - holdfast repair: make a damaged store usable again, or end a quarantine. */
#include "cli/cli.h"

#include <holdfast/repair.h>
#include <stdlib.h>
#include <string.h>

static int end_quarantine(const struct cli_context *context, const char *reason);

static int repair_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_repair = {
    "repair", "[options]", "make a damaged store usable again, or end a quarantine", repair_main};

static int repair_main(const struct cli_context *context, int argc, char **argv)
{
    uint64_t above = 0;
    bool above_given = false;
    bool open = false;
    const char *reason = NULL;
    const char *operand;
    const struct cli_option options[] = {
        {.name = "above",
         .kind = CLI_NUMBER,
         .argument = "TOKEN",
         .target = &above,
         .given = &above_given,
         .help = "start new tokens above this one: the highest a fence has admitted"},
        {.name = "open",
         .kind = CLI_FLAG,
         .target = &open,
         .help = "end the store's quarantine: nobody holds a lock it may have forgotten"},
        {.name = "reason",
         .kind = CLI_TEXT,
         .argument = "TEXT",
         .target = &reason,
         .help = "with --open: how you know; the store keeps it"},
        {.name = NULL}};
    const struct cli_command *command = &command_repair;
    int parsed = cli_parse_operand(command, options, argc, argv, &operand);
    struct cli_shown shown;
    struct hf_error report;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (operand != NULL)
        return cli_usage_error(command, "unexpected word \"%s\"; --store names the store",
                               cli_shown(&shown, operand));

    if (open && above_given)
        return cli_usage_error(command, "--open and --above cannot be used together");
    if (open && (reason == NULL || reason[0] == '\0' || strlen(reason) > HF_LABEL_MAX))
        return cli_usage_error(command, "--open needs a --reason of 1 to %d bytes", HF_LABEL_MAX);
    if (reason != NULL && !open)
        return cli_usage_error(command, "--reason needs --open");
    if (open)
        return end_quarantine(context, reason);

    if (hf_repair(context->store_url, above, &report) != HF_OK)
        return cli_fail(&report);
    puts(report.text);
    return EXIT_SUCCESS;
}

static int end_quarantine(const struct cli_context *context, const char *reason)
{
    int exit_code = 0;
    struct hf_error report;
    struct hf_store *store = cli_open(context, &exit_code);

    if (store == NULL)
        return exit_code;
    if (hf_end_quarantine(store, reason, &report) == HF_OK)
        puts(report.text);
    else
        exit_code = cli_fail(&report);
    hf_close(store);
    return exit_code;
}
