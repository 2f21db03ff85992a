/* redlock.h - one lock over N independent masters.
 *
 *   store.c            opening and closing
 *   break.c            breaking a hold: hold.c with another question
 *   acquire.c, hold.c  acquire; renew and release: src/core/quorum.c decides, these ask
 *   list.c             what a majority of the nodes says is held
 *   identity.c         who the redlock is; forget.c: a name for good
 *   errors.c           what to say when too few nodes are of use
 *   quarantine.c       telling of a quarantine, and ending it by hand
 *   round.c            one request to every node at once, and the answers as they come
 *   pool.c             the links that wait for the next caller
 *   link.c             one connection to a node, from nothing to ready, without waiting
 *   node.c             one node: who it is, whether it votes, what is still to be released there
 *   clock.c            how far the nodes' clocks are from each other
 *
 * Each calls those below it and is not called by them. */
#ifndef HF_STORES_REDIS_REDLOCK_REDLOCK_H
#define HF_STORES_REDIS_REDLOCK_REDLOCK_H

#include "core/quorum.h"
#include "stores/redis/redis.h"

enum {
    RL_OWED_MAX = 64,   /* answers a connection may be behind, before it is given up */
    RL_RUN_ID_MAX = 64, /* bytes of a server's run_id, NUL included */
    RL_DEBTS_MAX = 32,  /* releases a node is owed; more than these wait for their ttl */
    RL_MEET_MAX = 32,   /* answers of a meeting */
    RL_FLAGS_SIZE = 12  /* of a hold: "-"; "d" and a number, which tells attempts apart */
};

/* A release that a node has not confirmed. */
struct rl_debt {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    uint64_t token;            /* 0: whatever the owner holds */
    char flags[RL_FLAGS_SIZE]; /* of the attempt that is undone; "": it is no such release */
    int64_t until_ns;          /* the ttl has done it by then */
};

struct rl_debts {
    struct rl_debt items[RL_DEBTS_MAX];
    size_t count;
};

/* One node, in addition to what rd_node knows. The lock is for everything below it. */
struct rl_node {
    struct rd_node *node;
    pthread_mutex_t lock;
    struct rl_link *idle;       /* the one used last comes first */
    struct rl_link *silent;     /* set aside until they speak again */
    size_t idle_count;          /* of both */
    struct rl_link *coming;     /* on its way, left by a caller that could do without it */
    struct hf__backoff backoff; /* of new links */
    struct hf_error no;         /* code HF_OK, or why it does not vote */
    int64_t ask_at_ns;          /* and when to ask again; 0: it has to be met */
    int64_t open_at_ns;         /* the end of its quarantine */
    char run_id[RL_RUN_ID_MAX];
    bool clock_known;
    int64_t offset_us;     /* its clock, less our CLOCK_BOOTTIME */
    struct rl_debts debts; /* to be paid over the next connection */
};

struct rl_store {
    struct hf_store_base base;
    struct rd_setup setup;
    struct rl_node node[HF__QUORUM_NODES_MAX];
    unsigned count;
    int64_t timeout_ms; /* what a round may wait for one node */
};

/* store.c */
enum hf_status rl_open(const struct hf_host *host, const char *url, bool readonly,
                       int64_t deadline_ns, struct hf_store_base **out, struct hf_error *err);

/* node.c */

/* Whether the node votes, as far as we know. HF_OK: id is its incarnation. HF_UNKNOWN: it has to be
 * met. The rest, with its text: HF_QUARANTINE with err->retry_after_ms, HF_INVALID and others. */
enum hf_status rl_node_vote(struct rl_store *store, unsigned index, char id[RD_INCARNATION_LEN + 1],
                            struct hf_error *err);
/* Takes in what it answered when it was met: the handshake's replies, INFO server, TIME. late: TIME
 * is no use any more. */
void rl_node_met(struct rl_store *store, unsigned index, struct rd_reply *const *replies,
                 bool late);
/* HF_INVALID: another node is the same server under another name, and would have two votes. */
enum hf_status rl_node_alone(struct rl_store *store, unsigned index, struct hf_error *err);
/* The node says it does not know our scripts, or is another incarnation. */
void rl_node_unload(struct rl_store *store, unsigned index);
/* How reaching it went. One that cannot be reached is left alone for a while that grows. */
void rl_node_reached(struct rl_store *store, unsigned index, bool reached);
/* The owner may have the lock there: it is to be released as soon as the node can be reached. */
void rl_node_owe(struct rl_store *store, unsigned index, const struct rl_debt *debt);
/* Adds one; the oldest is dropped for lack of room: its ttl ends first, more or less. */
void rl_debts_add(struct rl_debts *debts, const struct rl_debt *debt);
/* Hands over what is owed; the node forgets it. */
void rl_node_take_debts(struct rl_store *store, unsigned index, struct rl_debts *out);

/* link.c */

/* One connection to a node, and how far it has come. */
enum rl_state { RL_CONNECTING, RL_MEETING, RL_READY };
struct rl_link {
    struct rl_link *next; /* in the node's list */
    struct rd_conn *conn;
    enum rl_state state;
    int64_t limit_ns; /* given up if there is no progress by then */
    int64_t used_ns;
    int64_t asked_ns;      /* the first request after it was heard last */
    int64_t heard_ns;      /* the last answer */
    unsigned owed;         /* answers that nobody waits for any more */
    struct rl_debts debts; /* releases among them: they fall back to the node */
    /* One of those answers was that the script is not known, and none of the releases counts as
     * done. */
    bool unloaded;
    unsigned heard, expected;
    struct rd_reply *replies[RL_MEET_MAX]; /* of a meeting */
};

/* A new one, on its way. NULL: out of memory. */
struct rl_link *rl_link_begin(struct rl_store *store, unsigned index);
void rl_link_close(struct rl_link *link, bool forked);
/* Closes a link that is no use any more; what it owes falls back to the node. Takes NULL. */
void rl_link_drop(struct rl_store *store, unsigned index, struct rl_link *link);
/* Takes an answer that nobody waits for, and frees it. */
void rl_link_past(struct rl_link *link, struct rd_reply *reply);
/* The releases that are not known to be done fall back to the node. */
void rl_link_return_debts(struct rl_store *store, unsigned index, struct rl_link *link);
/* Asks the node who it is, once more. */
void rl_link_meet(struct rl_store *store, unsigned index, struct rl_link *link);
/* Goes on as far as it can without waiting. False: on its way. True: ready, or broken (err). */
bool rl_link_step(struct rl_store *store, unsigned index, struct rl_link *link,
                  struct hf_error *err);
/* Sends our scripts once more, to a node that forgot them; nobody waits for the answers. False: the
 * connection broke. */
bool rl_link_load(struct rl_link *link);
/* Sends what is owed to the node, over a link that is ready. */
void rl_link_settle(struct rl_store *store, unsigned index, struct rl_link *link);
/* Writes the request that ends a hold at one node. flags: as in rl_debt. */
void rl_build_release(struct rd_request *request, const struct rd_keys *keys, const char *owner,
                      uint64_t token, const char *flags);
/* False: the connection broke. */
bool rl_link_send(struct rl_link *link, const struct rd_request *request);
/* The next answer that somebody waits for, if it has come. False: the connection broke. */
bool rl_link_glance(struct rl_link *link, struct rd_reply **reply);

/* clock.c */

/* How far from each other clocks must not be. */
int64_t rl_clocks_apart_us(const struct rl_store *store);
/* What time a node has, just now. */
void rl_node_clock(struct rl_store *store, unsigned index, int64_t clock_us);
/* Tells of every node whose clock is far from most others'. */
void rl_clocks_warn(struct rl_store *store);
/* HF_INVALID: no majority of the clocks is close together. */
enum hf_status rl_clocks_fail(struct rl_store *store, const char *lock, struct hf_error *err);

/* pool.c */

/* A link of one's own, ready or on its way. NULL: the node is not tried at present; err tells. */
struct rl_link *rl_link_take(struct rl_store *store, unsigned index, struct hf_error *err);
/* Gives it back, for the next one, even if it is on its way. Takes NULL. */
void rl_link_give(struct rl_store *store, unsigned index, struct rl_link *link);

/* errors.c */

/* What is wrong with the nodes. */
struct rl_troubles {
    struct hf_error worst; /* the first that somebody has to mend, else the first; HF_OK: none */
    unsigned to_mend;      /* nodes that will be of no use until somebody mends them */
};

/* Takes in what is wrong with one node. */
void rl_trouble_add(struct rl_troubles *troubles, const struct hf_error *err);
/* A text without the store's name: the end of a sentence that has it. */
const char *rl_without_store(const struct rl_store *store, const char *text);
/* The worst, likewise. */
const char *rl_trouble_text(const struct rl_store *store, const struct rl_troubles *troubles);
/* Fewer nodes than a majority gave an answer of use. The worst if so many have to be mended that
 * the others are no majority, else HF_UNREACHABLE. lock: NULL if it is about none. */
enum hf_status rl_too_few(const struct rl_store *store, const char *lock,
                          const struct rl_troubles *troubles, struct hf_error *err);

/* round.c */

enum rl_event {
    RL_ANSWER,  /* with a reply */
    RL_BROKE,   /* the connection did: nothing more comes */
    RL_AGAIN,   /* it had no script, so it did not act; now it has */
    RL_JOINED,  /* a node that was on its way may be sent to */
    RL_MISSING, /* it may not */
    RL_SILENCE  /* nothing came in time, or nothing is to come at all */
};

/* One conversation with all nodes. */
struct rl_round {
    struct rl_store *store;
    bool votes;
    struct rl_link *link[HF__QUORUM_NODES_MAX];
    bool joined[HF__QUORUM_NODES_MAX];      /* its link is ready, and it votes if it has to */
    unsigned pending[HF__QUORUM_NODES_MAX]; /* answers that are still to come */
    bool loaded[HF__QUORUM_NODES_MAX];      /* it was sent the scripts again */
    unsigned ready;                         /* nodes that poll said have something, as bits */
    char id[HF__QUORUM_NODES_MAX][RD_INCARNATION_LEN + 1];
    enum hf_status missing[HF__QUORUM_NODES_MAX]; /* why a node cannot be sent to */
    struct rl_troubles troubles;
    int64_t retry_after_ms;    /* of the nodes in quarantine; 0: none */
    struct rd_request request; /* for whoever builds one */
};

/* Takes a link to every node. Some have joined then, some are on their way, some are missing.
 * votes: a node has to be fit for a GRANT, otherwise it may be in quarantine. Never waits. */
void rl_round_begin(struct rl_round *round, struct rl_store *store, bool votes);
/* Whether the node may join yet. */
bool rl_round_coming(const struct rl_round *round, unsigned index);
/* Sends round->request, and clears it. False: the node cannot have seen it. */
bool rl_round_send(struct rl_round *round, unsigned index);
/* The next event of any node; the caller frees the reply of RL_ANSWER, else it is NULL. */
enum rl_event rl_round_next(struct rl_round *round, int64_t deadline_ns, unsigned *index,
                            struct rd_reply **reply);
/* Gives the links back; answers that are pending are owed to nobody. At the nodes of `left`, as
 * bits, the debt is a release that was to be the last request: it is kept until it is answered. */
void rl_round_end(struct rl_round *round, unsigned left, const struct rl_debt *debt);
/* A release of that owner and the claim's token, for that long. */
struct rl_debt rl_round_debt(const struct rl_round *round, const struct hf_claim *claim,
                             const char *owner, int64_t ttl_ms);
/* Remembers what an error reply means; why a node said no. */
enum hf__quorum_no rl_round_error(struct rl_round *round, unsigned index, const char *lock,
                                  const struct rd_reply *reply);
/* Why a node that has not joined does not vote. */
enum hf__quorum_no rl_round_missing(const struct rl_round *round, unsigned index);
/* Tells the vote that nothing more came in time: a node that was asked may have acted, one that has
 * not joined cannot. */
enum hf__quorum_action rl_round_time_out(const struct rl_round *round, struct hf__quorum *vote);
/* How long to wait for the answers to what is sent now. */
int64_t rl_round_deadline(const struct rl_round *round, int64_t limit_ns);

/* list.c */

/* Who has a lock, as one node tells it, or a majority of them. */
struct rl_holder {
    char owner[HF_OWNER_LEN + 1]; /* "": nobody */
    char foreign[40 + 1];         /* SHA-1 of what a client that is not holdfast wrote; else "" */
    int64_t remaining_ms;
    uint32_t ttl_ms;        /* 0: not known */
    int64_t renewed_ago_ms; /* < 0: not known */
    uint64_t token;
    int64_t age_ms;
    bool detached;
    char label[HF_LABEL_MAX + 1];
    bool broken;
    struct hf_revocation revocation;
};

/* Asks all nodes. HF_OK, even if nobody has it; else fewer than a majority answered. */
enum hf_status rl_find_holder(struct rl_store *store, const char *name, int64_t deadline_ns,
                              struct rl_holder *out, struct hf_error *err);

/* hold.c */

/* The same question to all about a hold, until a majority agrees: renewal, look, release, break. */
struct rl_poll {
    struct rl_store *store;
    const struct hf_claim *claim;
    enum rd_script_id script;
    const struct hf_revoke *revoke; /* of a break; else NULL */
    struct rd_keys keys;
    struct rl_round round;
    struct hf__quorum vote;
    enum hf_loss loss;
    struct hf_revocation revocation;            /* with HF_LOSS_BROKEN */
    int64_t remaining_ms[HF__QUORUM_NODES_MAX]; /* of those that hold it, in order */
    unsigned held;
    bool broken;      /* one of those says that it was */
    unsigned revoked; /* nodes that have broken it */
    uint32_t ttl_ms;  /* on record */
};

/* HF_OK: a majority said yes. HF_LOST: no majority can say yes any more. HF_UNKNOWN: too few
 * answered. HF_UNREACHABLE and others: too few were asked. */
enum hf_status rl_poll_all(struct rl_poll *poll, struct hf_error *err);

/* acquire.c, hold.c, break.c, list.c: slots of the table */
enum hf_status rl_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err);
enum hf_status rl_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err);
enum hf_status rl_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err);
enum hf_status rl_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err);
enum hf_status rl_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err);
/* identity.c: likewise */
enum hf_status rl_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report);
enum hf_status rl_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err);
/* quarantine.c: likewise */
enum hf_status rl_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err);
enum hf_status rl_end_quarantine(struct hf_store_base *base, const char *label, const char *reason,
                                 int64_t deadline_ns, struct hf_error *report);

#endif /* HF_STORES_REDIS_REDLOCK_REDLOCK_H */
