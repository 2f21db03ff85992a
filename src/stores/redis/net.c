/* net.c - sockets with a deadline and a cancel fd. */
#include "stores/redis/net.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOKUP_STEP_MS 20 /* how often a slow name lookup looks at the cancel fd */

/* A name lookup under way. Freed by whoever sees its end; one that cannot be called off in time is
 * left to the resolver's thread, which writes into it. */
struct lookup {
    char host[RD_HOST_MAX];
    char port[8];
    struct addrinfo hints;
    struct gaicb request;
};

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

static enum hf_status fail(enum hf_status status, const char **why, const char *text)
{
    *why = text;
    return status;
}

static enum hf_status fail_wait(enum rd_wait wait, const char **why)
{
    return wait == RD_WAIT_CANCELLED ? fail(HF_CANCELLED, why, "cancelled")
                                     : fail(HF_UNREACHABLE, why, "it did not answer in time");
}

/* Connects one socket to one address. */
static enum hf_status dial_one(int family, const struct sockaddr *address, socklen_t len,
                               const struct rd_patience *patience, int *out, const char **why)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct timeval slice = {.tv_usec = RD_SLICE_MS * 1000};
    int on = 1;
    int error = 0;
    socklen_t error_len = sizeof error;
    enum rd_wait wait;

    if (fd < 0)
        return fail(HF_UNREACHABLE, why, strerror(errno));
    if (connect(fd, address, len) != 0) {
        error = errno;
        if (error == EINPROGRESS) {
            wait = rd_wait(fd, POLLOUT, patience);
            if (wait != RD_WAIT_READY) {
                (void)close(fd);
                return fail_wait(wait, why);
            }
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
        }
    }
    if (error != 0) {
        (void)close(fd);
        return fail(error == EACCES || error == EPERM ? HF_DENIED : HF_UNREACHABLE, why,
                    strerror(error));
    }
    /* Connected; from here on only a receive that says so may block, and not for long. */
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    if (family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    *out = fd;
    return HF_OK;
}

static enum hf_status dial_unix(const char *path, const struct rd_patience *patience, int *out,
                                const char **why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path)
        return fail(HF_UNREACHABLE, why, "the socket's path is too long");
    memcpy(address.sun_path, path, strlen(path) + 1);
    return dial_one(AF_UNIX, (struct sockaddr *)&address, sizeof address, patience, out, why);
}

/* Waits for the lookup; false if it is not over yet. */
static enum rd_wait await_lookup(struct lookup *lookup, const struct rd_patience *patience)
{
    const struct gaicb *list[1] = {&lookup->request};

    while (gai_error(&lookup->request) == EAI_INPROGRESS) {
        struct timespec step = {.tv_nsec = LOOKUP_STEP_MS * HF__NS_PER_MS};
        struct rd_patience now = {.deadline_ns = 0, .cancel_fd = patience->cancel_fd};

        if (patience->cancel_fd >= 0 && rd_wait(-1, 0, &now) == RD_WAIT_CANCELLED)
            return RD_WAIT_CANCELLED;
        if (hf__now_ns() >= patience->deadline_ns)
            return RD_WAIT_TIMEOUT;
        (void)gai_suspend(list, 1, &step);
    }
    return RD_WAIT_READY;
}

static enum hf_status look_up(const struct rd_address *address, const struct rd_patience *patience,
                              struct addrinfo **out, const char **why)
{
    struct lookup *lookup = calloc(1, sizeof *lookup);
    struct gaicb *list[1];
    enum rd_wait wait;
    int error;

    if (lookup == NULL)
        return fail(HF_NOMEM, why, "out of memory");
    memcpy(lookup->host, address->host, sizeof lookup->host);
    (void)snprintf(lookup->port, sizeof lookup->port, "%u", address->port);
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    /* An address in digits needs no resolver and no thread. */
    if (getaddrinfo(lookup->host, lookup->port, &lookup->hints, out) == 0) {
        free(lookup);
        return HF_OK;
    }
    lookup->hints.ai_flags = AI_NUMERICSERV;
    lookup->request.ar_name = lookup->host;
    lookup->request.ar_service = lookup->port;
    lookup->request.ar_request = &lookup->hints;
    list[0] = &lookup->request;
    error = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    if (error == 0) {
        wait = await_lookup(lookup, patience);
        if (wait != RD_WAIT_READY) {
            if (gai_cancel(&lookup->request) == EAI_CANCELED)
                free(lookup);
            return wait == RD_WAIT_CANCELLED
                       ? fail_wait(wait, why)
                       : fail(HF_UNREACHABLE, why, "its name was not resolved in time");
        }
        error = gai_error(&lookup->request);
        *out = lookup->request.ar_result;
    }
    free(lookup);
    return error == 0 ? HF_OK : fail(HF_UNREACHABLE, why, gai_strerror(error));
}

enum hf_status rd_dial(const struct rd_address *address, const struct rd_patience *patience,
                       int *out, const char **why)
{
    struct addrinfo *found = NULL;
    enum hf_status status;

    if (address->host[0] == '/')
        return dial_unix(address->host, patience, out, why);
    status = look_up(address, patience, &found, why);
    if (status != HF_OK)
        return status;
    status = fail(HF_UNREACHABLE, why, "it has no address");
    for (struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        status = dial_one(at->ai_family, at->ai_addr, at->ai_addrlen, patience, out, why);
        if (status == HF_OK || status == HF_CANCELLED)
            break;
    }
    freeaddrinfo(found);
    return status;
}
