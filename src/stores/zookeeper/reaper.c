/* reaper.c - the thread that ends what nobody renews.
 *
 * The library keeps a session alive while the process runs. So a lease that was not renewed would
 * never end; this thread deletes its child when its time is over. It deletes orphans, the
 * children of attempts that were given up without an answer, and it sends every session a heartbeat
 * (heartbeat.c), which nothing may hold up for long. */
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RETRY_NS   (200 * HF__NS_PER_MS) /* between two tries at an orphan */
#define REQUEST_NS HF__NS_PER_S          /* for one of the reaper's requests */
#define SHORT_NS   (100 * HF__NS_PER_MS) /* for it, when a heartbeat is due sooner */

static void *reaper_main(void *data);

bool zk_reaper_start(struct zk_store *store, int64_t at_ns)
{
    if (!store->reaper_runs)
        store->reaper_runs = pthread_create(&store->reaper, NULL, reaper_main, store) == 0;
    else if (at_ns < store->reaper_next_ns)
        (void)eventfd_write(store->reaper_fd, 1);
    return store->reaper_runs;
}

void zk_reaper_stop(struct zk_store *store)
{
    bool runs;

    pthread_mutex_lock(&store->lock);
    runs = store->reaper_runs;
    store->reaper_stop = true;
    pthread_mutex_unlock(&store->lock);
    if (!runs)
        return;
    (void)eventfd_write(store->reaper_fd, 1);
    pthread_join(store->reaper, NULL);
    store->reaper_runs = false;
}

void zk_orphan(struct zk_session *session, const char *name, const char *owner)
{
    struct zk_store *store = session->store;
    struct zk_orphan *orphan = calloc(1, sizeof *orphan);

    if (orphan == NULL)
        return; /* it ends with the session */
    (void)snprintf(orphan->name, sizeof orphan->name, "%s", name);
    (void)snprintf(orphan->owner, sizeof orphan->owner, "%s", owner);
    orphan->session = session;
    pthread_mutex_lock(&store->lock);
    zk_session_ref(session);
    orphan->next = store->orphans;
    store->orphans = orphan;
    (void)zk_reaper_start(store, 0);
    pthread_mutex_unlock(&store->lock);
}

/* Moves holds that are over to the orphans, lock held. Returns when the next one ends. */
static int64_t collect(struct zk_store *store, int64_t now_ns)
{
    int64_t next_ns = HF_NEVER;

    for (size_t i = 0; i < ZK_BUCKETS; i++) {
        struct zk_hold **at = &store->holds[i];

        while (*at != NULL) {
            struct zk_hold *hold = *at;
            struct zk_orphan *orphan = hold->end_ns <= now_ns ? calloc(1, sizeof *orphan) : NULL;

            if (orphan == NULL) {
                /* Without memory it is looked at again soon. */
                int64_t end_ns = hold->end_ns > now_ns ? hold->end_ns : now_ns + RETRY_NS;

                next_ns = end_ns < next_ns ? end_ns : next_ns;
                at = &hold->next;
                continue;
            }
            *at = hold->next;
            memcpy(orphan->name, hold->name, sizeof orphan->name);
            memcpy(orphan->owner, hold->owner, sizeof orphan->owner);
            orphan->session = hold->session; /* with its reference */
            orphan->next = store->orphans;
            store->orphans = orphan;
            explicit_bzero(hold, sizeof *hold);
            free(hold);
        }
    }
    return next_ns;
}

/* Until when a request may be waited for, if the heartbeat is due at next_ns. What is given up is
 * executed all the same, and found done at the next try. */
static struct hf__patience patience_until(const struct zk_store *store, int64_t next_ns)
{
    int64_t now_ns = store->base.host->now_ns();

    if (next_ns > now_ns + REQUEST_NS)
        next_ns = now_ns + REQUEST_NS;
    if (next_ns < now_ns + SHORT_NS)
        next_ns = now_ns + SHORT_NS;
    return (struct hf__patience){.deadline_ns = next_ns, .cancel_fd = -1};
}

/* ZOK: the orphan is gone for sure. ZK_GIVEN_UP: its session's server does not answer. */
static int reap(struct zk_orphan *orphan, const struct hf__patience *patience)
{
    struct zk_session *session = orphan->session;
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];
    struct zk_queue queue;
    size_t index;
    int rc;

    if (zk_session_dead(session))
        return ZOK;
    if (zoo_state(session->handle) != ZOO_CONNECTED_STATE)
        return ZCONNECTIONLOSS;
    rc = zk_read_queue(session, orphan->name, true, patience, &queue);
    index = rc == ZOK ? zk_queue_find(&queue, orphan->owner) : 0;
    if (rc == ZOK && index < queue.count &&
        zk_child_path(session->store, orphan->name, queue.at[index].name, path))
        rc = zk_delete(session, path, -1, patience);
    zk_queue_release(&queue);
    return rc == ZNONODE ? ZOK : rc;
}

/* All orphans once; those that resist go back. Returns whether any did. When a server does not
 * answer the rest has to wait for the next round: the heartbeat does not. */
static bool reap_all(struct zk_store *store, int64_t next_ns)
{
    struct hf__patience patience = patience_until(store, next_ns);
    struct zk_orphan *list;
    bool resisted = false;
    int rc = ZOK;

    pthread_mutex_lock(&store->lock);
    list = store->orphans;
    store->orphans = NULL;
    pthread_mutex_unlock(&store->lock);
    while (list != NULL) {
        struct zk_orphan *orphan = list;

        list = orphan->next;
        if (rc != ZK_GIVEN_UP)
            rc = reap(orphan, &patience);
        if (rc == ZOK) {
            zk_session_unref(orphan->session);
            free(orphan);
            continue;
        }
        resisted = true;
        pthread_mutex_lock(&store->lock);
        orphan->next = store->orphans;
        store->orphans = orphan;
        pthread_mutex_unlock(&store->lock);
    }
    return resisted;
}

static void *reaper_main(void *data)
{
    struct zk_store *store = data;
    bool stop = false;

    while (!stop) {
        struct pollfd fd = {.fd = store->reaper_fd, .events = POLLIN};
        int64_t now_ns = store->base.host->now_ns();
        int64_t heartbeat_ns = zk_heartbeat_all(store, now_ns);
        int64_t next_ns;
        bool orphans;
        eventfd_t ignored;

        pthread_mutex_lock(&store->lock);
        next_ns = collect(store, now_ns);
        next_ns = heartbeat_ns < next_ns ? heartbeat_ns : next_ns;
        store->reaper_next_ns = next_ns;
        orphans = store->orphans != NULL;
        stop = store->reaper_stop;
        pthread_mutex_unlock(&store->lock);
        if (stop)
            break;
        if (orphans && reap_all(store, next_ns) && now_ns + RETRY_NS < next_ns)
            next_ns = now_ns + RETRY_NS;
        (void)hf__poll_until(&fd, 1, next_ns);
        (void)eventfd_read(store->reaper_fd, &ignored);
    }
    return NULL;
}
