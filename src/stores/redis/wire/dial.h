/* dial.h - a connection on its way: its name looked up, its addresses tried one after the other.
 * One that does not answer soon is not given up but joined by the next, and whichever answers first
 * is taken: an address that swallows everything costs a moment. Nothing is waited for here, so that
 * one caller may be on the way to several servers at once. */
#ifndef HF_STORES_REDIS_WIRE_DIAL_H
#define HF_STORES_REDIS_WIRE_DIAL_H

#include "base/patience.h"
#include "stores/redis/url.h"
#include <holdfast/store.h>

/* How long until a lost connection is an error of its socket, even while nobody waits for an
 * answer: as long as libholdfast lets a single request take. */
enum { RD_UNHEARD_MS = 5000 };

/* The longest that a plain recv() on a connected descriptor blocks: it saves the poll() where there
 * is time and nothing to cancel. Everything else passes MSG_DONTWAIT. */
enum { RD_SLICE_MS = 20 };

struct rd_dial;

/* NULL: out of memory. */
struct rd_dial *rd_dial_open(const struct hf__address *address);
void rd_dial_close(struct rd_dial *dial); /* takes NULL */

/* How it stands after a step. */
struct rd_dialled {
    int fd;                /* on its way: the one to poll for writing, or -1; over: connected */
    int64_t step_ns;       /* on its way: step again then at the latest, HF_NEVER: poll will tell */
    enum hf_status status; /* over: HF_OK, HF_UNREACHABLE, HF_DENIED (a socket file we may not
                            * use), HF_NOMEM */
    const char *why;       /* the reason, as the end of a sentence */
};

/* Goes on as far as it can. False: it is on its way. True: it is over, and with HF_OK out->fd is
 * connected, close-on-exec and the caller's. */
bool rd_dial_step(struct rd_dial *dial, struct rd_dialled *out);

#endif /* HF_STORES_REDIS_WIRE_DIAL_H */
