/* patience.h - until when a blocking call may wait, and what ends its wait early.
 *
 * One order for everybody: a cancelled caller hears that, even if there is something to read as
 * well; then readiness; then the deadline. */
#ifndef HF_BASE_PATIENCE_H
#define HF_BASE_PATIENCE_H

#include <holdfast.h>
#include <poll.h>

enum { HF__PATIENCE_FDS_MAX = 128 }; /* descriptors of one hf__patience_poll */

struct hf__patience {
    int64_t deadline_ns; /* CLOCK_BOOTTIME; HF_NEVER: no limit */
    int cancel_fd;       /* -1: none; else readable = stop */
};

enum hf__waited { HF__WAITED_READY, HF__WAITED_TIMEOUT, HF__WAITED_CANCELLED };

/* Patience for one request that begins now and may take budget_ns (below 0 counts as 0). */
struct hf__patience hf__patience_for(int64_t budget_ns, int cancel_fd);
/* The same patience, ending at at_ns if that is sooner. */
struct hf__patience hf__patience_until(const struct hf__patience *patience, int64_t at_ns);
bool hf__patience_cancelled(const struct hf__patience *patience);

/* Waits until fd has one of the poll events, an error or a hang-up. A poll that fails for lack of
 * memory counts as ready: the read or write will tell. */
enum hf__waited hf__patience_wait(const struct hf__patience *patience, int fd, short events);
/* The same for count descriptors, HF__PATIENCE_FDS_MAX at the most. Fills in their revents, also
 * when it was cancelled. */
enum hf__waited hf__patience_poll(const struct hf__patience *patience, struct pollfd *fds,
                                  nfds_t count);
/* Sleeps until until_ns. HF__WAITED_READY: it was slept out, and there is time left;
 * HF__WAITED_TIMEOUT: the deadline came first, or with it. */
enum hf__waited hf__patience_pause(const struct hf__patience *patience, int64_t until_ns);

#endif /* HF_BASE_PATIENCE_H */
