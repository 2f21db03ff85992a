/* keeper.c - the keeper of a simulated client: looks at the lease when it is due, renews it, and
 * tells its owner when it is lost. */
#include "client.h"

/* The keeper tells its owner that the lease is lost. */
static void announce(struct sim_world *world, unsigned index)
{
    const struct sim_client *client = &world->client[index];
    int64_t late_ns = sim_client_now(world, client) - client->lease.deadline_ns;

    if (late_ns > 1 * MS && world->profile.bounded && !world->profile.pauses)
        sim_fail(world, "client %u heard %lld ms after its deadline that it lost the lock", index,
                 (long long)(late_ns / MS));
    world->losses++;
    sim_client_give_back(world, index);
}

static void renew(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];
    int64_t now_ns = sim_client_now(world, client);
    int64_t limit_ns = hf__keep_limit_ns(&client->lease, now_ns);

    if (limit_ns > now_ns + world->profile.node_timeout_ms * MS)
        limit_ns = now_ns + world->profile.node_timeout_ms * MS;
    client->round++;
    client->renewal_ns = world->now_ns;
    client->renewing = true;
    client->after_loss = 0;
    hf__quorum_start_extend(&client->renewal, world->profile.nodes, world->profile.ttl_ms, now_ns);
    sim_client_ask_all(world, index, OP_RENEW);
    sim_client_later(world, index, EV_TIMEOUT, OP_RENEW, sim_client_true_ns(client, limit_ns));
}

void sim_keeper_look(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->client[index];
    int64_t due_ns;

    switch (
        hf__keep_decide(&client->lease, client->renewing, sim_client_now(world, client), &due_ns)) {
    case HF__KEEP_RENEW:
        renew(world, index);
        break;
    case HF__KEEP_ANNOUNCE:
        announce(world, index);
        break;
    case HF__KEEP_WAIT:
        sim_client_later(world, index, EV_LOOK, OP_RENEW, sim_client_true_ns(client, due_ns));
        break;
    }
}

/* What the store would answer to a renewal. */
static enum hf_status status_of(enum hf__quorum_action action, enum hf__quorum_why why)
{
    if (action == HF__QUORUM_DONE)
        return HF_OK;
    if (why == HF__WHY_HELD)
        return HF_LOST;
    return why == HF__WHY_UNKNOWN ? HF_UNKNOWN : HF_UNREACHABLE;
}

void sim_keeper_renewed(struct sim_world *world, unsigned index, enum hf__quorum_action action)
{
    struct sim_client *client = &world->client[index];
    int64_t now_ns = sim_client_now(world, client);
    struct hf__renewal renewal = {.ttl_ms = client->renewal.ttl_ms,
                                  .before_ns = client->renewal.sent_at_ns,
                                  .status = status_of(action, client->renewal.why),
                                  .sent_at_ns = client->renewal.sent_at_ns};

    if (action == HF__QUORUM_WAIT)
        return;
    client->renewing = false;
    if (action == HF__QUORUM_DONE) {
        world->renewals++;
        if (client->lost && (unsigned)__builtin_popcount(client->after_loss) >=
                                hf__quorum_majority(world->profile.nodes))
            sim_fail(world, "client %u renewed what it had lost", index);
    }
    hf__keep_answered(&client->lease, &renewal, now_ns);
    if (action == HF__QUORUM_DONE && client->lease.state == HF__LEASE_HELD &&
        client->broken_ns != 0 && client->renewal_ns > client->broken_ns)
        sim_fail(world, "client %u renewed what had been broken", index);
    if (client->lease.state != HF__LEASE_HELD)
        announce(world, index);
    else
        sim_client_later(
            world, index, EV_LOOK, OP_RENEW,
            sim_client_true_ns(client, hf__keep_next_ns(&client->lease, renewal.status, now_ns)));
}
