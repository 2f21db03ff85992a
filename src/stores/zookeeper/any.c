/* any.c - taking one of several locks: the first that is free, else as every.c or line.c wait. */
#include "stores/zookeeper/several.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static enum hf_status several_init(struct zk_several *s, struct hf_error *err);
static void several_release(struct zk_several *s);
static enum hf_status join(struct zk_several *s, struct hf_error *err);
static int take(struct zk_several *s);
static struct zk_attempt *lead(struct zk_several *s);
static bool leave_all(struct zk_several *s, size_t but);
static enum hf_status give_up(struct zk_several *s, int rc, struct hf_error *err);

enum hf_status zk_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err)
{
    struct zk_several s = {.store = (struct zk_store *)base, .claims = claims, .count = count};
    enum hf_status status = several_init(&s, err);
    bool again = true;

    *which = 0;
    while (status == HF_OK && again) {
        int rc;

        status = join(&s, err);
        if (status != HF_OK)
            break;
        rc = take(&s);
        again = zk_attempt_again(lead(&s), &rc);
        if (rc == ZOK) {
            status = zk_attempt_grant(&s.at[s.which], grant, err);
            (void)leave_all(&s, s.which);
            *which = s.which;
        } else if (!again) {
            status = give_up(&s, rc, err);
        }
        zk_session_unref(s.at->session);
    }
    several_release(&s);
    return status;
}

/* The attempts, the line if there is one, and what wakes us. */
static enum hf_status several_init(struct zk_several *s, struct hf_error *err)
{
    bool line = zk_line_of_all(s->claims, s->count, s->line_name);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum hf_status status = HF_OK;

    s->at = calloc(s->count + 1, sizeof *s->at);
    s->tries = calloc(s->count, sizeof *s->tries);
    s->listeners = calloc(s->count, sizeof *s->listeners);
    if (s->listeners != NULL)
        s->listeners[0].fd = fd;
    else if (fd >= 0)
        (void)close(fd);
    if (s->at == NULL || s->tries == NULL || s->listeners == NULL || fd < 0)
        return hf__nomem(err);
    for (size_t i = 0; status == HF_OK && i < s->count; i++) {
        s->listeners[i].fd = fd;
        s->tries[i] = s->claims[i];
        s->tries[i].wait_until_ns = 0;
        status = zk_attempt_init(&s->at[i], s->store, &s->claims[i], err);
    }
    if (status != HF_OK || !line)
        return status;
    s->line = s->claims[0];
    s->line.name = s->line_name;
    s->place = &s->at[s->count];
    status = zk_attempt_init(s->place, s->store, &s->line, err);
    zk_attempt_draw_owner(s->place);
    return status;
}

static void several_release(struct zk_several *s)
{
    for (size_t i = 0; s->at != NULL && i <= s->count; i++)
        zk_queue_release(&s->at[i].queue);
    if (s->listeners != NULL && s->listeners[0].fd >= 0)
        (void)close(s->listeners[0].fd);
    if (s->at != NULL)
        explicit_bzero(s->at, (s->count + 1) * sizeof *s->at);
    free(s->at);
    free(s->tries);
    free(s->listeners);
}

/* One session for all, held by the first. Whatever an earlier one had ended with it. */
static enum hf_status join(struct zk_several *s, struct hf_error *err)
{
    enum hf_status status = zk_attempt_join(&s->at[0], err);

    for (size_t i = 0; status == HF_OK && i <= s->count; i++) {
        struct zk_attempt *a = &s->at[i];

        if (a->made_at_ns != 0)
            zk_attempt_draw_owner(a);
        a->session = s->at[0].session;
        a->lease_ms = s->at[0].lease_ms;
        memcpy(a->data, s->at[0].data, sizeof a->data);
        a->in_queue = false;
    }
    return status;
}

/* Whose place lasts while we wait. */
static struct zk_attempt *lead(struct zk_several *s)
{
    return s->place != NULL && s->place->in_queue ? s->place : &s->at[0];
}

/* Reads the queues of count attempts from `first` on: all locks, and then the line. */
static int read_once(struct zk_several *s, size_t first, size_t count)
{
    struct zk_request *requests[HF_SEVERAL_MAX + 1] = {NULL};
    const struct hf__patience *patience = &lead(s)->patience;
    struct zk_session *session = s->at[0].session;
    int rc = ZOK;

    for (size_t i = first; rc == ZOK && i < count; i++) {
        requests[i] = zk_request_new();
        rc = requests[i] != NULL ? zk_ask_queue(session, s->at[i].claim->name, requests[i])
                                 : ZK_NOMEM;
    }
    for (size_t i = first; rc == ZOK && i < count; i++) {
        zk_queue_release(&s->at[i].queue);
        rc = zk_request_wait(requests[i], patience);
        if (rc == ZOK)
            rc = zk_order_queue(session, s->at[i].claim->name, &requests[i]->names, patience,
                                &s->at[i].queue);
        if (rc == ZNONODE) /* no container: nobody is there */
            rc = ZOK;
    }
    for (size_t i = first; i < count; i++)
        zk_request_unref(requests[i]);
    return rc;
}

static int read_all(struct zk_several *s, size_t first, size_t count)
{
    int rc = read_once(s, first, count);

    while (zk_connection_lost(rc) && (rc = zk_reconnect(lead(s))) == ZOK)
        rc = read_once(s, first, count);
    return rc;
}

int zk_read_queues(struct zk_several *s)
{
    return read_all(s, 0, s->count);
}

int zk_read_line(struct zk_several *s)
{
    return read_all(s, s->count, s->count + 1);
}

/* An attempt of its own, that has the time of a request. */
static void begin_try(struct zk_several *s, size_t i)
{
    struct zk_attempt *a = &s->at[i];

    if (a->made_at_ns != 0)
        zk_attempt_draw_owner(a);
    a->claim = &s->tries[i];
    a->patience = zk_attempt_leaving(a);
    a->patience.cancel_fd = s->claims[i].wait_until_ns != 0 ? s->claims[i].cancel_fd : -1;
    s->tries[i].deadline_ns = a->patience.deadline_ns;
}

/* The lock has not become ours, or is not to. */
static void end_try(struct zk_several *s, size_t i)
{
    s->doubt = !zk_attempt_leave(&s->at[i]) || s->doubt;
    s->at[i].in_queue = false; /* or the reaper's */
}

int zk_try(struct zk_several *s, size_t i)
{
    bool in_line = s->place != NULL && s->place->in_queue;
    int rc;

    begin_try(s, i);
    s->at[i].instead = in_line ? s->place : NULL;
    rc = zk_attempt_take(&s->at[i]);
    s->at[i].instead = NULL;
    if (rc == ZOK)
        s->which = i;
    else if (rc == ZK_WAIT_OVER && in_line && !s->place->in_queue)
        rc = ZK_OVERTAKEN;
    else
        end_try(s, i);
    return rc;
}

int zk_try_free(struct zk_several *s)
{
    int rc = ZK_WAIT_OVER;

    for (size_t i = 0; rc == ZK_WAIT_OVER && i < s->count; i++)
        if (s->at[i].queue.count == 0)
            rc = zk_try(s, i);
    return rc;
}

/* The first lock was ours a moment ago, and is free as a rule. Whoever waits in the line for it
 * tried to take it when we released it, and that leaves a gap in the numbers: without a gap nobody
 * waits, or not for longer than a moment. */
static int take_again(struct zk_several *s)
{
    int rc = zk_try(s, 0);

    if (rc != ZOK || s->place == NULL || s->at[0].alone)
        return rc;
    rc = zk_read_line(s);
    if (rc == ZOK && s->place->queue.count == 0)
        return ZOK;
    end_try(s, 0);
    return rc == ZOK ? ZK_WAIT_OVER : rc;
}

/* One that is free now, and that nobody in the line is to have. */
static int take_free(struct zk_several *s)
{
    bool contended = atomic_load(&s->store->contended);
    int rc = ZK_WAIT_OVER;

    if (!contended && zk_last_release_known(s->store, s->claims[0].name))
        rc = take_again(s);
    if (rc != ZK_WAIT_OVER)
        return rc;
    /* Where there was a line a moment ago there is one now, as a rule, and it says enough. */
    rc = contended && s->place != NULL ? zk_read_line(s) : ZOK;
    if (rc == ZOK && contended && s->place != NULL && s->place->queue.count > 0)
        return ZK_WAIT_OVER;
    if (rc == ZOK)
        rc = read_all(s, 0, s->place != NULL ? s->count + 1 : s->count);
    if (rc == ZOK)
        rc = s->place == NULL || s->place->queue.count == 0 ? zk_try_free(s) : ZK_WAIT_OVER;
    return rc;
}

static int take(struct zk_several *s)
{
    struct hf__patience patience = {.deadline_ns = s->claims[0].deadline_ns,
                                    .cancel_fd = s->claims[0].cancel_fd};
    int rc = take_free(s);

    if (rc == ZOK || rc == ZK_WAIT_OVER)
        atomic_store(&s->store->contended, rc != ZOK);
    if (s->claims[0].wait_until_ns == 0 || rc != ZK_WAIT_OVER)
        return rc;
    if (patience.deadline_ns < s->claims[0].wait_until_ns)
        patience.deadline_ns = s->claims[0].wait_until_ns;
    for (size_t i = 0; i < s->count; i++) {
        if (s->at[i].made_at_ns != 0)
            zk_attempt_draw_owner(&s->at[i]);
        s->at[i].claim = &s->claims[i];
        s->at[i].patience = patience;
    }
    return s->place != NULL ? zk_line_wait(s) : zk_every_wait(s);
}

/* Leaves all queues but that one, with one round trip for all; what was ours there is the next
 * one's. True if nothing of ours is left. */
static bool leave_all(struct zk_several *s, size_t but)
{
    struct zk_request *requests[HF_SEVERAL_MAX + 1] = {NULL};
    struct hf__patience patience = zk_attempt_leaving(&s->at[0]);

    for (size_t i = 0; i <= s->count; i++) {
        struct zk_attempt *a = &s->at[i];

        if (i == but || !a->in_queue || a->path[0] == '\0')
            continue;
        requests[i] = zk_request_new();
        if (requests[i] != NULL &&
            zk_send_delete(a->session->handle, requests[i], a->path, -1) != ZOK) {
            zk_request_unref(requests[i]);
            requests[i] = NULL;
        }
    }
    for (size_t i = 0; i <= s->count; i++) {
        struct zk_attempt *a = &s->at[i];
        int rc = requests[i] != NULL ? zk_request_wait(requests[i], &patience) : ZCONNECTIONLOSS;

        if (i == but || !a->in_queue)
            continue;
        if (rc != ZOK && rc != ZNONODE) {
            zk_orphan(a->session, a->claim->name, a->owner);
            s->doubt = s->doubt || a != s->place;
        }
        zk_request_unref(requests[i]);
    }
    return !s->doubt;
}

static enum hf_status give_up(struct zk_several *s, int rc, struct hf_error *err)
{
    bool inside = s->doubt;
    bool left;

    for (size_t i = 0; i < s->count; i++)
        inside = inside || s->at[i].in_queue;
    left = leave_all(s, s->count + 1);
    return zk_attempt_give_up(&s->at[0], rc, inside, left, err);
}
