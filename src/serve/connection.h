/* connection.h - the clients: a thread for each of them. */
#ifndef HF_SERVE_CONNECTION_H
#define HF_SERVE_CONNECTION_H

#include "serve/serve.h"

struct connection;

/* Those there are. */
struct connections {
    struct serve *serve;
    pthread_mutex_t lock;
    pthread_cond_t none; /* signalled when the last one ends */
    struct connection *first;
    pthread_attr_t attributes; /* of their threads */
};

void connections_init(struct connections *all, struct serve *serve);
void connections_release(struct connections *all);

/* Serves a socket that was accepted, in a thread of its own, and closes it in the end. */
void connections_add(struct connections *all, int fd, bool local);

/* Lets every connection end with the answer that is under way. True: all have, in time. */
bool connections_end(struct connections *all, int64_t until_ns);

#endif /* HF_SERVE_CONNECTION_H */
