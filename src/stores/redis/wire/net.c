/* net.c - waiting with a deadline and a cancel fd. */
#include "stores/redis/wire/net.h"
#include "base/base.h"

enum rd_wait rd_wait(int fd, short events, const struct rd_patience *patience)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events},
                            {.fd = patience->cancel_fd, .events = POLLIN}};
    nfds_t count = patience->cancel_fd >= 0 ? 2 : 1;
    int ready = hf__poll_until(fds, count, patience->deadline_ns);

    if (count == 2 && fds[1].revents != 0)
        return RD_WAIT_CANCELLED;
    /* A poll that fails for want of memory counts as ready: the read or write will tell. */
    return ready != 0 ? RD_WAIT_READY : RD_WAIT_TIMEOUT;
}
