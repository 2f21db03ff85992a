/* net.h - waiting for sockets, with a deadline and a cancel fd. */
#ifndef HF_STORES_REDIS_WIRE_NET_H
#define HF_STORES_REDIS_WIRE_NET_H

#include "stores/redis/url.h"

/* Until when to wait, and what ends the wait early. */
struct rd_patience {
    int64_t deadline_ns;
    int cancel_fd; /* -1: none; else readable = stop */
};

enum rd_wait { RD_WAIT_READY, RD_WAIT_TIMEOUT, RD_WAIT_CANCELLED };

/* Waits until fd has one of the poll events. fd -1: only sleeps. */
enum rd_wait rd_wait(int fd, short events, const struct rd_patience *patience);

/* A plain recv() on a connected descriptor blocks for so long at the most: it saves the poll()
 * where there is time and nothing to cancel. Everything else passes MSG_DONTWAIT. */
enum { RD_SLICE_MS = 20 };

#endif /* HF_STORES_REDIS_WIRE_NET_H */
