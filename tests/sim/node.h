/* node.h - the model of one node of a redlock store: what its scripts do, as plain functions.
 * tests/unit/test_redis_node_model.c runs the same operations against real Redis and compares every
 * answer. */
#ifndef HF_TESTS_SIM_NODE_H
#define HF_TESTS_SIM_NODE_H

#include <stdbool.h>
#include <stdint.h>

/* One lock at one node. Times are in microseconds of the node's own wall clock. */
struct sim_node {
    uint64_t owner; /* 0: free */
    bool broken;    /* its hold is: there is a mark behind the owner */
    int64_t expires_us;
    uint64_t counter;
    bool unsure; /* the counter has nothing to do with the owner's token */
    uint32_t incarnation;
    int64_t open_at_us; /* no votes before: quarantine */
};

enum sim_verdict { SIM_YES, SIM_HELD, SIM_REFUSED, SIM_NEW, SIM_QUARANTINE };

struct sim_answer {
    enum sim_verdict verdict;
    bool applied;
    bool exact; /* renew: it knows the hold by this token */
    uint64_t prev;
    uint64_t clk;
    uint32_t incarnation;
};

/* Rules a test may break, to see that it is noticed. */
struct sim_rules {
    bool raise_unchecked;
    bool renew_creates;
    bool clock_ignored;
    bool own_key_is_free; /* GRANT answers yes if the key is the asker's already */
    bool mark_ignored;    /* RENEW finds what was broken */
};

/* GRANT, as it comes to a node whose clock shows wall_us. */
struct sim_grant {
    uint32_t incarnation;
    uint64_t owner;
    uint32_t ttl_ms;
    uint64_t guess;
    int64_t window_us;
    int64_t wall_us;
};
struct sim_answer sim_node_grant(struct sim_node *node, const struct sim_rules *rules,
                                 const struct sim_grant *grant);
struct sim_answer sim_node_raise(struct sim_node *node, const struct sim_rules *rules,
                                 uint32_t incarnation, uint64_t owner, uint64_t token,
                                 int64_t wall_us);
struct sim_answer sim_node_renew(struct sim_node *node, const struct sim_rules *rules,
                                 uint64_t owner, uint64_t token, uint32_t ttl_ms, int64_t wall_us);
/* token 0: whatever the owner holds. */
struct sim_answer sim_node_release(struct sim_node *node, uint64_t owner, uint64_t token,
                                   int64_t wall_us);
/* Marks the hold: it is no longer renewed, and its time stays as it is. */
struct sim_answer sim_node_revoke(struct sim_node *node, uint64_t owner, uint64_t token,
                                  int64_t wall_us);
/* Deletes the key if its time is up: a clock that goes back does not bring it back then. */
void sim_node_expire(struct sim_node *node, int64_t wall_us);
/* Whether that owner has the lock here now. */
bool sim_node_has(const struct sim_node *node, uint64_t owner, int64_t wall_us);
/* A new life of the server, with or without what it knew; it votes from open_at_us on. */
void sim_node_restart(struct sim_node *node, bool forgets, int64_t open_at_us);

#endif /* HF_TESTS_SIM_NODE_H */
