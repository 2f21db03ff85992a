/* wire.c - bytes to and from a client. */
#include "serve/wire.h"

#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { LINGER_MAX = 1 << 16 }; /* bytes that are passed over */

void wire_prepare(int fd, bool local)
{
    const struct timeval idle = {.tv_sec = WIRE_IDLE_S};
    const int on = 1;
    const int keepalive_s = WIRE_KEEPALIVE_S;
    const unsigned user_timeout_ms = WIRE_USER_TIMEOUT_S * 1000;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
    if (local)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_s, sizeof keepalive_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &keepalive_s, sizeof keepalive_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

/* Waits until there is room for more. False: the client has not taken anything for that long. The
 * kernel tells of room only once there is much of it, so what is left to send shows whether a
 * client takes a little. */
static bool wait_for_room(int fd)
{
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    int64_t taken_ns = hf__now_ns();
    int least = INT_MAX;

    while (hf__now_ns() < taken_ns + WIRE_SEND_S * HF__NS_PER_S) {
        int left = INT_MAX;

        if (ioctl(fd, SIOCOUTQ, &left) != 0)
            return false;
        if (left < least) {
            least = left;
            taken_ns = hf__now_ns();
        }
        if (hf__poll_until(&writable, 1, hf__now_ns() + HF__NS_PER_S / 2) != 0)
            return true; /* or an end, which send finds */
    }
    return false;
}

bool wire_send(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EAGAIN && wait_for_room(fd))
            continue;
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

void wire_close(int fd, bool linger)
{
    int64_t until_ns = hf__now_ns() + WIRE_LINGER_S * HF__NS_PER_S;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    char some[1024];
    ssize_t got = 1;

    if (linger && shutdown(fd, SHUT_WR) == 0)
        for (int total = 0; total < LINGER_MAX && got > 0; total += (int)got)
            got = hf__poll_until(&readable, 1, until_ns) > 0
                      ? recv(fd, some, sizeof some, MSG_DONTWAIT)
                      : 0;
    (void)close(fd);
}
