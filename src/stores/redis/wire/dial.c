/* dial.c - a connection on its way. */
#include "stores/redis/wire/dial.h"
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

#define STEP_MS       10 /* one poll() waits for neither a name lookup nor several sockets */
#define HEAD_START_MS 30 /* what an address has before the next one is tried as well */
#define KEEP_IDLE_S   15 /* a connection left alone for this long is asked for a sign of life */
#define KEEP_NEXT_S   5  /* and again */

enum { RACE_MAX = 4 }; /* addresses tried at once; the oldest makes room */

/* A name lookup under way. Freed by whoever sees its end; one that cannot be called off is left to
 * the resolver's thread, which writes into it. */
struct lookup {
    char host[HF__HOST_MAX];
    char port[8];
    struct addrinfo hints;
    struct gaicb request;
};

struct rd_dial {
    struct hf__address address;
    struct lookup *lookup;       /* NULL: not begun, or over */
    struct addrinfo *found, *at; /* what it found, and what is to be tried next */
    struct sockaddr_un local;
    struct addrinfo local_info; /* found, if the address is a socket file */
    int racing[RACE_MAX];       /* connecting; the oldest comes first */
    size_t count;
    int64_t next_ns;       /* when the next address joins in */
    enum hf_status status; /* of the last address that failed */
    const char *why;
};

struct rd_dial *rd_dial_open(const struct hf__address *address)
{
    struct rd_dial *dial = calloc(1, sizeof *dial);

    if (dial == NULL)
        return NULL;
    dial->address = *address;
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
    for (size_t i = 0; i < dial->count; i++)
        (void)close(dial->racing[i]);
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
    (void)failed(dial, error == EACCES || error == EPERM ? HF_DENIED : HF_UNREACHABLE,
                 strerror(error));
}

static void set(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/* Connected; from here on only a receive that says so may block, and not for long. A peer that is
 * gone without a word is noticed, whether we have asked it something or left it alone. */
static void finish(int fd, bool local)
{
    struct timeval slice = {.tv_usec = RD_SLICE_MS * 1000};

    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    if (local)
        return;
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, RD_UNHEARD_MS);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_NEXT_S);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

static int leave_race(struct rd_dial *dial, size_t index)
{
    int fd = dial->racing[index];

    dial->count--;
    memmove(dial->racing + index, dial->racing + index + 1,
            (dial->count - index) * sizeof *dial->racing);
    return fd;
}

/* The socket that is connected, no longer ours; or -1. Those that failed are out of the race. */
static int winner(struct rd_dial *dial)
{
    for (size_t i = 0; i < dial->count;) {
        struct pollfd fds = {.fd = dial->racing[i], .events = POLLOUT};
        int error = 0;
        socklen_t len = sizeof error;

        if (poll(&fds, 1, 0) == 0) {
            i++;
            continue;
        }
        (void)getsockopt(fds.fd, SOL_SOCKET, SO_ERROR, &error, &len);
        (void)leave_race(dial, i);
        if (error == 0)
            return fds.fd;
        (void)close(fds.fd);
        refuse(dial, error);
    }
    return -1;
}

/* Begins with the next address. */
static void connect_next(struct rd_dial *dial, int64_t now_ns)
{
    const struct addrinfo *to = dial->at;
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    dial->at = to->ai_next;
    dial->next_ns = now_ns + HEAD_START_MS * HF__NS_PER_MS;
    if (fd < 0 || (connect(fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS)) {
        refuse(dial, errno);
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    if (dial->count == RACE_MAX)
        (void)close(leave_race(dial, 0));
    dial->racing[dial->count++] = fd;
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

/* When to step again, unless poll tells: it watches the one that began last. */
static int64_t step_ns_of(const struct rd_dial *dial, int64_t now_ns)
{
    int64_t step_ns = dial->count > 1 ? now_ns + STEP_MS * HF__NS_PER_MS : HF_NEVER;

    return dial->at != NULL && dial->next_ns < step_ns ? dial->next_ns : step_ns;
}

bool rd_dial_step(struct rd_dial *dial, struct rd_dialled *out)
{
    int64_t now_ns = hf__now_ns();

    *out = (struct rd_dialled){.fd = -1, .step_ns = now_ns + STEP_MS * HF__NS_PER_MS, .why = ""};
    if (!find(dial))
        return false;
    do {
        if (dial->at != NULL && (dial->count == 0 || now_ns >= dial->next_ns))
            connect_next(dial, now_ns);
        out->fd = winner(dial);
    } while (out->fd < 0 && dial->count == 0 && dial->at != NULL);
    if (out->fd >= 0) {
        finish(out->fd, dial->address.host[0] == '/');
        return true;
    }
    if (dial->count > 0) {
        out->fd = dial->racing[dial->count - 1];
        out->step_ns = step_ns_of(dial, now_ns);
        return false;
    }
    out->status = dial->why != NULL ? dial->status : HF_UNREACHABLE;
    out->why = dial->why != NULL ? dial->why : "it has no address";
    return true;
}
