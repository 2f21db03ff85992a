/* wait.c - waiting to be the first. Only the child in front is watched, never the whole queue. */
#include "stores/zookeeper/attempt.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A lock that another holds is waited for until the caller's time is over; a trouble has a
 * request's time, even if the caller does not wait. The place in the queue lasts as long as the
 * session, and reading tells whether that has ended. */
static struct hf__wait_step next_step(struct zk_attempt *a, enum hf_status status,
                                      int64_t period_ns)
{
    const struct hf_host *host = a->store->base.host;
    int64_t now_ns = host->now_ns();
    struct hf__wait_answer answer = {.status = status, .look_ns = hf__time_add(now_ns, period_ns)};
    uint32_t dice;

    host->random(&dice, sizeof dice);
    a->wait_queue.wait_until_ns =
        status == HF_BUSY ? a->claim->wait_until_ns : a->patience.deadline_ns;
    a->wait_queue.ours_until_ns = a->in_queue ? INT64_MAX : a->claim->deadline_ns;
    return hf__wait_queued(&a->wait_queue, &answer, now_ns, dice);
}

int zk_endure(struct zk_attempt *a)
{
    struct hf__wait_step step = next_step(a, HF_UNKNOWN, 0);

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
static int sleep_in_queue(struct zk_attempt *a, int fd, int64_t period_ns)
{
    struct hf__wait_step step = next_step(a, HF_BUSY, period_ns);
    struct hf__patience patience = {.deadline_ns = a->claim->wait_until_ns,
                                    .cancel_fd = a->claim->cancel_fd};
    eventfd_t ignored;

    if (step.next == HF__WAIT_RETURN)
        return ZK_WAIT_OVER;
    patience = hf__patience_until(&patience, step.until_ns);
    if (hf__patience_wait(&patience, fd, POLLIN) == HF__WAITED_CANCELLED)
        return ZK_CANCELLED;
    (void)eventfd_read(fd, &ignored);
    if (zk_session_dead(a->session))
        return ZSESSIONEXPIRED;
    return ZOK;
}

/* Which of the nodes is gone; count: none, and all are watched from now on. */
static int watch(struct zk_attempt *a, const struct zk_listener *listeners, size_t count,
                 size_t *gone)
{
    struct zk_request *requests[ZK_WATCHED_MAX] = {NULL};
    int rc = ZOK;

    *gone = count;
    for (size_t i = 0; rc == ZOK && i < count; i++) {
        requests[i] = zk_request_new();
        rc = requests[i] == NULL ? ZK_NOMEM
                                 : zk_send_get(a->session->handle, requests[i], listeners[i].path,
                                               zk_session_watcher(), a->session);
    }
    for (size_t i = 0; rc == ZOK && i < count; i++) {
        rc = zk_request_wait(requests[i], &a->patience);
        if (rc == ZNONODE) {
            *gone = *gone == count ? i : *gone;
            rc = ZOK;
        }
    }
    for (size_t i = 0; i < count; i++)
        zk_request_unref(requests[i]);
    return rc;
}

bool zk_listen_to(const struct zk_store *store, const char *name, const char *child,
                  struct zk_listener *listener)
{
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];

    if (!zk_child_path(store, name, child, path) || strlen(path) >= sizeof listener->path)
        return false;
    memcpy(listener->path, path, strlen(path) + 1);
    return true;
}

int zk_doze(struct zk_attempt *a, struct zk_listener *listeners, size_t count, int64_t period_ns,
            size_t *gone)
{
    int rc;

    for (size_t i = 0; i < count; i++)
        zk_session_listen(a->session, &listeners[i]);
    rc = watch(a, listeners, count, gone);
    if (zk_connection_lost(rc))
        rc = zk_reconnect(a);
    else if (rc == ZOK && *gone == count)
        rc = sleep_in_queue(a, listeners[0].fd, period_ns);
    for (size_t i = 0; i < count; i++)
        zk_session_unlisten(a->session, &listeners[i]);
    return rc == ZK_GIVEN_UP ? ZK_WAIT_OVER : rc;
}

/* Until the child in front of ours is gone: ZOK. It is the only one that is watched. */
int zk_queue_wait(struct zk_attempt *a, size_t index)
{
    struct zk_listener listener = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    size_t gone = 1;
    int rc = ZOK;

    if (listener.fd < 0)
        return ZK_NOMEM;
    if (!zk_listen_to(a->store, a->claim->name, a->queue.at[index - 1].name, &listener))
        rc = ZBADARGUMENTS;
    while (rc == ZOK && gone == 1)
        rc = zk_doze(a, &listener, 1, ZK_POLL_NS, &gone);
    (void)close(listener.fd);
    return rc;
}
