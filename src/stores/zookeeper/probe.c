/* probe.c - why there is no connection. The library knows, but does not say. */
#include "stores/zookeeper/probe.h"
#include "base/base.h"
#include "stores/zookeeper/cut.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_NS (700 * HF__NS_PER_MS) /* for a connection, and for its end */

/* "ADDRESS:PORT" as an address; its length, or 0. */
static socklen_t read_endpoint(char *endpoint, struct sockaddr_storage *out)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    char *colon = strrchr(endpoint, ':');
    uint64_t port;

    memset(out, 0, sizeof *out);
    if (colon == NULL || !hf__parse_u64(colon + 1, &port) || port < 1 || port > 65535)
        return 0;
    *colon = '\0';
    if (inet_pton(AF_INET, endpoint, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        return sizeof *four;
    }
    if (inet_pton(AF_INET6, endpoint, &six->sin6_addr) != 1)
        return 0;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    return sizeof *six;
}

static bool await(int fd, short events)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};

    return hf__poll_until(&poll_fd, 1, hf__time_add(hf__now_ns(), WAIT_NS)) > 0;
}

/* True if it is connected, and then ended by the other side. */
static bool ends_at_once(int fd, const struct sockaddr_storage *at, socklen_t len)
{
    socklen_t peer_len = sizeof(struct sockaddr_storage);
    struct sockaddr_storage peer;
    char byte;

    if (connect(fd, (const struct sockaddr *)at, len) != 0 &&
        (errno != EINPROGRESS || !await(fd, POLLOUT)))
        return false;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0)
        return false; /* it was refused */
    return await(fd, POLLIN) && recv(fd, &byte, 1, 0) <= 0;
}

bool zk_turned_away(zhandle_t *handle)
{
    char endpoint[ZK_ENDPOINT_MAX];
    struct sockaddr_storage at;
    socklen_t len = zk_find_server(handle, endpoint) ? read_endpoint(endpoint, &at) : 0;
    bool ended = false;
    int fd;

    if (len == 0)
        return false;
    fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        ended = ends_at_once(fd, &at, len);
        (void)close(fd);
    }
    return ended;
}
