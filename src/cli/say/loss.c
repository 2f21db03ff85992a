/* loss.c - how a lost lease is told. */
#include "cli/say/loss.h"

#include <stdio.h>

const char *cli_loss_text(char out[CLI_LOSS_SIZE], const struct hf_lease *lease)
{
    struct hf_revocation revocation;

    if (!hf_lease_revocation(lease, &revocation))
        (void)snprintf(out, CLI_LOSS_SIZE, "was lost: %s", hf_loss_text(hf_lease_loss(lease)));
    else if (revocation.by[0] == '\0')
        (void)snprintf(out, CLI_LOSS_SIZE, "was broken");
    else
        (void)snprintf(out, CLI_LOSS_SIZE, "was broken by %s%s%s", revocation.by,
                       revocation.reason[0] != '\0' ? ": " : "", revocation.reason);
    return out;
}
