/* dial.h - a connection on its way: its name looked up, its addresses tried in turn. Nothing is
 * waited for here, so that one caller may be on the way to several servers at once. */
#ifndef HF_STORES_REDIS_DIAL_H
#define HF_STORES_REDIS_DIAL_H

#include "stores/redis/net.h"

/* A name lookup cannot be waited for with poll(): look again after so long. */
enum { RD_LOOKUP_STEP_MS = 10 };

struct rd_dial;

/* NULL: out of memory. */
struct rd_dial *rd_dial_open(const struct rd_address *address);
void rd_dial_close(struct rd_dial *dial); /* takes NULL */

/* Goes on as far as it can. False: it is under way; step again when *fd is ready for writing, or
 * after RD_LOOKUP_STEP_MS if *fd is -1. True: it is over. HF_OK: *fd is connected, close-on-exec
 * and the caller's. HF_UNREACHABLE, HF_DENIED (a socket file we may not use), HF_NOMEM: *why is
 * the reason as the end of a sentence. */
bool rd_dial_step(struct rd_dial *dial, int *fd, enum hf_status *status, const char **why);

#endif /* HF_STORES_REDIS_DIAL_H */
