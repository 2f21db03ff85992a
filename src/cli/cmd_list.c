/* cmd_list.c - holdfast list: the locks that are held or waited for. */
#include "cli/cli.h"
#include "cli/say/show.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MAX = 20 * 1000 * 1000 }; /* locks in one listing */

struct listing {
    struct cli_lock *locks;
    size_t count;
    size_t capacity;
    bool full; /* LIST_MAX or the memory is used up */
};

static hf_list_fn collect;
static int by_name(const void *a, const void *b);
static void print(const struct listing *listing, bool json, bool names);
static void say_none(const struct hf_store *store, const char *prefix);
static int too_many(void);
static void print_names(const struct listing *listing);
static void print_json(const struct listing *listing);
static void listing_release(struct listing *listing);

static int list_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_list = {"list", "[options] [PREFIX]",
                                         "list the locks that are held or waited for", list_main};

static int list_main(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    bool names = false;
    const char *prefix;
    const struct cli_option options[] = {
        {.name = "json", .kind = CLI_FLAG, .target = &json, .help = "print one JSON array"},
        {.name = "names",
         .kind = CLI_FLAG,
         .target = &names,
         .help = "print only the names, one per line"},
        {.name = NULL}};
    const struct cli_command *command = &command_list;
    int parsed = cli_parse_operand(command, options, argc, argv, &prefix);
    int exit_code = 0;
    struct hf_store *store;
    struct listing listing = {.locks = NULL};
    struct hf_error err;
    enum hf_status status;
    bool broken_off;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (json && names)
        return cli_usage_error(command, "--json and --names exclude each other");

    store = cli_open_readonly(context, &exit_code);
    if (store == NULL)
        return exit_code;
    status = hf_list(store, prefix, collect, &listing, &err);
    broken_off = status != HF_OK || listing.full;
    if (listing.count > 1)
        qsort(listing.locks, listing.count, sizeof *listing.locks, by_name);
    if (listing.count > 0 || (json && !broken_off))
        print(&listing, json, names);
    else if (!broken_off && !names)
        say_none(store, prefix);
    if (status != HF_OK)
        exit_code = cli_fail(&err);
    else if (listing.full)
        exit_code = too_many();
    listing_release(&listing);
    hf_close(store);
    return exit_code;
}

/* What was collected before a listing broke off is true as well. */
static void print(const struct listing *listing, bool json, bool names)
{
    if (json)
        print_json(listing);
    else if (names)
        print_names(listing);
    else
        cli_locks_print(stdout, listing->locks, listing->count);
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

static bool collect(const struct hf_lock_info *info, void *data)
{
    struct listing *listing = data;

    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? listing->capacity * 2 : 64;
        struct cli_lock *locks = NULL;

        if (capacity <= LIST_MAX)
            locks = realloc(listing->locks, capacity * sizeof *locks);
        if (locks == NULL) {
            listing->full = true;
            return false;
        }
        listing->locks = locks;
        listing->capacity = capacity;
    }
    if (!cli_lock_copy(&listing->locks[listing->count], info)) {
        listing->full = true;
        return false;
    }
    listing->count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct cli_lock *left = a;
    const struct cli_lock *right = b;

    return strcmp(left->info.name, right->info.name);
}

/* As they are, for other programs; a terminal gets what it can bear. */
static void print_names(const struct listing *listing)
{
    char shown[HF_NAME_MAX + 1];
    bool terminal = isatty(STDOUT_FILENO) == 1;

    for (size_t i = 0; i < listing->count; i++) {
        const char *name = listing->locks[i].info.name;

        hf__copy_printable(shown, sizeof shown, name);
        puts(terminal ? shown : name);
    }
}

static void print_json(const struct listing *listing)
{
    putchar('[');
    for (size_t i = 0; i < listing->count; i++) {
        fputs(i ? ",\n " : "", stdout);
        cli_lock_json(stdout, &listing->locks[i].info);
    }
    puts("]");
}

static void listing_release(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        cli_lock_clear(&listing->locks[i]);
    free(listing->locks);
}
