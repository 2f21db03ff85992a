/* client.c - a client of the simulation: takes the lock, adds one to both resources, gives it
 * back. */
#include "client.h"

#include <string.h>

#define PAUSE_MAX_MS 3100 /* a quarantine is waited out in one go, if it is that near */

static void act(struct sim_world *world, unsigned index, enum hf__quorum_action action);

int64_t sim_client_now(const struct sim_world *world, const struct sim_client *client)
{
    return (int64_t)((double)world->now_ns * client->rate);
}

int64_t sim_client_true_ns(const struct sim_client *client, int64_t local_ns)
{
    return (int64_t)((double)local_ns / client->rate) + 1;
}

void sim_client_later(struct sim_world *world, unsigned index, enum sim_kind kind, enum sim_op op,
                      int64_t at_ns)
{
    const struct sim_client *client = &world->client[index];
    struct sim_event event = {.kind = kind,
                              .op = op,
                              .client = index,
                              .attempt = client->attempt,
                              .round = client->round};

    sim_at(world, at_ns < world->now_ns ? world->now_ns : at_ns, &event);
}

static void ask(struct sim_world *world, unsigned index, unsigned name, enum sim_op op)
{
    const struct sim_client *client = &world->client[index];
    struct sim_event event = {.kind = EV_REQUEST,
                              .op = op,
                              .client = index,
                              .name = name,
                              .attempt = client->attempt,
                              .round = client->round,
                              .incarnation = client->known[name],
                              .ttl_ms = world->profile.ttl_ms,
                              .owner = client->owner,
                              .token = op == OP_GRANT ? client->vote.guess : client->vote.token};

    sim_send(world, &event);
}

void sim_client_ask_all(struct sim_world *world, unsigned index, enum sim_op op)
{
    for (unsigned name = 0; name < world->profile.nodes; name++)
        if (op != OP_RAISE || hf__quorum_raises(&world->client[index].vote, name))
            ask(world, index, name, op);
}

void sim_client_init(struct sim_world *world, unsigned index)
{
    world->client[index].owner = ++world->next_owner;
    sim_client_later(world, index, EV_TRY, OP_GRANT, (int64_t)sim_random(world, 100 * MS));
}

static void begin(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];
    int64_t wall_us = 7200 * 1000000LL + world->now_ns / US + client->wall_us;

    if (!client->waiting) {
        hf__wait_init(&client->wait, INT64_MAX);
        hf__wait_rounds_init(&client->rounds, INT64_MAX);
        client->waiting = true;
    }
    client->attempt++;
    if (world->mutant != SIM_OWNER_REUSED)
        client->owner = ++world->next_owner;
    memset(client->in_flight, 0, sizeof client->in_flight);
    client->lease = (struct hf__lease_core){.state = HF__LEASE_NONE};
    client->resent = client->lost = client->renewing = false;
    client->broken_ns = 0;
    client->late_raise = 0;
    client->floor = world->highest_token;
    client->began_ns = world->now_ns;
    world->attempts++;
    sim_trace(world, "client %u tries", index);
    hf__quorum_start(&client->vote, world->profile.nodes, world->profile.ttl_ms,
                     wall_us > 0 ? (uint64_t)wall_us : 1, sim_client_now(world, client),
                     world->mutant == SIM_CLOCKS_APART
                         ? INT64_MAX
                         : (int64_t)world->profile.max_ttl_ms * 1000 / 3);
    sim_client_ask_all(world, index, OP_GRANT);
    sim_client_later(world, index, EV_TIMEOUT, OP_GRANT,
                     world->now_ns + world->profile.node_timeout_ms * MS);
}

/* Ends the attempt or the hold; the next one comes at that time. */
static void end_attempt(struct sim_world *world, unsigned index, int64_t next_ns)
{
    struct sim_client *client = &world->client[index];

    if (client->lease.state != HF__LEASE_NONE) {
        (void)hf__lease_end(&client->lease, sim_client_now(world, client));
        if (client->token > world->ended_token)
            world->ended_token = client->token;
    }
    sim_client_ask_all(world, index, OP_RELEASE);
    client->attempt++;
    sim_client_later(world, index, EV_TRY, OP_GRANT, next_ns);
}

void sim_client_give_back(struct sim_world *world, unsigned index)
{
    uint64_t rest_ns = (60 + world->profile.work_ms / 2) * MS;

    end_attempt(world, index, world->now_ns + 2 * MS + (int64_t)sim_random(world, rest_ns));
}

/* What the store makes of a vote that failed. */
static enum hf_status vote_status(enum hf__quorum_why why)
{
    switch (why) {
    case HF__WHY_HELD:
    case HF__WHY_RAISED:
        return HF_BUSY;
    case HF__WHY_QUARANTINE:
        return HF_QUARANTINE;
    case HF__WHY_CLOCKS:
    case HF__WHY_UNREACHABLE:
        return HF_UNREACHABLE;
    case HF__WHY_TOKENS:
        return HF_CORRUPT;
    case HF__WHY_UNKNOWN:
    case HF__WHY_LATE:
        break;
    }
    return HF_UNKNOWN;
}

/* The vote failed: the store, or else the library, says when the next one is. */
static void go_on(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];
    int64_t now_ns = sim_client_now(world, client);
    uint32_t dice = (uint32_t)sim_random(world, UINT32_MAX);
    struct hf__wait_answer answer = {.status = vote_status(client->vote.why),
                                     .retry_after_ms = (int64_t)sim_random(world, 3000),
                                     .asked_ns = client->vote.sent_at_ns};
    struct hf__wait_step step;

    step = hf__wait_unqueued(&client->rounds, answer.status, now_ns, dice);
    if (step.next == HF__WAIT_RETURN) {
        world->handed_over++;
        step = hf__wait_answered(&client->wait, &answer, now_ns, dice);
        hf__wait_rounds_init(&client->rounds, INT64_MAX);
    }
    if (step.next == HF__WAIT_RETURN)
        sim_fail(world, "client %u gave up a wait without an end", index);
    else if (step.until_ns < now_ns || step.until_ns > now_ns + PAUSE_MAX_MS * MS)
        sim_fail(world, "client %u pauses for %lld ms", index,
                 (long long)((step.until_ns - now_ns) / MS));
    end_attempt(world, index, sim_client_true_ns(client, step.until_ns));
}

static void check_grant(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];

    for (unsigned i = 0; i < world->token_count; i++)
        if (world->tokens[i] == client->token)
            sim_fail(world, "token %llu was given twice", (unsigned long long)client->token);
    if (client->token <= client->floor)
        sim_fail(world, "token %llu after %llu had been returned",
                 (unsigned long long)client->token, (unsigned long long)client->floor);
    if (!world->profile.bounded)
        return;
    if (client->token < world->ended_token)
        sim_fail(world, "token %llu although a hold with %llu is over",
                 (unsigned long long)client->token, (unsigned long long)world->ended_token);
    for (unsigned i = 0; i < world->profile.clients; i++) {
        const struct sim_client *other = &world->client[i];

        if (i != index && hf__lease_remaining_ms(&other->lease, sim_client_now(world, other)) > 0)
            sim_fail(world, "clients %u and %u hold it at once", index, i);
    }
}

static void won(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];
    struct sim_event enter = {.kind = EV_ENTER, .client = index, .attempt = client->attempt};

    client->waiting = false;
    client->token = enter.token = client->vote.token;
    sim_trace(world, "client %u has token %llu", index, (unsigned long long)client->token);
    check_grant(world, index);
    if (world->token_count < SIM_TOKENS_MAX)
        world->tokens[world->token_count++] = client->token;
    if (client->token > world->highest_token)
        world->highest_token = client->token;
    world->grants++;
    world->after_quiet += client->began_ns >= world->profile.quiet_at_ns;
    hf__lease_granted(&client->lease, client->vote.sent_at_ns, client->vote.ttl_ms);
    sim_client_later(world, index, EV_LOOK, OP_RENEW,
                     sim_client_true_ns(client, hf__keep_due_ns(&client->lease)));
    sim_at(world, world->now_ns + 100 * US, &enter);
}

static void act(struct sim_world *world, unsigned index, enum hf__quorum_action action)
{
    if (!hf__quorum_consistent(&world->client[index].vote))
        sim_fail(world, "client %u: a vote in a state it must not be in", index);
    switch (action) {
    case HF__QUORUM_WAIT:
        break;
    case HF__QUORUM_RAISE:
        world->second_rounds++;
        sim_client_ask_all(world, index, OP_RAISE);
        sim_client_later(world, index, EV_TIMEOUT, OP_RAISE,
                         world->now_ns + world->profile.node_timeout_ms * MS);
        break;
    case HF__QUORUM_DONE:
        won(world, index);
        break;
    case HF__QUORUM_FAILED:
        sim_trace(world, "client %u failed, reason %d", index, (int)world->client[index].vote.why);
        go_on(world, index);
        break;
    }
}

static enum hf__quorum_no reason(enum sim_verdict verdict)
{
    return verdict == SIM_NEW || verdict == SIM_QUARANTINE ? HF__NO_QUARANTINE : HF__NO_HELD;
}

static void on_grant(struct sim_world *world, unsigned index, const struct sim_event *event)
{
    struct sim_client *client = &world->client[index];
    const struct sim_answer *answer = &event->answer;
    bool late = client->vote.phase == HF__PHASE_RAISE &&
                client->vote.node[event->name].state == HF__NODE_ASKED;
    enum hf__quorum_action action;

    client->known[event->name] = answer->incarnation;
    sim_trace(world, "client %u: node %u answers %d to GRANT", index, event->name,
              (int)answer->verdict);
    if (answer->verdict == SIM_YES)
        action = hf__quorum_on_grant(&client->vote, event->name, answer->prev,
                                     answer->applied || world->mutant == SIM_NOT_APPLIED,
                                     answer->clk, sim_client_now(world, client));
    else
        action = hf__quorum_on_no(&client->vote, event->name, reason(answer->verdict),
                                  sim_client_now(world, client));
    act(world, index, action);
    if (world->mutant == SIM_LATE_GRANT && late && answer->verdict == SIM_YES) {
        client->late_raise |= 1u << event->name;
        ask(world, index, event->name, OP_RAISE);
    }
}

static void on_raise(struct sim_world *world, unsigned index, const struct sim_event *event)
{
    struct sim_client *client = &world->client[index];
    int64_t now_ns = sim_client_now(world, client);
    unsigned name = event->name;

    if (event->answer.verdict != SIM_YES) {
        act(world, index, hf__quorum_on_no(&client->vote, name, HF__NO_HELD, now_ns));
        return;
    }
    if (client->late_raise & 1u << name)
        for (unsigned i = 0; i < world->profile.nodes; i++)
            if (hf__quorum_raises(&client->vote, i))
                name = i; /* it is counted as if it were one of those that may */
    act(world, index, hf__quorum_on_raise(&client->vote, name, now_ns));
}

static void on_answer(struct sim_world *world, const struct sim_event *event)
{
    struct sim_client *client = &world->client[event->client];

    if (event->op == OP_RENEW) {
        if (event->attempt == client->attempt && event->round == client->round && client->renewing)
            sim_keeper_renewed(world, event->client,
                               event->answer.verdict == SIM_YES
                                   ? hf__quorum_on_yes(&client->renewal, event->name,
                                                       event->answer.exact,
                                                       sim_client_now(world, client))
                                   : hf__quorum_on_no(&client->renewal, event->name, HF__NO_HELD,
                                                      sim_client_now(world, client)));
        return;
    }
    if (event->attempt != client->attempt &&
        !(world->mutant == SIM_OWNER_REUSED && event->owner == client->owner &&
          client->vote.count > 0))
        return;
    if (event->op == OP_GRANT)
        on_grant(world, event->client, event);
    else if (event->op == OP_RAISE && event->attempt == client->attempt)
        on_raise(world, event->client, event);
}

static void on_timeout(struct sim_world *world, const struct sim_event *event)
{
    struct sim_client *client = &world->client[event->client];
    int64_t now_ns = sim_client_now(world, client);
    bool again = false;

    for (unsigned name = 0; name < world->profile.nodes; name++) {
        if (event->op == OP_RENEW) {
            if (client->renewing && event->round == client->round)
                sim_keeper_renewed(world, event->client,
                                   hf__quorum_on_no(&client->renewal, name, HF__NO_ANSWER, now_ns));
        } else if (event->op == OP_RAISE) {
            act(world, event->client, hf__quorum_on_no(&client->vote, name, HF__NO_ANSWER, now_ns));
        } else if (client->vote.node[name].state == HF__NODE_ASKED) {
            if (world->mutant == SIM_REACHABLE) {
                act(world, event->client,
                    hf__quorum_on_grant(&client->vote, name, 0, true, 0, now_ns));
            } else if (world->mutant == SIM_RESENT && client->vote.phase == HF__PHASE_GRANT) {
                client->vote.sent_at_ns = now_ns;
                ask(world, event->client, name, OP_GRANT);
                again = true;
            } else {
                act(world, event->client,
                    hf__quorum_on_no(&client->vote, name, HF__NO_ANSWER, now_ns));
            }
        }
        if (event->attempt != client->attempt)
            return;
    }
    if (again)
        sim_client_later(world, event->client, EV_TIMEOUT, OP_GRANT,
                         world->now_ns + world->profile.node_timeout_ms * MS);
}

static void write_out(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];
    struct sim_event store = {.kind = EV_STORE,
                              .client = index,
                              .attempt = client->attempt,
                              .token = client->token,
                              .value = client->read_value + 1,
                              .unfenced = client->read_plain + 1};
    int64_t after_ns = 100 * US;

    if (!hf__lease_tick(&client->lease, sim_client_now(world, client))) {
        sim_client_give_back(world, index);
        return;
    }
    /* The famous one: the check said yes, then the machine stood still. */
    if (world->profile.pauses && world->now_ns < world->profile.quiet_at_ns &&
        sim_chance(world, 50))
        after_ns = (int64_t)sim_random(world, 10 * (uint64_t)world->profile.ttl_ms * MS);
    sim_at(world, world->now_ns + after_ns, &store);
}

void sim_client_event(struct sim_world *world, const struct sim_event *event)
{
    struct sim_client *client = &world->client[event->client];

    if (world->now_ns < client->paused_until_ns) {
        sim_at(world, client->paused_until_ns, event);
        return;
    }
    if (event->op == OP_REVOKE) {
        sim_break_event(world, event);
        return;
    }
    if (event->kind == EV_ANSWER) {
        on_answer(world, event);
        return;
    }
    if (event->attempt != client->attempt)
        return;
    if (event->kind == EV_TIMEOUT)
        on_timeout(world, event);
    else if (event->kind == EV_TRY)
        begin(world, event->client);
    else if (event->kind == EV_LOOK)
        sim_keeper_look(world, event->client);
    else if (event->kind == EV_WRITE)
        write_out(world, event->client);
    else if (event->kind == EV_STORED)
        sim_client_give_back(world, event->client);
}
