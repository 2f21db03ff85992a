/* loss.h - how a lost lease is told. */
#ifndef HF_CLI_LOSS_H
#define HF_CLI_LOSS_H

#include <holdfast.h>

enum { CLI_LOSS_SIZE = 400 };
/* "was lost: it expired ...", or "was broken by WHO: WHY". Returns out. */
const char *cli_loss_text(char out[CLI_LOSS_SIZE], const struct hf_lease *lease);

#endif /* HF_CLI_LOSS_H */
