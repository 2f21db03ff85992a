/* tokens.h - HOLDFAST_TOKENS: a JSON object of locks and tokens, with a line for each. */
#ifndef HF_CLI_TOKENS_H
#define HF_CLI_TOKENS_H

#include "cli/cli.h"

struct cli_token {
    const char *name;
    uint64_t token;
};

/* The caller frees it; NULL: out of memory. */
char *cli_tokens_text(const struct cli_token *tokens, size_t count);
/* How many locks a text tells of; *token becomes that of name, 0 if it is not there once. name may
 * be NULL. */
size_t cli_tokens_find(const char *text, const char *name, uint64_t *token);

#endif /* HF_CLI_TOKENS_H */
