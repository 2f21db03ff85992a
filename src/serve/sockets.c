/* sockets.c - where the server listens. */
#include "serve/sockets.h"

#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    FOLDER_MS = 3000, /* at most, for another server that starts there */
    FIRST_FD = 3,     /* of those that systemd hands over */
    PORT_DEFAULT = 7070
};

static enum hf_status fail(struct hf_error *err, const char *address)
{
    enum hf_status code =
        errno == EACCES || errno == EPERM || errno == EROFS ? HF_DENIED : HF_UNREACHABLE;

    return hf__fail(err, code, "cannot listen on %.120s: %s", address, strerror(errno));
}

/* Two servers that start in one moment must not take each other's file for one that was left over:
 * a socket that was bound and is not listened on yet refuses, too. So they come one after the
 * other. Whoever locks the folder for another reason is not waited for long. -1: it is not
 * locked. */
static int lock_folder(const char *path)
{
    int64_t until_ns = hf__now_ns() + FOLDER_MS * HF__NS_PER_MS;
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    int fd;

    (void)stpcpy(folder, path);
    *(strrchr(folder, '/') + 1) = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && hf__now_ns() < until_ns)
        hf__sleep_ns(HF__NS_PER_MS);
    return fd;
}

/* A socket file that nobody listens on any more is in the way; any other is somebody's. */
static bool is_left_over(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                   errno == ECONNREFUSED;

    if (fd >= 0)
        (void)close(fd);
    errno = EADDRINUSE;
    return refused;
}

static bool bind_unix(int fd, const struct sockaddr_un *address)
{
    mode_t before = umask(S_IXUSR | S_IXGRP | S_IRWXO); /* 0660 from the first moment on */
    bool bound = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0;

    if (!bound && errno == EADDRINUSE && is_left_over(address) && unlink(address->sun_path) == 0)
        bound = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    (void)umask(before);
    return bound;
}

static enum hf_status listen_unix(struct server_socket *out, const char *path, struct hf_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    bool listens;
    int folder_fd;

    if (path[0] != '/' || strlen(path) >= sizeof address.sun_path)
        return hf__fail(err, HF_INVALID, "unix:PATH needs an absolute path of at most %zu bytes",
                        sizeof address.sun_path - 1);
    (void)stpcpy(address.sun_path, path);
    (void)stpcpy(out->path, path);
    (void)snprintf(out->shown, sizeof out->shown, "unix:%s", path);
    out->local = true;
    out->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    folder_fd = lock_folder(path);
    listens = out->fd >= 0 && bind_unix(out->fd, &address) && listen(out->fd, BACKLOG) == 0 &&
              lstat(path, &st) == 0;
    if (!listens)
        (void)fail(err, out->shown);
    if (folder_fd >= 0)
        (void)close(folder_fd);
    if (!listens)
        return err->code;
    out->made = true;
    out->device = st.st_dev;
    out->inode = st.st_ino;
    return HF_OK;
}

/* Only this machine: whoever comes from elsewhere comes through a proxy with TLS. */
static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->ss_family == AF_INET)
        return v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static enum hf_status not_loopback(struct hf_error *err, const char *shown)
{
    return hf__fail(err, HF_INVALID,
                    "%.80s is not a loopback address: listen on tcp:127.0.0.1:%d, and put a proxy "
                    "with TLS in front",
                    shown, PORT_DEFAULT);
}

static socklen_t tcp_address(const char *text, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (void *)out;
    struct sockaddr_in6 *v6 = (void *)out;
    struct hf__address address;

    memset(out, 0, sizeof *out);
    if (!hf__address_parse(text, strlen(text), PORT_DEFAULT, &address))
        return 0;
    if (inet_pton(AF_INET, address.host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)address.port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, address.host, &v6->sin6_addr) != 1)
        return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)address.port);
    return sizeof *v6;
}

static enum hf_status listen_tcp(struct server_socket *out, const char *text, struct hf_error *err)
{
    struct sockaddr_storage address;
    socklen_t size = tcp_address(text, &address);
    const int on = 1;

    (void)snprintf(out->shown, sizeof out->shown, "tcp:%s", text);
    if (size == 0 || !is_loopback(&address))
        return not_loopback(err, out->shown);
    out->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (out->fd < 0 || setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(out->fd, (const struct sockaddr *)&address, size) != 0 ||
        listen(out->fd, BACKLOG) != 0)
        return fail(err, out->shown);
    return HF_OK;
}

/* The next free place. */
static struct server_socket *add(struct server_sockets *all, struct hf_error *err)
{
    struct server_socket *one = &all->all[all->count];

    if (all->count == SERVE_SOCKETS_MAX) {
        (void)hf__fail(err, HF_INVALID, "there are at most %d addresses to listen on",
                       SERVE_SOCKETS_MAX);
        return NULL;
    }
    *one = (struct server_socket){.fd = -1};
    all->count++;
    return one;
}

enum hf_status sockets_add(struct server_sockets *out, const char *address, struct hf_error *err)
{
    struct server_socket *one = add(out, err);

    if (one == NULL)
        return err->code;
    if (strncmp(address, "unix:", 5) == 0)
        return listen_unix(one, address + 5, err);
    if (strncmp(address, "tcp:", 4) == 0)
        return listen_tcp(one, address + 4, err);
    return hf__fail(
        err, HF_INVALID,
        "\"%.80s\" is not an address such as unix:/run/holdfast/sock or tcp:127.0.0.1:%d", address,
        PORT_DEFAULT);
}

enum hf_status sockets_default(struct server_sockets *out, struct hf_error *err)
{
    const char *folder = secure_getenv("XDG_RUNTIME_DIR");
    char address[160];

    if (geteuid() == 0) {
        (void)mkdir("/run/holdfast", 0755);
        return sockets_add(out, "unix:/run/holdfast/sock", err);
    }
    if (folder == NULL || folder[0] != '/')
        return hf__fail(err, HF_INVALID, "XDG_RUNTIME_DIR is not set: say --listen unix:PATH");
    (void)snprintf(address, sizeof address, "unix:%s/holdfast.sock", folder);
    return sockets_add(out, address, err);
}

static enum hf_status inherit(struct server_socket *out, int fd, struct hf_error *err)
{
    union {
        struct sockaddr_storage any;
        struct sockaddr_un un;
    } address = {.any = {.ss_family = AF_UNSPEC}};
    socklen_t size = sizeof address;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return hf__fail(err, HF_INVALID, "LISTEN_FDS: descriptor %d is not a socket", fd);
    out->fd = fd;
    out->local = address.any.ss_family == AF_UNIX;
    (void)snprintf(out->shown, sizeof out->shown, "%s that systemd opened",
                   out->local ? "the Unix socket" : "the tcp: socket");
    if (!out->local && !is_loopback(&address.any))
        return not_loopback(err, out->shown);
    return HF_OK;
}

enum hf_status sockets_inherit(struct server_sockets *out, struct hf_error *err)
{
    const char *for_pid = secure_getenv("LISTEN_PID");
    const char *how_many = secure_getenv("LISTEN_FDS");
    uint64_t pid, count;

    if (for_pid == NULL || how_many == NULL || !hf__parse_u64(for_pid, &pid) ||
        pid != (uint64_t)getpid() || !hf__parse_u64(how_many, &count))
        return HF_OK;
    for (uint64_t i = 0; i < count; i++) {
        struct server_socket *one = add(out, err);

        if (one == NULL || inherit(one, FIRST_FD + (int)i, err) != HF_OK)
            return err->code;
    }
    return HF_OK;
}

bool sockets_have_tcp(const struct server_sockets *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (!all->all[i].local)
            return true;
    return false;
}

void sockets_close(struct server_sockets *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct server_socket *one = &all->all[i];
        struct stat st;

        /* The file may be a successor's by now. */
        if (one->made && lstat(one->path, &st) == 0 && st.st_dev == one->device &&
            st.st_ino == one->inode)
            (void)unlink(one->path);
        if (one->fd >= 0)
            (void)close(one->fd);
    }
    all->count = 0;
}
