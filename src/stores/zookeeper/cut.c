/* cut.c - ending a silent connection. */
#include "stores/zookeeper/cut.h"
#include "stores/zookeeper/cloexec.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h> /* it knows more of tcp_info than netinet/tcp.h */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYN_SENT   2  /* in tcp_info and the kernel's tables; its name is netinet/tcp.h's */
#define CLEARLY_MS 50 /* more than the grain of the kernel's clocks */

/* "ADDRESS:PORT", without brackets. */
static bool write_endpoint(char out[ZK_ENDPOINT_MAX], const struct sockaddr_storage *at)
{
    char address[INET6_ADDRSTRLEN];
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    const void *raw = &four.sin_addr;
    in_port_t port;

    memcpy(&six, at, sizeof six);
    memcpy(&four, at, sizeof four);
    port = four.sin_port;
    if (at->ss_family == AF_INET6) {
        raw = &six.sin6_addr;
        port = six.sin6_port;
    } else if (at->ss_family != AF_INET) {
        return false;
    }
    if (inet_ntop(at->ss_family, raw, address, sizeof address) == NULL)
        return false;
    (void)snprintf(out, ZK_ENDPOINT_MAX, "%s:%u", address, (unsigned)ntohs(port));
    return true;
}

/* The library keeps one text for all its threads, of the server that it tries: at worst it names no
 * server, and whoever asked finds nothing there. */
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

/* Has nothing come through it for that long, although something was sent since? On an idle
 * connection the server had the last word. */
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

/* A line of /proc/net/tcp or tcp6: where that connection leads, if it is the one with that inode
 * and still asks for being accepted. */
static bool read_asking(const char *line, unsigned long long inode, struct sockaddr_storage *out)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    unsigned words[4];
    unsigned port;
    unsigned state;
    unsigned long long found;
    char remote[33];

    memset(out, 0, sizeof *out);
    if (sscanf(line, "%*d: %*[0-9A-F]:%*x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %*d %*d %llu",
               remote, &port, &state, &found) != 4 ||
        found != inode || state != SYN_SENT)
        return false;
    if (strlen(remote) == 8 && sscanf(remote, "%8x", &words[0]) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((in_port_t)port);
        memcpy(&four->sin_addr, words, sizeof four->sin_addr);
        return true;
    }
    if (sscanf(remote, "%8x%8x%8x%8x", &words[0], &words[1], &words[2], &words[3]) != 4)
        return false;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((in_port_t)port);
    memcpy(&six->sin6_addr, words, sizeof six->sin6_addr);
    return true;
}

/* Does it ask that server for a connection, in vain? Only the kernel's tables tell the other end of
 * such a socket. */
static bool asks(int fd, const char *server)
{
    static const char *const tables[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    struct tcp_info info;
    socklen_t len = sizeof info;
    struct stat st;
    bool found = false;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 || info.tcpi_state != SYN_SENT ||
        fstat(fd, &st) != 0)
        return false;
    for (size_t i = 0; i < 2 && !found; i++) {
        FILE *table = fopen(tables[i], "re");
        struct sockaddr_storage at;
        char endpoint[ZK_ENDPOINT_MAX];
        char line[512];

        while (table != NULL && !found && fgets(line, sizeof line, table) != NULL)
            found = read_asking(line, st.st_ino, &at) && write_endpoint(endpoint, &at) &&
                    strcmp(endpoint, server) == 0;
        if (table != NULL)
            (void)fclose(table);
    }
    return found;
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

        if (own >= 0 && ((leads_to(own, server) && is_silent(own, silent_ms)) || asks(own, server)))
            cut = shutdown(own, SHUT_RDWR) == 0 || cut;
        if (own >= 0)
            (void)close(own);
    }
    return cut;
}
