/* eval.h - what `acquire` and `keep` print for the shell. */
#ifndef HF_CLI_EVAL_H
#define HF_CLI_EVAL_H

#include "cli/cli.h"

/* A line that sets and exports a variable. */
void cli_export(const char *variable, const char *text);
/* HOLDFAST_NAME, HOLDFAST_TOKEN, and HOLDFAST_STORE unless the environment has it, with a password
 * that we do not print. What is about several locks, and still in the environment, is unset. */
void cli_export_lease(const struct cli_context *context, const struct hf_store *store,
                      const struct hf_lease *lease);
/* A line that fails with 128 + number. Async-signal-safe. */
void cli_eval_fails(int number);

#endif /* HF_CLI_EVAL_H */
