/* breaker.c - one client breaks the hold of another. It would have heard from a majority who holds
 * the lock; here it just knows. */
#include "client.h"

/* The break was answered: from here on no renewal of that hold may succeed. */
static void conclude(struct sim_world *world, unsigned index, enum hf__quorum_action action)
{
    struct sim_client *client = &world->client[index];
    struct sim_client *victim = &world->client[client->victim];

    if (action == HF__QUORUM_WAIT)
        return;
    client->breaking = false;
    if (action != HF__QUORUM_DONE)
        return;
    world->breaks++;
    sim_trace(world, "client %u has broken the hold of client %u", index, client->victim);
    if (victim->attempt == client->victim_attempt && victim->broken_ns == 0)
        victim->broken_ns = world->now_ns;
}

static void begin(struct sim_world *world, unsigned index, unsigned victim)
{
    struct sim_client *client = &world->client[index];
    struct sim_event event = {.kind = EV_REQUEST,
                              .op = OP_REVOKE,
                              .client = index,
                              .attempt = world->client[victim].attempt,
                              .round = ++client->break_round,
                              .owner = world->client[victim].owner,
                              .token = world->client[victim].token};

    client->breaking = true;
    client->victim = victim;
    client->victim_attempt = event.attempt;
    hf__quorum_start_extend(&client->revocation, world->profile.nodes, world->profile.ttl_ms,
                            sim_client_now(world, client));
    for (event.name = 0; event.name < world->profile.nodes; event.name++)
        sim_send(world, &event);
    event.kind = EV_TIMEOUT;
    sim_at(world, world->now_ns + world->profile.node_timeout_ms * MS, &event);
}

void sim_break(struct sim_world *world)
{
    unsigned index = (unsigned)sim_random(world, world->profile.clients);
    unsigned victim = (unsigned)sim_random(world, world->profile.clients);
    const struct sim_client *holder = &world->client[victim];
    struct sim_event next = {.kind = EV_BREAK};

    if (world->now_ns >= world->profile.quiet_at_ns)
        return;
    if (!world->client[index].breaking &&
        hf__lease_remaining_ms(&holder->lease, sim_client_now(world, holder)) > 0)
        begin(world, index, victim);
    sim_at(world, world->now_ns + (int64_t)sim_random(world, 200 * MS), &next);
}

static enum hf__quorum_action answered(struct sim_world *world, const struct sim_event *event)
{
    struct sim_client *client = &world->client[event->client];
    int64_t now_ns = sim_client_now(world, client);

    if (event->answer.verdict != SIM_YES)
        return hf__quorum_on_no(&client->revocation, event->name, HF__NO_HELD, now_ns);
    if (world->mutant == SIM_ONE_BREAKS)
        return HF__QUORUM_DONE;
    return hf__quorum_on_yes(&client->revocation, event->name, event->answer.exact, now_ns);
}

void sim_break_event(struct sim_world *world, const struct sim_event *event)
{
    struct sim_client *client = &world->client[event->client];

    if (!client->breaking || event->round != client->break_round)
        return;
    if (event->kind == EV_ANSWER) {
        conclude(world, event->client, answered(world, event));
        return;
    }
    for (unsigned name = 0; name < world->profile.nodes && client->breaking; name++)
        conclude(world, event->client,
                 hf__quorum_on_no(&client->revocation, name, HF__NO_ANSWER,
                                  sim_client_now(world, client)));
}
