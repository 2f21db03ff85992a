/* words.c - the words of `holdfast fence`, read: operands, the token, who issued it. */
#include "cli/fence/fence.h"

#include "base/base.h"
#include "cli/say/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fence_parse(const struct cli_command *command, const struct cli_option *options, int argc,
                char **argv, struct fence_words *words)
{
    bool dashes = false;

    for (int at = 0; at < argc;) {
        int first = dashes ? 1 : cli_parse(command, options, argc - at, argv + at, &dashes);

        if (first < 0)
            return cli_parse_exit(first) + 1;
        at += first;
        if (at < argc && dashes && words->takes_command && words->count > 0) {
            words->command = argv + at + (strcmp(argv[at], "--") == 0 ? 1 : 0);
            break;
        }
        if (at >= argc)
            break;
        if (words->count == FENCE_OPERANDS_MAX)
            return cli_one_too_many(command, argv[at]) + 1;
        words->operands[words->count] = argv[at];
        if (words->count++ == 0 && strstr(argv[at], "://") != NULL) {
            cli_take_url(words->url, argv[at]);
            words->operands[0] = words->url;
        }
    }
    return 0;
}

enum hf_status fence_find_issuer(const char *url, struct fence_words *words, struct hf_error *err)
{
    struct hf_store *store;
    enum hf_status status;

    hf__url_redact(words->issuer_url, sizeof words->issuer_url, url);
    status = hf_open(url, &store, err);
    if (status != HF_OK)
        return status;
    status = hf_store_identity(store, words->identity, err);
    hf_close(store);
    if (status != HF_OK && status != HF_UNSUPPORTED)
        return status;
    words->issuer = status == HF_OK ? words->identity : words->issuer_url;
    return HF_OK;
}

/* The token in the environment; of several locks, that of --lock. False after a usage error. */
static bool find_token(const struct cli_command *command, struct fence_words *words)
{
    const char *token = secure_getenv("HOLDFAST_TOKEN");
    const char *tokens = secure_getenv("HOLDFAST_TOKENS");
    const char *name = secure_getenv("HOLDFAST_NAME");
    size_t count = tokens != NULL ? cli_tokens_find(tokens, words->lock, &words->token) : 0;
    bool one =
        words->lock == NULL || (count == 0 && name != NULL && strcmp(name, words->lock) == 0);

    if (words->lock != NULL && count > 0 && words->token != 0)
        return true;
    if (token == NULL || token[0] == '\0')
        (void)cli_usage_error(command,
                              "no token: give --token, or run this inside \"holdfast run\"");
    else if (!one)
        (void)cli_usage_error(command, "lock \"%s\" is not one of those held here", words->lock);
    else if (count > 1)
        (void)cli_usage_error(command, "%zu locks are held here: say which one with --lock NAME",
                              count);
    else if (!hf__parse_u64(token, &words->token))
        (void)cli_usage_error(command, "HOLDFAST_TOKEN: \"%s\" is not a token", token);
    else
        return true;
    return false;
}

bool fence_defaults(const struct cli_command *command, const struct cli_context *context,
                    struct fence_words *words)
{
    if (!words->token_given && !find_token(command, words))
        return false;
    if (words->token_given && words->lock != NULL) {
        (void)cli_usage_error(command, "--token and --lock cannot be used together");
        return false;
    }
    /* A store that cannot be asked now is known by its url only. */
    if (words->issuer == NULL && context->store_url != NULL && context->store_url[0] != '\0')
        (void)fence_find_issuer(context->store_url, words, NULL);
    return true;
}

char *fence_read_stdin(size_t max, size_t *len, int *exit_code)
{
    size_t size = 64 * 1024;
    char *data = malloc(size);

    *len = 0;
    *exit_code = EXIT_HF_INTERNAL;
    while (data != NULL) {
        ssize_t got = read(STDIN_FILENO, data + *len, size - *len);

        if (got == 0)
            return data;
        if (got < 0 && errno != EINTR) {
            cli_error("cannot read standard input: %s", strerror(errno));
            *exit_code = EXIT_HF_UNAVAILABLE;
            break;
        }
        *len += got > 0 ? (size_t)got : 0;
        if (*len > max) {
            cli_error("standard input is larger than %zu MiB", max / (1024 * 1024));
            *exit_code = EXIT_HF_USAGE;
            break;
        }
        if (*len == size) {
            char *more = realloc(data, size * 2);

            if (more == NULL)
                break;
            data = more;
            size *= 2;
        }
    }
    if (*exit_code == EXIT_HF_INTERNAL)
        cli_error("out of memory");
    free(data);
    return NULL;
}
