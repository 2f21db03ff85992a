/* connection.c - the clients: a thread for each of them, which reads a request, has it answered,
 * and reads the next one. */
#include "serve/connection.h"

#include "serve/answer.h"
#include "serve/credentials.h"
#include "serve/metrics.h"
#include "serve/wire.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUFFER_SIZE = HTTP_HEAD_MAX + HTTP_BODY_MAX,
    STACK_SIZE = 256 * 1024, /* of a thread: what client libraries of stores need, and some more */
    TURNED_AWAY_MAX = 32,    /* clients above the limit that are told so in a thread of their own */
    ANSWER_KEPT = 1 << 16    /* bytes of memory for an answer that are kept for the next one */
};

struct connection {
    struct connections *all;
    struct connection *next;
    struct connection *prev;
    int fd;
    bool local;
    bool turned_away; /* there were too many */
    uid_t uid;
    char user[sizeof((struct who *)0)->name]; /* of a Unix socket's peer, once it is known */
    size_t len;                               /* bytes in the buffer */
    struct text out;
    char buffer[BUFFER_SIZE + 1];
};

enum got { GOT_REQUEST, GOT_BAD, GOT_END };

void connections_init(struct connections *all, struct serve *serve)
{
    *all = (struct connections){.serve = serve};
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->none, NULL);
    pthread_attr_init(&all->attributes);
    pthread_attr_setdetachstate(&all->attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&all->attributes, STACK_SIZE);
}

void connections_release(struct connections *all)
{
    pthread_attr_destroy(&all->attributes);
    pthread_cond_destroy(&all->none);
    pthread_mutex_destroy(&all->lock);
}

/* Reads some more. deadline_ns 0: a request begins, and there is the time of an idle connection.
 * False: the end, an error, or too late. */
static bool read_more(struct connection *c, int64_t deadline_ns)
{
    struct pollfd readable = {.fd = c->fd, .events = POLLIN};
    ssize_t got;

    if (deadline_ns != 0 && hf__poll_until(&readable, 1, deadline_ns) <= 0)
        return false;
    do {
        got = recv(c->fd, c->buffer + c->len, BUFFER_SIZE - c->len, 0);
    } while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    c->len += (size_t)got;
    return true;
}

/* Whoever waits to be asked for the body is asked. */
static bool ask_for_body(struct connection *c, const struct http_request *request)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

    return !request->expects_continue || request->version_1_0 ||
           wire_send(c->fd, go_on, sizeof go_on - 1);
}

/* The next request, whole. However it drips, it is complete in time or the connection ends. */
static enum got read_request(struct connection *c, struct http_request *request,
                             struct http_refusal *why)
{
    int64_t deadline_ns = 0;
    enum http_parsed parsed = HTTP_MORE;

    if (c->len == 0 && !read_more(c, 0))
        return GOT_END;
    deadline_ns = hf__now_ns() + WIRE_REQUEST_S * HF__NS_PER_S;
    while ((parsed = http_parse(c->buffer, c->len, request, why)) == HTTP_MORE)
        if (!read_more(c, deadline_ns))
            goto late;
    if (parsed == HTTP_BAD)
        return GOT_BAD;
    if (c->len < request->head_len + request->body_len && !ask_for_body(c, request))
        return GOT_END;
    while (c->len < request->head_len + request->body_len)
        if (!read_more(c, deadline_ns))
            goto late;
    return GOT_REQUEST;
late:
    if (hf__now_ns() < deadline_ns)
        return GOT_END;
    *why = (struct http_refusal){.code = 408, .detail = "a request is complete within 10s"};
    return GOT_BAD;
}

/* Sends the answer. False: the connection ends. */
static bool send_response(struct connection *c, struct exchange *x)
{
    struct answer *r = &x->answer;

    if (r->sent)
        return !r->close;
    r->close = r->close || x->request.close || c->all->serve->stopping;
    if (r->body.failed || r->headers.failed)
        serve_refuse(x, 500, HF_NOMEM, "out of memory");
    text_clear(&c->out);
    answer_write(x, &c->out);
    if (c->out.failed || !wire_send(c->fd, c->out.data, c->out.len)) {
        if (r->undelivered != NULL)
            r->undelivered(x);
        r->close = true;
    }
    if (c->out.size > ANSWER_KEPT)
        text_release(&c->out);
    return !r->close;
}

/* Of a stream the verdict counts, not the 200 that it began with. */
static void count(const struct exchange *x)
{
    struct metrics *metrics = x->serve->metrics;

    metrics_count(metrics, x->op, x->answer.code);
    if (!x->waited)
        metrics_duration(metrics, x->op, hf__now_ns() - x->read_at_ns);
}

static void answer(struct connection *c, struct exchange *x, enum got got,
                   const struct http_refusal *why)
{
    struct serve *serve = c->all->serve;

    if (got == GOT_BAD) {
        x->answer.close = true;
        serve_refuse(x, why->code, HF_INVALID, "%s", why->detail);
    } else if (c->turned_away) {
        x->answer.close = true;
        metrics_limited(serve->metrics, LIMIT_CLIENTS);
        serve_refuse(x, 429, HF_UNREACHABLE, "there are too many clients");
    } else {
        (void)stpcpy(x->who.name, c->user);
        serve_route(x);
        if (c->local && x->who.credential == NULL)
            (void)stpcpy(c->user, x->who.name);
    }
}

/* One request and its answer. False: the connection ends. */
static bool serve_one(struct connection *c)
{
    struct exchange x = {
        .serve = c->all->serve, .fd = c->fd, .local = c->local, .uid = c->uid, .op = OP_OTHER};
    struct http_refusal why;
    enum got got = read_request(c, &x.request, &why);
    size_t used;
    bool go_on;

    if (got == GOT_END)
        return false;
    x.read_at_ns = hf__now_ns();
    answer(c, &x, got, &why);
    go_on = send_response(c, &x);
    count(&x);
    credentials_done(x.serve->credentials, x.who.credential);
    text_release(&x.answer.body);
    text_release(&x.answer.headers);
    explicit_bzero(&x.granted, sizeof x.granted);
    used = x.request.head_len + x.request.body_len;
    if (!go_on)
        return false;
    c->len -= used;
    memmove(c->buffer, c->buffer + used, c->len);
    return true;
}

static void *serve_client(void *data)
{
    struct connection *c = data;
    struct connections *all = c->all;

    while (serve_one(c))
        ;
    pthread_mutex_lock(&all->lock);
    *(c->prev != NULL ? &c->prev->next : &all->first) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    pthread_mutex_unlock(&all->lock);
    wire_close(c->fd, true);
    text_release(&c->out);
    free(c);
    pthread_mutex_lock(&all->lock);
    if (atomic_fetch_sub(&all->serve->clients, 1) == 1)
        pthread_cond_signal(&all->none);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static void link_connection(struct connections *all, struct connection *c)
{
    pthread_mutex_lock(&all->lock);
    c->next = all->first;
    if (c->next != NULL)
        c->next->prev = c;
    all->first = c;
    pthread_mutex_unlock(&all->lock);
}

void connections_add(struct connections *all, int fd, bool local)
{
    struct serve *serve = all->serve;
    struct connection *c = malloc(sizeof *c);
    unsigned clients = atomic_fetch_add(&serve->clients, 1);
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    pthread_t thread;

    if (c != NULL && clients < serve->options.max_clients + TURNED_AWAY_MAX) {
        memset(c, 0, offsetof(struct connection, buffer));
        c->all = all;
        c->fd = fd;
        c->local = local;
        c->turned_away = clients >= serve->options.max_clients;
        if (local)
            (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
        c->uid = peer.uid;
        wire_prepare(fd, local);
        link_connection(all, c);
        if (pthread_create(&thread, &all->attributes, serve_client, c) == 0)
            return;
        pthread_mutex_lock(&all->lock);
        all->first = c->next; /* only this thread adds, and nobody else takes it out */
        if (c->next != NULL)
            c->next->prev = NULL;
        pthread_mutex_unlock(&all->lock);
    }
    metrics_limited(serve->metrics, LIMIT_CLIENTS);
    atomic_fetch_sub(&serve->clients, 1);
    (void)close(fd);
    free(c);
}

bool connections_end(struct connections *all, int64_t until_ns)
{
    bool none;

    pthread_mutex_lock(&all->lock);
    for (struct connection *c = all->first; c != NULL; c = c->next)
        (void)shutdown(c->fd, SHUT_RD); /* no further request: whoever reads one hears the end */
    while (all->serve->clients > 0 && hf__now_ns() < until_ns) {
        struct timespec at;

        (void)clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += 50 * HF__NS_PER_MS; /* looked at again that soon, whatever the clock does */
        at.tv_sec += at.tv_nsec / HF__NS_PER_S;
        at.tv_nsec %= HF__NS_PER_S;
        pthread_cond_timedwait(&all->none, &all->lock, &at);
    }
    none = all->serve->clients == 0;
    pthread_mutex_unlock(&all->lock);
    return none;
}
