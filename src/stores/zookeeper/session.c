/* session.c - sessions, one per session timeout in use, and who listens to them.
 *
 * The lease is three quarters of the session's timeout. The last quarter is for a server that did
 * not tell the leader in time that it had heard of us: a follower reports that every half tick,
 * and one that dies in between never does. The reaper sends something every twelfth of the
 * timeout, so that what was reported last is never much older than that.
 */
#include "stores/zookeeper/seal.h"
#include "stores/zookeeper/zookeeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define IDLE_MAX 4 /* sessions that are kept though nobody uses them */

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context);

/* The library would write to stderr, which is not its own. */
static void on_log(const char *message)
{
    (void)message;
}

watcher_fn zk_session_watcher(void)
{
    return on_event;
}

bool zk_session_dead(const struct zk_session *session)
{
    return is_unrecoverable(session->handle) != ZOK;
}

int64_t zk_session_id(const struct zk_session *session)
{
    return zoo_client_id(session->handle)->client_id;
}

uint32_t zk_session_lease_ms(const struct zk_session *session)
{
    int timeout_ms = zoo_recv_timeout(session->handle);

    return timeout_ms >= 4 ? (uint32_t)timeout_ms / 4 * 3 : 1;
}

static uint32_t timeout_for(uint32_t ttl_ms)
{
    return (ttl_ms + 2) / 3 * 4;
}

static void destroy(struct zk_session *session)
{
    if (session->handle != NULL)
        (void)zookeeper_close(session->handle);
    (void)pthread_mutex_destroy(&session->lock);
    free(session);
}

void zk_session_ref(struct zk_session *session)
{
    session->refs++;
}

void zk_session_unref(struct zk_session *session)
{
    struct zk_store *store = session->store;
    bool last;

    pthread_mutex_lock(&store->lock);
    last = --session->refs == 0;
    pthread_mutex_unlock(&store->lock);
    if (last)
        destroy(session);
}

/* The library takes no credentials in the moment between two hosts, when it has no connection at
 * all: then they are given to it as soon as it has one, before anybody else uses the session. */
static enum hf_status authenticate(struct zk_session *session, const char *name,
                                   const struct zk_patience *patience, struct hf_error *err)
{
    const struct zk_url *url = &session->store->url;
    char credentials[sizeof url->user + sizeof url->password];
    int len = snprintf(credentials, sizeof credentials, "%s:%s", url->user, url->password);
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
    return hf__fail(err, HF_UNREACHABLE, "store %.120s: the credentials cannot be sent: %s",
                    url->shown, zerror(rc));
}

static enum hf_status start(struct zk_store *store, uint32_t asked_ms, const char *name,
                            const struct zk_patience *patience, struct zk_session **out,
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
    (void)pthread_mutex_init(&session->lock, NULL);
    session->handle = zookeeper_init2(store->url.hosts, on_event, (int)asked_ms, NULL, session,
                                      ZOO_NO_LOG_CLIENTENV, on_log);
    if (session->handle == NULL) {
        int why = errno;

        destroy(session);
        if (why == ENOMEM || why == EAGAIN)
            return hf__nomem(err);
        return hf__fail(err, HF_UNREACHABLE,
                        "store %.120s: none of its hosts has an address; are the names right?",
                        store->url.shown);
    }
    zk_seal_pipes(&before);
    /* Otherwise it asks for the hosts' addresses whenever it wakes: slow, and whoever forks at that
     * moment has a child in which getaddrinfo(3) never returns. */
    (void)zoo_set_servers_resolution_delay(session->handle, -1);
    if (store->url.user[0] != '\0')
        status = authenticate(session, name, patience, err);
    if (status != HF_OK) {
        destroy(session);
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
                           const struct zk_patience *patience, struct zk_session **out,
                           struct hf_error *err)
{
    uint32_t asked_ms = ttl_ms != 0 ? timeout_for(ttl_ms) : 0;
    struct zk_session *pruned;
    struct zk_session *fresh = NULL;
    enum hf_status status;

    pthread_mutex_lock(&store->lock);
    *out = find(store, asked_ms);
    pthread_mutex_unlock(&store->lock);
    if (*out != NULL)
        return HF_OK;
    status = start(store, asked_ms != 0 ? asked_ms : timeout_for(HF_TTL_DEFAULT_MS), name, patience,
                   &fresh, err);
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
    }
    pthread_mutex_unlock(&store->lock);
    drop(pruned);
    if (fresh != NULL)
        destroy(fresh);
    return HF_OK;
}

enum hf_status zk_session_get(struct zk_store *store, uint32_t ttl_ms, const char *name,
                              const struct zk_patience *patience, struct zk_session **out,
                              struct hf_error *err)
{
    for (;;) {
        enum hf_status status = pick(store, ttl_ms, name, patience, out, err);

        if (status != HF_OK)
            return status;
        status = zk_session_connected(*out, name, patience, err);
        if (status == HF_OK) {
            /* The event may come later than the connection; whoever forks next must not wait. */
            if (!atomic_exchange(&(*out)->sealed, true))
                zk_seal_socket((*out)->handle);
            return HF_OK;
        }
        zk_session_unref(*out);
        if (status != HF_LOST) /* it has ended meanwhile: another one */
            return status;
    }
}

enum hf_status zk_session_connected(struct zk_session *session, const char *name,
                                    const struct zk_patience *patience, struct hf_error *err)
{
    struct zk_store *store = session->store;
    struct zk_listener listener = {.fd = -1};
    enum hf_status status = HF_OK;

    if (zoo_state(session->handle) == ZOO_CONNECTED_STATE)
        return HF_OK;
    listener.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listener.fd < 0)
        return hf__nomem(err);
    zk_session_listen(session, &listener);
    for (;;) {
        struct pollfd fds[2] = {{.fd = listener.fd, .events = POLLIN},
                                {.fd = patience->cancel_fd, .events = POLLIN}};
        int state = zoo_state(session->handle);
        eventfd_t ignored;

        if (state == ZOO_CONNECTED_STATE)
            break;
        if (state == ZOO_AUTH_FAILED_STATE)
            status = zk_verdict(store, name, ZAUTHFAILED, err);
        else if (zk_session_dead(session))
            status =
                hf__fail(err, HF_LOST, "the session of store %.150s has ended", store->url.shown);
        else if (hf__poll_until(fds, patience->cancel_fd >= 0 ? 2 : 1, patience->deadline_ns) <= 0)
            status = zk_verdict(store, name, ZCONNECTIONLOSS, err);
        else if (fds[0].revents == 0 && fds[1].revents != 0)
            status = zk_verdict(store, name, ZK_CANCELLED, err);
        if (status != HF_OK)
            break;
        (void)eventfd_read(listener.fd, &ignored);
    }
    zk_session_unlisten(session, &listener);
    (void)close(listener.fd);
    return status;
}

void zk_session_listen(struct zk_session *session, struct zk_listener *listener)
{
    pthread_mutex_lock(&session->lock);
    listener->next = session->listeners;
    session->listeners = listener;
    pthread_mutex_unlock(&session->lock);
}

void zk_session_unlisten(struct zk_session *session, struct zk_listener *listener)
{
    struct zk_listener **at = &session->listeners;

    pthread_mutex_lock(&session->lock);
    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
    pthread_mutex_unlock(&session->lock);
}

/* In the library's thread. The context is the session, never a waiter: a watch cannot outlive the
 * handle, but it does outlive a waiter who leaves. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct zk_session *session = context;

    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE)
        zk_seal_socket(handle);
    pthread_mutex_lock(&session->lock);
    for (struct zk_listener *at = session->listeners; at != NULL; at = at->next)
        if (type == ZOO_SESSION_EVENT || (path != NULL && strcmp(path, at->path) == 0))
            (void)eventfd_write(at->fd, 1);
    pthread_mutex_unlock(&session->lock);
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
        destroy(session);
    }
}
