/* detached.h - the detached lease that `acquire` left in the environment. */
#ifndef HF_CLI_DETACHED_H
#define HF_CLI_DETACHED_H

#include "cli/cli.h"

struct cli_detached {
    struct hf_store *store;
    struct hf_lease *lease;
};

/* Opens the store and takes over the lease that HOLDFAST_NAME, HOLDFAST_TOKEN and HOLDFAST_OWNER
 * describe. name: what the command line says, NULL for whatever HOLDFAST_NAME says. On failure says
 * why, and returns the exit code, never 0; nothing is open then. On 0 the caller ends the lease
 * with hf_release or hf_leave, and then the store with hf_close. */
int cli_detached_open(struct cli_detached *detached, const struct cli_context *context,
                      const struct cli_command *command, const char *name);

#endif /* HF_CLI_DETACHED_H */
