/* acquire.c - getting into the line, waiting for one's turn, and leaving.
 *
 * The making of the own child and the reading of the line travel together: a session's requests are
 * answered in order, so a free lock costs one round trip. Whatever happened to the connection, the
 * owner in the child's name tells afterwards whether it was made.
 */
#include "stores/zookeeper/zookeeper.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAIT_OVER (-1004) /* beside the codes of request.h */

struct attempt {
    struct zk_store *store;
    const struct hf_claim *claim;
    struct zk_session *session;
    struct zk_patience patience; /* until the wait is over and a request has had its time */
    struct zk_patience leaving;  /* how much more may be spent on leaving, from now        */
    int64_t leave_ns;
    uint32_t lease_ms;
    bool in_line; /* the own child may exist                                     */
    char path[ZK_PATH_MAX];
    char data[ZK_DATA_MAX];
    uint64_t token;
    int64_t sent_at_ns; /* of the write that proves the own child; 0: none that is fresh */
    struct zk_line line;
};

static int enter(struct attempt *a);
static int confirm(struct attempt *a);
static int settle(struct attempt *a);
static int wait_turn(struct attempt *a, size_t place);
static bool leave(struct attempt *a);
static enum hf_status grant_it(struct attempt *a, struct hf_grant *grant, struct hf_error *err);
static enum hf_status give_up(struct attempt *a, int rc, struct hf_error *err);

static bool session_ended(int rc)
{
    return rc == ZSESSIONEXPIRED || rc == ZINVALIDSTATE || rc == ZCLOSING;
}

static bool connection_lost(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED;
}

static enum hf_status join(struct attempt *a, struct hf_error *err)
{
    enum hf_status status =
        zk_session_get(a->store, a->claim->ttl_ms, a->claim->name, &a->patience, &a->session, err);

    if (status != HF_OK) {
        a->session = NULL;
        return status;
    }
    a->lease_ms = zk_session_lease_ms(a->session);
    if (a->lease_ms >= a->claim->ttl_ms) {
        a->lease_ms = a->claim->ttl_ms;
    } else {
        a->store->base.host->log(
            "lock \"%s\": the server's longest session allows leases of %u ms, "
            "not of %u ms",
            a->claim->name, a->lease_ms, a->claim->ttl_ms);
    }
    zk_data_make(a->data, a->lease_ms, a->claim->label);
    return HF_OK;
}

/* What to do next, until the line says that it is our turn. */
static int take_turn(struct attempt *a)
{
    int rc = enter(a);

    for (;;) {
        size_t place;

        while (connection_lost(rc))
            rc = settle(a);
        if (rc != ZOK && rc != ZNONODE)
            return rc;
        place = rc == ZOK ? zk_line_find(&a->line, a->claim->owner) : a->line.count;
        if (rc == ZNONODE || place == a->line.count) {
            /* It was not made, or is gone again: that is proved, so it may be made once more. */
            a->in_line = false;
            rc = enter(a);
            continue;
        }
        if (place == 0 && a->sent_at_ns != 0)
            return ZOK;
        if (place > 0) {
            if (a->claim->wait_until_ns == 0)
                return WAIT_OVER;
            rc = wait_turn(a, place);
        }
        if (rc == ZOK)
            rc = confirm(a);
    }
}

enum hf_status zk_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct attempt a = {.store = (struct zk_store *)base, .claim = claim};
    enum hf_status status;
    int rc;

    if (claim->detached)
        return hf__fail(err, HF_UNSUPPORTED,
                        "lock \"%.60s\" in store %.80s: a ZooKeeper lock ends with its process; "
                        "detached leases cannot be had",
                        claim->name, a.store->url.shown);
    a.patience.deadline_ns = claim->deadline_ns;
    if (claim->wait_until_ns > a.patience.deadline_ns)
        a.patience.deadline_ns = claim->wait_until_ns;
    a.patience.cancel_fd = claim->wait_until_ns != 0 ? claim->cancel_fd : -1;
    a.leave_ns = claim->deadline_ns - base->host->now_ns();
    do {
        status = join(&a, err);
        if (status != HF_OK)
            return status;
        rc = take_turn(&a);
        if (rc == ZOK)
            status = grant_it(&a, grant, err);
        else if (!session_ended(rc))
            status = give_up(&a, rc, err);
        zk_line_release(&a.line);
        zk_session_unref(a.session);
        /* With the session its children ended; the next one starts anew. */
    } while (session_ended(rc));
    return status;
}

static enum hf_status grant_it(struct attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    struct zk_hold hold = {.token = a->token,
                           .claimed_ms = a->claim->ttl_ms,
                           .lease_ms = a->lease_ms,
                           .session = a->session};

    hold.end_ns = hf__time_add(a->sent_at_ns, (int64_t)a->lease_ms * HF__NS_PER_MS);
    (void)snprintf(hold.name, sizeof hold.name, "%s", a->claim->name);
    (void)snprintf(hold.owner, sizeof hold.owner, "%s", a->claim->owner);
    memcpy(hold.path, a->path, sizeof hold.path);
    memcpy(hold.data, a->data, sizeof hold.data);
    if (!zk_holds_add(a->store, &hold)) {
        (void)leave(a);
        return hf__nomem(err);
    }
    grant->token = a->token;
    grant->sent_at_ns = a->sent_at_ns;
    grant->ttl_ms = a->lease_ms;
    return hf__ok(err);
}

static enum hf_status give_up(struct attempt *a, int rc, struct hf_error *err)
{
    const char *name = a->claim->name;
    bool left = leave(a);

    if (rc != WAIT_OVER)
        return zk_verdict(a->store, name, rc, err);
    if (!left)
        return hf__fail(
            err, HF_UNKNOWN,
            "lock \"%.60s\" in store %.80s: the connection is lost; our place in the line "
            "may have become our turn",
            name, a->store->url.shown);
    zk_line_release(&a->line);
    (void)zk_read_line(a->session, name, false, &a->leaving, &a->line);
    return zk_busy(a->session, name, &a->line, &a->leaving, err);
}

/* Notes where the own child is, if it really is ours. */
static int note_own(struct attempt *a, const char *path, const struct Stat *stat)
{
    /* A child of a session that has ended may still be seen for a moment (CURATOR-604). */
    if (stat->ephemeralOwner != zk_session_id(a->session))
        return ZNONODE;
    if (path != NULL && snprintf(a->path, sizeof a->path, "%s", path) >= (int)sizeof a->path)
        return ZBADARGUMENTS;
    a->token = (uint64_t)stat->czxid;
    return ZOK;
}

/* The line, if memory proves that the own child is all of it. */
static bool alone(struct attempt *a, const struct zk_memory *memory)
{
    const char *child = strrchr(a->path, '/');
    int32_t sequence;

    return child != NULL && zk_sequence(child, &sequence) &&
           zk_stands_alone(memory, sequence, a->token) && zk_line_init_alone(&a->line, child + 1);
}

/* Makes the child. If there is a request for the children, it goes right behind. */
static int make_child(struct attempt *a, const char *parent, const char *stem,
                      struct zk_request *made, struct zk_request *children)
{
    int64_t now_ns = a->store->base.host->now_ns();
    int rc;
    int read = ZOK;

    a->path[0] = '\0'; /* whatever was known is about a child that is gone */
    rc = zk_send_create(a->session->handle, made, stem, a->data, zk_acl(a->store),
                        ZOO_EPHEMERAL_SEQUENTIAL);
    if (rc != ZOK)
        return rc;
    a->in_line = true;
    if (children != NULL)
        read = zk_send_children(a->session->handle, children, parent);
    rc = zk_request_wait(made, &a->patience);
    if (rc == ZNONODE || rc == ZNOAUTH)
        a->in_line = false;
    if (rc == ZOK)
        rc = note_own(a, made->text, &made->stat);
    if (rc == ZOK)
        a->sent_at_ns = now_ns;
    if (rc == ZOK && children != NULL)
        rc = read == ZOK ? zk_request_wait(children, &a->patience) : read;
    return rc;
}

/* Makes the child and reads the line, in one go; or makes it, and knows the line. */
static int enter_once(struct attempt *a, const char *parent, const char *stem)
{
    struct zk_memory memory;
    bool known = zk_recall(a->store, a->claim->name, &memory);
    struct zk_request *made = zk_request_new();
    struct zk_request *children = known ? NULL : zk_request_new();
    int rc = ZK_NOMEM;

    zk_line_release(&a->line);
    a->sent_at_ns = 0;
    if (made != NULL && (known || children != NULL))
        rc = make_child(a, parent, stem, made, children);
    if (rc == ZOK && !known)
        rc = zk_order_line(a->session, a->claim->name, &children->names, &a->patience, &a->line);
    else if (rc == ZOK && !alone(a, &memory))
        rc = zk_read_line(a->session, a->claim->name, false, &a->patience, &a->line);
    zk_request_unref(made);
    zk_request_unref(children);
    return rc;
}

static int enter(struct attempt *a)
{
    char parent[ZK_PATH_MAX];
    char stem[ZK_PATH_MAX];
    int rc = ZBADARGUMENTS;

    if (!zk_lock_path(a->store, a->claim->name, parent) ||
        snprintf(stem, sizeof stem, "%s/%s-lock-", parent, a->claim->owner) >= (int)sizeof stem)
        return rc;
    for (int tries = 0; tries < ZK_TRIES_MAX; tries++) {
        rc = enter_once(a, parent, stem);
        if (rc != ZNONODE || a->in_line)
            return rc;
        rc = zk_make_parent(a->session, a->claim->name, &a->patience);
        /* Nothing of ours is in doubt here. A lost connection: once more when it is back. */
        if (rc != ZOK && !connection_lost(rc))
            return rc;
        if (rc != ZOK && zk_session_connected(a->session, NULL, &a->patience, NULL) != HF_OK)
            return zk_session_dead(a->session) ? ZSESSIONEXPIRED : rc;
    }
    return rc;
}

/* The connection was lost with a request under way. The new one is made through the leader, which
 * from then on refuses what the old one still had in its pipes; so what a synced look does not
 * find was not made and will not be. */
static int settle(struct attempt *a)
{
    enum hf_status status = zk_session_connected(a->session, NULL, &a->patience, NULL);
    size_t place;
    int rc;

    a->sent_at_ns = 0;
    zk_line_release(&a->line);
    if (status == HF_LOST)
        return ZSESSIONEXPIRED;
    if (status == HF_CANCELLED)
        return ZK_CANCELLED;
    if (status == HF_UNREACHABLE)
        return ZK_GIVEN_UP;
    rc = zk_read_line(a->session, a->claim->name, true, &a->patience, &a->line);
    place = rc == ZOK ? zk_line_find(&a->line, a->claim->owner) : a->line.count;
    if (place < a->line.count) {
        struct Stat stat = {0};
        char parent[ZK_PATH_MAX];
        char path[ZK_PATH_MAX + ZK_CHILD_MAX];

        rc = zk_read_child(a->session, a->claim->name, a->line.at[place].name, &a->patience, NULL,
                           &stat);
        if (rc == ZOK && zk_lock_path(a->store, a->claim->name, parent)) {
            (void)snprintf(path, sizeof path, "%s/%s", parent, a->line.at[place].name);
            rc = note_own(a, path, &stat);
        }
    }
    return rc;
}

/* Writes to the own child and reads the line. The write needs a quorum: whoever gets an answer
 * still has its session, whatever a server that lags behind may think. */
static int confirm(struct attempt *a)
{
    struct zk_request *set = zk_request_new();
    struct zk_request *children = zk_request_new();
    char parent[ZK_PATH_MAX];
    int rc = ZK_NOMEM;

    zk_line_release(&a->line);
    a->sent_at_ns = 0;
    if (set != NULL && children != NULL && zk_lock_path(a->store, a->claim->name, parent)) {
        int64_t now_ns = a->store->base.host->now_ns();

        rc = zk_send_set(a->session->handle, set, a->path, a->data);
        if (rc == ZOK)
            rc = zk_send_children(a->session->handle, children, parent);
        if (rc == ZOK)
            rc = zk_request_wait(set, &a->patience);
        if (rc == ZOK && (rc = note_own(a, NULL, &set->stat)) == ZOK) {
            a->sent_at_ns = now_ns;
            rc = zk_request_wait(children, &a->patience);
        }
    }
    if (rc == ZOK)
        rc = zk_order_line(a->session, a->claim->name, &children->names, &a->patience, &a->line);
    zk_request_unref(set);
    zk_request_unref(children);
    return rc;
}

/* Is the one in front still there? Sets a watch if so. */
static int look_ahead(struct attempt *a, const struct zk_listener *listener)
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

/* Sleeps until something may have changed. */
static int sleep_in_line(struct attempt *a, const struct zk_listener *listener)
{
    int64_t now_ns = a->store->base.host->now_ns();
    int64_t until_ns = hf__time_add(now_ns, ZK_POLL_NS);
    struct pollfd fds[2] = {{.fd = listener->fd, .events = POLLIN},
                            {.fd = a->claim->cancel_fd, .events = POLLIN}};
    eventfd_t ignored;

    if (until_ns > a->claim->wait_until_ns)
        until_ns = a->claim->wait_until_ns;
    (void)hf__poll_until(fds, a->claim->cancel_fd >= 0 ? 2 : 1, until_ns);
    if (a->claim->cancel_fd >= 0 && fds[1].revents != 0)
        return ZK_CANCELLED;
    (void)eventfd_read(listener->fd, &ignored);
    if (zk_session_dead(a->session))
        return ZSESSIONEXPIRED;
    return ZOK;
}

/* Until the child in front of ours is gone: ZOK. It is the only one that is watched. */
static int wait_turn(struct attempt *a, size_t place)
{
    struct zk_listener listener = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    char parent[ZK_PATH_MAX];
    int rc = ZK_NOMEM;

    if (listener.fd < 0)
        return rc;
    if (!zk_lock_path(a->store, a->claim->name, parent) ||
        snprintf(listener.path, sizeof listener.path, "%s/%s", parent,
                 a->line.at[place - 1].name) >= (int)sizeof listener.path) {
        (void)close(listener.fd);
        return ZBADARGUMENTS;
    }
    zk_session_listen(a->session, &listener);
    for (;;) {
        rc = look_ahead(a, &listener);
        if (rc == ZNONODE) {
            rc = ZOK;
            break;
        }
        if (connection_lost(rc)) {
            enum hf_status status = zk_session_connected(a->session, NULL, &a->patience, NULL);

            rc = status == HF_OK          ? ZOK
                 : status == HF_LOST      ? ZSESSIONEXPIRED
                 : status == HF_CANCELLED ? ZK_CANCELLED
                                          : WAIT_OVER;
            if (rc != ZOK)
                break;
            continue;
        }
        if (rc == ZOK)
            rc = sleep_in_line(a, &listener);
        if (rc == ZK_GIVEN_UP ||
            (rc == ZOK && a->store->base.host->now_ns() >= a->claim->wait_until_ns))
            rc = WAIT_OVER;
        if (rc != ZOK)
            break;
    }
    zk_session_unlisten(a->session, &listener);
    (void)close(listener.fd);
    return rc;
}

/* True if the own child is certainly not there (any more). Otherwise the reaper sees to it. */
static bool leave(struct attempt *a)
{
    int rc = ZOK;

    a->leaving =
        (struct zk_patience){.deadline_ns = hf__time_add(a->store->base.host->now_ns(),
                                                         a->leave_ns > 0 ? a->leave_ns : 0),
                             .cancel_fd = -1};
    if (!a->in_line)
        return true;
    if (a->path[0] != '\0' && zoo_state(a->session->handle) == ZOO_CONNECTED_STATE)
        rc = zk_delete(a->session, a->path, &a->leaving);
    else
        rc = ZCONNECTIONLOSS;
    if (rc == ZOK || rc == ZNONODE)
        return true;
    zk_orphan(a->session, a->claim->name, a->claim->owner);
    return false;
}
