/* attempts.h - an owner is one attempt is one request: those under way here, and those that ended
 * lately. */
#ifndef HF_SERVE_ATTEMPTS_H
#define HF_SERVE_ATTEMPTS_H

#include "serve/serve.h"

struct attempt;

/* NULL: no memory. */
struct attempts *attempts_open(void);
void attempts_close(struct attempts *attempts);

/* Begins the attempt of an owner, 32 hex digits. cancel_fd: an eventfd that is written when a
 * release wants it to end; -1: it ends soon anyway.
 * HF_OK and *out, which attempts_end takes. HF_UNKNOWN: the owner was used here before.
 * HF_NOMEM. */
enum hf_status attempts_begin(struct attempts *attempts, const char *owner, int cancel_fd,
                              struct attempt **out);
void attempts_end(struct attempts *attempts, struct attempt *attempt);

/* Before a release: an attempt under way is cancelled and waited for, and the owner counts as one
 * that ended. */
void attempts_settle(struct attempts *attempts, const char *owner);

#endif /* HF_SERVE_ATTEMPTS_H */
