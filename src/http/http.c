/* http.c - one HTTP exchange with libcurl's multi interface, so that deadlines and cancel
 * descriptors hold. */
#include "http/http.h"
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

#define POLL_MAX_MS     1000 /* libcurl counts in a clock that stops while the machine sleeps */
#define POLL_LONG_MS    60000
#define POLL_CONNECT_MS 50  /* libcurl goes to a name's next address only when it is called again */
#define DRAIN_MAX_MS    200 /* for an answer that nobody wants */
/* Of more than 600 ms libcurl keeps half for the other addresses of a name; of less, the first
 * address gets all, even if nobody is there. The request's own limit ends it anyway. */
#define CONNECT_MIN_MS 601
#define BODY_FIRST     4096
#define SILENT_S       10 /* a connection is dead when its other end, probed, is silent for this */
#define PROBE_S        3  /* between two of these */
#define WAKE_FDS_MAX   32 /* how far from the lowest free descriptor libcurl's own may be */

static bool set_up(struct hf__http *http, const struct hf__http_options *options);
static void drain(struct hf__http *http);

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

struct hf__http *hf__http_open(const struct hf_host *host, const struct hf__http_options *options)
{
    struct hf__http *http = calloc(1, sizeof *http);

    if (http == NULL)
        return NULL;
    http->host = host;
    http->heard_ns = host->now_ns();
    for (size_t i = 0; i < HF__HTTP_SOCKETS_MAX; i++)
        http->sockets[i] = -1;
    http->multi = multi_open();
    http->easy = curl_easy_init();
    if (http->multi == NULL || http->easy == NULL || !set_up(http, options)) {
        hf__http_close(http, false);
        return NULL;
    }
    return http;
}

void hf__http_close(struct hf__http *http, bool forked)
{
    int nowhere = forked ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

    /* What a TLS connection says when it is closed must not reach the parent's server. */
    for (size_t i = 0; i < HF__HTTP_SOCKETS_MAX && forked; i++)
        if (http->sockets[i] >= 0)
            (void)dup3(nowhere, http->sockets[i], O_CLOEXEC);
    if (nowhere >= 0)
        (void)close(nowhere);
    if (forked && http->busy)
        return; /* another thread of the parent is inside libcurl: its state cannot be trusted */
    hf__http_end(http);
    if (http->easy != NULL)
        curl_easy_cleanup(http->easy);
    if (http->multi != NULL)
        (void)curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    free(http->body);
    explicit_bzero(http->auth, sizeof http->auth);
    free(http);
}

/* callbacks of libcurl */

static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct hf__http *http = data;
    unsigned silent_ms = SILENT_S * 1000;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    /* What is not acknowledged for that long will not be: somebody on the way has forgotten us. */
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
    for (size_t i = 0; i < HF__HTTP_SOCKETS_MAX && fd >= 0; i++)
        if (http->sockets[i] < 0) {
            http->sockets[i] = fd;
            break;
        }
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static int close_socket(void *data, curl_socket_t fd)
{
    struct hf__http *http = data;

    for (size_t i = 0; i < HF__HTTP_SOCKETS_MAX; i++)
        if (http->sockets[i] == fd)
            http->sockets[i] = -1;
    return close(fd);
}

/* The connection stands and the request is about to be sent: the first time, and never again. */
static int before_sending(void *data, char *ip, char *local_ip, int port, int local_port)
{
    struct hf__http *http = data;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    return http->sends++ == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t take_body(char *bytes, size_t one, size_t len, void *data)
{
    struct hf__http *http = data;

    (void)one;
    if (http->sink != NULL) {
        http->sink(http->sink_data, bytes, len);
        return len;
    }
    if (len > HF__HTTP_BODY_MAX - http->len)
        return 0;
    if (http->len + len > http->size) {
        size_t size = http->size > 0 ? http->size : BODY_FIRST;
        char *body;

        while (size < http->len + len)
            size *= 2;
        if ((body = realloc(http->body, size)) == NULL)
            return 0;
        http->body = body;
        http->size = size;
    }
    memcpy(http->body + http->len, bytes, len);
    http->len += len;
    return len;
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool set_up(struct hf__http *http, const struct hf__http_options *options)
{
    CURL *easy = http->easy;
    bool ok =
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        /* A lookup that takes too long is left to itself; otherwise we would wait for its end. */
        curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
        /* Not even one of the environment: it would see the password. */
        curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)PROBE_S) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)PROBE_S) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http->detail) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, http) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, http) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_sending) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, http) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, http) == CURLE_OK &&
        curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)HF__HTTP_SOCKETS_MAX / 2) ==
            CURLM_OK;

    if (ok && options->trusting)
        ok = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L) == CURLE_OK;
    if (ok && is_given(options->ca))
        ok = curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca) == CURLE_OK;
    if (ok && is_given(options->cert))
        ok = curl_easy_setopt(easy, CURLOPT_SSLCERT, options->cert) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_SSLKEY, options->key) == CURLE_OK;
    if (ok && is_given(options->socket))
        ok = curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, options->socket) == CURLE_OK;
    if (ok && options->idle_s > 0)
        ok = curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, options->idle_s) == CURLE_OK;
    return ok;
}

/* False: out of memory, and the list is gone. */
static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    char header[HF__HTTP_AUTH_MAX + 32];
    struct curl_slist *more;

    (void)snprintf(header, sizeof header, "%s: %s", name, value);
    more = curl_slist_append(*list, header);
    explicit_bzero(header, sizeof header);
    if (more == NULL)
        curl_slist_free_all(*list);
    *list = more;
    return more != NULL;
}

/* The headers, made anew only when the auth token is another. */
static bool set_headers(struct hf__http *http, const struct hf__http_request *request)
{
    struct curl_slist *list = NULL;

    if (http->headers != NULL && http->accept == request->accept &&
        strcmp(http->auth, request->auth) == 0)
        return true;
    if (!add_header(&list, "Content-Type", "application/json") ||
        (request->auth[0] != '\0' && !add_header(&list, "Authorization", request->auth)) ||
        (request->accept != NULL && !add_header(&list, "Accept", request->accept)))
        return false;
    curl_slist_free_all(http->headers);
    http->headers = list;
    http->accept = request->accept;
    (void)snprintf(http->auth, sizeof http->auth, "%s", request->auth);
    return curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, list) == CURLE_OK;
}

/* What is sent: JSON, or nothing. */
static bool set_body(struct hf__http *http, const struct hf__http_request *request)
{
    if (request->json == NULL)
        return curl_easy_setopt(http->easy, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    return curl_easy_setopt(http->easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(http->easy, CURLOPT_POSTFIELDSIZE, (long)request->json_len) ==
               CURLE_OK &&
           curl_easy_setopt(http->easy, CURLOPT_COPYPOSTFIELDS, request->json) == CURLE_OK;
}

bool hf__http_begin(struct hf__http *http, const struct hf__http_request *request,
                    hf__http_sink_fn *sink, void *data)
{
    char url[HF__HTTP_URL_MAX];

    drain(http);
    if (snprintf(url, sizeof url, "%s%s", request->endpoint, request->path) >= (int)sizeof url)
        return false;
    http->len = 0;
    http->sends = 0;
    http->http_status = 0;
    http->cancelled = false;
    http->detail[0] = '\0';
    http->code = CURLE_OUT_OF_MEMORY;
    http->sink = sink;
    http->sink_data = data;
    if (!set_headers(http, request) || curl_easy_setopt(http->easy, CURLOPT_URL, url) != CURLE_OK ||
        !set_body(http, request) || curl_multi_add_handle(http->multi, http->easy) != CURLM_OK)
        return false;
    http->added = true;
    return true;
}

void hf__http_end(struct hf__http *http)
{
    /* A transfer that is not over takes its connection with it. */
    if (http->added)
        (void)curl_multi_remove_handle(http->multi, http->easy);
    http->added = false;
}

/* True once libcurl is through with the request. */
static bool finished(struct hf__http *http)
{
    const CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(http->multi, &left)) != NULL)
        if (message->msg == CURLMSG_DONE) {
            http->code = message->data.result;
            (void)curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &http->http_status);
            return true;
        }
    return false;
}

bool hf__http_work(struct hf__http *http, const struct hf__patience *patience, const bool *stop)
{
    struct curl_waitfd cancel = {.fd = patience->cancel_fd, .events = CURL_WAIT_POLLIN};
    int64_t until_ns = patience->deadline_ns;
    int64_t step_ms = until_ns == HF_NEVER ? POLL_LONG_MS : POLL_MAX_MS;
    unsigned extra = cancel.fd >= 0 ? 1 : 0;

    for (;;) {
        int64_t poll_ms = http->sends == 0 ? POLL_CONNECT_MS : step_ms;
        int64_t left_ns;
        int running;

        if (curl_multi_perform(http->multi, &running) != CURLM_OK)
            return false;
        if (finished(http))
            return false;
        if (stop != NULL && *stop)
            return true;
        left_ns = until_ns - http->host->now_ns();
        if (left_ns <= 0)
            return true;
        cancel.revents = 0;
        if (curl_multi_poll(http->multi, &cancel, extra,
                            left_ns < poll_ms * HF__NS_PER_MS ? (int)(left_ns / HF__NS_PER_MS) + 1
                                                              : (int)poll_ms,
                            NULL) != CURLM_OK)
            return false;
        if (extra > 0 && cancel.revents != 0) {
            int64_t grace_ns = http->host->now_ns() + HF__HTTP_CANCEL_GRACE_MS * HF__NS_PER_MS;

            http->cancelled = true;
            extra = 0;
            if (stop != NULL)
                return true;
            /* A request under way may be answered any moment, and then its fate is known. */
            if (grace_ns < until_ns)
                until_ns = grace_ns;
        }
    }
}

void hf__http_send(struct hf__http *http, const struct hf__http_request *request, int64_t limit_ms)
{
    int64_t until_ns = http->host->now_ns() + limit_ms * HF__NS_PER_MS;
    curl_off_t sent = 0;
    int running = 1;

    (void)curl_easy_setopt(http->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)limit_ms);
    if (!hf__http_begin(http, request, NULL, NULL))
        return;
    for (;;) {
        int64_t left_ns = until_ns - http->host->now_ns();

        if (curl_multi_perform(http->multi, &running) != CURLM_OK || running == 0)
            return;
        (void)curl_easy_getinfo(http->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
        if (sent >= (curl_off_t)request->json_len) {
            http->draining = true;
            return;
        }
        if (left_ns <= 0)
            return;
        (void)curl_multi_poll(http->multi, NULL, 0, (int)(left_ns / HF__NS_PER_MS) + 1, NULL);
    }
}

/* The answer that hf__http_send did not wait for. */
static void drain(struct hf__http *http)
{
    struct hf__patience patience = {
        .deadline_ns = http->host->now_ns() + DRAIN_MAX_MS * HF__NS_PER_MS, .cancel_fd = -1};

    if (http->draining)
        (void)hf__http_work(http, &patience, NULL);
    http->draining = false;
    hf__http_end(http);
}

enum hf__http_fate hf__http_exchange(struct hf__http *http, const struct hf__http_request *request,
                                     const struct hf__patience *patience, int64_t connect_ms)
{
    bool begun;

    (void)curl_easy_setopt(http->easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(connect_ms > CONNECT_MIN_MS ? connect_ms : CONNECT_MIN_MS));
    begun = hf__http_begin(http, request, NULL, NULL);
    if (begun) {
        http->code = CURLE_OPERATION_TIMEDOUT;
        (void)hf__http_work(http, patience, NULL);
        hf__http_end(http);
    }
    if (begun && http->code == CURLE_OK) {
        http->heard_ns = http->host->now_ns();
        return HF__HTTP_ANSWERED;
    }
    return http->sends == 0 ? HF__HTTP_NOT_SENT : HF__HTTP_NO_ANSWER;
}

const char *hf__http_header(struct hf__http *http, const char *name)
{
    struct curl_header *header;

    return curl_easy_header(http->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK
               ? header->value
               : NULL;
}

int64_t hf__http_date_ms(struct hf__http *http)
{
    const char *date = hf__http_header(http, "Date");
    time_t date_s = date != NULL ? curl_getdate(date, NULL) : 0;

    return date_s > 0 ? (int64_t)date_s * 1000 : 0;
}
