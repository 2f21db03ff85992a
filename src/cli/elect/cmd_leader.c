/* cmd_leader.c - holdfast leader: who leads, since when, and where to find it. */
#include "cli/cli.h"
#include "cli/say/watch.h"

#include "base/base.h"

#include <holdfast/elect.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WATCH_MS = 500, /* how often --watch asks */
    TIME_SIZE = 32
};

/* What is known about the leader. */
struct sight {
    bool leads; /* somebody does */
    uint64_t term;
    int64_t age_ms; /* < 0: not known */
    char label[HF_LABEL_MAX + 1];
    char address[HF_ADDRESS_MAX + 1];
};

struct request {
    const struct cli_context *context;
    const char *name;
    bool watch;
    bool json;
};

static int show_once(const struct request *request);
static int watch(const struct request *request);
static hf_leader_fn copy_leader;
static void print(const struct request *request, const struct sight *sight);
static void print_json(const struct request *request, const struct sight *sight);

static int leader_main(const struct cli_context *context, int argc, char **argv)
{
    struct request request = {.context = context};
    const struct cli_option options[] = {
        CLI_WATCH_OPTION(&request.watch), CLI_JSON_OPTION(&request.json), {.name = NULL}};
    const struct cli_command *command = &command_leader;
    int parsed = cli_parse_operand(command, options, argc, argv, &request.name);

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (request.name == NULL)
        return cli_usage_error(command, "the name of the lock is missing");
    if (!cli_check_name(command, request.name))
        return EXIT_HF_USAGE;
    return request.watch ? watch(&request) : show_once(&request);
}

const struct cli_command command_leader = {"leader", "[options] NAME",
                                           "show who leads, and where to find it", leader_main};

static int show_once(const struct request *request)
{
    struct sight sight = {.leads = false};
    struct hf_error err;
    enum hf_status status;
    int exit_code;
    struct hf_store *store = cli_open_readonly(request->context, &exit_code);

    if (store == NULL)
        return exit_code;
    status = hf_leader(store, request->name, copy_leader, &sight, &err);
    hf_close(store);
    if (status != HF_OK)
        return cli_fail(&err);
    print(request, &sight);
    return sight.leads ? EXIT_SUCCESS : EXIT_HF_NO;
}

static bool same(const struct sight *a, const struct sight *b)
{
    return a->leads == b->leads && a->term == b->term && strcmp(a->label, b->label) == 0 &&
           strcmp(a->address, b->address) == 0;
}

/* What --watch knows. */
struct watched {
    const struct request *request;
    struct sight now;
    struct sight last;
    bool told;
    bool seen; /* somebody has led */
};

static enum hf_status read_leader(struct hf_store *store, void *data, bool *there,
                                  struct hf_error *err)
{
    struct watched *watched = data;
    enum hf_status status;

    watched->now = (struct sight){.leads = false};
    status = hf_leader(store, watched->request->name, copy_leader, &watched->now, err);
    watched->seen = watched->seen || watched->now.leads;
    *there = watched->seen;
    return status;
}

static void tell_change(void *data)
{
    struct watched *watched = data;

    if (watched->told && same(&watched->now, &watched->last))
        return;
    print(watched->request, &watched->now);
    watched->last = watched->now;
    watched->told = true;
}

static int watch(const struct request *request)
{
    struct watched watched = {.request = request};
    const struct cli_watch watch = {.context = request->context,
                                    .every_ms = WATCH_MS,
                                    .read = read_leader,
                                    .tell = tell_change,
                                    .data = &watched};

    return cli_watch(&watch);
}

static void copy_leader(const struct hf_leader *leader, void *data)
{
    struct sight *sight = data;

    sight->leads = true;
    sight->term = leader->term;
    sight->age_ms = leader->age_ms;
    (void)snprintf(sight->label, sizeof sight->label, "%s", leader->label);
    (void)snprintf(sight->address, sizeof sight->address, "%s", leader->address);
}

/* "2026-11-17T03:00:02Z", for display only. */
static const char *utc(char out[TIME_SIZE], int64_t ago_ms)
{
    time_t seconds = (hf__wall_us() / 1000 - ago_ms) / 1000;
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL || strftime(out, TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        out[0] = '\0';
    return out;
}

static void print(const struct request *request, const struct sight *sight)
{
    char name[HF_NAME_MAX + 1], label[HF_LABEL_MAX + 1], address[HF_ADDRESS_MAX + 1];
    char time[TIME_SIZE], age[32];

    if (request->json) {
        print_json(request, sight);
        return;
    }
    hf__copy_printable(name, sizeof name, request->name);
    hf__copy_printable(label, sizeof label, sight->label);
    hf__copy_printable(address, sizeof address, sight->address);
    if (request->watch)
        printf("%s ", utc(time, 0));
    if (!sight->leads) {
        printf("%s: nobody leads\n", name);
        return;
    }
    printf("%s: %s leads", name, label[0] != '\0' ? label : "an unknown holder");
    if (sight->age_ms >= 0)
        printf(" since %s (%s)", utc(time, sight->age_ms),
               hf__format_duration(age, sizeof age, sight->age_ms));
    if (address[0] != '\0')
        printf(", address %s", address);
    if (sight->term)
        printf(", term %" PRIu64, sight->term);
    putchar('\n');
}

static void json_text(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    if (text[0] != '\0')
        cli_json_string(stdout, text);
    else
        fputs("null", stdout);
}

static void print_json(const struct request *request, const struct sight *sight)
{
    char time[TIME_SIZE];

    printf("{\"at\": \"%s\", \"name\": ", utc(time, 0));
    cli_json_string(stdout, request->name);
    printf(", \"leads\": %s", sight->leads ? "true" : "false");
    json_text("label", sight->label);
    json_text("since", sight->leads && sight->age_ms >= 0 ? utc(time, sight->age_ms) : "");
    json_text("address", sight->address);
    if (sight->term)
        printf(", \"term\": %" PRIu64 "}\n", sight->term);
    else
        fputs(", \"term\": null}\n", stdout);
}
