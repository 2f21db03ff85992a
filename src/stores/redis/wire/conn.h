/* conn.h - one connection to a Redis server: requests out, replies in, each with a deadline.
 *
 * The status tells whether the server may have acted: HF_UNREACHABLE means it cannot have seen the
 * whole request, HF_UNKNOWN that it may have. A connection that failed is broken for good. */
#ifndef HF_STORES_REDIS_WIRE_CONN_H
#define HF_STORES_REDIS_WIRE_CONN_H

#include "stores/redis/wire/dial.h"
#include "stores/redis/wire/reply.h"
#include "stores/redis/wire/request.h"
#include "stores/redis/wire/tls.h"

struct rd_conn {
    int fd;               /* -1: a name is being looked up */
    int64_t step_ns;      /* until it is connected: step again then at the latest */
    struct rd_dial *dial; /* until it is connected */
    const struct rd_tls_config *tls_config;
    char host[HF__HOST_MAX]; /* whom TLS must find there */
    bool shaking;            /* TLS is under way */
    short wants;             /* what to poll for until the next step */
    struct rd_tls *tls;      /* NULL: plain */
    struct rd_reader *reader;
    bool broken;
    bool late;       /* broken only because our patience ended: what is sent now may still arrive */
    bool shared;     /* with a parent process: free it, say nothing */
    bool silent;     /* broken because nothing came: the network may have forgotten it */
    int64_t sent_ns; /* when the last request went out */
    int64_t used_ns; /* when it was given back to the pool */
    struct rd_conn *next; /* in the pool that keeps it */
    unsigned asleep;      /* answers to wait for asleep before one is looked for awake again */
    unsigned nap;         /* how many it will be after one that comes too late */
    char why[160];        /* why it broke, as the end of a sentence */
};

/* Connects and, with a config, shakes hands. HF_OK, HF_UNREACHABLE, HF_DENIED, HF_CANCELLED,
 * HF_NOMEM; on failure *why is filled in. */
enum hf_status rd_conn_open(const struct hf__address *address, const struct rd_tls_config *tls,
                            const struct hf__patience *patience, struct rd_conn **out, char *why,
                            size_t why_size);
/* The same in steps, none of which waits. NULL: out of memory. */
struct rd_conn *rd_conn_begin(const struct hf__address *address, const struct rd_tls_config *tls);
/* False: under way; step again when fd has an event of wants, and at step_ns. True: over, with the
 * status that rd_conn_open would have; why tells. */
bool rd_conn_step(struct rd_conn *conn, enum hf_status *status);
void rd_conn_close(struct rd_conn *conn); /* takes NULL */

/* HF_OK, HF_UNREACHABLE, HF_CANCELLED (part of it may be sent), HF_NOMEM. */
enum hf_status rd_conn_send(struct rd_conn *conn, const struct rd_request *request,
                            const struct hf__patience *patience);
/* The next reply, which the caller frees; an error reply is a reply. HF_OK, HF_UNKNOWN,
 * HF_CANCELLED (the reply may still come, so the connection is broken). */
enum hf_status rd_conn_receive(struct rd_conn *conn, const struct hf__patience *patience,
                               struct rd_reply **out);
/* The next reply if it is there already, else NULL: waits for nothing. HF_OK, HF_UNKNOWN. */
enum hf_status rd_conn_glance(struct rd_conn *conn, struct rd_reply **out);
/* Looks for the next reply, awake, until then at the latest; not for long if that did not pay of
 * late. False: it is not here, whatever the reason; rd_conn_receive tells. */
bool rd_conn_peek(struct rd_conn *conn, int64_t until_ns, struct rd_reply **out);
/* Whether a connection that was left alone is still fit for use: nothing came, nothing ended. */
bool rd_conn_is_quiet(struct rd_conn *conn);

#endif /* HF_STORES_REDIS_WIRE_CONN_H */
