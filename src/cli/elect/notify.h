/* notify.h - what a service manager is told of a candidate: that it is ready, whether it leads, and
 * that it is not stuck. The protocol of sd_notify(3), a datagram to $NOTIFY_SOCKET, and nothing at
 * all without that. */
#ifndef HF_CLI_ELECT_NOTIFY_H
#define HF_CLI_ELECT_NOTIFY_H

#include "cli/say/thread.h"

#include <holdfast.h>
#include <pthread.h>

struct notify {
    int fd;              /* connected to the manager; -1: there is none */
    int64_t interval_ms; /* between two answers to its watchdog; 0: it has none */
    int64_t grace_ms;    /* how long after a loss the tree may take to end */
    bool running;        /* the thread that answers */
    pthread_t thread;

    struct cli_condition condition; /* of what follows */
    struct hf_lease *lease;         /* while we lead */
    int64_t lost_ns;                /* when the lease was first seen to be over; 0: it is not */
    bool stop;
};

/* Takes the manager's variables out of the environment: they are for us, not for CMD. To be called
 * before there are threads. */
void notify_open(struct notify *notify, int64_t grace_ms);
/* We stand for election. */
void notify_ready(struct notify *notify, const char *name);
/* We lead, with this lease; until notify_standby, which has to come before it is released. */
void notify_leader(struct notify *notify, struct hf_lease *lease);
void notify_standby(struct notify *notify, const char *name);
void notify_close(struct notify *notify);

#endif /* HF_CLI_ELECT_NOTIFY_H */
