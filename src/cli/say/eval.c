/* eval.c - what `acquire` and `keep` print for the shell.
 *
 * eval of nothing succeeds, so a failure prints a line too, one that makes the eval fail: otherwise
 * a script would go on without the lock. */
#include "cli/say/eval.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_export(const char *variable, const char *text)
{
    printf("export %s='", variable);
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
    puts("'");
}

/* Is the store's URL in the environment already, with a password that we would take away? */
static bool environment_knows_more(const struct cli_context *context)
{
    const char *known = secure_getenv("HOLDFAST_STORE");
    char shown[HF__URL_MAX];

    if (known == NULL || context->store_url == NULL || strcmp(known, context->store_url) != 0)
        return false;
    hf__url_redact(shown, sizeof shown, known);
    return strcmp(known, shown) != 0;
}

/* What an earlier acquire may have left and is not about this lease. */
static void forget_others(void)
{
    static const char *const variables[] = {"HOLDFAST_TOKENS", "HOLDFAST_OWNERS", "HOLDFAST_SLOT"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (secure_getenv(variables[i]) != NULL)
            printf("unset %s\n", variables[i]);
}

void cli_export_lease(const struct cli_context *context, const struct hf_store *store,
                      const struct hf_lease *lease)
{
    char token[24];

    forget_others();
    (void)snprintf(token, sizeof token, "%" PRIu64, hf_lease_token(lease));
    cli_export("HOLDFAST_NAME", hf_lease_name(lease));
    cli_export("HOLDFAST_TOKEN", token);
    if (!environment_knows_more(context))
        cli_export("HOLDFAST_STORE", hf_store_url(store));
}

void cli_eval_fails(int number)
{
    char words[] = "(exit 000)\n";
    int code = 128 + number;

    for (char *at = strrchr(words, '0'); code > 0; code /= 10)
        *at-- = (char)('0' + code % 10);
    if (write(STDOUT_FILENO, words, sizeof words - 1) < 0)
        return;
}
