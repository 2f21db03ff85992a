/* link.h - requests of HTTP on one connection, for what is measured: no library is in the way. */
#ifndef HF_BENCH_LINK_H
#define HF_BENCH_LINK_H

#include "bench.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_SIZE = 8192 };

/* A connection, and the last answer on it. */
struct link {
    int fd;
    size_t len;
    char answer[MESSAGE_SIZE];
};

static inline void fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static inline void connect_unix(struct link *link, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(link->fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("the server's socket cannot be reached");
}

static inline void connect_tcp(struct link *link, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    link->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(link->fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("the gateway cannot be reached");
}

/* Whether the whole answer is there. */
static inline bool complete(struct link *link)
{
    const char *body, *length;

    link->answer[link->len] = '\0';
    body = strstr(link->answer, "\r\n\r\n");
    if (body == NULL)
        return false;
    length = strcasestr(link->answer, "content-length: ");
    if (length == NULL)
        fail("an answer without a length");
    return link->len >= (size_t)(body + 4 - link->answer) + strtoul(length + 16, NULL, 10);
}

static inline void receive(struct link *link)
{
    link->len = 0;
    do {
        ssize_t got =
            recv(link->fd, link->answer + link->len, sizeof link->answer - 1 - link->len, 0);

        if (got <= 0)
            fail("the connection ended");
        link->len += (size_t)got;
    } while (!complete(link));
}

static inline void send_all(struct link *link, const char *data, size_t len)
{
    if (send(link->fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
        fail("a request was not taken");
}

/* One request: a POST if it has a body. */
static inline size_t build(char out[MESSAGE_SIZE], const char *path, const char *body)
{
    if (body == NULL)
        return (size_t)snprintf(out, MESSAGE_SIZE, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                path);
    return (size_t)snprintf(out, MESSAGE_SIZE,
                            "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                            "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                            path, strlen(body), body);
}

static inline void ask(struct link *link, const char *path, const char *body)
{
    char request[MESSAGE_SIZE];

    send_all(link, request, build(request, path, body));
    receive(link);
}

static inline void must_ask(struct link *link, const char *path, const char *body)
{
    ask(link, path, body);
    if (strncmp(link->answer, "HTTP/1.1 200 ", 13) != 0)
        fail(link->answer);
}

#endif /* HF_BENCH_LINK_H */
