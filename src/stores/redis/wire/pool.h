/* pool.h - the connections to one server, and what all connections of a store have in common.
 *
 * Nothing in wire/ knows of locks, slots or incarnations. */
#ifndef HF_STORES_REDIS_WIRE_POOL_H
#define HF_STORES_REDIS_WIRE_POOL_H

#include "base/backoff.h"
#include "stores/redis/wire/conn.h"
#include <pthread.h>

enum {
    RD_IDLE_MAX = 32,    /* connections kept for later, per server */
    RD_CONNS_MAX = 1000, /* connections in use at once, per server, by acquires */
    RD_CONNS_SPARE = 24  /* more of them, for renewals and releases only */
};

/* What every connection of a store needs. */
struct rd_setup {
    const struct hf_host *host;
    struct rd_url url;
    struct rd_tls_config *tls;
    bool readonly; /* nothing is put on record at the servers */
};

/* Takes the URL apart, finds the passwords and reads the certificates. HF_OK, HF_INVALID,
 * HF_DENIED, HF_NOMEM; the caller releases it in any case. */
enum hf_status rd_setup_init(struct rd_setup *setup, const struct hf_host *host, const char *url,
                             struct hf_error *err);
void rd_setup_release(struct rd_setup *setup);

struct rd_pool {
    struct hf__address address;
    const struct rd_setup *setup;
    pthread_mutex_t lock; /* for what follows */
    struct rd_conn *idle;
    size_t idle_count;
    size_t conn_count;          /* in use and idle */
    struct hf__backoff backoff; /* of new connections */
};

/* False: out of memory. */
bool rd_pool_init(struct rd_pool *pool, const struct rd_setup *setup,
                  const struct hf__address *address);
/* forked: the connections belong to the parent process, nothing is said on them. */
void rd_pool_release(struct rd_pool *pool, bool forked);
/* A connection of one's own, from the pool or new; ends with rd_pool_give. urgent: a renewal or
 * release, which must not wait for acquires. HF_OK or what rd_conn_open answers, with a text. */
enum hf_status rd_pool_take(struct rd_pool *pool, bool urgent, const struct hf__patience *patience,
                            struct rd_conn **out, struct hf_error *err);
/* One that is idle and still good, or NULL. Waits for nothing. */
struct rd_conn *rd_pool_take_idle(struct rd_pool *pool);
void rd_pool_give(struct rd_pool *pool, struct rd_conn *conn);
/* Takes a connection, sends the request and collects count replies into an array of its own, all
 * on one server and with no second try. HF_OK, or HF_UNREACHABLE even if the server may have acted:
 * for requests that change nothing that matters. */
enum hf_status rd_pool_ask(struct rd_pool *pool, const struct rd_request *request, size_t count,
                           const struct hf__patience *patience, struct rd_reply **replies,
                           struct hf_error *err);
/* "store URL (host:port): " and so on, for errors of one server. */
enum hf_status rd_pool_fail(const struct rd_pool *pool, enum hf_status status, const char *why,
                            struct hf_error *err);

/* auth.c: what a new connection says first: who we are, which database. */
enum hf_status rd_greet(const struct rd_pool *pool, struct rd_conn *conn,
                        const struct hf__patience *patience, struct hf_error *err);

#endif /* HF_STORES_REDIS_WIRE_POOL_H */
