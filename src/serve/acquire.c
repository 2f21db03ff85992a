/* acquire.c - POST /v1/acquire: an owner is one attempt is one request, and a request that waits is
 * one place in the store's queue.
 *
 * The thread of the connection sits in the store's acquire. What ends its wait early is one epoll
 * descriptor: the client's socket, when the client goes or closes its sending side; the server's
 * end; a release of the same owner. A broken connection says nothing about a holder, so only what
 * was granted to a client that is not there to hear of it is given back. */
#include "serve/answer.h"
#include "serve/attempts.h"
#include "serve/body.h"
#include "serve/credentials.h"
#include "serve/handler.h"
#include "serve/metrics.h"
#include "serve/stream.h"

#include "base/base.h"
#include "core/lease.h"

#include <errno.h>
#include <holdfast/relay.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CANCEL_CLIENT, CANCEL_STOP, CANCEL_RELEASE };

/* What may end a wait. */
struct cancel {
    int epoll_fd;
    int release_fd; /* written by a release of the same owner */
};

static bool cancel_add(const struct cancel *cancel, int fd, unsigned events, unsigned what)
{
    struct epoll_event event = {.events = events, .data.u32 = what};

    return epoll_ctl(cancel->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void cancel_end(struct cancel *cancel)
{
    if (cancel->epoll_fd >= 0)
        (void)close(cancel->epoll_fd);
    if (cancel->release_fd >= 0)
        (void)close(cancel->release_fd);
}

static bool cancel_begin(struct cancel *cancel, const struct exchange *x)
{
    cancel->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    cancel->release_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return cancel->epoll_fd >= 0 && cancel->release_fd >= 0 &&
           cancel_add(cancel, x->fd, EPOLLRDHUP, CANCEL_CLIENT) &&
           cancel_add(cancel, x->serve->stop_fd, EPOLLIN, CANCEL_STOP) &&
           cancel_add(cancel, cancel->release_fd, EPOLLIN, CANCEL_RELEASE);
}

/* Whether the client is not there any more. At the server's end all sockets are shut for reading by
 * ourselves, which proves nothing. */
static bool client_gone(const struct cancel *cancel, const struct exchange *x)
{
    struct epoll_event events[3];
    int count = epoll_wait(cancel->epoll_fd, events, 3, 0);
    bool gone = false;

    for (int i = 0; i < count; i++)
        gone = gone || (events[i].data.u32 == CANCEL_CLIENT &&
                        ((events[i].events & (EPOLLHUP | EPOLLERR)) != 0 || !x->serve->stopping));
    return gone;
}

/* A place among those who wait. */
static bool enter(struct exchange *x)
{
    struct serve *serve = x->serve;
    struct account *account = x->who.credential != NULL ? x->who.credential->account : NULL;
    uint64_t most = serve->options.max_waiters;

    if (atomic_fetch_add(&serve->waiters, 1) >= most) {
        atomic_fetch_sub(&serve->waiters, 1);
        metrics_limited(serve->metrics, LIMIT_WAITERS);
        serve_refuse(x, 429, HF_UNREACHABLE, "%" PRIu64 " requests wait already", most);
        return false;
    }
    if (account != NULL && atomic_fetch_add(&account->waiters, 1) >= (most + 1) / 2) {
        atomic_fetch_sub(&account->waiters, 1);
        atomic_fetch_sub(&serve->waiters, 1);
        metrics_limited(serve->metrics, LIMIT_CREDENTIAL);
        serve_refuse(x, 429, HF_UNREACHABLE, "the credential %s has half of the waiters already",
                     x->who.name);
        return false;
    }
    return true;
}

static void leave(struct exchange *x)
{
    if (x->who.credential != NULL && x->who.credential->account != NULL)
        atomic_fetch_sub(&x->who.credential->account->waiters, 1);
    atomic_fetch_sub(&x->serve->waiters, 1);
}

/* The client never heard of what it was granted. */
static void give_back(struct exchange *x)
{
    const struct hf_claim claim = {
        .name = x->granted.name, .owner = x->granted.owner, .token = x->granted.token};

    enum hf_status status = hf_relay_release(x->serve->store, &claim, NULL);

    (void)status; /* it ends with its ttl otherwise */
}

/* What was granted, for give_back and the answer. */
static void note_grant(struct exchange *x, const struct body *body, const struct hf_grant *grant)
{
    (void)stpcpy(x->granted.name, body->name);
    (void)stpcpy(x->granted.owner, grant->owner);
    x->granted.token = grant->token;
    x->answer.undelivered = give_back;
}

static void answer_grant(struct exchange *x, const struct hf_grant *grant)
{
    int64_t after_ms = handler_after_ms(x->read_at_ns, grant->sent_at_ns);

    answer_ok(x,
              "\"token\": \"%" PRIu64 "\", \"owner\": \"%s\", \"ttl_ms\": %" PRIu32
              ", \"after_ms\": %" PRId64 ", \"valid_ms\": %" PRId64,
              grant->token, grant->owner, grant->ttl_ms, after_ms,
              handler_valid_ms(after_ms, grant->ttl_ms, grant->ttl_ms));
}

/* Asks the store, once. */
static void ask(struct exchange *x, const struct body *body, struct cancel *cancel)
{
    struct serve *serve = x->serve;
    char label[HF_LABEL_MAX + 1];
    struct hf_claim claim = {.name = body->name,
                             .owner = body->owner,
                             .label = label,
                             .ttl_ms = body->ttl_ms,
                             .cancel_fd = cancel != NULL ? cancel->epoll_fd : -1};
    int64_t from_ns = hf__now_ns();
    struct hf_grant grant;
    struct hf_error err;
    enum hf_status status;

    handler_label(label, x->who.name, body->label);
    if (cancel != NULL)
        claim.wait_until_ns = hf__time_add(from_ns, hf__ms_to_ns(body->wait_ms));
    status = hf_relay_acquire(serve->store, &claim, &grant, &err);
    if (cancel != NULL)
        metrics_wait(serve->metrics, status, hf__now_ns() - from_ns);
    else
        metrics_store(serve->metrics, OP_ACQUIRE, status, hf__now_ns() - from_ns);
    if (status == HF_OK)
        note_grant(x, body, &grant);
    if (status == HF_OK && cancel != NULL && client_gone(cancel, x)) {
        give_back(x);
        x->answer.undelivered = NULL;
        status = hf__fail(&err, HF_CANCELLED, "the client had gone when the lock was granted");
    }
    if (status == HF_OK)
        answer_grant(x, &grant);
    else if (status == HF_BUSY)
        handler_busy(x, body->name, &err);
    else
        serve_fail(x, &err);
    explicit_bzero(&grant, sizeof grant);
}

/* The attempt, from its first to its last byte. cancel: NULL if it does not wait. */
static void attempt(struct exchange *x, const struct body *body, struct cancel *cancel)
{
    struct serve *serve = x->serve;
    struct attempt *attempt;
    struct stream stream;
    bool streamed = x->request.streams;
    enum hf_status status = attempts_begin(serve->attempts, body->owner,
                                           cancel != NULL ? cancel->release_fd : -1, &attempt);

    if (status == HF_NOMEM) {
        serve_refuse(x, 500, HF_NOMEM, "out of memory");
        return;
    }
    if (status != HF_OK) {
        serve_refuse(x, 409, HF_UNKNOWN,
                     "this owner was used before: every attempt has one of its own");
        return;
    }
    if (streamed)
        stream_begin(serve->streams, &stream, x);
    ask(x, body, cancel);
    attempts_end(serve->attempts, attempt);
    if (streamed)
        stream_end(serve->streams, &stream, x);
}

static void attempt_waiting(struct exchange *x, const struct body *body)
{
    struct cancel cancel;

    if (x->serve->stopping) {
        serve_refuse(x, 503, HF_CANCELLED, "the server is shutting down");
        return;
    }
    if (!enter(x))
        return;
    x->waited = true;
    if (cancel_begin(&cancel, x))
        attempt(x, body, &cancel);
    else
        serve_refuse(x, 503, HF_UNREACHABLE, "the server has no descriptor left: %s",
                     strerror(errno));
    cancel_end(&cancel);
    leave(x);
}

void serve_acquire(struct exchange *x)
{
    struct body body;

    if (!handler_body(x, &body, BODY_NAME | BODY_OWNER | BODY_TTL_MS) ||
        !handler_ttl_allowed(x, body.ttl_ms))
        return;
    if (!x->serve->detached) {
        serve_refuse(x, 501, HF_UNSUPPORTED,
                     "this store has no leases that outlive a connection: it can be looked at");
        return;
    }
    if (body.wait_ms > x->serve->options.max_wait_ms)
        body.wait_ms = x->serve->options.max_wait_ms;
    if (body.wait_ms > 0)
        attempt_waiting(x, &body);
    else
        attempt(x, &body, NULL);
    explicit_bzero(&body, sizeof body);
}
