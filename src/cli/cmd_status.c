/* cmd_status.c - holdfast status: one lock in detail, or the store as a whole. */
#include "cli/cli.h"
#include "cli/say/show.h"

#include "base/base.h"

#include <holdfast/repair.h>
#include <inttypes.h>
#include <stdlib.h>

/* The one lock asked for. Found but without text: no memory for it. */
struct copy {
    struct cli_lock lock;
    bool found;
};

struct summary {
    uint64_t held;       /* locks that are held */
    uint64_t waited_for; /* locks with someone waiting */
    uint64_t waiters;    /* of all locks together */
};

static int lock_status(struct hf_store *store, const char *name, bool json, bool *held);
static int store_status(struct hf_store *store, bool json);
static hf_list_fn copy_one;
static hf_list_fn count_one;
static void print_features(unsigned features, bool json);
static void print_quarantine(struct hf_store *store);
static void json_quarantine(struct hf_store *store);

static int status_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_status = {"status", "[options] [NAME]",
                                           "show one lock, or the store as a whole", status_main};

static int status_main(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    bool held = false;
    bool free = false;
    const char *name;
    const struct cli_option options[] = {CLI_JSON_OPTION(&json),
                                         {.name = "held",
                                          .kind = CLI_FLAG,
                                          .target = &held,
                                          .help = "exit 0 if the lock is held, 1 if it is free"},
                                         {.name = "free",
                                          .kind = CLI_FLAG,
                                          .target = &free,
                                          .help = "exit 0 if the lock is free, 1 if it is held"},
                                         {.name = NULL}};
    const struct cli_command *command = &command_status;
    int parsed = cli_parse_operand(command, options, argc, argv, &name);
    int exit_code = 0;
    bool is_held = false;
    struct hf_store *store;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (name != NULL && !cli_check_name(command, name))
        return EXIT_HF_USAGE;
    if (held && free)
        return cli_usage_error(command, "--held and --free cannot be used together");
    if ((held || free) && name == NULL)
        return cli_usage_error(command, "--held and --free need the name of a lock");

    store = cli_open_readonly(context, &exit_code);
    if (store == NULL)
        return exit_code;
    exit_code = name != NULL ? lock_status(store, name, json, &is_held) : store_status(store, json);
    hf_close(store);
    if (exit_code == EXIT_SUCCESS && ((held && !is_held) || (free && is_held)))
        exit_code = EXIT_HF_NO;
    return exit_code;
}

static int lock_status(struct hf_store *store, const char *name, bool json, bool *held)
{
    struct copy copy = {.found = false};
    const struct hf_lock_info nobody = {.size = sizeof nobody, .name = name, .label = ""};
    struct hf_error err;
    const struct hf_lock_info *info;

    if (hf_inspect(store, name, copy_one, &copy, &err) != HF_OK)
        return cli_fail(&err);
    if (copy.found && copy.lock.text == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    info = copy.found ? &copy.lock.info : &nobody;
    if (json) {
        cli_lock_json(stdout, info, CLI_TOKEN_NUMBER);
        putchar('\n');
    } else {
        cli_lock_print(stdout, info);
        print_quarantine(store);
    }
    *held = info->held;
    cli_lock_clear(&copy.lock);
    return EXIT_SUCCESS;
}

static int store_status(struct hf_store *store, bool json)
{
    struct summary sum = {0};
    struct hf_error err;

    if (hf_list(store, NULL, count_one, &sum, &err) != HF_OK)
        return cli_fail(&err);
    if (json) {
        fputs("{\"store\": ", stdout);
        cli_json_string(stdout, hf_store_url(store));
        fputs(", \"features\": [", stdout);
        print_features(hf_store_features(store), true);
        printf("], \"held\": %" PRIu64 ", \"waited_for\": %" PRIu64 ", \"waiters\": %" PRIu64,
               sum.held, sum.waited_for, sum.waiters);
        json_quarantine(store);
        puts("}");
    } else {
        printf("%s\n  features   ", hf_store_url(store));
        print_features(hf_store_features(store), false);
        printf("\n  held       %" PRIu64 "\n  waiters    %" PRIu64 "\n", sum.held, sum.waiters);
        print_quarantine(store);
    }
    return EXIT_SUCCESS;
}

static bool copy_one(const struct hf_lock_info *info, void *data)
{
    struct copy *copy = data;

    copy->found = true;
    (void)cli_lock_copy(&copy->lock, info);
    return false;
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    struct summary *sum = data;

    sum->held += info->held;
    sum->waited_for += info->waiters > 0;
    sum->waiters += info->waiters;
    return true;
}

static void print_features(unsigned features, bool json)
{
    const char *names[CLI_FEATURES_MAX];
    size_t count = cli_features(features, names);

    for (size_t i = 0; i < count; i++)
        printf(json ? "%s\"%s\"" : "%s%s", i > 0 ? ", " : "", names[i]);
}

/* Nothing is said if the store does not say: the rest of the answer is true all the same. */
static void print_quarantine(struct hf_store *store)
{
    struct hf_error why;
    char line[CLI_LINE_MAX];
    char left[32];

    if (hf_quarantine(store, &why) != HF_QUARANTINE)
        return;
    hf__copy_printable(line, sizeof line, cli_text_of(&why));
    printf("  quarantine for another %s: %s\n",
           hf__format_duration(left, sizeof left, why.retry_after_ms), line);
}

static void json_quarantine(struct hf_store *store)
{
    struct hf_error why;

    if (hf_quarantine(store, &why) != HF_QUARANTINE) {
        fputs(", \"quarantine\": null", stdout);
        return;
    }
    printf(", \"quarantine\": {\"remaining_ms\": %" PRId64 ", \"reason\": ", why.retry_after_ms);
    cli_json_string(stdout, cli_text_of(&why));
    putchar('}');
}
