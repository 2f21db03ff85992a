/* record_seen.c - the records that this client saw last.
 *
 * ZooKeeper cannot compare what a node says, only its version. So a put has to know the version of
 * the record that it replaces, and that its pair is lower. Whoever has read the record, or written
 * it, knows that already. If it is out of date, the put is refused by the version and the record is
 * read. */
#include "stores/zookeeper/zookeeper.h"

#include <string.h>

/* store->lock held. */
static struct zk_seen *find(struct zk_store *store, const char *name, const char *key)
{
    for (size_t i = 0; i < ZK_SEEN; i++)
        if (strcmp(store->seen[i].name, name) == 0 && strcmp(store->seen[i].key, key) == 0)
            return &store->seen[i];
    return NULL;
}

void zk_seen_note(struct zk_store *store, const struct zk_seen *seen)
{
    struct zk_seen *at;

    pthread_mutex_lock(&store->lock);
    at = find(store, seen->name, seen->key);
    if (at == NULL)
        at = &store->seen[store->seen_next++ % ZK_SEEN];
    *at = *seen;
    pthread_mutex_unlock(&store->lock);
}

bool zk_seen_find(struct zk_store *store, struct zk_seen *seen)
{
    const struct zk_seen *at;

    pthread_mutex_lock(&store->lock);
    at = find(store, seen->name, seen->key);
    if (at != NULL)
        *seen = *at;
    pthread_mutex_unlock(&store->lock);
    return at != NULL;
}

void zk_seen_forget(struct zk_store *store, const char *name, const char *key)
{
    struct zk_seen *at;

    pthread_mutex_lock(&store->lock);
    at = find(store, name, key);
    if (at != NULL)
        at->name[0] = '\0';
    pthread_mutex_unlock(&store->lock);
}
