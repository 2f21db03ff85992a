/* wait.c - waiting to be the first. Only the child in front is watched, never the whole queue. */
#include "stores/zookeeper/attempt.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Is the one in front still there? Sets a watch if so. */
static int read_ahead(struct zk_attempt *a, const struct zk_listener *listener)
{
    struct zk_request *request = zk_request_new();
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    rc = zk_send_get(a->session->handle, request, listener->path, zk_session_watcher(), a->session);
    if (rc == ZOK)
        rc = zk_request_wait(request, &a->patience);
    zk_request_unref(request);
    return rc;
}

/* A lock that another holds is waited for until the caller's time is over; a trouble has a
 * request's time, even if the caller does not wait. The place in the queue lasts as long as the
 * session, and reading tells whether that has ended. */
static struct hf__wait_step next_step(struct zk_attempt *a, enum hf_status status)
{
    const struct hf_host *host = a->store->base.host;
    int64_t now_ns = host->now_ns();
    struct hf__wait_answer answer = {.status = status, .look_ns = hf__time_add(now_ns, ZK_POLL_NS)};
    uint32_t dice;

    host->random(&dice, sizeof dice);
    a->place.wait_until_ns = status == HF_BUSY ? a->claim->wait_until_ns : a->patience.deadline_ns;
    a->place.ours_until_ns = a->in_queue ? INT64_MAX : a->claim->deadline_ns;
    return hf__wait_queued(&a->place, &answer, now_ns, dice);
}

int zk_endure(struct zk_attempt *a)
{
    struct hf__wait_step step = next_step(a, HF_UNKNOWN);

    if (step.next == HF__WAIT_RETURN)
        return ZK_GIVEN_UP;
    switch (hf__patience_pause(&a->patience, step.until_ns)) {
    case HF__WAITED_READY:
        return ZOK;
    case HF__WAITED_TIMEOUT:
        return ZK_GIVEN_UP;
    case HF__WAITED_CANCELLED:
        break;
    }
    return ZK_CANCELLED;
}

/* Sleeps until something may have changed. */
static int sleep_in_queue(struct zk_attempt *a, const struct zk_listener *listener)
{
    struct hf__wait_step step = next_step(a, HF_BUSY);
    struct hf__patience patience = {.deadline_ns = a->claim->wait_until_ns,
                                    .cancel_fd = a->claim->cancel_fd};
    eventfd_t ignored;

    if (step.next == HF__WAIT_RETURN)
        return ZK_WAIT_OVER;
    patience = hf__patience_until(&patience, step.until_ns);
    if (hf__patience_wait(&patience, listener->fd, POLLIN) == HF__WAITED_CANCELLED)
        return ZK_CANCELLED;
    (void)eventfd_read(listener->fd, &ignored);
    if (zk_session_dead(a->session))
        return ZSESSIONEXPIRED;
    return ZOK;
}

/* Until the child in front of ours is gone: ZOK. It is the only one that is watched. */
int zk_queue_wait(struct zk_attempt *a, size_t index)
{
    struct zk_listener listener = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    char parent[ZK_PATH_MAX];
    int rc = ZK_NOMEM;

    if (listener.fd < 0)
        return rc;
    if (!zk_lock_path(a->store, a->claim->name, parent) ||
        snprintf(listener.path, sizeof listener.path, "%s/%s", parent,
                 a->queue.at[index - 1].name) >= (int)sizeof listener.path) {
        (void)close(listener.fd);
        return ZBADARGUMENTS;
    }
    zk_session_listen(a->session, &listener);
    for (;;) {
        rc = read_ahead(a, &listener);
        if (rc == ZNONODE) {
            rc = ZOK;
            break;
        }
        if (zk_connection_lost(rc))
            rc = zk_reconnect(a);
        else if (rc == ZOK)
            rc = sleep_in_queue(a, &listener);
        if (rc == ZK_GIVEN_UP)
            rc = ZK_WAIT_OVER;
        if (rc != ZOK)
            break;
    }
    zk_session_unlisten(a->session, &listener);
    (void)close(listener.fd);
    return rc;
}
