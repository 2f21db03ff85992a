/* key.c - `holdfast fence set` and its relatives: fenced keys of a store that holds data. */
#include "cli/fence/fence.h"

#include <stdlib.h>

static int send_request(const char *url, struct hf_fence_request *request)
{
    struct cli_context context = {.store_url = url};
    struct hf_error err;
    enum hf_status status;
    int exit_code = EXIT_HF_INTERNAL;
    struct hf_store *store = cli_open(&context, &exit_code);

    if (store == NULL)
        return exit_code;
    status = hf_fence_key(store, request, &err);
    hf_close(store);
    return status == HF_OK ? 0 : cli_fail(&err);
}

/* set and del: their options, URL and KEY, and the token. */
static int change_key(const struct cli_command *command, const struct cli_context *context,
                      int argc, char **argv, enum hf_fence_op op)
{
    struct fence_words words = {.count = 0};
    struct hf_fence_request request = {.size = sizeof request, .op = op};
    int64_t ttl_ms = 0;
    char *value = NULL;
    int exit_code;
    const struct cli_option options[] = {FENCE_TOKEN_OPTIONS(&words),
                                         {.name = op == HF_FENCE_SET ? "ttl" : NULL,
                                          .kind = CLI_DURATION,
                                          .argument = "DURATION",
                                          .help = "the key expires after it; default: never",
                                          .target = &ttl_ms},
                                         {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, &words);

    if (over != 0)
        return over - 1;
    if (words.count != 2)
        return cli_usage_error(command, "a URL and a KEY are needed");
    if (!fence_defaults(command, context, &words))
        return EXIT_HF_USAGE;
    if (ttl_ms < 0 || ttl_ms > UINT32_MAX)
        return cli_usage_error(command, "--ttl: too long");
    if (op == HF_FENCE_SET) {
        value = fence_read_stdin(HF_FENCE_VALUE_MAX, &request.value_len, &exit_code);
        if (value == NULL)
            return exit_code;
    }
    request.key = words.operands[1];
    request.token = words.token;
    request.issuer = words.issuer;
    request.issuer_url = words.issuer_url;
    request.value = value;
    request.ttl_ms = (uint32_t)ttl_ms;
    exit_code = send_request(words.operands[0], &request);
    free(value);
    return exit_code;
}

static int set_main(const struct cli_context *context, int argc, char **argv)
{
    return change_key(&command_fence_set, context, argc, argv, HF_FENCE_SET);
}

const struct cli_command command_fence_set = {"fence set", "[options] URL KEY",
                                              "set a fenced key to what is on stdin", set_main};

static int del_main(const struct cli_context *context, int argc, char **argv)
{
    return change_key(&command_fence_del, context, argc, argv, HF_FENCE_DEL);
}

const struct cli_command command_fence_del = {"fence del", "[options] URL KEY",
                                              "delete a fenced key", del_main};

int fence_key(const struct fence_words *words, enum hf_fence_op op, const char *reason)
{
    struct hf_fence_request request = {.size = sizeof request,
                                       .op = op,
                                       .key = words->operands[1],
                                       .token = words->token,
                                       .issuer = words->issuer,
                                       .issuer_url = words->issuer_url,
                                       .reason = reason};

    return send_request(words->operands[0], &request);
}

static int script_main(const struct cli_context *context, int argc, char **argv)
{
    static const struct cli_option options[] = {{.name = NULL}};
    struct fence_words words = {.count = 0};
    int over = fence_parse(&command_fence_script, options, argc, argv, &words);

    (void)context;
    if (over != 0)
        return over - 1;
    if (words.count > 0)
        return cli_one_too_many(&command_fence_script, words.operands[0]);
    fputs(hf_fence_script(), stdout);
    return fflush(stdout) == 0 ? 0 : EXIT_HF_UNAVAILABLE;
}

const struct cli_command command_fence_script = {
    "fence script", "", "print the Redis script, for other clients", script_main};
