/* identity.c - who a redlock is, whatever order its hosts are listed in and whichever of them were
 * replaced.
 *
 * Every node keeps the redlock's name. What a majority says is the name. The first one is made from
 * all nodes' own random texts, by whoever finds none: all of them have to answer for that, so that
 * everybody makes the same. From then on a node's name is changed only to the one that a majority
 * was seen to have: two majorities share a node, so there are never two. A node that came later is
 * given the name. If a majority of the nodes lose their data, the name is lost with it, and what
 * gets the next one is another redlock. A node belongs to one redlock. */
#include "base/base.h"
#include "stores/redis/redlock/redlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_KEY    "holdfast:identity"
#define REDLOCK_KEY "holdfast:redlock"
enum { RANDOM_BYTES = 16, NAME_SIZE = 2 * RANDOM_BYTES + 1, HASH_SEED = 0x726c6964 };

/* What the nodes are told. */
struct news {
    const char *name; /* "": nothing */
    bool settled;     /* a majority has it */
};

/* What they said. */
struct census {
    unsigned count;
    char own[HF__QUORUM_NODES_MAX][NAME_SIZE];
    char name[HF__QUORUM_NODES_MAX][NAME_SIZE]; /* ""; not told yet */
};

static void ask_node(struct rl_round *round, unsigned index, const struct news *news)
{
    unsigned char random[RANDOM_BYTES];
    char fresh[NAME_SIZE];

    hf__random(random, sizeof random);
    hf__hex_encode(fresh, random, sizeof random);
    rd_request_command(&round->request,
                       (const char *const[]){"EVALSHA", rd_scripts[RD_SCRIPT_REDLOCK_IDENTITY].sha1,
                                             "2", NODE_KEY, REDLOCK_KEY, fresh, news->name,
                                             news->settled ? "settled" : "new", NULL});
    (void)rl_round_send(round, index);
}

/* False: this is not what we wrote. */
static bool take_answer(struct census *census, const struct rd_reply *reply)
{
    const char *own = rd_reply_text(rd_reply_at(reply, 0));
    const char *name = rd_reply_text(rd_reply_at(reply, 1));

    if (strlen(own) != NAME_SIZE - 1 || (name[0] != '\0' && strlen(name) != NAME_SIZE - 1))
        return false;
    memcpy(census->own[census->count], own, NAME_SIZE);
    memcpy(census->name[census->count], name, strlen(name) + 1);
    census->count++;
    return true;
}

/* Tells all nodes, and asks them. Waits for all that answer in time. */
static enum hf_status ask_nodes(struct rl_store *store, const struct news *news,
                                int64_t deadline_ns, struct census *census, struct hf_error *err)
{
    struct rl_round round;
    struct rd_reply *reply;
    enum rl_event event;
    unsigned index;
    bool sane = true;

    census->count = 0;
    rl_round_begin(&round, store, false);
    for (unsigned i = 0; i < store->count; i++)
        if (round.joined[i])
            ask_node(&round, i, news);
    deadline_ns = rl_round_deadline(&round, deadline_ns);
    while (census->count < store->count &&
           (event = rl_round_next(&round, deadline_ns, &index, &reply)) != RL_SILENCE) {
        if (event == RL_JOINED || event == RL_AGAIN)
            ask_node(&round, index, news);
        if (event == RL_ANSWER && reply->type == RD_REPLY_ARRAY)
            sane = take_answer(census, reply) && sane;
        else if (event == RL_ANSWER)
            (void)rl_round_error(&round, index, REDLOCK_KEY, reply);
        rd_reply_free(reply);
    }
    rl_round_end(&round, 0, NULL);
    if (!sane)
        return rd_nonsense(&store->setup.url, REDLOCK_KEY, err);
    if (census->count < hf__quorum_majority(store->count))
        return rl_too_few(store, NULL, &round.troubles, err);
    return HF_OK;
}

/* The name that a majority of the store's nodes has, or NULL. */
static const char *settled(const struct rl_store *store, const struct census *census)
{
    for (unsigned i = 0; i < census->count; i++) {
        unsigned votes = 0;

        for (unsigned j = 0; j < census->count && census->name[i][0] != '\0'; j++)
            votes += strcmp(census->name[i], census->name[j]) == 0;
        if (votes >= hf__quorum_majority(store->count))
            return census->name[i];
    }
    return NULL;
}

static bool all_agree(const struct census *census)
{
    for (unsigned i = 1; i < census->count; i++)
        if (strcmp(census->name[i], census->name[0]) != 0)
            return false;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The same from the same nodes, in whatever order they answered. */
static void make_name(struct census *census, char out[NAME_SIZE])
{
    uint64_t halves[2];

    qsort(census->own, census->count, sizeof census->own[0], by_text);
    for (size_t i = 0; i < 2; i++)
        halves[i] = hf__hash64(census->own, census->count * sizeof census->own[0], HASH_SEED + i);
    hf__hex_encode(out, halves, sizeof halves);
}

enum hf_status rl_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err)
{
    struct rl_store *store = (struct rl_store *)base;
    const char *shown = store->setup.url.parts.shown;
    struct census census;
    char name[NAME_SIZE];
    const char *is;
    struct news news = {.name = ""};
    enum hf_status status = ask_nodes(store, &news, deadline_ns, &census, err);

    if (status != HF_OK)
        return status;
    is = settled(store, &census);
    if (is == NULL && census.count < store->count)
        return hf__fail_lock(err, HF_UNKNOWN, NULL, shown,
                             " has no name yet: all of its nodes have to answer for the first one");
    if (is == NULL)
        make_name(&census, name);
    else
        memcpy(name, is, sizeof name);
    if (is == NULL || !all_agree(&census)) {
        news = (struct news){.name = name, .settled = is != NULL};
        status = ask_nodes(store, &news, deadline_ns, &census, err);
        if (status != HF_OK)
            return status;
        is = settled(store, &census);
    }
    if (is == NULL)
        return hf__fail_lock(err, HF_CORRUPT, NULL, shown,
                             ": its nodes are of several redlocks; delete the key " REDLOCK_KEY
                             " at all of them, and reset the fences");
    (void)snprintf(out, HF_IDENTITY_SIZE, "id:redlock:%s", is);
    return hf__ok(err);
}
