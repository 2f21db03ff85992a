/* sessions.c - which session a caller gets: one per session timeout in use, made where it is
 * missing. */
#include "stores/zookeeper/probe.h"
#include "stores/zookeeper/cloexec.h"
#include "stores/zookeeper/zookeeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MAX     4                  /* sessions that are kept though nobody uses them */
#define SHARE_MAX_NS (2 * HF__NS_PER_S) /* for a host, before another one is tried */

/* The library would write to stderr, which is not its own. */
static void on_log(const char *message)
{
    (void)message;
}

/* The library takes no credentials in the moment between two hosts, when it has no connection at
 * all: then they are given to it as soon as it has one, before anybody else uses the session. */
static enum hf_status authenticate(struct zk_session *session, const char *name,
                                   const struct hf__patience *patience, struct hf_error *err)
{
    const struct zk_url *url = &session->store->url;
    char credentials[sizeof url->common.user + sizeof url->common.password];
    int len =
        snprintf(credentials, sizeof credentials, "%s:%s", url->common.user, url->common.password);
    enum hf_status status = HF_OK;
    int rc;

    do {
        rc = zoo_add_auth(session->handle, "digest", credentials, len, NULL, NULL);
        if (rc == ZINVALIDSTATE)
            status = zk_session_connected(session, name, patience, err);
    } while (rc == ZINVALIDSTATE && status == HF_OK);
    explicit_bzero(credentials, sizeof credentials);
    if (rc == ZOK || status != HF_OK)
        return status;
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, url->common.shown,
                         ": the credentials cannot be sent: %s", zerror(rc));
}

/* The next session begins at the host after this one, if that is news. */
static void turn_from(struct zk_store *store, unsigned first)
{
    pthread_mutex_lock(&store->lock);
    if (store->first_host == first)
        store->first_host = (first + 1) % store->url.common.host_count;
    pthread_mutex_unlock(&store->lock);
}

/* A handle that tries the hosts in our order. The switch for that is the whole process's, so it is
 * on for this moment only; errno says why there is none. */
static zhandle_t *init_handle(struct zk_session *session)
{
    struct zk_store *store = session->store;
    char hosts[ZK_HOSTS_MAX];
    zhandle_t *handle;
    int why;

    pthread_mutex_lock(&store->lock);
    session->first = store->first_host;
    pthread_mutex_unlock(&store->lock);
    zk_url_hosts(&store->url, session->first, hosts);
    zoo_deterministic_conn_order(1);
    handle = zookeeper_init2(hosts, zk_session_watcher(), (int)session->asked_ms, NULL, session,
                             ZOO_NO_LOG_CLIENTENV, on_log);
    why = errno;
    zoo_deterministic_conn_order(0);
    errno = why;
    return handle;
}

static enum hf_status start(struct zk_store *store, uint32_t asked_ms, const char *name,
                            const struct hf__patience *patience, struct zk_session **out,
                            struct hf_error *err)
{
    struct zk_session *session = calloc(1, sizeof *session);
    struct zk_fds before;
    enum hf_status status = HF_OK;

    if (session == NULL)
        return hf__nomem(err);
    zk_fds_note(&before);
    session->store = store;
    session->asked_ms = asked_ms;
    session->refs = 2; /* the list's and the caller's */
    pthread_mutex_init(&session->lock, NULL);
    session->handle = init_handle(session);
    if (session->handle == NULL) {
        int why = errno;

        zk_session_destroy(session);
        if (why == ENOMEM || why == EAGAIN)
            return hf__nomem(err);
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->url.common.shown,
                             ": none of its hosts has an address; are the names right?");
    }
    zk_cloexec_pipes(&before);
    /* Otherwise it asks for the hosts' addresses whenever it wakes: that is slow, and in a child
     * forked at that moment getaddrinfo(3) never returns. */
    (void)zoo_set_servers_resolution_delay(session->handle, -1);
    if (store->url.common.user[0] != '\0')
        status = authenticate(session, name, patience, err);
    if (status != HF_OK) {
        turn_from(store, session->first);
        zk_session_destroy(session);
        return status;
    }
    *out = session;
    return HF_OK;
}

/* Takes out of the list what is dead, or idle and too much; the last reference is dropped by the
 * caller, without the lock. */
static struct zk_session *prune(struct zk_store *store)
{
    struct zk_session *pruned = NULL;
    struct zk_session **at = &store->sessions;
    int idle = 0;

    while (*at != NULL) {
        struct zk_session *session = *at;

        if (zk_session_dead(session) || (session->refs == 1 && ++idle > IDLE_MAX)) {
            *at = session->next;
            session->next = pruned;
            pruned = session;
        } else {
            at = &session->next;
        }
    }
    return pruned;
}

static void drop(struct zk_session *list)
{
    while (list != NULL) {
        struct zk_session *next = list->next;

        zk_session_unref(list);
        list = next;
    }
}

static struct zk_session *find(struct zk_store *store, uint32_t asked_ms)
{
    for (struct zk_session *at = store->sessions; at != NULL; at = at->next)
        if ((asked_ms == 0 || at->asked_ms == asked_ms) && !zk_session_dead(at)) {
            zk_session_ref(at);
            return at;
        }
    return NULL;
}

/* One that is in the list, connected or not. ttl_ms 0: any. */
static enum hf_status pick(struct zk_store *store, uint32_t ttl_ms, const char *name,
                           const struct hf__patience *patience, struct zk_session **out,
                           struct hf_error *err)
{
    uint32_t tick_ms = (uint32_t)store->url.tick_ms;
    uint32_t asked_ms = ttl_ms != 0 ? zk_session_for_lease(ttl_ms, tick_ms) : 0;
    struct zk_session *pruned;
    struct zk_session *fresh = NULL;
    enum hf_status status;

    pthread_mutex_lock(&store->lock);
    *out = find(store, asked_ms);
    pthread_mutex_unlock(&store->lock);
    if (*out != NULL)
        return HF_OK;
    status =
        start(store, asked_ms != 0 ? asked_ms : zk_session_for_lease(HF_TTL_DEFAULT_MS, tick_ms),
              name, patience, &fresh, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&store->lock);
    pruned = prune(store);
    *out = find(store, asked_ms); /* another thread may have been faster */
    if (*out == NULL) {
        fresh->next = store->sessions;
        store->sessions = fresh;
        *out = fresh;
        fresh = NULL;
        /* Without it the session is heard of less often; every hold asks for it once more. */
        (void)zk_reaper_start(store, 0);
    }
    pthread_mutex_unlock(&store->lock);
    drop(pruned);
    if (fresh != NULL)
        zk_session_destroy(fresh);
    return HF_OK;
}

/* The library stays with a host that does not answer for two thirds of the session's timeout. So a
 * session that never was is given up and begun anew with the next host, in time for the caller. */
static void pass_over(struct zk_session *session)
{
    struct zk_store *store = session->store;
    struct zk_session **at = &store->sessions;
    bool listed;

    turn_from(store, session->first);
    pthread_mutex_lock(&store->lock);
    while (*at != NULL && *at != session)
        at = &(*at)->next;
    listed = *at != NULL;
    if (listed)
        *at = session->next;
    pthread_mutex_unlock(&store->lock);
    if (listed)
        zk_session_unref(session);
}

/* The part of the time for one host; the last one has the rest. */
static struct hf__patience share_of(const struct zk_store *store,
                                    const struct hf__patience *patience, unsigned tried)
{
    struct hf__patience share = *patience;
    int64_t now_ns = store->base.host->now_ns();
    int64_t share_ns;

    if (tried >= store->url.common.host_count)
        return share;
    share_ns = (patience->deadline_ns - now_ns) / (store->url.common.host_count - tried + 1);
    share.deadline_ns = now_ns + (share_ns < SHARE_MAX_NS ? share_ns : SHARE_MAX_NS);
    return share;
}

enum hf_status zk_session_get(struct zk_store *store, uint32_t ttl_ms, const char *name,
                              const struct hf__patience *patience, struct zk_session **out,
                              struct hf_error *err)
{
    for (unsigned tried = 1;; tried++) {
        struct hf__patience share = share_of(store, patience, tried);
        bool more = tried < store->url.common.host_count; /* hosts to try */
        enum hf_status status = pick(store, ttl_ms, name, &share, out, err);

        if (status == HF_UNREACHABLE && more)
            continue;
        if (status != HF_OK)
            return status;
        status = zk_session_connected(*out, name, &share, err);
        if (status == HF_UNREACHABLE && more && zk_session_id(*out) == 0) {
            pass_over(*out);
            status = HF_LOST;
        } else if (status == HF_UNREACHABLE) { /* a session that is at home is waited for */
            status = zk_session_connected(*out, name, patience, err);
        }
        if (status == HF_OK) {
            /* The event may come later than the connection; whoever forks next must not wait. */
            if (!atomic_exchange(&(*out)->cloexec, true))
                zk_cloexec_socket((*out)->handle);
            return HF_OK;
        }
        if (status == HF_UNREACHABLE && zk_turned_away((*out)->handle))
            status = zk_verdict(store, name, ZK_TURNED_AWAY, err);
        zk_session_unref(*out);
        if (status != HF_LOST) /* it has ended meanwhile: another one */
            return status;
    }
}

void zk_sessions_close(struct zk_store *store, bool forked)
{
    while (store->sessions != NULL) {
        struct zk_session *session = store->sessions;

        store->sessions = session->next;
        /* The library has no way to let go of a handle without the parent's session noticing: in a
         * forked child it stays, and its socket with it, until exec or exit. */
        if (forked)
            continue;
        zk_session_destroy(session);
    }
}
