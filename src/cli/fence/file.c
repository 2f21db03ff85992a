/* file.c - `holdfast fence write` and its relatives: fenced files. Keys of enter and reset are for
 * key.c. */
#include "cli/fence/fence.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* --token, --issuer, --wait and one FILE, or up to words->most operands. Returns as fence_parse. */
static int parse_file(const struct cli_command *command, const struct cli_context *context,
                      int argc, char **argv, struct fence_words *words, struct hf_fence_pass *pass)
{
    int64_t wait_ms = HF_FENCE_WAIT_MS;
    const struct cli_option options[] = {FENCE_TOKEN_OPTIONS(words),
                                         {'w', "wait", CLI_DURATION, "DURATION",
                                          "how long to wait for another writer; default: 30s", NULL,
                                          &wait_ms, NULL},
                                         {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, words);

    if (over != 0)
        return over;
    if (words->count == 0)
        return cli_usage_error(command, "a FILE is needed") + 1;
    if (words->count > words->most)
        return cli_one_too_many(command, words->operands[words->most]) + 1;
    if (!fence_defaults(command, context, words))
        return EXIT_HF_USAGE + 1;
    *pass = (struct hf_fence_pass){.size = sizeof *pass,
                                   .token = words->token,
                                   .issuer = words->issuer,
                                   .issuer_url = words->issuer_url,
                                   .wait_ms = wait_ms > 0 ? wait_ms : -1};
    return 0;
}

static int write_main(const struct cli_context *context, int argc, char **argv)
{
    struct fence_words words = {.most = 1, .takes_command = true};
    struct hf_fence_pass pass;
    struct hf_error err;
    int over = parse_file(&command_fence_write, context, argc, argv, &words, &pass);

    if (over != 0)
        return over - 1;
    if (words.command != NULL && words.command[0] != NULL)
        return fence_produce(words.operands[0], &pass, words.command);
    if (hf_fence_write_fd(words.operands[0], &pass, STDIN_FILENO, &err) != HF_OK)
        return cli_fail(&err);
    return 0;
}

const struct cli_command command_fence_write = {
    "fence write", "[options] FILE [-- CMD [ARG...]]",
    "replace a fenced file with the output of CMD, or with stdin", write_main};

static int append_main(const struct cli_context *context, int argc, char **argv)
{
    struct fence_words words = {.most = 1};
    struct hf_fence_pass pass;
    struct hf_error err;
    enum hf_status status;
    size_t len;
    int exit_code;
    char *data;
    int over = parse_file(&command_fence_append, context, argc, argv, &words, &pass);

    if (over != 0)
        return over - 1;
    data = fence_read_stdin(HF_FENCE_APPEND_MAX, &len, &exit_code);
    if (data == NULL)
        return exit_code;
    status = hf_fence_append(words.operands[0], &pass, data, len, &err);
    free(data);
    return status == HF_OK ? 0 : cli_fail(&err);
}

const struct cli_command command_fence_append = {"fence append", "[options] FILE",
                                                 "append stdin to a fenced file", append_main};

static int enter_main(const struct cli_context *context, int argc, char **argv)
{
    struct fence_words words = {.most = 2};
    struct hf_fence_pass pass;
    struct hf_error err;
    int over = parse_file(&command_fence_enter, context, argc, argv, &words, &pass);

    if (over != 0)
        return over - 1;
    if (words.count == 2)
        return fence_key(&words, HF_FENCE_ENTER_KEY, NULL);
    if (hf_fence_enter(words.operands[0], &pass, &err) != HF_OK)
        return cli_fail(&err);
    return 0;
}

const struct cli_command command_fence_enter = {
    "fence enter", "[options] FILE | URL KEY", "raise the fence before the first read", enter_main};

static int reset_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &command_fence_reset;
    struct fence_words words = {.count = 0};
    const char *reason = NULL;
    struct hf_error err;
    const struct cli_option options[] = {
        {0, "reason", CLI_TEXT, "TEXT", "why; required, and kept", NULL, &reason, NULL},
        {0, "issuer", CLI_TEXT, "TEXT", "issuer of the tokens; default: the first that comes", NULL,
         &words.issuer, NULL},
        {'t', "token", CLI_NUMBER, "N", "the mark to start from; default: none", NULL, &words.token,
         NULL},
        {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, &words);

    (void)context;
    if (over != 0)
        return over - 1;
    if (words.count == 0)
        return cli_usage_error(command, "a FILE, or a URL and a KEY, is needed");
    if (reason == NULL || reason[0] == '\0')
        return cli_usage_error(command, "--reason is required: it is recorded with the reset");
    if (words.count == 2)
        return fence_key(&words, HF_FENCE_RESET_KEY, reason);
    if (hf_fence_reset(words.operands[0], words.token, words.issuer, reason, &err) != HF_OK)
        return cli_fail(&err);
    return 0;
}

const struct cli_command command_fence_reset = {
    "fence reset", "--reason TEXT [options] FILE | URL KEY",
    "restart a fence after a change of stores", reset_main};

static int show_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &command_fence_show;
    struct fence_words words = {.count = 0};
    struct hf_fence_mark mark;
    struct hf_error err;
    bool json = false;
    const struct cli_option options[] = {CLI_JSON_OPTION(&json), {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, &words);
    char when[32] = "";
    time_t seconds;
    struct tm parts;

    (void)context;
    if (over != 0)
        return over - 1;
    if (words.count != 1)
        return cli_usage_error(command,
                               words.count == 0 ? "a FILE is needed" : "one file at a time");
    if (hf_fence_read_mark(words.operands[0], &mark, &err) != HF_OK)
        return cli_fail(&err);
    seconds = (time_t)(mark.admitted_us / 1000000);
    if (mark.token > 0 && gmtime_r(&seconds, &parts) != NULL)
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (json) {
        printf("{\"token\": %" PRIu64 ", \"admitted_at\": ", mark.token);
        cli_json_string(stdout, when);
        fputs(", \"issuer\": ", stdout);
        cli_json_string(stdout, mark.issuer);
        puts("}");
    } else if (mark.token == 0) {
        puts("no token has been admitted yet");
    } else {
        printf("%" PRIu64 " admitted at %s, issued by %s\n", mark.token, when,
               mark.issuer[0] != '\0' ? mark.issuer : "an unnamed store");
    }
    return 0;
}

const struct cli_command command_fence_show = {"fence show", "[options] FILE",
                                               "show the highest token admitted", show_main};
