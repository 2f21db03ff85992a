/* wire.h - bytes to and from a client, with the times that bound them. */
#ifndef HF_SERVE_WIRE_H
#define HF_SERVE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_IDLE_S = 60,         /* a connection on which nothing comes is closed */
    WIRE_REQUEST_S = 10,      /* from the first byte of a request to its last */
    WIRE_SEND_S = 10,         /* a reader that takes nothing is closed */
    WIRE_USER_TIMEOUT_S = 30, /* TCP: what is sent is confirmed, or the connection ends */
    WIRE_KEEPALIVE_S = 15,    /* TCP: if nothing else is sent, something is */
    WIRE_LINGER_S = 1         /* what a refused client still sends is passed over */
};

/* Sets the times of a new connection. */
void wire_prepare(int fd, bool local);
/* All of it, or false. */
bool wire_send(int fd, const void *data, size_t len);
/* Closes after the last answer: what the client sent meanwhile must not destroy it. */
void wire_close(int fd, bool linger);

#endif /* HF_SERVE_WIRE_H */
