/* tokens.c - HOLDFAST_TOKENS: every lock that was taken, with its token.
 *
 * A JSON object with a line for each lock, so that a shell finds its way as well:
 *
 *     {
 *     "account/7": 1794880000000001,
 *     "account/9": 1794880000000002
 *     } */
#include "cli/say/tokens.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What stands before the token: the name as a JSON string, and a colon. */
static bool write_key(FILE *out, const char *name)
{
    cli_json_string(out, name);
    return fputs(": ", out) >= 0;
}

char *cli_tokens_text(const struct cli_token *tokens, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    fputs("{", out);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        (void)write_key(out, tokens[i].name);
        fprintf(out, "%" PRIu64, tokens[i].token);
    }
    fputs("\n}", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

size_t cli_tokens_find(const char *text, const char *name, uint64_t *token)
{
    char *key = NULL;
    size_t size, count = 0, found = 0;
    FILE *out = name != NULL ? open_memstream(&key, &size) : NULL;
    size_t key_len;

    *token = 0;
    if (out != NULL && (!write_key(out, name) || fclose(out) != 0)) {
        free(key);
        key = NULL;
    }
    key_len = key != NULL ? strlen(key) : 0;
    for (const char *line = strchr(text, '\n'); line != NULL; line = strchr(line, '\n')) {
        uint64_t number;
        char digits[24];

        if (*++line != '"')
            break;
        count++;
        if (key == NULL || strncmp(line, key, key_len) != 0)
            continue;
        (void)snprintf(digits, sizeof digits, "%.*s", (int)strspn(line + key_len, "0123456789"),
                       line + key_len);
        if (hf__parse_u64(digits, &number)) {
            found++;
            *token = number;
        }
    }
    if (found != 1)
        *token = 0;
    free(key);
    return count;
}
