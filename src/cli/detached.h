/* detached.h - the detached leases that `acquire` left in the environment. */
#ifndef HF_CLI_DETACHED_H
#define HF_CLI_DETACHED_H

#include "cli/cli.h"

#include <holdfast/several.h>

struct cli_detached {
    struct hf_store *store;
    struct hf_lease *leases[HF_SEVERAL_MAX];
    size_t count;
    int exit_code; /* of one that could not be taken over, after a message; 0: all could */
};

/* Opens the store and takes over the lease that HOLDFAST_NAME, HOLDFAST_TOKEN and HOLDFAST_OWNER
 * describe, or with HOLDFAST_OWNERS, which `acquire --all` leaves, all leases that it describes.
 * name: what the command line says, NULL for whatever is there. On failure says why, and returns
 * the exit code, never 0; nothing is open then. One of several that is lost is no failure yet: it
 * is left out, and exit_code is set. On 0 the caller ends the leases with hf_release or hf_leave,
 * and then the store with hf_close. */
int cli_detached_open(struct cli_detached *detached, const struct cli_context *context,
                      const struct cli_command *command, const char *name);
/* What is to be in HOLDFAST_OWNERS: "name,owner,token" of each, percent-encoded, with a blank
 * between two. The caller frees it; NULL: out of memory. */
char *cli_owners_text(struct hf_lease *const *leases, size_t count);

#endif /* HF_CLI_DETACHED_H */
