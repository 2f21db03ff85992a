/* store.c - the store that a command works on. */
#include "cli/cli.h"

#include "base/base.h"

#include <string.h>

void cli_take_url(char out[CLI_URL_SIZE], char *word)
{
    char shown[CLI_URL_SIZE];
    size_t len = strlen(word);
    _Static_assert(CLI_URL_SIZE == HF__URL_MAX + 1, "one byte more than a URL may have");

    (void)snprintf(out, CLI_URL_SIZE, "%s", word);
    hf__url_redact(shown, sizeof shown, out);
    explicit_bzero(word, len);
    memcpy(word, shown, strlen(shown) < len ? strlen(shown) : len);
}

static struct hf_store *opened(enum hf_status status, struct hf_store *store,
                               const struct hf_error *err, int *exit_code)
{
    if (status != HF_OK)
        *exit_code = cli_fail(err);
    else if (err->text[0] != '\0')
        cli_error("warning: %s", err->text);
    return status == HF_OK ? store : NULL;
}

struct hf_store *cli_open(const struct cli_context *context, int *exit_code)
{
    struct hf_store *store = NULL;
    struct hf_error err;
    enum hf_status status = hf_open(context->store_url, &store, &err);

    return opened(status, store, &err, exit_code);
}

struct hf_store *cli_open_readonly(const struct cli_context *context, int *exit_code)
{
    struct hf_store *store = NULL;
    struct hf_error err;
    enum hf_status status = hf_open_readonly(context->store_url, &store, &err);

    return opened(status, store, &err, exit_code);
}
