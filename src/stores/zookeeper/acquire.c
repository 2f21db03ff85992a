/* acquire.c - taking a lock: into the queue, until we are first, or out of it again. */
#include "stores/zookeeper/attempt.h"

#include <string.h>

static bool holds_already(const struct zk_attempt *a);

enum hf_status zk_attempt_init(struct zk_attempt *a, struct zk_store *store,
                               const struct hf_claim *claim, struct hf_error *err)
{
    *a = (struct zk_attempt){.store = store, .claim = claim};
    if (claim->detached)
        return hf__fail_lock(err, HF_UNSUPPORTED, claim->name, store->url.common.shown,
                             ": a ZooKeeper lock ends with its process, so it cannot be detached");
    if (holds_already(a))
        return hf__fail_lock(err, HF_BUSY, claim->name, store->url.common.shown,
                             " is held by this very owner");
    a->patience.deadline_ns = claim->deadline_ns;
    if (claim->wait_until_ns > a->patience.deadline_ns)
        a->patience.deadline_ns = claim->wait_until_ns;
    a->patience.cancel_fd = claim->wait_until_ns != 0 ? claim->cancel_fd : -1;
    a->leave_ns = claim->deadline_ns - store->base.host->now_ns();
    hf__wait_queue_init(&a->wait_queue, claim->wait_until_ns);
    a->wait_queue.settles = true; /* by reading, or with a fresh owner in the next session */
    (void)snprintf(a->owner, sizeof a->owner, "%s", claim->owner);
    return HF_OK;
}

enum hf_status zk_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct zk_attempt a;
    enum hf_status status = zk_attempt_init(&a, (struct zk_store *)base, claim, err);
    bool again;

    if (status != HF_OK)
        return status;
    do {
        int rc;

        status = zk_attempt_join(&a, err);
        if (status != HF_OK)
            return status;
        rc = zk_line_pass(&a);
        if (rc == ZOK)
            rc = zk_attempt_take(&a);
        again = zk_attempt_again(&a, &rc);
        if (rc == ZOK)
            status = zk_attempt_grant(&a, grant, err);
        else if (again)
            zk_attempt_draw_owner(&a);
        else
            status = zk_attempt_give_up(&a, rc, a.in_queue, zk_attempt_leave(&a), err);
        zk_queue_release(&a.queue);
        zk_session_unref(a.session);
    } while (again);
    return status;
}

bool zk_attempt_again(struct zk_attempt *a, int *rc)
{
    int next;

    if (!zk_session_ended(*rc))
        return false;
    next = zk_endure(a);
    if (next == ZK_CANCELLED)
        *rc = next;
    return next == ZOK;
}

/* An owner holds once: a second child of it would be a second token. */
static bool holds_already(const struct zk_attempt *a)
{
    struct zk_hold hold;

    if (!zk_holds_find(a->store, a->claim, &hold))
        return false;
    zk_session_unref(hold.session);
    return true;
}

/* The child of a session that has ended may still be seen for a moment. It must not be taken for
 * the one of the next session. */
void zk_attempt_draw_owner(struct zk_attempt *a)
{
    unsigned char raw[HF_OWNER_LEN / 2];

    a->store->base.host->random(raw, sizeof raw);
    hf__hex_encode(a->owner, raw, sizeof raw);
    explicit_bzero(raw, sizeof raw);
}

/* The leader hears of sessions less often than this one lasts. */
static enum hf_status refuse_session(const struct zk_attempt *a, struct hf_error *err)
{
    char session[16];
    char tick[16];

    (void)hf__format_duration(session, sizeof session, zoo_recv_timeout(a->session->handle));
    (void)hf__format_duration(tick, sizeof tick, a->store->url.tick_ms);
    return hf__fail_lock(
        err, HF_UNSUPPORTED, a->claim->name, a->store->url.common.shown,
        ": the server's longest session, %s, is too short for a lease at a tick of "
        "%s; raise maxSessionTimeout, or set ?tick= if the tick is shorter",
        session, tick);
}

static void log_short_lease(const struct zk_attempt *a)
{
    char lease[16];
    char ttl[16];

    (void)hf__format_duration(lease, sizeof lease, a->lease_ms);
    (void)hf__format_duration(ttl, sizeof ttl, a->claim->ttl_ms);
    a->store->base.host->log("lock \"%s\": the server's longest session allows a lease of %s, not "
                             "of %s",
                             a->claim->name, lease, ttl);
}

/* While there is no place in the queue to lose, a store that is away is told of after a request's
 * time; libholdfast asks again if the caller waits. */
enum hf_status zk_attempt_join(struct zk_attempt *a, struct hf_error *err)
{
    struct hf__patience soon = {.deadline_ns = hf__time_add(a->store->base.host->now_ns(),
                                                            a->leave_ns > 0 ? a->leave_ns : 0),
                                .cancel_fd = a->patience.cancel_fd};
    enum hf_status status =
        zk_session_get(a->store, a->claim->ttl_ms, a->claim->name, &soon, &a->session, err);

    if (status != HF_OK)
        return status;
    a->in_queue = false;
    zk_fit_lease(a);
    if (a->lease_ms < a->claim->ttl_ms && a->lease_ms < HF_TTL_MIN_MS)
        status = refuse_session(a, err);
    if (status != HF_OK) {
        zk_session_unref(a->session);
        return status;
    }
    if (a->lease_ms < a->claim->ttl_ms)
        log_short_lease(a);
    zk_data_make(a->data, a->lease_ms, 0, a->claim->label);
    return HF_OK;
}

/* Where the own child stands in the queue, by its whole name. */
static size_t own_index(const struct zk_attempt *a)
{
    const char *child = strrchr(a->path, '/');
    size_t index = 0;

    while (index < a->queue.count &&
           (child == NULL || strcmp(a->queue.at[index].name, child + 1) != 0))
        index++;
    return index;
}

int zk_attempt_stand(struct zk_attempt *a, int rc, size_t *index)
{
    for (;;) {
        while (zk_connection_lost(rc) && (rc = zk_reconnect(a)) == ZOK)
            rc = zk_settle(a);
        if (rc != ZOK && rc != ZNONODE)
            return rc;
        *index = rc == ZOK ? own_index(a) : a->queue.count;
        if (rc == ZOK && *index < a->queue.count)
            return ZOK;
        /* It was not made, or is gone again: that is proved, so it may be made once more. */
        a->in_queue = false;
        if (a->store->base.host->now_ns() >= a->patience.deadline_ns)
            return ZK_WAIT_OVER;
        rc = zk_enter(a);
    }
}

/* What to do next, until the queue says that we are first. */
int zk_attempt_take(struct zk_attempt *a)
{
    int rc = zk_enter(a);

    for (;;) {
        size_t index;

        rc = zk_attempt_stand(a, rc, &index);
        if (rc != ZOK || (index == 0 && a->sent_at_ns != 0))
            return rc;
        if (index > 0) {
            if (a->claim->wait_until_ns == 0)
                return ZK_WAIT_OVER;
            rc = zk_queue_wait(a, index);
        }
        if (rc == ZOK)
            rc = zk_confirm(a);
    }
}

enum hf_status zk_attempt_grant(struct zk_attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    struct zk_hold hold = {.token = a->token,
                           .version = a->version,
                           .claimed_ms = a->claim->ttl_ms,
                           .session = a->session};

    /* Every answer came by a connection that had its own say about the session's timeout. */
    zk_fit_lease(a);
    hold.lease_ms = a->lease_ms;
    hold.end_ns = hf__time_add(a->sent_at_ns, (int64_t)a->lease_ms * HF__NS_PER_MS);
    (void)snprintf(hold.name, sizeof hold.name, "%s", a->claim->name);
    (void)snprintf(hold.owner, sizeof hold.owner, "%s", a->owner);
    memcpy(hold.path, a->path, sizeof hold.path);
    memcpy(hold.data, a->data, sizeof hold.data);
    if (!zk_holds_add(a->store, &hold)) {
        (void)zk_attempt_leave(a);
        return hf__nomem(err);
    }
    grant->token = a->token;
    grant->sent_at_ns = a->sent_at_ns;
    grant->ttl_ms = a->lease_ms;
    memcpy(grant->owner, a->owner, sizeof grant->owner);
    return hf__ok(err);
}

struct hf__patience zk_attempt_leaving(const struct zk_attempt *a)
{
    int64_t now_ns = a->store->base.host->now_ns();

    return (struct hf__patience){.deadline_ns =
                                     a->leave_ns > 0 ? hf__time_add(now_ns, a->leave_ns) : now_ns,
                                 .cancel_fd = -1};
}

enum hf_status zk_attempt_give_up(struct zk_attempt *a, int rc, bool inside, bool left,
                                  struct hf_error *err)
{
    const char *name = a->claim->name;
    struct hf__patience patience = zk_attempt_leaving(a);

    if (rc == ZK_GIVEN_UP && !inside)
        rc = ZCONNECTIONLOSS; /* nothing of ours is in doubt */
    if (rc != ZK_WAIT_OVER)
        return zk_verdict(a->store, name, rc, err);
    if (!left)
        return hf__fail_lock(err, HF_UNKNOWN, name, a->store->url.common.shown,
                             ": the connection is lost; we were in the queue and may hold it now");
    zk_queue_release(&a->queue);
    (void)zk_read_queue(a->session, name, false, &patience, &a->queue);
    return zk_busy(a->session, name, &a->queue, &patience, err);
}

bool zk_attempt_leave(struct zk_attempt *a)
{
    struct hf__patience patience = zk_attempt_leaving(a);
    int rc = ZCONNECTIONLOSS;

    if (!a->in_queue)
        return true;
    if (a->path[0] != '\0' && zoo_state(a->session->handle) == ZOO_CONNECTED_STATE)
        rc = zk_delete(a->session, a->path, -1, &patience);
    if (rc == ZOK || rc == ZNONODE)
        return true;
    zk_orphan(a->session, a->claim->name, a->owner);
    return false;
}
