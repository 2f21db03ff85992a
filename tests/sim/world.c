/* world.c - virtual time, chance, and the network. */
#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

uint64_t sim_random(struct sim_world *world, uint64_t below)
{
    uint64_t z = world->random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (uint64_t)(((unsigned __int128)z * below) >> 64);
}

bool sim_chance(struct sim_world *world, unsigned in_thousand)
{
    return in_thousand > 0 && sim_random(world, 1000) < in_thousand;
}

static bool earlier(const struct sim_slot *a, const struct sim_slot *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sim_at(struct sim_world *world, int64_t at_ns, const struct sim_event *event)
{
    struct sim_slot slot = {.at_ns = at_ns, .order = world->order++};
    unsigned i = world->heap_len;

    if (world->spare_len == 0) {
        sim_fail(world, "too many events at once");
        return;
    }
    slot.event = world->spare[--world->spare_len];
    world->events[slot.event] = *event;
    world->heap_len++;
    for (; i > 0 && earlier(&slot, &world->heap[(i - 1) / 2]); i = (i - 1) / 2)
        world->heap[i] = world->heap[(i - 1) / 2];
    world->heap[i] = slot;
}

bool sim_next(struct sim_world *world, struct sim_event *out)
{
    struct sim_slot last;
    unsigned i = 0;

    if (world->heap_len == 0)
        return false;
    assert(world->heap[0].at_ns >= world->now_ns);
    world->now_ns = world->heap[0].at_ns;
    *out = world->events[world->heap[0].event];
    world->spare[world->spare_len++] = world->heap[0].event;
    last = world->heap[--world->heap_len];
    for (;;) {
        unsigned child = 2 * i + 1;

        if (child >= world->heap_len)
            break;
        if (child + 1 < world->heap_len && earlier(&world->heap[child + 1], &world->heap[child]))
            child++;
        if (!earlier(&world->heap[child], &last))
            break;
        world->heap[i] = world->heap[child];
        i = child;
    }
    world->heap[i] = last;
    return true;
}

void sim_fail(struct sim_world *world, const char *format, ...)
{
    va_list args;

    if (world->failure[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(world->failure, sizeof world->failure, format, args);
    va_end(args);
}

void sim_trace(const struct sim_world *world, const char *format, ...)
{
    va_list args;

    if (!world->trace)
        return;
    printf("%12.3f ms  ", (double)world->now_ns / 1e6);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

int64_t sim_node_wall_us(const struct sim_world *world, unsigned node)
{
    /* An hour after the epoch of this world, so that a step back stays above 0. */
    return 7200 * 1000000LL + world->node_offset_us[node] +
           (int64_t)((double)(world->now_ns / US) * world->node_rate[node]);
}

unsigned sim_node_of(const struct sim_world *world, unsigned client, unsigned name)
{
    return world->mutant == SIM_TWO_NAMES && client == 0 && name == 1 ? 0 : name;
}

static int64_t delay_ns(struct sim_world *world)
{
    const struct sim_profile *profile = &world->profile;

    if (world->now_ns < profile->quiet_at_ns && sim_chance(world, profile->slow_pm))
        return (int64_t)sim_random(world, 10 * (uint64_t)profile->ttl_ms * MS);
    return 50 * US + (int64_t)sim_random(world, 400 * US);
}

void sim_send(struct sim_world *world, const struct sim_event *event)
{
    unsigned node = sim_node_of(world, event->client, event->name);
    bool quiet = world->now_ns >= world->profile.quiet_at_ns;
    unsigned copies = 1;
    int64_t *last_ns = &world->last_ns[event->client][node];
    int64_t at_ns;

    if (event->kind == EV_REQUEST ? world->cut_to[event->client][node]
                                  : world->cut_from[event->client][node])
        return;
    if (!quiet && sim_chance(world, world->profile.drop_pm))
        return;
    if (!quiet && sim_chance(world, world->profile.dup_pm))
        copies = 2;
    for (; copies > 0; copies--) {
        if (event->kind == EV_REQUEST && event->op == OP_GRANT &&
            event->owner == world->client[event->client].owner)
            world->client[event->client].in_flight[node]++;
        at_ns = world->now_ns + delay_ns(world);
        /* On good days a connection keeps the order of its requests. */
        if (quiet && event->kind == EV_REQUEST && at_ns <= *last_ns)
            at_ns = *last_ns + 1;
        if (quiet && event->kind == EV_REQUEST)
            *last_ns = at_ns;
        sim_at(world, at_ns, event);
    }
}
