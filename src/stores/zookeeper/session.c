/* session.c - one session, and who listens to it. How long a lease may rely on it: margin.h. */
#include "stores/zookeeper/cloexec.h"
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context);

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
    uint32_t lease_ms = zk_lease_of_session(timeout_ms > 0 ? (uint32_t)timeout_ms : 0,
                                            (uint32_t)session->store->url.tick_ms);

    return lease_ms > 0 ? lease_ms : 1;
}

void zk_session_destroy(struct zk_session *session)
{
    if (session->handle != NULL)
        (void)zookeeper_close(session->handle);
    pthread_mutex_destroy(&session->lock);
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
        zk_session_destroy(session);
}

/* HF_OK: something was heard of the session. */
static enum hf_status await_change(struct zk_session *session, const struct zk_listener *listener,
                                   const char *name, const struct hf__patience *patience,
                                   struct hf_error *err)
{
    switch (hf__patience_wait(patience, listener->fd, POLLIN)) {
    case HF__WAITED_READY:
        break;
    case HF__WAITED_TIMEOUT:
        return zk_verdict(session->store, name, ZCONNECTIONLOSS, err);
    case HF__WAITED_CANCELLED:
        return zk_verdict(session->store, name, ZK_CANCELLED, err);
    }
    return HF_OK;
}

enum hf_status zk_session_connected(struct zk_session *session, const char *name,
                                    const struct hf__patience *patience, struct hf_error *err)
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
        int state = zoo_state(session->handle);
        eventfd_t ignored;

        if (state == ZOO_CONNECTED_STATE)
            break;
        if (state == ZOO_AUTH_FAILED_STATE)
            status = zk_verdict(store, name, ZAUTHFAILED, err);
        else if (zk_session_dead(session))
            status = hf__fail_lock(err, HF_LOST, NULL, store->url.common.shown,
                                   ": the session has ended");
        else
            status = await_change(session, &listener, name, patience, err);
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
        zk_cloexec_socket(handle);
    if (type == ZOO_SESSION_EVENT) /* its heartbeat is the reaper's business */
        (void)eventfd_write(session->store->reaper_fd, 1);
    pthread_mutex_lock(&session->lock);
    for (struct zk_listener *at = session->listeners; at != NULL; at = at->next)
        if (type == ZOO_SESSION_EVENT || (path != NULL && strcmp(path, at->path) == 0))
            (void)eventfd_write(at->fd, 1);
    pthread_mutex_unlock(&session->lock);
}
