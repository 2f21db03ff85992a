/* last_release.c - how a client that takes the lock it released last knows that it is alone.
 *
 * It held the lock with child number s, so every child with a smaller number was gone; it has
 * deleted that one. If its new child is number s + 1, none was made in between, since every child
 * that is made raises the number: it is the only one. The one thing that could forge this is a
 * parent that was deleted and made anew, with s + 1 children made since. That takes more than s
 * transactions, and czxids count transactions: a new czxid nearer than that is the proof. */
#include "stores/zookeeper/zookeeper.h"

#include <string.h>

static struct zk_last_release *number(struct zk_store *store, const char *name)
{
    return &store->last_releases[hf__hash64(name, strlen(name), 0) % ZK_LAST_RELEASES];
}

void zk_last_release_note(struct zk_store *store, const struct zk_hold *hold)
{
    struct zk_last_release *last = number(store, hold->name);
    int32_t sequence;

    if (!zk_sequence(hold->path, &sequence))
        return;
    pthread_mutex_lock(&store->lock);
    memcpy(last->name, hold->name, sizeof last->name);
    last->sequence = sequence;
    last->token = hold->token;
    pthread_mutex_unlock(&store->lock);
}

bool zk_last_release_take(struct zk_store *store, const char *name, struct zk_last_release *out)
{
    struct zk_last_release *last = number(store, name);
    bool known;

    pthread_mutex_lock(&store->lock);
    known = strcmp(last->name, name) == 0;
    if (known)
        *out = *last;
    last->name[0] = '\0';
    pthread_mutex_unlock(&store->lock);
    return known;
}

bool zk_last_release_known(struct zk_store *store, const char *name)
{
    bool known;

    pthread_mutex_lock(&store->lock);
    known = strcmp(number(store, name)->name, name) == 0;
    pthread_mutex_unlock(&store->lock);
    return known;
}

bool zk_stands_alone(const struct zk_last_release *last, int32_t sequence, uint64_t token)
{
    return last->sequence >= 0 && last->sequence < INT32_MAX - 1 &&
           sequence == last->sequence + 1 && token > last->token &&
           token - last->token <= (uint64_t)last->sequence;
}
