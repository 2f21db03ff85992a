/* heartbeat.c - staying known, and noticing a server that does not answer.
 *
 * A small read in every session, often: so that the leader knows of the session (margin.h), and so
 * that a server which answers nothing is noticed. A frozen server, or a connection whose state a
 * firewall has lost, looks like any other to the library for two thirds of the session's timeout:
 * no lease would outlive that. After a fraction of it the connection is ended, and the library
 * takes the session to the next host. When none of them answers they may only be slow: the patience
 * doubles with every round of the hosts, until an answer comes. */
#include "stores/zookeeper/cut.h"
#include "stores/zookeeper/zookeeper.h"

#define SHARE        8                      /* of the timeout: the patience with a server */
#define PATIENCE_MIN (500 * HF__NS_PER_MS)  /* a busy machine is not a frozen one */
#define PATIENCE_MAX (2000 * HF__NS_PER_MS) /* the move is to be over before a renewal is late */
#define DOUBLINGS    3

static int64_t timeout_ns(const struct zk_session *session)
{
    return (int64_t)zoo_recv_timeout(session->handle) * HF__NS_PER_MS;
}

static int64_t patience_ns(const struct zk_session *session)
{
    int64_t patience_ns = timeout_ns(session) / SHARE;
    unsigned rounds = session->heartbeat.cuts / session->store->url.common.host_count;

    if (patience_ns < PATIENCE_MIN)
        patience_ns = PATIENCE_MIN;
    if (patience_ns > PATIENCE_MAX)
        patience_ns = PATIENCE_MAX;
    return patience_ns << (rounds < DOUBLINGS ? rounds : DOUBLINGS);
}

/* In the library's thread. Every touch is answered before the handle is gone. */
static void on_touched(int rc, const struct Stat *stat, const void *data)
{
    struct zk_session *session = (struct zk_session *)data;

    (void)stat;
    if (rc == ZOK || rc == ZNONODE)
        atomic_store(&session->heartbeat.heard_ns, session->store->base.host->now_ns());
    atomic_fetch_sub(&session->heartbeat.unanswered, 1);
}

/* Nothing is waited for. Returns when the next one is due. */
static int64_t touch(struct zk_session *session, int64_t now_ns)
{
    struct zk_heartbeat *heartbeat = &session->heartbeat;
    int64_t every_ns = timeout_ns(session) / ZK_TOUCHES;

    /* A second one while the first is waited for, so that what has gone out is plainly later than
     * what came in. */
    if (heartbeat->quiet_ns != 0 && every_ns > PATIENCE_MIN / 2)
        every_ns = PATIENCE_MIN / 2;
    if (zoo_state(session->handle) != ZOO_CONNECTED_STATE || every_ns <= 0)
        return HF_NEVER;
    if (now_ns - heartbeat->touched_ns >= every_ns) {
        atomic_fetch_add(&heartbeat->unanswered, 1);
        if (zoo_aexists(session->handle, session->store->url.root, 0, on_touched, session) != ZOK)
            atomic_fetch_sub(&heartbeat->unanswered, 1);
        heartbeat->touched_ns = now_ns;
    }
    return heartbeat->touched_ns + every_ns;
}

/* When the patience with its server ends; HF_NEVER: nothing is waited for. */
static int64_t patience_end_ns(struct zk_session *session, int64_t now_ns)
{
    struct zk_heartbeat *heartbeat = &session->heartbeat;
    int64_t heard_ns = atomic_load(&heartbeat->heard_ns);
    bool connected = zoo_state(session->handle) == ZOO_CONNECTED_STATE;

    if (heard_ns > heartbeat->cut_ns)
        heartbeat->cuts = 0;
    if (zk_session_dead(session) || (connected && atomic_load(&heartbeat->unanswered) == 0)) {
        heartbeat->quiet_ns = 0;
        return HF_NEVER;
    }
    if (heartbeat->quiet_ns == 0)
        heartbeat->quiet_ns = now_ns;
    if (connected && heartbeat->quiet_ns < heard_ns)
        heartbeat->quiet_ns = heard_ns;
    return heartbeat->quiet_ns + patience_ns(session);
}

/* One round with the lock held; returns a session whose server is to be left, with a reference. */
static struct zk_session *next_silent(struct zk_store *store, int64_t now_ns, int64_t *next_ns)
{
    *next_ns = HF_NEVER;
    for (struct zk_session *at = store->sessions; at != NULL; at = at->next) {
        int64_t touch_ns = touch(at, now_ns);
        int64_t end_ns = patience_end_ns(at, now_ns);

        if (end_ns <= now_ns) {
            at->heartbeat.quiet_ns = now_ns;
            at->heartbeat.cut_ns = now_ns;
            at->heartbeat.cuts++;
            zk_session_ref(at);
            return at;
        }
        *next_ns = touch_ns < *next_ns ? touch_ns : *next_ns;
        *next_ns = end_ns < *next_ns ? end_ns : *next_ns;
    }
    return NULL;
}

int64_t zk_heartbeat_all(struct zk_store *store, int64_t now_ns)
{
    for (;;) {
        struct zk_session *silent;
        int64_t next_ns;

        pthread_mutex_lock(&store->lock);
        silent = next_silent(store, now_ns, &next_ns);
        pthread_mutex_unlock(&store->lock);
        if (silent == NULL)
            return next_ns;
        if (zk_cut(silent->handle, PATIENCE_MIN / HF__NS_PER_MS))
            store->base.host->log("store %s: a server does not answer; going to the next one",
                                  store->url.common.shown);
        zk_session_unref(silent);
    }
}
