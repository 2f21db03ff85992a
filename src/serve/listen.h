/* listen.h - where the server listens: unix:PATH, tcp: on a loopback address, or the sockets that
 * systemd hands over. */
#ifndef HF_SERVE_LISTEN_H
#define HF_SERVE_LISTEN_H

#include "serve/serve.h"

#include <sys/un.h>

struct listener {
    int fd;
    bool local; /* a Unix socket */
    bool made;  /* its file is ours to remove */
    dev_t device;
    ino_t inode;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of a Unix socket */
    char shown[160];                                      /* as --listen has it */
};

struct listeners {
    struct listener all[SERVE_LISTENERS_MAX];
    size_t count;
};

/* Takes the sockets that systemd handed over ($LISTEN_FDS). HF_OK even if there are none. */
enum hf_status listeners_inherit(struct listeners *out, struct hf_error *err);
/* Listens on an address. HF_INVALID: it is none, or not one that is allowed. HF_UNREACHABLE: it is
 * in use, or cannot be had. HF_DENIED. */
enum hf_status listeners_add(struct listeners *out, const char *address, struct hf_error *err);
/* Listens where nothing was said: the socket of this user. */
enum hf_status listeners_default(struct listeners *out, struct hf_error *err);

/* Whether one of them is a tcp: address. */
bool listeners_have_tcp(const struct listeners *all);
/* Closes them, and removes the files that were made. */
void listeners_close(struct listeners *all);

#endif /* HF_SERVE_LISTEN_H */
