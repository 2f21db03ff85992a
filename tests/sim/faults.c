/* faults.c - which bad days a history has, and when they come. */
#include "world.h"

#define HOUR_US (3600 * 1000000LL)

static bool half(struct sim_world *world)
{
    return sim_random(world, 2) == 0;
}

static double rate(struct sim_world *world, double spread)
{
    return 1.0 + spread * ((double)sim_random(world, 2001) - 1000.0) / 1000.0;
}

void sim_profile_draw(struct sim_world *world)
{
    struct sim_profile *profile = &world->profile;
    bool network = half(world);

    profile->nodes = 3 + 2 * (unsigned)sim_random(world, 3);
    profile->clients = 2 + (unsigned)sim_random(world, SIM_CLIENTS_MAX - 1);
    profile->ttl_ms = 200 + 100 * (uint32_t)sim_random(world, 6);
    profile->max_ttl_ms = profile->ttl_ms * (1 + (uint32_t)sim_random(world, 3));
    profile->node_timeout_ms = half(world) ? 50 : 2 * profile->ttl_ms;
    if (network) {
        profile->drop_pm = (unsigned)sim_random(world, 100);
        profile->dup_pm = (unsigned)sim_random(world, 300);
        profile->slow_pm = (unsigned)sim_random(world, 200);
    }
    profile->partitions = half(world);
    profile->pauses = half(world);
    profile->work_ms = sim_random(world, 4) == 0 ? 3 * profile->ttl_ms : 40;
    profile->crashes = half(world);
    profile->node_steps = sim_random(world, 3) == 0;
    profile->fast_drift = sim_random(world, 3) == 0;
    profile->client_steps = half(world);
    /* What a node that forgets grants next rests on the nodes' clocks: they must be about right. */
    profile->forgets = profile->crashes && !profile->node_steps && !profile->fast_drift;
    profile->bounded = !profile->node_steps && !profile->fast_drift;
    profile->quiet_at_ns = (4 + (int64_t)sim_random(world, 6)) * S;
    for (unsigned i = 0; i < profile->nodes; i++) {
        int64_t skew_us = (int64_t)profile->max_ttl_ms * 1000 / 6;

        world->node[i].incarnation = 1;
        world->node_rate[i] = rate(world, profile->fast_drift ? 0.1 : 0.001);
        world->node_offset_us[i] =
            (int64_t)sim_random(world, (uint64_t)(2 * skew_us)) * 9 / 10 - skew_us * 9 / 10;
    }
    /* A clock that is plainly wrong must do no harm, and no good either. */
    if (sim_random(world, 4) == 0)
        world->node_offset_us[sim_random(world, profile->nodes)] +=
            half(world) ? HOUR_US : -HOUR_US;
    for (unsigned i = 0; i < profile->clients; i++) {
        struct sim_client *client = &world->client[i];

        client->rate = rate(world, profile->fast_drift ? 0.1 : 0.003);
        client->wall_us = (int64_t)sim_random(world, 20000) - 10000;
        /* Tokens need no clock: then a client's may as well stand almost still. */
        if (!profile->bounded && sim_random(world, 4) == 0)
            client->rate = 0.02;
        for (unsigned node = 0; node < profile->nodes; node++)
            client->known[node] = 1;
    }
}

static void cut(struct sim_world *world, unsigned client, unsigned node)
{
    unsigned how = (unsigned)sim_random(world, 4);

    world->cut_to[client][node] = how & 1;
    world->cut_from[client][node] = how & 2;
}

static void step(struct sim_world *world, int64_t *wall_us)
{
    *wall_us = half(world) ? (int64_t)sim_random(world, 20000) - 10000
                           : (int64_t)sim_random(world, 7200 * 1000000ULL) - 3600 * 1000000LL;
}

static void crash(struct sim_world *world, unsigned node)
{
    bool forgets = world->profile.forgets && half(world);

    if (!world->down[node] && half(world)) {
        world->down[node] = true;
        sim_trace(world, "node %u stops", node);
        return;
    }
    world->down[node] = false;
    sim_node_restart(&world->node[node], forgets,
                     world->mutant == SIM_VOTES_AT_ONCE
                         ? 0
                         : sim_node_wall_us(world, node) + world->profile.max_ttl_ms * 1000LL);
    sim_trace(world, "node %u starts%s", node, forgets ? ", and has forgotten everything" : "");
}

void sim_fault(struct sim_world *world)
{
    const struct sim_profile *profile = &world->profile;
    unsigned node = (unsigned)sim_random(world, profile->nodes);
    unsigned client = (unsigned)sim_random(world, profile->clients);
    struct sim_event next = {.kind = EV_FAULT};

    if (world->now_ns >= profile->quiet_at_ns)
        return;
    switch (sim_random(world, 6)) {
    case 0:
        if (profile->partitions)
            cut(world, client, node);
        break;
    case 1:
        for (unsigned i = 0; profile->partitions && i < profile->clients; i++)
            cut(world, i, node);
        break;
    case 2:
        if (profile->pauses)
            world->client[client].paused_until_ns =
                world->now_ns + (int64_t)sim_random(world, 4 * (uint64_t)profile->ttl_ms * MS);
        break;
    case 3:
        if (profile->crashes)
            crash(world, node);
        break;
    case 4:
        if (profile->node_steps)
            step(world, &world->node_offset_us[node]);
        break;
    case 5:
        if (profile->client_steps)
            step(world, &world->client[client].wall_us);
        break;
    }
    sim_at(world, world->now_ns + 5 * MS + (int64_t)sim_random(world, 250 * MS), &next);
}

/* The client's clock is right from now on. A pause that it counts by that clock ends when it says
 * so, and not when the slow one would have. */
static void heal_clock(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];
    unsigned pending = world->heap_len;

    for (unsigned i = 0; i < pending; i++) {
        struct sim_event event = world->events[world->heap[i].event];
        int64_t left_ns = world->heap[i].at_ns - world->now_ns;

        /* The first of the two that comes makes a new attempt; the other finds its own over. */
        if (event.kind == EV_TRY && event.client == index && event.attempt == client->attempt)
            sim_at(world, world->now_ns + (int64_t)((double)left_ns * client->rate), &event);
    }
    client->rate = 1;
}

void sim_heal(struct sim_world *world)
{
    const struct sim_profile *profile = &world->profile;

    sim_trace(world, "everything is well again");
    for (unsigned node = 0; node < profile->nodes; node++) {
        while (world->down[node])
            crash(world, node);
        if (!profile->bounded) {
            world->node_rate[node] = 1;
            world->node_offset_us[node] = 0;
        }
    }
    for (unsigned client = 0; client < profile->clients; client++) {
        for (unsigned node = 0; node < profile->nodes; node++)
            world->cut_to[client][node] = world->cut_from[client][node] = false;
        world->client[client].wall_us = 0;
        if (!profile->bounded)
            heal_clock(world, client);
        /* A key that was set by a clock an hour ahead lives an hour. */
        if (profile->node_steps)
            world->client[client].paused_until_ns = world->now_ns + 2 * 3600 * S;
    }
}
