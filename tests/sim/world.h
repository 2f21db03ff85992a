/* world.h - clients, nodes, a network and a resource under virtual time. One seed, one history.
 *
 * The clients run the production code: src/core/quorum.c decides over the nodes' answers,
 * src/core/lease.c over deadlines, src/core/wait.c when a vote that failed is followed by the next,
 * and src/core/keep.c is the keeper: when it looks, what it does then, what the answer means.
 * Everything else is made up here. */
#ifndef HF_TESTS_SIM_WORLD_H
#define HF_TESTS_SIM_WORLD_H

#include "core/keep.h"
#include "core/quorum.h"
#include "core/wait.h"
#include "node.h"

#define US 1000LL
#define MS 1000000LL
#define S  1000000000LL

enum { SIM_NODES_MAX = 7, SIM_CLIENTS_MAX = 4, SIM_EVENTS_MAX = 16384, SIM_TOKENS_MAX = 4096 };

/* One rule broken on purpose. */
enum sim_mutant {
    SIM_SOUND,
    SIM_OWNER_REUSED,
    SIM_RESENT,
    SIM_LATE_GRANT,
    SIM_RAISE_UNCHECKED,
    SIM_NOT_APPLIED,
    SIM_RENEW_CREATES,
    SIM_REACHABLE,
    SIM_TWO_NAMES,
    SIM_VOTES_AT_ONCE,
    SIM_CLOCK_IGNORED,
    SIM_CLOCKS_APART,
    SIM_MARK_IGNORED,
    SIM_ONE_BREAKS,
    SIM_MUTANTS
};
extern const char *const sim_mutant_names[SIM_MUTANTS];

/* What may go wrong in one history. */
struct sim_profile {
    unsigned nodes, clients;
    uint32_t ttl_ms, max_ttl_ms, node_timeout_ms, work_ms;
    unsigned drop_pm, dup_pm, slow_pm; /* messages in a thousand */
    bool partitions, pauses, crashes, forgets, node_steps, client_steps, fast_drift;
    bool bounded;        /* clocks and pauses are such that exclusion is promised */
    int64_t quiet_at_ns; /* from here on nothing goes wrong any more */
};

enum sim_op { OP_GRANT, OP_RAISE, OP_RENEW, OP_RELEASE, OP_REVOKE };

enum sim_kind {
    EV_REQUEST, /* at a node */
    EV_ANSWER,  /* at a client */
    EV_TIMEOUT, /* of the nodes that are silent */
    EV_TRY,     /* a client begins an attempt */
    EV_LOOK,    /* the keeper looks at its lease */
    EV_WRITE,   /* a client is ready to write */
    EV_ENTER,   /* a request at the resources */
    EV_STORE,   /* likewise */
    EV_STORED,  /* the client hears of it */
    EV_FAULT,
    EV_HEAL,
    EV_BREAK /* somebody breaks a hold */
};

struct sim_event {
    enum sim_kind kind;
    enum sim_op op;
    unsigned client, name; /* name: which of the client's nodes */
    uint32_t attempt;
    uint32_t round; /* of renewals */
    uint32_t incarnation;
    uint32_t ttl_ms;
    uint64_t owner, token;
    uint64_t value, unfenced;
    struct sim_answer answer;
};

struct sim_client {
    double rate;     /* of its clock */
    int64_t wall_us; /* its wall clock's distance from the truth */
    int64_t paused_until_ns;
    uint32_t attempt;
    uint64_t owner;
    struct hf__quorum vote, renewal;
    bool waiting;                  /* an acquire is under way, of one vote or many */
    struct hf__wait wait;          /* the library's */
    struct hf__wait_rounds rounds; /* the store's: between two votes for a lock that is held */
    bool renewing;
    uint32_t round;
    struct hf__lease_core lease;
    uint64_t token;
    int64_t began_ns;
    uint64_t floor;      /* the highest token returned before this attempt was called */
    uint64_t read_value; /* of the fenced resource */
    uint64_t read_plain; /* of the unfenced resource */
    uint32_t known[SIM_NODES_MAX];
    unsigned in_flight[SIM_NODES_MAX]; /* GRANTs of this owner */
    unsigned late_raise;               /* SIM_LATE_GRANT: nodes to be counted as others */
    bool resent;
    int64_t renewal_ns; /* when its last renewal was sent; in truth */
    int64_t broken_ns;  /* ghost: since when its hold is known to be broken; 0: it is not */
    bool breaking;      /* it breaks the hold of ... */
    unsigned victim;    /* ... that client, of that attempt */
    uint32_t victim_attempt;
    uint32_t break_round;
    struct hf__quorum revocation;
    bool lost;           /* ghost: fewer than a majority of keys are left */
    unsigned after_loss; /* where renewals of this round were executed since, as bits */
};

struct sim_world {
    struct sim_profile profile;
    struct sim_rules rules;
    enum sim_mutant mutant;
    uint64_t seed, random;
    bool trace;

    int64_t now_ns;
    struct sim_event events[SIM_EVENTS_MAX];
    struct sim_slot {
        int64_t at_ns;
        uint32_t order, event;
    } heap[SIM_EVENTS_MAX];
    unsigned heap_len, order;
    unsigned spare[SIM_EVENTS_MAX], spare_len;

    struct sim_node node[SIM_NODES_MAX];
    double node_rate[SIM_NODES_MAX];
    int64_t node_offset_us[SIM_NODES_MAX];
    bool down[SIM_NODES_MAX];
    bool cut_to[SIM_CLIENTS_MAX][SIM_NODES_MAX], cut_from[SIM_CLIENTS_MAX][SIM_NODES_MAX];
    int64_t last_ns[SIM_CLIENTS_MAX][SIM_NODES_MAX]; /* when the last request will arrive */
    struct sim_client client[SIM_CLIENTS_MAX];
    uint64_t next_owner;

    /* The resources: a counter behind a fence, and one without. */
    uint64_t fence, value, admitted;
    uint64_t plain_value, plain_writes;

    uint64_t tokens[SIM_TOKENS_MAX];
    unsigned token_count;
    uint64_t highest_token; /* of those returned */
    uint64_t ended_token;   /* of those whose hold is over */

    uint64_t attempts, handed_over, grants, second_rounds, renewals, losses, stale, after_quiet;
    uint64_t breaks;
    char failure[200]; /* the first thing that went wrong; "" */
};

/* world.c */
uint64_t sim_random(struct sim_world *world, uint64_t below);
bool sim_chance(struct sim_world *world, unsigned in_thousand);
void sim_at(struct sim_world *world, int64_t at_ns, const struct sim_event *event);
bool sim_next(struct sim_world *world, struct sim_event *out);
void sim_fail(struct sim_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_trace(const struct sim_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int64_t sim_node_wall_us(const struct sim_world *world, unsigned node);
/* Which node is meant by a client's name for it. */
unsigned sim_node_of(const struct sim_world *world, unsigned client, unsigned name);
/* A request to a node, or its answer, through a network that has bad days. */
void sim_send(struct sim_world *world, const struct sim_event *event);

/* client.c */
void sim_client_init(struct sim_world *world, unsigned client);
void sim_client_event(struct sim_world *world, const struct sim_event *event);

/* breaker.c: one client breaks the hold of another, as redlock/break.c does: it asks all nodes, and
 * only a majority of those that revoked counts. */
void sim_break(struct sim_world *world);
void sim_break_event(struct sim_world *world, const struct sim_event *event);

/* faults.c */
void sim_profile_draw(struct sim_world *world);
void sim_fault(struct sim_world *world);
void sim_heal(struct sim_world *world);

#endif /* HF_TESTS_SIM_WORLD_H */
