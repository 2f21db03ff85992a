/* directed.c - two histories of the model checker's, played with the real code. */
#include "directed.h"

#include <stdio.h>

enum { B = 1, C = 2, TTL_MS = 100 };

static char failure[120];

const char *directed_failure(void)
{
    return failure;
}

struct story {
    struct sim_rules rules;
    struct sim_node node[3];
    struct hf__quorum b, c;
};

static void begin(struct story *story)
{
    for (unsigned i = 0; i < 3; i++)
        story->node[i] = (struct sim_node){.counter = 500000, .incarnation = 1};
    hf__quorum_start(&story->b, 3, TTL_MS, 1, 0, INT64_MAX);
    hf__quorum_start(&story->c, 3, TTL_MS, 1, 0, INT64_MAX);
}

/* GRANT at a node, and its answer to the client at once. */
static void grant(struct story *story, unsigned index, uint64_t owner, int64_t wall_us)
{
    struct hf__quorum *vote = owner == B ? &story->b : &story->c;
    struct sim_node *node = &story->node[index];
    struct sim_answer answer = sim_node_grant(node, &story->rules,
                                              &(struct sim_grant){.incarnation = node->incarnation,
                                                                  .owner = owner,
                                                                  .ttl_ms = TTL_MS,
                                                                  .guess = vote->guess,
                                                                  .wall_us = wall_us});

    if (answer.verdict == SIM_YES)
        (void)hf__quorum_on_grant(vote, index, answer.prev, answer.applied, answer.clk, 0);
}

/* RAISE at a node, and its answer, which counts as the one of `as`. */
static void raise_at(struct story *story, unsigned index, unsigned as, uint64_t owner,
                     int64_t wall_us)
{
    struct hf__quorum *vote = owner == B ? &story->b : &story->c;
    struct sim_node *node = &story->node[index];
    struct sim_answer answer =
        sim_node_raise(node, &story->rules, node->incarnation, owner, vote->token, wall_us);

    if (answer.verdict == SIM_YES)
        (void)hf__quorum_on_raise(vote, as, 0);
}

static bool end(const struct story *story)
{
    if (story->b.phase != HF__PHASE_DONE)
        (void)snprintf(failure, sizeof failure, "the story did not come so far");
    else if (story->c.phase == HF__PHASE_DONE && story->b.token == story->c.token)
        (void)snprintf(failure, sizeof failure, "token %llu was given twice",
                       (unsigned long long)story->c.token);
    return failure[0] == '\0';
}

/* B raises node 2, node 2 forgets and comes back after quarantine. C is granted at nodes 0 and 1,
 * its key at node 0 expires, and B's second raise arrives there at last. If C now counted the late
 * grant of node 2, which knows of nothing, both would have the same token. */
static bool late_grant(enum sim_mutant mutant)
{
    struct story story = {0};

    begin(&story);
    grant(&story, 0, B, 1000);
    grant(&story, 2, B, 1000);
    (void)hf__quorum_on_no(&story.b, 1, HF__NO_ANSWER, 0);
    raise_at(&story, 2, 2, B, 1000);
    sim_node_restart(&story.node[2], true, 1000000);
    grant(&story, 0, C, 200000);
    grant(&story, 1, C, 200000);
    grant(&story, 0, B, 400000); /* B's GRANT, delivered twice */
    raise_at(&story, 0, 0, B, 400000);
    raise_at(&story, 1, 1, C, 200000);
    grant(&story, 2, C, 1000000);
    if (mutant == SIM_LATE_GRANT)
        raise_at(&story, 2, 0, C, 1000000);
    else if (hf__quorum_raises(&story.c, 2))
        raise_at(&story, 2, 2, C, 1000000);
    return end(&story);
}

/* C is granted at nodes 0 and 1, and its keys expire. B is granted there, raises and ends. C's
 * GRANTs are delivered twice, and its RAISEs come only now. */
static bool late_raise(enum sim_mutant mutant)
{
    struct story story = {.rules = {.raise_unchecked = mutant == SIM_RAISE_UNCHECKED}};

    begin(&story);
    for (unsigned i = 0; i < 2; i++)
        grant(&story, i, C, 1000);
    for (unsigned i = 0; i < 2; i++)
        grant(&story, i, B, 200000);
    for (unsigned i = 0; i < 2; i++)
        raise_at(&story, i, i, B, 200000);
    for (unsigned i = 0; i < 2; i++) {
        grant(&story, i, C, 400000);
        raise_at(&story, i, i, C, 400000);
    }
    return end(&story);
}

bool directed(enum sim_mutant mutant)
{
    return late_grant(mutant) && late_raise(mutant);
}
