/* line.c - one HTTP exchange with libcurl's multi interface, so that deadlines and cancel
 * descriptors hold. */
#include "stores/etcd/line.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define POLL_MAX_MS  1000 /* libcurl counts in a clock that stops while the machine sleeps */
#define POLL_LONG_MS 60000
#define DRAIN_MAX_MS 200 /* for an answer that nobody wants */
/* Of a longer time than 600 ms libcurl keeps half for the other addresses of a name; of a shorter
 * one the first address gets all, though nobody may be there. The request's own limit ends it
 * anyway. */
#define CONNECT_MIN_MS 601
#define BODY_FIRST     4096
#define SILENT_S       10 /* a connection that does not answer probes for so long is dead */
#define PROBE_S        3  /* between two of these */
#define WAKE_FDS_MAX   32 /* how far from the lowest free descriptor libcurl's own may be */

static bool set_up(struct ec_line *line, const struct ec_url *url);
static void drain(struct ec_line *line);

/* libcurl's multi handle has a socket pair to be woken with, without close-on-exec. It gets the
 * lowest free descriptors: a local socket where none was before, that would be inherited, is that
 * pair. */
static CURLM *multi_open(void)
{
    int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    bool open_before[WAKE_FDS_MAX];
    CURLM *multi;

    if (lowest >= 0)
        (void)close(lowest);
    for (int i = 0; i < WAKE_FDS_MAX && lowest >= 0; i++)
        open_before[i] = fcntl(lowest + i, F_GETFD) >= 0;
    multi = curl_multi_init();
    for (int i = 0; i < WAKE_FDS_MAX && lowest >= 0 && multi != NULL; i++) {
        int flags = open_before[i] ? FD_CLOEXEC : fcntl(lowest + i, F_GETFD);
        int domain = 0;
        socklen_t len = sizeof domain;

        if (flags >= 0 && (flags & FD_CLOEXEC) == 0 &&
            getsockopt(lowest + i, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX)
            (void)fcntl(lowest + i, F_SETFD, flags | FD_CLOEXEC);
    }
    return multi;
}

struct ec_line *ec_line_open(const struct hf_host *host, const struct ec_url *url)
{
    struct ec_line *line = calloc(1, sizeof *line);

    if (line == NULL)
        return NULL;
    line->host = host;
    line->heard_ns = host->now_ns();
    for (size_t i = 0; i < EC_SOCKETS_MAX; i++)
        line->sockets[i] = -1;
    line->multi = multi_open();
    line->easy = curl_easy_init();
    if (line->multi == NULL || line->easy == NULL || !set_up(line, url)) {
        ec_line_close(line, false);
        return NULL;
    }
    return line;
}

void ec_line_close(struct ec_line *line, bool forked)
{
    int nowhere = forked ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

    /* What a TLS connection says when it is closed must not reach the parent's server. */
    for (size_t i = 0; i < EC_SOCKETS_MAX && forked; i++)
        if (line->sockets[i] >= 0)
            (void)dup3(nowhere, line->sockets[i], O_CLOEXEC);
    if (nowhere >= 0)
        (void)close(nowhere);
    if (forked && line->busy)
        return; /* another thread of the parent is inside libcurl: its state cannot be trusted */
    ec_line_end(line);
    if (line->easy != NULL)
        curl_easy_cleanup(line->easy);
    if (line->multi != NULL)
        (void)curl_multi_cleanup(line->multi);
    curl_slist_free_all(line->headers);
    free(line->body);
    explicit_bzero(line->auth, sizeof line->auth);
    free(line);
}

/* callbacks of libcurl */

static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct ec_line *line = data;
    unsigned silent_ms = SILENT_S * 1000;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    /* What is not acknowledged for that long will not be: somebody on the way has forgotten us. */
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
    for (size_t i = 0; i < EC_SOCKETS_MAX && fd >= 0; i++)
        if (line->sockets[i] < 0) {
            line->sockets[i] = fd;
            break;
        }
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static int close_socket(void *data, curl_socket_t fd)
{
    struct ec_line *line = data;

    for (size_t i = 0; i < EC_SOCKETS_MAX; i++)
        if (line->sockets[i] == fd)
            line->sockets[i] = -1;
    return close(fd);
}

/* The connection stands and the request is about to be sent: the first time, and never again. */
static int before_sending(void *data, char *ip, char *local_ip, int port, int local_port)
{
    struct ec_line *line = data;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    return line->attempts++ == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t take_body(char *bytes, size_t one, size_t len, void *data)
{
    struct ec_line *line = data;

    (void)one;
    if (line->sink != NULL) {
        line->sink(line->sink_data, bytes, len);
        return len;
    }
    if (len > EC_BODY_MAX - line->len)
        return 0;
    if (line->len + len > line->size) {
        size_t size = line->size > 0 ? line->size : BODY_FIRST;
        char *body;

        while (size < line->len + len)
            size *= 2;
        if ((body = realloc(line->body, size)) == NULL)
            return 0;
        line->body = body;
        line->size = size;
    }
    memcpy(line->body + line->len, bytes, len);
    line->len += len;
    return len;
}

static bool set_up(struct ec_line *line, const struct ec_url *url)
{
    CURL *easy = line->easy;
    bool ok =
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        /* A lookup that takes too long is left to itself; otherwise we would wait for its end. */
        curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
        /* Not even one of the environment: it would see the password. */
        curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)PROBE_S) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)PROBE_S) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, line->detail) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, line) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, line) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_sending) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, line) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, line) == CURLE_OK &&
        curl_multi_setopt(line->multi, CURLMOPT_MAXCONNECTS, (long)EC_SOCKETS_MAX / 2) == CURLM_OK;

    if (ok && url->tls && !url->verify)
        ok = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L) == CURLE_OK;
    if (ok && url->ca[0] != '\0')
        ok = curl_easy_setopt(easy, CURLOPT_CAINFO, url->ca) == CURLE_OK;
    if (ok && url->cert[0] != '\0')
        ok = curl_easy_setopt(easy, CURLOPT_SSLCERT, url->cert) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_SSLKEY, url->key) == CURLE_OK;
    return ok;
}

/* The headers, made anew only when the auth token is another. */
static bool set_headers(struct ec_line *line, const char *auth)
{
    char header[EC_AUTH_MAX + 32];
    struct curl_slist *list;
    struct curl_slist *more;

    if (line->headers != NULL && strcmp(line->auth, auth) == 0)
        return true;
    list = curl_slist_append(NULL, "Content-Type: application/json");
    if (list != NULL && auth[0] != '\0') {
        (void)snprintf(header, sizeof header, "Authorization: %s", auth);
        more = curl_slist_append(list, header);
        explicit_bzero(header, sizeof header);
        if (more == NULL)
            curl_slist_free_all(list);
        list = more;
    }
    if (list == NULL)
        return false;
    curl_slist_free_all(line->headers);
    line->headers = list;
    (void)snprintf(line->auth, sizeof line->auth, "%s", auth);
    return curl_easy_setopt(line->easy, CURLOPT_HTTPHEADER, list) == CURLE_OK;
}

bool ec_line_begin(struct ec_line *line, const char *endpoint, const char *path, const char *json,
                   size_t json_len, const char *auth, ec_sink_fn *sink, void *data)
{
    char url[EC_ENDPOINT_MAX + 64];

    drain(line);
    (void)snprintf(url, sizeof url, "%s%s", endpoint, path);
    line->len = 0;
    line->attempts = 0;
    line->http_status = 0;
    line->cancelled = false;
    line->detail[0] = '\0';
    line->code = CURLE_OUT_OF_MEMORY;
    line->sink = sink;
    line->sink_data = data;
    if (!set_headers(line, auth) || curl_easy_setopt(line->easy, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(line->easy, CURLOPT_POSTFIELDSIZE, (long)json_len) != CURLE_OK ||
        curl_easy_setopt(line->easy, CURLOPT_COPYPOSTFIELDS, json) != CURLE_OK ||
        curl_multi_add_handle(line->multi, line->easy) != CURLM_OK)
        return false;
    line->added = true;
    return true;
}

void ec_line_end(struct ec_line *line)
{
    /* A transfer that is not over takes its connection with it. */
    if (line->added)
        (void)curl_multi_remove_handle(line->multi, line->easy);
    line->added = false;
}

/* True once libcurl is through with the request. */
static bool finished(struct ec_line *line)
{
    const CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(line->multi, &left)) != NULL)
        if (message->msg == CURLMSG_DONE) {
            line->code = message->data.result;
            (void)curl_easy_getinfo(line->easy, CURLINFO_RESPONSE_CODE, &line->http_status);
            return true;
        }
    return false;
}

bool ec_line_work(struct ec_line *line, const struct ec_patience *patience, const bool *stop)
{
    struct curl_waitfd cancel = {.fd = patience->cancel_fd, .events = CURL_WAIT_POLLIN};
    int64_t until_ns = patience->deadline_ns;
    int64_t step_ms = until_ns == HF_NEVER ? POLL_LONG_MS : POLL_MAX_MS;
    unsigned extra = cancel.fd >= 0 ? 1 : 0;

    for (;;) {
        int64_t left_ns;
        int running;

        if (curl_multi_perform(line->multi, &running) != CURLM_OK)
            return false;
        if (finished(line))
            return false;
        if (stop != NULL && *stop)
            return true;
        left_ns = until_ns - line->host->now_ns();
        if (left_ns <= 0)
            return true;
        cancel.revents = 0;
        if (curl_multi_poll(line->multi, &cancel, extra,
                            left_ns < step_ms * HF__NS_PER_MS ? (int)(left_ns / HF__NS_PER_MS) + 1
                                                              : (int)step_ms,
                            NULL) != CURLM_OK)
            return false;
        if (extra > 0 && cancel.revents != 0) {
            int64_t grace_ns = line->host->now_ns() + EC_CANCEL_GRACE_MS * HF__NS_PER_MS;

            line->cancelled = true;
            extra = 0;
            if (stop != NULL)
                return true;
            /* A request under way may be answered any moment, and then its fate is known. */
            if (grace_ns < until_ns)
                until_ns = grace_ns;
        }
    }
}

void ec_line_send(struct ec_line *line, const char *endpoint, const char *path, const char *json,
                  size_t json_len, const char *auth, int64_t limit_ms)
{
    int64_t until_ns = line->host->now_ns() + limit_ms * HF__NS_PER_MS;
    curl_off_t sent = 0;
    int running = 1;

    (void)curl_easy_setopt(line->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)limit_ms);
    if (!ec_line_begin(line, endpoint, path, json, json_len, auth, NULL, NULL))
        return;
    for (;;) {
        int64_t left_ns = until_ns - line->host->now_ns();

        if (curl_multi_perform(line->multi, &running) != CURLM_OK || running == 0)
            return;
        (void)curl_easy_getinfo(line->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
        if (sent >= (curl_off_t)json_len) {
            line->draining = true;
            return;
        }
        if (left_ns <= 0)
            return;
        (void)curl_multi_poll(line->multi, NULL, 0, (int)(left_ns / HF__NS_PER_MS) + 1, NULL);
    }
}

/* The answer that ec_line_send did not wait for. */
static void drain(struct ec_line *line)
{
    struct ec_patience patience = {
        .deadline_ns = line->host->now_ns() + DRAIN_MAX_MS * HF__NS_PER_MS, .cancel_fd = -1};

    if (line->draining)
        (void)ec_line_work(line, &patience, NULL);
    line->draining = false;
    ec_line_end(line);
}

enum ec_fate ec_line_post(struct ec_line *line, const char *endpoint, const char *path,
                          const char *json, size_t json_len, const char *auth,
                          const struct ec_patience *patience, int64_t connect_ms)
{
    bool begun;

    (void)curl_easy_setopt(line->easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(connect_ms > CONNECT_MIN_MS ? connect_ms : CONNECT_MIN_MS));
    begun = ec_line_begin(line, endpoint, path, json, json_len, auth, NULL, NULL);
    if (begun) {
        line->code = CURLE_OPERATION_TIMEDOUT;
        (void)ec_line_work(line, patience, NULL);
        ec_line_end(line);
    }
    if (begun && line->code == CURLE_OK) {
        line->heard_ns = line->host->now_ns();
        return EC_ANSWERED;
    }
    return line->attempts == 0 ? EC_NOT_SENT : EC_NO_ANSWER;
}
