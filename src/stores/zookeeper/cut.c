/* cut.c - ending a silent connection. */
#include "stores/zookeeper/cut.h"
#include "stores/zookeeper/seal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h> /* it knows more of tcp_info than netinet/tcp.h */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLEARLY_MS 50 /* more than the grain of the kernel's clocks */

/* "ADDRESS:PORT", without brackets. */
static bool write_endpoint(char out[ZK_ENDPOINT_MAX], const struct sockaddr_storage *at)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)at;
    const struct sockaddr_in *four = (const struct sockaddr_in *)at;
    char address[INET6_ADDRSTRLEN];
    const void *raw = at->ss_family == AF_INET6 ? (const void *)&six->sin6_addr
                                                : (const void *)&four->sin_addr;
    in_port_t port = at->ss_family == AF_INET6 ? six->sin6_port : four->sin_port;

    if ((at->ss_family != AF_INET && at->ss_family != AF_INET6) ||
        inet_ntop(at->ss_family, raw, address, sizeof address) == NULL)
        return false;
    (void)snprintf(out, ZK_ENDPOINT_MAX, "%s:%u", address, (unsigned)ntohs(port));
    return true;
}

/* The library keeps the text of a server that it tries for all its threads: at worst it is none's,
 * and whoever asked finds nothing there. */
bool zk_find_server(zhandle_t *handle, char out[ZK_ENDPOINT_MAX])
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    const char *text;
    size_t used = 0;

    if (zookeeper_get_connected_host(handle, (struct sockaddr *)&at, &len) != NULL)
        return write_endpoint(out, &at);
    text = zoo_get_current_server(handle);
    for (; text != NULL && *text != '\0' && used < ZK_ENDPOINT_MAX - 1; text++)
        if (*text != '[' && *text != ']')
            out[used++] = *text;
    out[used] = '\0';
    return used > 0;
}

/* Has nothing come through it for so long, though something was sent later than the last thing
 * came? Of an idle connection the last word was the server's. */
static bool is_silent(int fd, int64_t silent_ms)
{
    struct tcp_info info;
    socklen_t len = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 || len < sizeof info ||
        info.tcpi_last_data_recv < silent_ms)
        return false;
    return info.tcpi_bytes_received == 0 ||
           info.tcpi_last_data_recv >= info.tcpi_last_data_sent + CLEARLY_MS;
}

static bool leads_to(int fd, const char *server)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    char endpoint[ZK_ENDPOINT_MAX];

    return getpeername(fd, (struct sockaddr *)&at, &len) == 0 && write_endpoint(endpoint, &at) &&
           strcmp(endpoint, server) == 0;
}

bool zk_cut(zhandle_t *handle, int64_t silent_ms)
{
    char server[ZK_ENDPOINT_MAX];
    struct zk_fds open_now;
    bool cut = false;

    if (!zk_find_server(handle, server))
        return false;
    zk_fds_note(&open_now);
    for (int fd = 0; fd < ZK_FDS_MAX; fd++) {
        /* A descriptor of our own: the number may belong to something else at any moment. */
        int own = zk_fds_has(&open_now, fd) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

        if (own >= 0 && leads_to(own, server) && is_silent(own, silent_ms))
            cut = shutdown(own, SHUT_RDWR) == 0 || cut;
        if (own >= 0)
            (void)close(own);
    }
    return cut;
}
