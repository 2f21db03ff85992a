/* cmd_explain.c - `holdfast explain`: the story of one lock, once or as long as somebody looks. */
#include "cli/cli.h"
#include "cli/explain/explain.h"
#include "cli/say/watch.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { WATCH_MS = 1000 };
#define CLEAR "\033[H\033[J" /* the terminal */

/* What was asked for. */
struct request {
    const char *name;
    bool json;
    bool live; /* a terminal: the story is painted anew each time */
};

/* A story whose summary is the same is not told again. */
struct summary {
    bool held, broken;
    uint64_t token, waiters;
    enum hf__seems seems;
    enum hf__next next;
};

static int explain_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_explain = {
    "explain", "[options] NAME", "tell the story of one lock, and what happens next", explain_main};

static struct summary summary_of(const struct explain_story *story)
{
    struct summary summary = {.seems = story->explained.seems, .next = story->explained.next};

    if (story->lock.text != NULL) {
        summary.held = story->lock.info.held;
        summary.broken = story->lock.info.revocation != NULL;
        summary.token = story->lock.info.token;
        summary.waiters = story->lock.info.waiters;
    }
    return summary;
}

static bool same_summary(const struct summary *a, const struct summary *b)
{
    return a->held == b->held && a->broken == b->broken && a->token == b->token &&
           a->waiters == b->waiters && a->seems == b->seems && a->next == b->next;
}

static void tell(const struct request *request, const struct explain_story *story)
{
    if (request->json) {
        explain_json(stdout, story);
    } else {
        if (request->live)
            fputs(CLEAR, stdout);
        explain_print(stdout, story);
    }
    (void)fflush(stdout);
}

static int explain_once(struct hf_store *store, const struct request *request)
{
    struct explain_story story;
    struct hf_error err;

    if (explain_see(store, request->name, &story, &err) != HF_OK)
        return cli_fail(&err);
    tell(request, &story);
    explain_clear(&story);
    return 0;
}

/* What --watch knows. */
struct watched {
    const struct request *request;
    struct explain_story story;
    struct summary last;
    bool told;
};

static enum hf_status read_story(struct hf_store *store, void *data, bool *there,
                                 struct hf_error *err)
{
    struct watched *watched = data;
    enum hf_status status;

    explain_clear(&watched->story);
    memset(&watched->story, 0, sizeof watched->story);
    status = explain_see(store, watched->request->name, &watched->story, err);
    *there = watched->story.lock.text != NULL;
    return status;
}

/* Where nobody sees the terminal repainted, only what is new is told. */
static void tell_change(void *data)
{
    struct watched *watched = data;
    struct summary now = summary_of(&watched->story);

    if (!watched->request->live && watched->told && same_summary(&now, &watched->last))
        return;
    tell(watched->request, &watched->story);
    watched->told = true;
    watched->last = now;
}

static int watch(const struct cli_context *context, const struct request *request)
{
    struct watched watched = {.request = request};
    const struct cli_watch watch = {.context = context,
                                    .every_ms = WATCH_MS,
                                    .read = read_story,
                                    .tell = tell_change,
                                    .data = &watched};
    int exit_code = cli_watch(&watch);

    explain_clear(&watched.story);
    return exit_code;
}

static int explain_main(const struct cli_context *context, int argc, char **argv)
{
    struct request request = {.json = false};
    bool watching = false;
    const struct cli_option options[] = {
        CLI_WATCH_OPTION(&watching), CLI_JSON_OPTION(&request.json), {.name = NULL}};
    const struct cli_command *command = &command_explain;
    int parsed = cli_parse_operand(command, options, argc, argv, &request.name);
    int exit_code = 0;
    struct hf_store *store;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (request.name == NULL)
        return cli_usage_error(command, "which lock?");
    if (!cli_check_name(command, request.name))
        return EXIT_HF_USAGE;
    request.live = watching && isatty(STDOUT_FILENO) == 1;
    if (watching)
        return watch(context, &request);
    store = cli_open_readonly(context, &exit_code);
    if (store == NULL)
        return exit_code;
    exit_code = explain_once(store, &request);
    hf_close(store);
    return exit_code;
}
