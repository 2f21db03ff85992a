/* cmd_list.c - holdfast list: the locks that are held or waited for. */
#include "cli/cli.h"
#include "cli/say/listing.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum form { AS_JSON, AS_NAMES, AS_ROWS, AS_GROUPS };

static void print(const struct cli_listing *listing, enum form form);
static void say_none(const struct hf_store *store, const char *prefix);
static int too_many(void);
static void print_names(const struct cli_listing *listing);
static void print_json(const struct cli_listing *listing);

static int list_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_list = {"list", "[options] [PREFIX]",
                                         "list the locks that are held or waited for", list_main};

static int list_main(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    bool names = false;
    bool flat = false;
    const char *prefix;
    const struct cli_option options[] = {
        CLI_JSON_OPTION(&json),
        {.name = "flat",
         .kind = CLI_FLAG,
         .target = &flat,
         .help = "a line for each slot, instead of one for all of NAME#0, NAME#1, ..."},
        {.name = "names",
         .kind = CLI_FLAG,
         .target = &names,
         .help = "print only the names, one per line"},
        {.name = NULL}};
    const struct cli_command *command = &command_list;
    int parsed = cli_parse_operand(command, options, argc, argv, &prefix);
    int exit_code = 0;
    struct hf_store *store;
    struct cli_listing listing = {.locks = NULL};
    struct hf_error err;
    enum hf_status status;
    bool broken_off;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (json && names)
        return cli_usage_error(command, "--json and --names cannot be used together");

    store = cli_open_readonly(context, &exit_code);
    if (store == NULL)
        return exit_code;
    status = cli_listing_read(&listing, store, prefix, &err);
    broken_off = status != HF_OK || listing.full;
    if (listing.count > 0 || (json && !broken_off))
        print(&listing, json ? AS_JSON : names ? AS_NAMES : flat ? AS_ROWS : AS_GROUPS);
    else if (!broken_off && !names)
        say_none(store, prefix);
    if (status != HF_OK)
        exit_code = cli_fail(&err);
    else if (listing.full)
        exit_code = too_many();
    cli_listing_release(&listing);
    hf_close(store);
    return exit_code;
}

/* What was collected before a listing broke off is true as well. */
static void print(const struct cli_listing *listing, enum form form)
{
    if (form == AS_JSON)
        print_json(listing);
    else if (form == AS_NAMES)
        print_names(listing);
    else
        cli_locks_print(stdout, listing->locks, listing->count, form == AS_ROWS);
    (void)fflush(stdout);
}

static void say_none(const struct hf_store *store, const char *prefix)
{
    struct cli_shown shown;

    if (prefix != NULL && prefix[0] != '\0')
        cli_error("no lock whose name starts with \"%s\" is held or waited for in %s",
                  cli_shown(&shown, prefix), hf_store_url(store));
    else
        cli_error("no lock is held or waited for in %s", hf_store_url(store));
}

static int too_many(void)
{
    cli_error("too many locks for one listing; give a PREFIX");
    return EXIT_HF_INTERNAL;
}

/* As they are, for other programs; a terminal gets only what is printable. */
static void print_names(const struct cli_listing *listing)
{
    char shown[HF_NAME_MAX + 1];
    bool terminal = isatty(STDOUT_FILENO) == 1;

    for (size_t i = 0; i < listing->count; i++) {
        const char *name = listing->locks[i].info.name;

        hf__copy_printable(shown, sizeof shown, name);
        puts(terminal ? shown : name);
    }
}

static void print_json(const struct cli_listing *listing)
{
    putchar('[');
    for (size_t i = 0; i < listing->count; i++) {
        fputs(i ? ",\n " : "", stdout);
        cli_lock_json(stdout, &listing->locks[i].info, CLI_TOKEN_NUMBER);
    }
    puts("]");
}
