/* serve.h - the server: what there is one of, and what a handler sees of a request.
 *
 * main.c reads the options and accepts, connection.c has a thread for every connection and calls
 * route.c, which finds the handler in its table and checks who asks. A handler fills in the answer
 * and returns; it may block, in the store for instance. */
#ifndef HF_SERVE_SERVE_H
#define HF_SERVE_SERVE_H

#include "serve/http.h"
#include "serve/text.h"

#include <holdfast.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct metrics;     /* metrics.h */
struct credentials; /* credentials.h */
struct attempts;    /* attempts.h: owners under way, and those that ended lately */
struct listing;     /* listing.h */
struct readiness;   /* inspect.c */
struct streams;     /* stream.h */

enum {
    SERVE_SOCKETS_MAX = 8,
    SERVE_HOSTS_MAX = 32,
    SERVE_WATCH_MAX = 100,
};

/* What the operations are called in the metrics: text as it stands there. */
#define SERVE_OPS(each)                                                                            \
    each(ACQUIRE, "acquire") each(RENEW, "renew") each(RELEASE, "release") each(LOCKS, "locks")    \
        each(LOCK, "lock") each(STORE, "store") each(METRICS, "metrics") each(HEALTHZ, "healthz")  \
            each(READYZ, "readyz") each(PAGE, "page") each(OTHER, "other")
enum serve_op {
#define SERVE_OP(symbol, text) OP_##symbol,
    SERVE_OPS(SERVE_OP)
#undef SERVE_OP
        OPS
};

/* What limits there are, likewise. */
#define SERVE_LIMITS(each)                                                                         \
    each(CLIENTS, "clients") each(WAITERS, "waiters") each(CREDENTIAL, "credential")
enum serve_limit {
#define SERVE_LIMIT(symbol, text) LIMIT_##symbol,
    SERVE_LIMITS(SERVE_LIMIT)
#undef SERVE_LIMIT
        LIMITS
};

struct serve_options {
    uint64_t max_clients;
    uint64_t max_waiters;
    uint32_t max_ttl_ms; /* the store's, or less */
    int64_t max_wait_ms;
    const char *hosts[SERVE_HOSTS_MAX]; /* further values of Host */
    size_t host_count;
    const char *watch[SERVE_WATCH_MAX]; /* names of locks, for the metrics */
    size_t watch_count;
    const char *credentials_file; /* NULL: none */
};

/* There is one. All of it may be used from every thread. */
struct serve {
    struct hf_store *store;
    struct serve_options options;
    char scheme[32]; /* of the store's URL */
    bool detached;   /* the store has detached leases: locks can be taken */
    int stop_fd;     /* readable once the server is to end */
    atomic_bool stopping;
    atomic_uint clients;
    atomic_uint waiters;
    struct metrics *metrics;
    struct credentials *credentials;
    struct attempts *attempts;
    struct listing *listing;
    struct readiness *readiness;
    struct streams *streams;
};

/* What somebody may do, or a route asks for. */
enum right {
    RIGHT_NONE, /* a route: anybody may, without saying who */
    RIGHT_ANY,  /* a route: anybody who is known */
    RIGHT_LOOK,
    RIGHT_LOCK,
    RIGHT_METRICS,
    RIGHTS
};

struct credential; /* credentials.h */

/* Who asks. */
struct who {
    char name[64]; /* the credential's, or the user's on a Unix socket; before labels */
    struct credential *credential; /* NULL: on a Unix socket, whose mode decides; may do all */
};

/* A request and what becomes of it. Filled in by connection.c and route.c. */
struct exchange {
    struct serve *serve;
    struct http_request request;
    int64_t read_at_ns; /* CLOCK_BOOTTIME when the request had been read */
    int fd;             /* the client's socket: to be looked at, not read */
    bool local;         /* it came by a Unix socket */
    uid_t uid;          /* then: whose process it was */
    struct who who;
    enum serve_op op;
    bool waited; /* the request stood in a queue: its time is no measure of the server */
    struct answer {
        int code;              /* 200, ... */
        enum hf_status status; /* what Holdfast-Status says */
        const char *type;      /* Content-Type; NULL: application/json */
        struct text body;
        struct text headers; /* further lines, each with its CRLF */
        bool close;          /* this was the last answer of the connection */
        bool sent;           /* it was a stream, and is on its way already */
        /* Called if the answer could not be sent; NULL: nobody minds. */
        void (*undelivered)(struct exchange *x);
    } answer;
    /* What undelivered gives back. */
    struct {
        char name[HF_NAME_MAX + 1];
        char owner[HF_OWNER_LEN + 1];
        uint64_t token;
    } granted;
};

typedef void serve_handler(struct exchange *x);

/* One line of the table in route.c. */
struct route {
    enum http_method method;
    const char *path;
    enum right right;
    enum serve_op op;
    serve_handler *handle;
};

/* The handlers. What they need of rights beyond the route's (a prefix) they ask with may. */
serve_handler serve_acquire, serve_renew, serve_release; /* acquire.c, hold.c */
serve_handler serve_locks, serve_lock, serve_store;      /* inspect.c */
serve_handler serve_healthz, serve_readyz;               /* inspect.c */

/* Finds the handler of x->request and calls it; or fills in why not. */
void serve_route(struct exchange *x);

/* Whether the one who asks has that right for the lock, or for all locks whose names start with
 * name (prefix). False: the answer says 403. */
bool serve_may(struct exchange *x, enum right right, const char *name);

/* The answer becomes an error as the status demands, with err's text: answer.c. */
void serve_fail(struct exchange *x, const struct hf_error *err);
/* The same with a code of its own, for what is HTTP's affair. */
void serve_refuse(struct exchange *x, int code, enum hf_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif /* HF_SERVE_SERVE_H */
