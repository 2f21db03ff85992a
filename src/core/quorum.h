/* quorum.h - one lock over N independent nodes: who has enough votes, and which token follows.
 *
 * Pure: the caller sends the requests, reports what came back and when, and does what the answer
 * says. The redlock store and the simulator drive the same functions. docs/redlock.md has the
 * proof.
 *
 * An acquire asks every node for GRANT(owner, ttl, guess). A node that grants answers its counter
 * before the grant (prev), its clock (clk), and whether it took the guess as its counter (applied).
 * Q = N/2 + 1 nodes that applied make the guess the token. Otherwise Q grants make a second round:
 * RAISE(owner, t) with a t above everything that the grants reported, and Q raises make t the
 * token. In that round clocks make tokens, so only nodes whose clocks are close to each other
 * count: those of the largest group of them. */
#ifndef HF_CORE_QUORUM_H
#define HF_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

enum { HF__QUORUM_NODES_MIN = 3, HF__QUORUM_NODES_MAX = 15 };

/* Why a node did not give its vote. */
enum hf__quorum_no {
    HF__NO_HELD,        /* another owner has the lock there; for renew and release: not ours */
    HF__NO_QUARANTINE,  /* it may have forgotten a grant and does not vote yet */
    HF__NO_UNREACHABLE, /* it cannot have seen the request, or answered an error */
    HF__NO_CLOCK,       /* it granted, but its clock is too far from the others' */
    HF__NO_ANSWER       /* nothing came in time; the request may have taken effect */
};

enum hf__quorum_action {
    HF__QUORUM_WAIT,  /* nothing to do yet, or any more */
    HF__QUORUM_RAISE, /* send RAISE(owner, token) to every node of hf__quorum_raises */
    HF__QUORUM_DONE,  /* enough votes */
    /* There cannot be enough any more, and it is settled why: after an acquire, release
     * everywhere. */
    HF__QUORUM_FAILED
};

/* What became of a vote that failed. */
enum hf__quorum_why {
    HF__WHY_HELD,        /* by another owner, or split between several; renew: lost. Certain */
    HF__WHY_QUARANTINE,  /* too many nodes in quarantine */
    HF__WHY_CLOCKS,      /* too few clocks are close to each other */
    HF__WHY_UNREACHABLE, /* too few nodes can be reached */
    HF__WHY_UNKNOWN,     /* the nodes that did not answer may have made a majority */
    HF__WHY_LATE,        /* the votes came when the lease was over already */
    HF__WHY_RAISED,      /* a node refused to raise its counter; try again */
    HF__WHY_TOKENS       /* no larger token is left: a counter is damaged */
};

enum hf__quorum_kind {
    HF__VOTE_ACQUIRE,
    HF__VOTE_EXTEND /* renew and release: a majority of yes or no, no token */
};

enum hf__quorum_state {
    HF__NODE_ASKED,
    HF__NODE_GRANTED, /* its answer came before the token was chosen */
    HF__NODE_RAISED,  /* likewise, and it has raised its counter to the token */
    HF__NODE_NO,      /* for the reason in `no` */
    HF__NODE_LATE     /* granted, but only after the token was chosen: it counts for nothing */
};

struct hf__quorum_node {
    enum hf__quorum_state state;
    enum hf__quorum_no no;
    bool voted;   /* it granted before the token was chosen */
    bool applied; /* it has the guess as its counter; for renew: it knows the token */
    uint64_t prev;
    uint64_t clk;
    int64_t offset_us; /* its clock, less ours */
};

enum hf__quorum_phase { HF__PHASE_GRANT, HF__PHASE_RAISE, HF__PHASE_DONE, HF__PHASE_FAILED };

/* One vote. The caller's memory; hf__quorum_start fills it in, nothing has to be freed. */
struct hf__quorum {
    enum hf__quorum_kind kind;
    enum hf__quorum_phase phase;
    enum hf__quorum_why why; /* once failed */
    unsigned count;          /* N, as configured */
    uint32_t ttl_ms;
    int64_t sent_at_ns;
    int64_t apart_us; /* clocks have to be closer than this */
    uint64_t guess;
    uint64_t token; /* while raising, and once done */
    struct hf__quorum_node node[HF__QUORUM_NODES_MAX];
};

/* The majority of count nodes. Always of the configured number, never of those that answer. */
unsigned hf__quorum_majority(unsigned count);

/* Begins an acquire. guess is the client's wall clock in microseconds; sent_at_ns is read before
 * the first request leaves; apart_us is how far from each other the clocks of nodes that count must
 * not be. count is odd, HF__QUORUM_NODES_MIN..MAX. */
void hf__quorum_start(struct hf__quorum *vote, unsigned count, uint32_t ttl_ms, uint64_t guess,
                      int64_t sent_at_ns, int64_t apart_us);
/* Begins a renewal or a release. ttl_ms 0: the moment of the answer does not matter (a release). */
void hf__quorum_start_extend(struct hf__quorum *vote, unsigned count, uint32_t ttl_ms,
                             int64_t sent_at_ns);

/* The events. Each of RAISE, DONE and FAILED is returned once; an answer that comes twice, or too
 * late to count, changes nothing. now_ns is a clock reading after the answer came. */

/* A node granted. */
enum hf__quorum_action hf__quorum_on_grant(struct hf__quorum *vote, unsigned node, uint64_t prev,
                                           bool applied, uint64_t clk, int64_t now_ns);
/* A node renewed or released. exact: it knows the hold by this very token, or the token does not
 * matter (a release). Others may have granted without hearing which token it became; any majority
 * has one that did, so without one the token is not the hold's. */
enum hf__quorum_action hf__quorum_on_yes(struct hf__quorum *vote, unsigned node, bool exact,
                                         int64_t now_ns);
/* A node raised its counter to vote->token. */
enum hf__quorum_action hf__quorum_on_raise(struct hf__quorum *vote, unsigned node, int64_t now_ns);
/* A node said no, failed or did not answer in time: to whatever it was asked last. */
enum hf__quorum_action hf__quorum_on_no(struct hf__quorum *vote, unsigned node,
                                        enum hf__quorum_no no, int64_t now_ns);

/* The largest group of clocks, of those known (as bits), in which any two are closer than apart_us:
 * as bits. offset_us: each clock less the same other one. */
unsigned hf__quorum_clocks(const int64_t *offset_us, unsigned known, unsigned count,
                           int64_t apart_us);

/* Whether RAISE goes to this node: its grant is one the token was computed from. */
bool hf__quorum_raises(const struct hf__quorum *vote, unsigned node);

/* False if the struct is in a state it must not be in. */
bool hf__quorum_consistent(const struct hf__quorum *vote);

#endif /* HF_CORE_QUORUM_H */
