/* cmd_slots.c - holdfast slots: who has which number of a resource, and how many wait. */
#include "cli/cli.h"
#include "cli/say/listing.h"
#include "cli/say/slots.h"

#include "base/base.h"

#include <holdfast/several.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int show(struct hf_store *store, const char *name, bool json);
static void print_slots(const struct cli_listing *listing, const char *name);
static void print_json(const struct cli_listing *listing, const char *name);

static int slots_main(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    const char *name;
    const struct cli_option options[] = {CLI_JSON_OPTION(&json), {.name = NULL}};
    int parsed = cli_parse_operand(&command_slots, options, argc, argv, &name);
    int exit_code = 0;
    struct hf_store *store;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (name == NULL)
        return cli_usage_error(&command_slots, "the name of the slots is missing");
    if (!cli_check_name(&command_slots, name))
        return EXIT_HF_USAGE;
    store = cli_open_readonly(context, &exit_code);
    if (store == NULL)
        return exit_code;
    exit_code = show(store, name, json);
    hf_close(store);
    return exit_code;
}

const struct cli_command command_slots = {
    "slots", "[options] NAME", "show who has which slot of several, and who waits", slots_main};

static int show(struct hf_store *store, const char *name, bool json)
{
    struct cli_listing listing = {.locks = NULL};
    char prefix[HF_NAME_MAX + 2];
    struct hf_error err;
    int exit_code = 0;

    (void)snprintf(prefix, sizeof prefix, "%s#", name);
    if (cli_listing_read(&listing, store, prefix, &err) != HF_OK) {
        exit_code = cli_fail(&err);
    } else if (listing.full) {
        cli_error("out of memory");
        exit_code = EXIT_HF_INTERNAL;
    } else if (json) {
        print_json(&listing, name);
    } else {
        print_slots(&listing, name);
    }
    cli_listing_release(&listing);
    return exit_code;
}

/* The slots of name by their numbers; NULL where one is free. How many there are: in *slots. */
static void arrange(const struct cli_listing *listing, const char *name,
                    const struct hf_lock_info *by_number[HF_SEVERAL_MAX], struct cli_slots *slots)
{
    *slots = (struct cli_slots){.name = name, .len = (int)strlen(name)};
    memset(by_number, 0, HF_SEVERAL_MAX * sizeof *by_number);
    for (size_t i = 0; i < listing->count; i++) {
        const struct hf_lock_info *info = &listing->locks[i].info;
        unsigned number;
        int len;

        if (!cli_slot_parse(info->name, &len, &number) || len != slots->len)
            continue;
        by_number[number] = info;
        slots->held += info->held;
        if (number >= slots->slots)
            slots->slots = number + 1;
        if (info->waiters > slots->waiters)
            slots->waiters = info->waiters;
    }
}

static void print_slot(unsigned number, const struct hf_lock_info *info)
{
    char label[HF_LABEL_MAX + 1] = "(free)";
    char token[24] = "-", age[32] = "-", left[32] = "-";

    if (info != NULL && info->held) {
        hf__copy_printable(label, sizeof label, info->label);
        if (info->token)
            (void)snprintf(token, sizeof token, "%" PRIu64, info->token);
        if (info->age_ms >= 0)
            (void)hf__format_duration(age, sizeof age, info->age_ms);
        if (info->remaining_ms >= 0)
            (void)hf__format_duration(left, sizeof left, info->remaining_ms);
    }
    printf("%4u  %16s  %8s  %9s  %7" PRIu64 "  %s\n", number, token, age, left,
           info != NULL ? info->waiters : 0, label);
}

static void print_slots(const struct cli_listing *listing, const char *name)
{
    const struct hf_lock_info *by_number[HF_SEVERAL_MAX];
    char shown[HF_NAME_MAX + 1], text[CLI_SLOTS_TEXT_SIZE];
    struct cli_slots slots;

    arrange(listing, name, by_number, &slots);
    hf__copy_printable(shown, sizeof shown, name);
    if (slots.slots == 0) {
        cli_error("no slot of \"%s\" is held or waited for", shown);
        return;
    }
    cli_slots_text(&slots, text);
    printf("%s#0..%u: %s\n", shown, slots.slots - 1, text);
    printf("%4s  %16s  %8s  %9s  %7s  %s\n", "SLOT", "TOKEN", "AGE", "REMAINING", "WAITERS",
           "LABEL");
    for (unsigned i = 0; i < slots.slots; i++)
        print_slot(i, by_number[i]);
    (void)fflush(stdout);
}

static void print_json(const struct cli_listing *listing, const char *name)
{
    const struct hf_lock_info *by_number[HF_SEVERAL_MAX];
    const char *comma = "";
    struct cli_slots slots;

    arrange(listing, name, by_number, &slots);
    fputs("{\"name\": ", stdout);
    cli_json_string(stdout, name);
    printf(", \"held\": %u, \"waiters\": %" PRIu64 ", \"slots\": [", slots.held, slots.waiters);
    for (unsigned i = 0; i < slots.slots; i++) {
        if (by_number[i] == NULL)
            continue;
        printf("%s{\"slot\": %u, \"lock\": ", comma, i);
        cli_lock_json(stdout, by_number[i], CLI_TOKEN_NUMBER);
        putchar('}');
        comma = ",\n ";
    }
    puts("]}");
    (void)fflush(stdout);
}
