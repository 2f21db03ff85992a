/* sockets.h - where the server listens: unix:PATH, tcp: on a loopback address, or the sockets that
 * systemd hands over. */
#ifndef HF_SERVE_SOCKETS_H
#define HF_SERVE_SOCKETS_H

#include "serve/serve.h"

#include <sys/un.h>

struct server_socket {
    int fd;
    bool local; /* a Unix socket */
    bool made;  /* its file is ours to remove */
    dev_t device;
    ino_t inode;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of a Unix socket */
    char shown[160];                                      /* as --listen has it */
};

struct server_sockets {
    struct server_socket all[SERVE_SOCKETS_MAX];
    size_t count;
};

/* Takes the sockets that systemd handed over ($LISTEN_FDS). HF_OK even if there are none. */
enum hf_status sockets_inherit(struct server_sockets *out, struct hf_error *err);
/* Listens on an address. HF_INVALID: it is none, or not one that is allowed. HF_UNREACHABLE: it is
 * in use, or cannot be had. HF_DENIED. */
enum hf_status sockets_add(struct server_sockets *out, const char *address, struct hf_error *err);
/* Listens where nothing was said: the socket of this user. */
enum hf_status sockets_default(struct server_sockets *out, struct hf_error *err);

/* Whether one of them is a tcp: address. */
bool sockets_have_tcp(const struct server_sockets *all);
/* Closes them, and removes the files that were made. */
void sockets_close(struct server_sockets *all);

#endif /* HF_SERVE_SOCKETS_H */
