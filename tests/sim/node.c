/* node.c - the model of one node. */
#include "node.h"

void sim_node_expire(struct sim_node *node, int64_t wall_us)
{
    if (node->owner != 0 && wall_us >= node->expires_us)
        node->owner = 0;
}

static struct sim_answer answer(const struct sim_node *node, enum sim_verdict verdict)
{
    return (struct sim_answer){.verdict = verdict, .incarnation = node->incarnation};
}

struct sim_answer sim_node_grant(struct sim_node *node, const struct sim_rules *rules,
                                 const struct sim_grant *grant)
{
    struct sim_answer out;
    uint64_t owner = grant->owner;
    uint64_t guess = grant->guess;
    int64_t wall_us = grant->wall_us;
    uint64_t clk = wall_us > 0 ? (uint64_t)wall_us : 0;
    uint64_t apart = guess > clk ? guess - clk : clk - guess;

    if (wall_us < node->open_at_us)
        return answer(node, SIM_QUARANTINE);
    if (grant->incarnation != node->incarnation)
        return answer(node, SIM_NEW);
    sim_node_expire(node, wall_us);
    if (node->owner != 0 && !(rules->own_key_is_free && node->owner == owner))
        return answer(node, SIM_HELD);
    out = answer(node, SIM_YES);
    out.prev = node->counter;
    out.clk = rules->clock_ignored ? 0 : clk;
    out.applied =
        guess > node->counter && (rules->clock_ignored || apart <= (uint64_t)grant->window_us);
    if (node->owner == owner && guess == node->counter)
        out.applied = true;
    if (out.applied)
        node->counter = guess;
    node->unsure = !out.applied;
    node->owner = owner;
    node->broken = false;
    node->expires_us = wall_us + (int64_t)grant->ttl_ms * 1000;
    return out;
}

struct sim_answer sim_node_raise(struct sim_node *node, const struct sim_rules *rules,
                                 uint32_t incarnation, uint64_t owner, uint64_t token,
                                 int64_t wall_us)
{
    if (incarnation != node->incarnation)
        return answer(node, SIM_NEW);
    if (!sim_node_has(node, owner, wall_us) || node->broken ||
        (!rules->raise_unchecked && node->counter >= token))
        return answer(node, SIM_REFUSED);
    node->counter = token;
    node->unsure = false;
    return answer(node, SIM_YES);
}

/* A token below the one the node knows is that of no hold. One above may be: the node need not have
 * heard of it. */
static bool is_older(const struct sim_node *node, uint64_t token)
{
    return token != 0 && !node->unsure && node->counter > token;
}

struct sim_answer sim_node_renew(struct sim_node *node, const struct sim_rules *rules,
                                 uint64_t owner, uint64_t token, uint32_t ttl_ms, int64_t wall_us)
{
    struct sim_answer out;

    sim_node_expire(node, wall_us);
    if (node->owner != owner && !(rules->renew_creates && node->owner == 0))
        return answer(node, SIM_HELD);
    if (node->owner == owner && (is_older(node, token) || (node->broken && !rules->mark_ignored)))
        return answer(node, SIM_HELD);
    if (node->owner != owner)
        node->broken = false;
    node->owner = owner;
    node->expires_us = wall_us + (int64_t)ttl_ms * 1000;
    out = answer(node, SIM_YES);
    out.exact = !node->unsure && node->counter == token;
    return out;
}

struct sim_answer sim_node_release(struct sim_node *node, uint64_t owner, uint64_t token,
                                   int64_t wall_us)
{
    if (!sim_node_has(node, owner, wall_us) || is_older(node, token))
        return answer(node, SIM_HELD);
    node->owner = 0;
    return answer(node, SIM_YES);
}

struct sim_answer sim_node_revoke(struct sim_node *node, uint64_t owner, uint64_t token,
                                  int64_t wall_us)
{
    struct sim_answer out;

    if (!sim_node_has(node, owner, wall_us) || is_older(node, token))
        return answer(node, SIM_HELD);
    node->broken = true;
    out = answer(node, SIM_YES);
    out.exact = !node->unsure && node->counter == token;
    return out;
}

bool sim_node_has(const struct sim_node *node, uint64_t owner, int64_t wall_us)
{
    return node->owner == owner && wall_us < node->expires_us;
}

void sim_node_restart(struct sim_node *node, bool forgets, int64_t open_at_us)
{
    node->incarnation++;
    node->open_at_us = open_at_us;
    if (forgets) {
        node->owner = 0;
        node->counter = 0;
    }
}
