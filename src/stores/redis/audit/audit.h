/* audit.h - what can be learned about the servers of a Redis store, or the nodes of a Redlock,
 * without a change.
 *
 *   audit.c    which servers, in which order; what is told of all of them together
 *   info.c     what INFO and a few other questions tell, in one round trip
 *   rights.c   which commands are allowed, by asking for them in a way that does nothing
 *   clock.c    how long answers take, and how the clock runs
 *   endless.c  lock keys without a ttl */
#ifndef HF_STORES_REDIS_AUDIT_AUDIT_H
#define HF_STORES_REDIS_AUDIT_AUDIT_H

#include "base/fact.h"
#include "core/samples.h"
#include "stores/redis/redis.h"

enum { RD_WHERE_MAX = HF__HOST_MAX + 16 };

/* One server that is looked at. */
struct rd_audited {
    struct rd_node *node;
    char where[RD_WHERE_MAX];
    struct hf_error failed; /* code HF_OK, or why it is not looked at any more */
    char *info;             /* the answer to INFO; NULL: none */
    bool refuses;           /* writes of any kind */
    char peer[64];          /* the address that answered; "" for a socket file */
    struct hf__clock_reading first, last;
    struct hf__samples answers; /* how long they took */
};

struct rd_audit {
    struct rd_store *store;
    const struct hf_host *host;
    const struct hf_audit_query *query;
    struct hf__teller *teller;
    struct rd_audited *servers;
    size_t count;
};

/* The table's slot. */
enum hf_status rd_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err);

/* info.c */

/* Reads INFO, the first of several connections' worth: *servers tells how many different processes
 * answered. HF_OK, or failed is filled in. */
enum hf_status rd_audit_meet(struct rd_audited *server, const struct hf__patience *patience,
                             unsigned *servers);
/* A field of INFO, cut at size; false if it is not there. */
bool rd_audit_field(const char *info, const char *name, char *out, size_t size);
/* What it says of itself. */
void rd_audit_tell_info(const struct rd_audit *audit, const struct rd_audited *server);
/* What CONFIG GET says, where that is allowed; and the max_ttl that clients agreed on. */
void rd_audit_tell_settings(const struct rd_audit *audit, struct rd_audited *server,
                            const struct hf__patience *patience);

/* rights.c */
void rd_audit_tell_rights(const struct rd_audit *audit, struct rd_audited *server,
                          const struct hf__patience *patience);

/* clock.c */

/* Asks all servers for the time until enough of it has passed. */
void rd_audit_watch_clocks(struct rd_audit *audit);
void rd_audit_tell_clock(const struct rd_audit *audit, const struct rd_audited *server);
/* How far the nodes of a redlock are apart. */
void rd_audit_tell_clocks(const struct rd_audit *audit);

/* writes.c */
void rd_audit_tell_writes(const struct rd_audit *audit, struct rd_audited *server,
                          const struct hf__patience *patience);

/* endless.c */
void rd_audit_tell_endless(const struct rd_audit *audit, struct rd_audited *server,
                           const struct hf__patience *patience);

#endif /* HF_STORES_REDIS_AUDIT_AUDIT_H */
