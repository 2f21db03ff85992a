/* redlock.h - one lock over N independent masters.
 *
 *   redlock.c        opening, closing, listing what is what
 *   redlock_node.c   one node: its connections, who it is, whether it votes
 *   redlock_round.c  one request to every node at once, and the answers as they come
 *   redlock_hold.c   acquire, renew, release: src/core/quorum.c decides, this asks
 *   redlock_list.c   what a majority of the nodes says is held
 */
#ifndef HF_STORES_REDIS_REDLOCK_H
#define HF_STORES_REDIS_REDLOCK_H

#include "core/quorum.h"
#include "stores/redis/redis.h"

enum {
    RL_OWED_MAX = 64,  /* answers a connection may be behind, before it is given up   */
    RL_RUN_ID_MAX = 64 /* bytes of a server's run_id, NUL included                    */
};

/* One node, in addition to what rd_node knows. The lock guards everything below it. */
struct rl_node {
    struct rd_node *node;
    pthread_mutex_t lock;
    struct rd_conn *idle; /* the one used last comes first */
    size_t idle_count;
    unsigned failures;   /* to reach it, in a row */
    int64_t retry_at_ns; /* it is not tried before */
    bool loaded;         /* it has our scripts */
    char run_id[RL_RUN_ID_MAX];
    char checked[RD_INCARNATION_LEN + 1]; /* the incarnation run_id and offset_us are of */
    int64_t offset_us;                    /* its clock, less our CLOCK_BOOTTIME          */
};

struct rl_store {
    struct rd_store rd; /* first: URL, TLS, and the nodes' rd_node */
    struct rl_node node[HF__QUORUM_NODES_MAX];
    unsigned count;
};

/* redlock.c */
enum hf_status rl_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                       struct hf_store_base **out, struct hf_error *err);

/* redlock_node.c */

/* A connection of one's own to the node. votes: it has to be fit for a GRANT, and id becomes its
 * incarnation; otherwise it may be in quarantine. HF_OK; HF_QUARANTINE with err->retry_after_ms;
 * HF_UNREACHABLE; HF_DENIED; HF_INVALID: it must not take part, the text says why. Blocks for the
 * node's timeout at most, and not at all on the usual way. */
enum hf_status rl_node_take(struct rl_store *store, unsigned index, bool votes,
                            struct rd_conn **out, char id[RD_INCARNATION_LEN + 1],
                            struct hf_error *err);
void rl_node_give(struct rl_store *store, unsigned index, struct rd_conn *conn); /* takes NULL */
/* Waits until deadline_ns for what is owed to nobody: a request that was sent must not be lost with
 * its connection. For the end of the store. */
void rl_node_settle(struct rl_store *store, unsigned index, int64_t deadline_ns);
/* The node says it does not know our scripts, or is another incarnation. */
void rl_node_unload(struct rl_store *store, unsigned index);

/* redlock_round.c */

/* One conversation with all nodes. */
struct rl_round {
    struct rl_store *store;
    struct rd_conn *conn[HF__QUORUM_NODES_MAX];
    unsigned pending[HF__QUORUM_NODES_MAX]; /* answers that are still to come */
    unsigned ready;                         /* nodes that poll said have something, as bits */
    char id[HF__QUORUM_NODES_MAX][RD_INCARNATION_LEN + 1];
    enum hf_status missing[HF__QUORUM_NODES_MAX]; /* why there is no connection; HF_OK: there is */
    struct hf_error note;                         /* the first trouble worth telling */
    int64_t retry_after_ms;                       /* of the nodes in quarantine; 0: none */
    struct rd_request request;                    /* for whoever builds one */
};

/* Takes a connection to every node that has one to give. */
void rl_round_begin(struct rl_round *round, struct rl_store *store, bool votes);
/* Sends round->request, and clears it. False: the node cannot have seen it. */
bool rl_round_send(struct rl_round *round, unsigned index);
/* The next answer of any node; the caller frees it. *reply NULL: that node's connection broke.
 * False: nothing came before deadline_ns, or nothing is pending. */
bool rl_round_next(struct rl_round *round, int64_t deadline_ns, unsigned *index,
                   struct rd_reply **reply);
/* Gives the connections back; answers that are pending are owed to nobody. */
void rl_round_end(struct rl_round *round);
/* Remembers what an error reply means; why a node said no. */
enum hf__quorum_no rl_round_error(struct rl_round *round, unsigned index, const char *lock,
                                  const struct rd_reply *reply);
/* Why a node that has no connection does not vote. */
enum hf__quorum_no rl_round_missing(const struct rl_round *round, unsigned index);
/* How long to wait for the answers to what is sent now. */
int64_t rl_round_deadline(const struct rl_round *round, int64_t limit_ns);

/* redlock_hold.c, redlock_list.c: slots of the table */
enum hf_status rl_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err);
enum hf_status rl_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err);
enum hf_status rl_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err);
enum hf_status rl_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err);

#endif /* HF_STORES_REDIS_REDLOCK_H */
