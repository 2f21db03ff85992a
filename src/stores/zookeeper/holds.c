/* holds.c - the table of what this client holds. */
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>

static struct zk_hold **bucket(struct zk_store *store, const char *owner)
{
    return &store->holds[hf__hash64(owner, strlen(owner), 0) % ZK_BUCKETS];
}

/* With token 0, whatever the owner holds of that name. */
static bool fits(const struct zk_hold *hold, const struct hf_claim *claim)
{
    return strcmp(hold->owner, claim->owner) == 0 && strcmp(hold->name, claim->name) == 0 &&
           (claim->token == 0 || hold->token == claim->token);
}

static struct zk_hold **find(struct zk_store *store, const struct hf_claim *claim)
{
    struct zk_hold **at = bucket(store, claim->owner);

    while (*at != NULL && !fits(*at, claim))
        at = &(*at)->next;
    return at;
}

bool zk_holds_add(struct zk_store *store, const struct zk_hold *hold)
{
    struct zk_hold *copy = malloc(sizeof *copy);
    struct zk_hold **at = bucket(store, hold->owner);
    bool runs;

    if (copy == NULL)
        return false;
    *copy = *hold;
    pthread_mutex_lock(&store->lock);
    runs = zk_reaper_start(store, hold->end_ns);
    if (runs) {
        copy->next = *at;
        *at = copy;
        zk_session_ref(copy->session);
    }
    pthread_mutex_unlock(&store->lock);
    if (!runs)
        free(copy);
    return runs;
}

bool zk_holds_find(struct zk_store *store, const struct hf_claim *claim, struct zk_hold *out)
{
    struct zk_hold *hold;

    pthread_mutex_lock(&store->lock);
    hold = *find(store, claim);
    if (hold != NULL) {
        *out = *hold;
        zk_session_ref(hold->session);
    }
    pthread_mutex_unlock(&store->lock);
    return hold != NULL;
}

bool zk_holds_extend(struct zk_store *store, const struct zk_hold *hold, int64_t sent_at_ns,
                     uint32_t lease_ms)
{
    struct hf_claim claim = {.name = hold->name, .owner = hold->owner, .token = hold->token};
    int64_t end_ns = hf__time_add(sent_at_ns, (int64_t)lease_ms * HF__NS_PER_MS);
    struct zk_hold *found;
    bool held;

    pthread_mutex_lock(&store->lock);
    found = *find(store, &claim);
    held = found != NULL && store->base.host->now_ns() < found->end_ns;
    if (held && (found->end_ns < end_ns || lease_ms < found->lease_ms))
        found->end_ns = end_ns;
    if (held) {
        found->lease_ms = lease_ms;
        found->version = hold->version;
    }
    pthread_mutex_unlock(&store->lock);
    return held;
}

static bool is_ours(const struct zk_store *store, int64_t session_id)
{
    const struct zk_session *at = session_id != 0 ? store->sessions : NULL; /* 0: of no session */

    while (at != NULL && zk_session_id(at) != session_id)
        at = at->next;
    return at != NULL;
}

enum zk_known zk_holds_judge(struct zk_store *store, const char *name, const char *child,
                             const struct Stat *stat, int64_t *remaining_ms)
{
    char owner[HF_OWNER_LEN + 1];
    struct hf_claim claim = {.name = name, .owner = owner, .token = (uint64_t)stat->czxid};
    const struct zk_hold *hold;
    enum zk_known known;
    int64_t left_ns = 0;

    (void)snprintf(owner, sizeof owner, "%.*s", HF_OWNER_LEN, child);
    pthread_mutex_lock(&store->lock);
    hold = *find(store, &claim);
    if (hold != NULL && !zk_session_dead(hold->session))
        left_ns = hold->end_ns - store->base.host->now_ns();
    if (left_ns > 0)
        known = ZK_HELD;
    else
        known = hold != NULL || is_ours(store, stat->ephemeralOwner) ? ZK_OVER : ZK_OTHERS;
    pthread_mutex_unlock(&store->lock);
    *remaining_ms = known == ZK_HELD ? left_ns / HF__NS_PER_MS : -1;
    return known;
}

bool zk_holds_take(struct zk_store *store, const struct hf_claim *claim, struct zk_hold *out)
{
    struct zk_hold **at;
    struct zk_hold *hold;

    pthread_mutex_lock(&store->lock);
    at = find(store, claim);
    hold = *at;
    if (hold != NULL)
        *at = hold->next;
    pthread_mutex_unlock(&store->lock);
    if (hold == NULL)
        return false;
    *out = *hold;
    explicit_bzero(hold, sizeof *hold);
    free(hold);
    return true;
}

void zk_holds_clear(struct zk_store *store, bool forked)
{
    for (size_t i = 0; i < ZK_BUCKETS; i++)
        while (store->holds[i] != NULL) {
            struct zk_hold *hold = store->holds[i];

            store->holds[i] = hold->next;
            if (!forked)
                zk_session_unref(hold->session);
            explicit_bzero(hold, sizeof *hold);
            free(hold);
        }
    while (store->orphans != NULL) {
        struct zk_orphan *orphan = store->orphans;

        store->orphans = orphan->next;
        if (!forked)
            zk_session_unref(orphan->session);
        free(orphan);
    }
}
