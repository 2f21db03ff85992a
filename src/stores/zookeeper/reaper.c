/* reaper.c - the thread that ends what nobody renews.
 *
 * The library keeps a session alive while the process runs. So a lease that was not renewed would
 * never end; this thread deletes its child when its time is over. It deletes orphans, the
 * children of attempts that were given up without an answer, and it keeps followers reminded of
 * sessions that hold something (see session.c).
 */
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RETRY_NS   (200 * HF__NS_PER_MS) /* between two looks at an orphan */
#define REQUEST_NS HF__NS_PER_S          /* for one of the reaper's requests */
#define TOUCHES    12                    /* in one session timeout */

static void *reaper_main(void *data);

bool zk_reaper_start(struct zk_store *store, int64_t at_ns)
{
    if (!store->reaper_runs)
        store->reaper_runs = pthread_create(&store->reaper, NULL, reaper_main, store) == 0;
    else if (at_ns < store->reaper_next_ns)
        (void)eventfd_write(store->reaper_fd, 1);
    return store->reaper_runs;
}

int64_t zk_reaper_touch_ns(const struct zk_session *session)
{
    return (int64_t)zoo_recv_timeout(session->handle) * HF__NS_PER_MS / TOUCHES;
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
    (void)pthread_join(store->reaper, NULL);
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

/* True if the orphan is gone for sure. */
static bool reap(struct zk_orphan *orphan)
{
    struct zk_session *session = orphan->session;
    struct zk_patience patience = {.deadline_ns = session->store->base.host->now_ns() + REQUEST_NS,
                                   .cancel_fd = -1};
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];
    struct zk_line line;
    size_t place;
    bool gone = false;

    if (zk_session_dead(session))
        return true;
    if (zoo_state(session->handle) != ZOO_CONNECTED_STATE ||
        zk_read_line(session, orphan->name, true, &patience, &line) != ZOK)
        return false;
    place = zk_line_find(&line, orphan->owner);
    if (place == line.count) {
        gone = true;
    } else if (zk_lock_path(session->store, orphan->name, path)) {
        size_t used = strlen(path);
        int rc;

        (void)snprintf(path + used, sizeof path - used, "/%s", line.at[place].name);
        rc = zk_delete(session, path, &patience);
        gone = rc == ZOK || rc == ZNONODE;
    }
    zk_line_release(&line);
    return gone;
}

/* All orphans once; those that resist go back. Returns whether any did. */
static bool reap_all(struct zk_store *store)
{
    struct zk_orphan *list;
    bool resisted = false;

    pthread_mutex_lock(&store->lock);
    list = store->orphans;
    store->orphans = NULL;
    pthread_mutex_unlock(&store->lock);
    while (list != NULL) {
        struct zk_orphan *orphan = list;

        list = orphan->next;
        if (reap(orphan)) {
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

static void ignore_stat(int rc, const struct Stat *stat, const void *data)
{
    (void)rc;
    (void)stat;
    (void)data;
}

/* A small read in every session that holds something; lock held, nothing is waited for. */
static int64_t touch(struct zk_store *store, int64_t now_ns)
{
    int64_t next_ns = HF_NEVER;

    for (struct zk_session *at = store->sessions; at != NULL; at = at->next) {
        int64_t every_ns = zk_reaper_touch_ns(at);

        if (at->refs == 1 || zoo_state(at->handle) != ZOO_CONNECTED_STATE || every_ns <= 0)
            continue;
        if (now_ns - at->touched_ns >= every_ns) {
            (void)zoo_aexists(at->handle, store->url.root, 0, ignore_stat, NULL);
            at->touched_ns = now_ns;
        }
        if (at->touched_ns + every_ns < next_ns)
            next_ns = at->touched_ns + every_ns;
    }
    return next_ns;
}

static void *reaper_main(void *data)
{
    struct zk_store *store = data;
    bool stop = false;

    while (!stop) {
        struct pollfd fd = {.fd = store->reaper_fd, .events = POLLIN};
        int64_t now_ns = store->base.host->now_ns();
        int64_t touch_ns;
        int64_t next_ns;
        bool orphans;
        eventfd_t ignored;

        pthread_mutex_lock(&store->lock);
        next_ns = collect(store, now_ns);
        touch_ns = touch(store, now_ns);
        next_ns = touch_ns < next_ns ? touch_ns : next_ns;
        store->reaper_next_ns = next_ns;
        orphans = store->orphans != NULL;
        stop = store->reaper_stop;
        pthread_mutex_unlock(&store->lock);
        if (stop)
            break;
        if (orphans && reap_all(store) && now_ns + RETRY_NS < next_ns)
            next_ns = now_ns + RETRY_NS;
        (void)hf__poll_until(&fd, 1, next_ns);
        (void)eventfd_read(store->reaper_fd, &ignored);
    }
    return NULL;
}
