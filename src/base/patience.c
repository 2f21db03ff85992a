/* patience.c - waiting with a deadline and a cancel descriptor. */
#include "base/patience.h"
#include "base/base.h"

#include <assert.h>
#include <string.h>

struct hf__patience hf__patience_for(int64_t budget_ns, int cancel_fd)
{
    return (struct hf__patience){.deadline_ns =
                                     hf__time_add(hf__now_ns(), budget_ns > 0 ? budget_ns : 0),
                                 .cancel_fd = cancel_fd};
}

struct hf__patience hf__patience_until(const struct hf__patience *patience, int64_t at_ns)
{
    struct hf__patience sooner = *patience;

    if (at_ns < sooner.deadline_ns)
        sooner.deadline_ns = at_ns;
    return sooner;
}

bool hf__patience_cancelled(const struct hf__patience *patience)
{
    struct pollfd cancel = {.fd = patience->cancel_fd, .events = POLLIN};

    return patience->cancel_fd >= 0 && hf__poll_until(&cancel, 1, 0) > 0;
}

enum hf__waited hf__patience_poll(const struct hf__patience *patience, struct pollfd *fds,
                                  nfds_t count)
{
    struct pollfd all[HF__PATIENCE_FDS_MAX + 1];
    int ready;

    assert(count <= HF__PATIENCE_FDS_MAX);
    all[0] = (struct pollfd){.fd = patience->cancel_fd, .events = POLLIN}; /* -1 is passed over */
    if (count > 0)
        memcpy(all + 1, fds, count * sizeof *fds);
    ready = hf__poll_until(all, count + 1, patience->deadline_ns);
    if (count > 0)
        memcpy(fds, all + 1, count * sizeof *fds);
    if (all[0].revents != 0)
        return HF__WAITED_CANCELLED;
    return ready != 0 ? HF__WAITED_READY : HF__WAITED_TIMEOUT;
}

enum hf__waited hf__patience_wait(const struct hf__patience *patience, int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};

    return hf__patience_poll(patience, &one, 1);
}

enum hf__waited hf__patience_pause(const struct hf__patience *patience, int64_t until_ns)
{
    struct hf__patience pause = hf__patience_until(patience, until_ns);

    if (hf__patience_poll(&pause, NULL, 0) == HF__WAITED_CANCELLED)
        return HF__WAITED_CANCELLED;
    return until_ns < patience->deadline_ns ? HF__WAITED_READY : HF__WAITED_TIMEOUT;
}
