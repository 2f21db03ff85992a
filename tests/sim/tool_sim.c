/* tool_sim.c - histories of a redlock store under virtual time, one per seed.
 *
 *   tool_sim [--seeds N] [--first S] [--mutant NAME]    N histories; with a mutant, until one fails
 *   tool_sim --seed S [--mutant NAME] --trace           one history, told
 *   tool_sim --mutants                                  their names
 *
 * Exit 0: no history failed. 1: one did; its seed and the command that replays it are printed. */
#include "world.h"
#include "directed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const sim_mutant_names[SIM_MUTANTS] = {
    "sound",         "owner-reused",  "resent",       "late-grant", "raise-unchecked",
    "not-applied",   "renew-creates", "reachable",    "two-names",  "votes-at-once",
    "clock-ignored", "clocks-apart",  "mark-ignored", "one-breaks"};

enum { LAST_PAUSE_S = 60 }; /* to sleep after a failure and ask again, by the slowest of clocks */

static struct sim_world world; /* too large for the stack */

static void at_node(const struct sim_event *event)
{
    struct sim_client *client = &world.client[event->client];
    unsigned index = sim_node_of(&world, event->client, event->name);
    struct sim_node *node = &world.node[index];
    int64_t wall_us = sim_node_wall_us(&world, index);
    int64_t window_us = world.profile.max_ttl_ms * 1000LL / 6;
    struct sim_event reply = *event;

    if (event->op == OP_GRANT && event->owner == client->owner)
        client->in_flight[index]--;
    if (world.down[index])
        return;
    if (window_us > 10 * S / US)
        window_us = 10 * S / US;
    switch (event->op) {
    case OP_GRANT:
        reply.answer = sim_node_grant(node, &world.rules,
                                      &(struct sim_grant){.incarnation = event->incarnation,
                                                          .owner = event->owner,
                                                          .ttl_ms = event->ttl_ms,
                                                          .guess = event->token,
                                                          .window_us = window_us,
                                                          .wall_us = wall_us});
        break;
    case OP_RAISE:
        reply.answer = sim_node_raise(node, &world.rules, event->incarnation, event->owner,
                                      event->token, wall_us);
        break;
    case OP_RENEW:
        if (event->owner == client->owner && !client->lost) {
            unsigned keys = 0;

            for (unsigned i = 0; i < world.profile.nodes; i++) {
                sim_node_expire(&world.node[i], sim_node_wall_us(&world, i));
                keys += client->in_flight[i] > 0 ||
                        sim_node_has(&world.node[i], event->owner, sim_node_wall_us(&world, i));
            }
            client->lost = keys < hf__quorum_majority(world.profile.nodes);
        }
        reply.answer =
            sim_node_renew(node, &world.rules, event->owner, event->token, event->ttl_ms, wall_us);
        if (reply.answer.verdict == SIM_YES && client->lost && event->round == client->round)
            client->after_loss |= 1u << event->name; /* a request may come twice */
        break;
    case OP_REVOKE:
        reply.answer = sim_node_revoke(node, event->owner, event->token, wall_us);
        break;
    case OP_RELEASE:
        (void)sim_node_release(node, event->owner, event->token, wall_us);
        return;
    }
    reply.kind = EV_ANSWER;
    sim_send(&world, &reply);
}

static void at_resource(const struct sim_event *event)
{
    struct sim_client *client = &world.client[event->client];
    struct sim_event next = *event;

    if (event->kind == EV_ENTER && event->token >= world.fence) {
        world.fence = event->token;
        if (event->attempt == client->attempt) {
            client->read_value = world.value;
            client->read_plain = world.plain_value;
            next.kind = EV_WRITE;
            sim_at(&world, world.now_ns + (int64_t)sim_random(&world, world.profile.work_ms * MS),
                   &next);
        }
    } else if (event->kind == EV_ENTER) {
        world.stale++;
        next.kind = EV_STORED; /* nothing to do: end */
        sim_client_event(&world, &next);
    } else {
        world.plain_value = event->unfenced;
        world.plain_writes++;
        if (event->token >= world.fence) {
            world.fence = event->token;
            world.admitted++;
            if (event->value != world.value + 1)
                sim_fail(&world, "the fenced resource lost an update: %llu after %llu",
                         (unsigned long long)event->value, (unsigned long long)world.value);
            world.value = event->value;
        } else {
            world.stale++;
        }
        next.kind = EV_STORED;
        sim_client_event(&world, &next);
    }
}

static void set_up(uint64_t seed, enum sim_mutant mutant, bool trace)
{
    struct sim_event fault = {.kind = EV_FAULT}, heal = {.kind = EV_HEAL};
    struct sim_event first_break = {.kind = EV_BREAK};

    memset(&world, 0, offsetof(struct sim_world, events));
    memset((char *)&world + offsetof(struct sim_world, node), 0,
           sizeof world - offsetof(struct sim_world, node));
    world.heap_len = world.order = 0;
    world.spare_len = SIM_EVENTS_MAX;
    for (unsigned i = 0; i < SIM_EVENTS_MAX; i++)
        world.spare[i] = SIM_EVENTS_MAX - 1 - i;
    world.seed = seed;
    world.random = seed * 0x2545f4914f6cdd1du + 1;
    world.mutant = mutant;
    world.trace = trace;
    world.rules = (struct sim_rules){.raise_unchecked = mutant == SIM_RAISE_UNCHECKED,
                                     .renew_creates = mutant == SIM_RENEW_CREATES,
                                     .clock_ignored = mutant == SIM_CLOCK_IGNORED,
                                     .own_key_is_free = mutant == SIM_TWO_NAMES,
                                     .mark_ignored = mutant == SIM_MARK_IGNORED};
    sim_profile_draw(&world);
    for (unsigned i = 0; i < world.profile.clients; i++)
        sim_client_init(&world, i);
    sim_at(&world, (int64_t)sim_random(&world, 100 * MS), &fault);
    sim_at(&world, world.profile.quiet_at_ns, &heal);
    if (sim_chance(&world, 500))
        sim_at(&world, (int64_t)sim_random(&world, 500 * MS), &first_break);
}

/* Returns false if something went wrong; world.failure says what. */
static bool history(uint64_t seed, enum sim_mutant mutant, bool trace)
{
    struct sim_event event;
    int64_t end_ns;

    set_up(seed, mutant, trace);
    end_ns = world.profile.quiet_at_ns +
             (world.profile.max_ttl_ms + 20 * world.profile.ttl_ms) * MS + LAST_PAUSE_S * S +
             (world.profile.node_steps ? 2 * 3600 * S : 0);
    while (world.failure[0] == '\0' && sim_next(&world, &event)) {
        if (world.now_ns >= end_ns || world.after_quiet >= 20)
            break;
        if (event.kind == EV_REQUEST)
            at_node(&event);
        else if (event.kind == EV_ENTER || event.kind == EV_STORE)
            at_resource(&event);
        else if (event.kind == EV_FAULT)
            sim_fault(&world);
        else if (event.kind == EV_HEAL)
            sim_heal(&world);
        else if (event.kind == EV_BREAK)
            sim_break(&world);
        else
            sim_client_event(&world, &event);
    }
    if (world.after_quiet == 0)
        sim_fail(&world, "nobody got the lock after everything was well again");
    if (world.value != world.admitted)
        sim_fail(&world, "the fenced resource lost an update");
    return world.failure[0] == '\0';
}

struct totals {
    uint64_t attempts, handed_over, grants, second_rounds, renewals, losses, stale, lost_plain;
    uint64_t breaks;
};

static void add(struct totals *totals)
{
    totals->attempts += world.attempts;
    totals->handed_over += world.handed_over;
    totals->grants += world.grants;
    totals->second_rounds += world.second_rounds;
    totals->renewals += world.renewals;
    totals->losses += world.losses;
    totals->stale += world.stale;
    totals->breaks += world.breaks;
    totals->lost_plain += world.plain_writes - world.plain_value;
}

/* Of one core, whoever else uses it meanwhile. */
static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int many(uint64_t first, uint64_t seeds, enum sim_mutant mutant)
{
    struct totals totals = {0};
    double began = seconds(), took;

    if (!directed(mutant)) {
        printf("a directed history failed (%s): %s\n", sim_mutant_names[mutant],
               directed_failure());
        return 1;
    }
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        if (!history(seed, mutant, false)) {
            printf("seed %llu failed: %s\nreplay: build/tests/sim/tool_sim --seed %llu --mutant %s "
                   "--trace\n",
                   (unsigned long long)seed, world.failure, (unsigned long long)seed,
                   sim_mutant_names[mutant]);
            return 1;
        }
        add(&totals);
    }
    took = seconds() - began;
    printf("seeds %llu attempts %llu begun_anew %llu acquisitions %llu second_rounds %llu renewals "
           "%llu "
           "losses %llu breaks %llu stale_refused %llu unfenced_lost %llu acquisitions_per_s %.0f "
           "attempts_per_s %.0f\n",
           (unsigned long long)seeds, (unsigned long long)totals.attempts,
           (unsigned long long)totals.handed_over, (unsigned long long)totals.grants,
           (unsigned long long)totals.second_rounds, (unsigned long long)totals.renewals,
           (unsigned long long)totals.losses, (unsigned long long)totals.breaks,
           (unsigned long long)totals.stale, (unsigned long long)totals.lost_plain,
           (double)totals.grants / took, (double)totals.attempts / took);
    return 0;
}

static enum sim_mutant mutant_of(const char *name)
{
    for (unsigned i = 0; i < SIM_MUTANTS; i++)
        if (strcmp(name, sim_mutant_names[i]) == 0)
            return (enum sim_mutant)i;
    fprintf(stderr, "sim: no mutant is called %s\n", name);
    exit(64);
}

int main(int argc, char **argv)
{
    enum sim_mutant mutant = SIM_SOUND;
    uint64_t first = 1, seeds = 1000;
    bool one = false, trace = false;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--mutants") == 0) {
            for (unsigned m = 1; m < SIM_MUTANTS; m++)
                puts(sim_mutant_names[m]);
            return 0;
        }
        if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
            continue;
        }
        if (strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            first = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            first = strtoull(value, NULL, 10), one = true;
        else if (strcmp(argv[i], "--mutant") == 0)
            mutant = mutant_of(value);
        else {
            fprintf(stderr, "sim: what is %s?\n", argv[i]);
            return 64;
        }
        i++;
    }
    if (!one)
        return many(first, seeds, mutant);
    if (history(first, mutant, trace))
        return 0;
    printf("seed %llu failed: %s\n", (unsigned long long)first, world.failure);
    return 1;
}
