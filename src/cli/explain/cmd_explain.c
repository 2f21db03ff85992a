/* cmd_explain.c - `holdfast explain`: the story of one lock, once or as long as somebody looks. */
#include "cli/cli.h"
#include "cli/explain/explain.h"

#include "base/base.h"
#include "core/wait.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 1000 };
#define CLEAR "\033[H\033[J" /* the terminal */

/* What was asked for. */
struct request {
    const char *name;
    bool json;
    bool live; /* a terminal: the story is painted anew each time */
};

/* A story whose gist is the same is not told again. */
struct gist {
    bool held, broken;
    uint64_t token, waiters;
    enum hf__seems seems;
    enum hf__next next;
};

static int explain_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_explain = {
    "explain", "[options] NAME", "tell the story of one lock, and what happens next", explain_main};

static struct gist gist_of(const struct explain_story *story)
{
    struct gist gist = {.seems = story->explained.seems, .next = story->explained.next};

    if (story->lock.text != NULL) {
        gist.held = story->lock.info.held;
        gist.broken = story->lock.info.revocation != NULL;
        gist.token = story->lock.info.token;
        gist.waiters = story->lock.info.waiters;
    }
    return gist;
}

static bool same_gist(const struct gist *a, const struct gist *b)
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

/* One look. A store that was not there when it was opened is opened again: it may be there now. */
static enum hf_status look(const struct cli_context *context, struct hf_store **store,
                           const struct request *request, struct explain_story *story,
                           struct hf_error *err)
{
    enum hf_status status = HF_OK;

    memset(story, 0, sizeof *story);
    if (*store == NULL)
        status = hf_open_readonly(context->store_url, store, err);
    if (status == HF_OK)
        status = explain_see(*store, request->name, story, err);
    return status;
}

/* Where nobody sees the terminal repainted, only what is new is told. No answer is not a no: what
 * was told last stands until there is one. */
static int watch(const struct cli_context *context, const struct request *request)
{
    struct hf_store *store = NULL;
    struct gist last = {.held = false};
    bool told = false;
    enum hf_status trouble = HF_OK;

    while (!ferror(stdout)) {
        struct explain_story story;
        struct hf_error err;
        enum hf_status status = look(context, &store, request, &story, &err);
        struct gist gist = gist_of(&story);

        if (status != HF_OK && !hf__wait_may_pass(status))
            return cli_fail(&err);
        if (status != HF_OK && trouble != status)
            cli_error("%s; still watching", cli_text_of(&err));
        trouble = status;
        if (status == HF_OK && (request->live || !told || !same_gist(&gist, &last))) {
            tell(request, &story);
            told = true;
            last = gist;
        }
        if (story.lock.text == NULL) {
            hf_close(store);
            store = NULL;
        }
        explain_clear(&story);
        hf__sleep_ns(LOOK_MS * HF__NS_PER_MS);
    }
    return EXIT_HF_INTERNAL;
}

static int explain_main(const struct cli_context *context, int argc, char **argv)
{
    struct request request = {.json = false};
    bool watching = false;
    const struct cli_option options[] = {{.name = "watch",
                                          .kind = CLI_FLAG,
                                          .target = &watching,
                                          .help = "keep going, and print each change"},
                                         CLI_JSON_OPTION(&request.json),
                                         {.name = NULL}};
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
