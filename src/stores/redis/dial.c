/* dial.c - a connection on its way. */
#include "stores/redis/dial.h"
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

/* A name lookup under way. Freed by whoever sees its end; one that cannot be called off is left to
 * the resolver's thread, which writes into it. */
struct lookup {
    char host[RD_HOST_MAX];
    char port[8];
    struct addrinfo hints;
    struct gaicb request;
};

struct rd_dial {
    struct rd_address address;
    struct lookup *lookup;       /* NULL: not begun, or over                    */
    struct addrinfo *found, *at; /* what it found, and what is to be tried next */
    struct sockaddr_un local;
    struct addrinfo local_info; /* found, if the address is a socket file */
    int fd;                     /* -1, or connecting to the one before at      */
    int family;
    enum hf_status status; /* of the last address that failed */
    const char *why;
};

struct rd_dial *rd_dial_open(const struct rd_address *address)
{
    struct rd_dial *dial = calloc(1, sizeof *dial);

    if (dial == NULL)
        return NULL;
    dial->address = *address;
    dial->fd = -1;
    return dial;
}

void rd_dial_close(struct rd_dial *dial)
{
    if (dial == NULL)
        return;
    if (dial->lookup != NULL && gai_cancel(&dial->lookup->request) == EAI_CANCELED)
        free(dial->lookup);
    if (dial->found != NULL && dial->found != &dial->local_info)
        freeaddrinfo(dial->found);
    if (dial->fd >= 0)
        (void)close(dial->fd);
    free(dial);
}

static bool failed(struct rd_dial *dial, enum hf_status status, const char *why)
{
    dial->status = status;
    dial->why = why;
    return false;
}

/* A socket file needs no lookup. */
static bool find_local(struct rd_dial *dial)
{
    size_t len = strlen(dial->address.host);

    if (len >= sizeof dial->local.sun_path)
        return failed(dial, HF_UNREACHABLE, "the socket's path is too long");
    dial->local.sun_family = AF_UNIX;
    memcpy(dial->local.sun_path, dial->address.host, len + 1);
    dial->local_info.ai_family = AF_UNIX;
    dial->local_info.ai_addr = (struct sockaddr *)&dial->local;
    dial->local_info.ai_addrlen = sizeof dial->local;
    dial->found = &dial->local_info;
    return true;
}

/* Begins to look the name up; an address in digits needs no resolver and no thread. */
static bool begin_lookup(struct rd_dial *dial)
{
    struct lookup *lookup = calloc(1, sizeof *lookup);
    struct gaicb *list[1];
    int error;

    if (lookup == NULL)
        return failed(dial, HF_NOMEM, "out of memory");
    memcpy(lookup->host, dial->address.host, sizeof lookup->host);
    (void)snprintf(lookup->port, sizeof lookup->port, "%u", dial->address.port);
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (getaddrinfo(lookup->host, lookup->port, &lookup->hints, &dial->found) == 0) {
        free(lookup);
        return true;
    }
    lookup->hints.ai_flags = AI_NUMERICSERV;
    lookup->request.ar_name = lookup->host;
    lookup->request.ar_service = lookup->port;
    lookup->request.ar_request = &lookup->hints;
    list[0] = &lookup->request;
    error = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    if (error != 0) {
        free(lookup);
        return failed(dial, HF_UNREACHABLE, gai_strerror(error));
    }
    dial->lookup = lookup;
    return true;
}

/* True once the addresses are known, or it failed. */
static bool lookup_is_over(struct rd_dial *dial)
{
    int error;

    if (dial->lookup == NULL)
        return true;
    error = gai_error(&dial->lookup->request);
    if (error == EAI_INPROGRESS)
        return false;
    if (error == 0)
        dial->found = dial->lookup->request.ar_result;
    else
        (void)failed(dial, HF_UNREACHABLE, gai_strerror(error));
    free(dial->lookup);
    dial->lookup = NULL;
    return true;
}

static void refuse(struct rd_dial *dial, int error)
{
    if (dial->fd >= 0)
        (void)close(dial->fd);
    dial->fd = -1;
    (void)failed(dial, error == EACCES || error == EPERM ? HF_DENIED : HF_UNREACHABLE,
                 strerror(error));
}

/* Connected; from here on only a receive that says so may block, and not for long. */
static int finish(struct rd_dial *dial)
{
    struct timeval slice = {.tv_usec = RD_SLICE_MS * 1000};
    int fd = dial->fd;
    int on = 1;

    dial->fd = -1;
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    if (dial->family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return fd;
}

/* Whether the socket that is connecting is connected; if it failed there is none any more. */
static bool is_connected(struct rd_dial *dial)
{
    struct pollfd fds = {.fd = dial->fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;

    if (poll(&fds, 1, 0) == 0)
        return false;
    (void)getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0)
        refuse(dial, error);
    return error == 0;
}

/* The next address. True: connected at once. */
static bool connect_next(struct rd_dial *dial)
{
    const struct addrinfo *to = dial->at;

    dial->at = to->ai_next;
    dial->family = to->ai_family;
    dial->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (dial->fd < 0 || connect(dial->fd, to->ai_addr, to->ai_addrlen) != 0) {
        if (dial->fd < 0 || errno != EINPROGRESS)
            refuse(dial, errno);
        return false;
    }
    return true;
}

/* Finds the addresses. True: they are known, or it failed. */
static bool find(struct rd_dial *dial)
{
    bool local = dial->address.host[0] == '/';

    if (dial->found != NULL)
        return true;
    if (dial->lookup == NULL && !(local ? find_local(dial) : begin_lookup(dial)))
        return true;
    if (!lookup_is_over(dial))
        return false;
    dial->at = dial->found;
    return true;
}

bool rd_dial_step(struct rd_dial *dial, int *fd, enum hf_status *status, const char **why)
{
    *fd = -1;
    if (!find(dial))
        return false;
    for (;;) {
        bool connected = dial->fd >= 0 ? is_connected(dial) : false;

        if (!connected && dial->fd < 0 && dial->at != NULL)
            connected = connect_next(dial);
        if (connected) {
            *fd = finish(dial);
            *status = HF_OK;
            return true;
        }
        if (dial->fd >= 0) {
            *fd = dial->fd;
            return false;
        }
        if (dial->at == NULL)
            break;
    }
    *status = dial->why != NULL ? dial->status : HF_UNREACHABLE;
    *why = dial->why != NULL ? dial->why : "it has no address";
    return true;
}
