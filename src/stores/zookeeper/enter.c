/* enter.c - getting into the queue, and proving that one is in it.
 *
 * The making of the own child and the reading of the queue travel together: a session's requests
 * are answered in order, so a free lock costs one round trip. Whatever happened to the connection,
 * the owner in the child's name tells afterwards whether it was made. */
#include "stores/zookeeper/attempt.h"

#include <string.h>

static int enter_once(struct zk_attempt *a, const char *parent, const char *stem);
static int note_own(struct zk_attempt *a, const char *path, const struct Stat *stat);
static int change_over(struct zk_attempt *a, const char *parent, const char *stem);

int zk_enter(struct zk_attempt *a)
{
    char parent[ZK_PATH_MAX];
    char stem[ZK_PATH_MAX];
    int rc = ZBADARGUMENTS;

    if (!zk_lock_path(a->store, a->claim->name, parent) ||
        snprintf(stem, sizeof stem, "%s/%s-lock-", parent, a->owner) >= (int)sizeof stem)
        return rc;
    for (int tries = 0; tries < ZK_TRIES_MAX; tries++) {
        rc = a->instead != NULL ? change_over(a, parent, stem) : enter_once(a, parent, stem);
        if (rc != ZNONODE || a->in_queue)
            return rc;
        rc = zk_make_parent(a->session, a->claim->name, &a->patience);
        /* Nothing of ours is in doubt here. A lost connection: once more when it is back. */
        if (rc != ZOK && !zk_connection_lost(rc))
            return rc;
        if (rc != ZOK && (rc = zk_reconnect(a)) != ZOK)
            return rc;
    }
    return ZSYSTEMERROR; /* the parent vanishes as often as it is made */
}

int zk_reconnect(struct zk_attempt *a)
{
    struct hf__patience patience;
    int rc = zk_endure(a);

    if (rc != ZOK)
        return rc;
    patience = hf__patience_until(&a->patience, a->wait_queue.ours_until_ns);
    switch ((int)zk_session_connected(a->session, NULL, &patience, NULL)) {
    case HF_OK:
        return ZOK;
    case HF_LOST:
        return ZSESSIONEXPIRED;
    case HF_CANCELLED:
        return ZK_CANCELLED;
    case HF_DENIED:
        return ZAUTHFAILED;
    case HF_NOMEM:
        return ZK_NOMEM;
    default:
        return ZK_GIVEN_UP;
    }
}

/* The other child went when the own one came. */
static void given_up(struct zk_attempt *a)
{
    a->instead->in_queue = false;
    a->instead = NULL;
}

/* The new connection is made through the leader, which from then on refuses what the old one still
 * had in its pipes; so what a synced read does not find was not made and will not be. */
int zk_settle(struct zk_attempt *a)
{
    struct Stat stat = {0};
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];
    char data[ZK_DATA_MAX];
    struct zk_said said;
    const char *child;
    size_t index;
    int rc;

    a->sent_at_ns = 0;
    zk_queue_release(&a->queue);
    rc = zk_read_queue(a->session, a->claim->name, true, &a->patience, &a->queue);
    index = rc == ZOK ? zk_queue_find(&a->queue, a->owner) : a->queue.count;
    if (index == a->queue.count)
        return rc;
    child = a->queue.at[index].name;
    rc = zk_read_child(a->session, a->claim->name, child, &a->patience, data, &stat);
    if (rc != ZOK || !zk_child_path(a->store, a->claim->name, child, path))
        return rc;
    rc = note_own(a, path, &stat);
    if (rc == ZOK && a->instead != NULL)
        given_up(a);
    if (rc != ZOK || !zk_data_parse(data, &said) || !said.revoked)
        return rc;
    /* It was broken before we knew that it is the first: another one, at the end of the queue. */
    rc = zk_delete(a->session, a->path, -1, &a->patience);
    return rc == ZOK ? ZNONODE : rc;
}

/* The write needs a quorum: whoever gets an answer still has its session, whatever a server that
 * lags behind may think. It must not undo a mark that was set since we looked. */
int zk_confirm(struct zk_attempt *a)
{
    struct zk_request *set = zk_request_new();
    struct zk_request *children = zk_request_new();
    char parent[ZK_PATH_MAX];
    int rc = ZK_NOMEM;

    zk_queue_release(&a->queue);
    a->sent_at_ns = 0;
    if (set != NULL && children != NULL && zk_lock_path(a->store, a->claim->name, parent)) {
        int64_t now_ns = a->store->base.host->now_ns();

        zk_fit_lease(a);
        zk_data_make(a->data, a->lease_ms, (now_ns - a->made_at_ns) / HF__NS_PER_MS,
                     a->claim->label);
        rc = zk_send_set(a->session->handle, set, a->path, a->data, a->version);
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
        rc = zk_order_queue(a->session, a->claim->name, &children->names, &a->patience, &a->queue);
    zk_request_unref(set);
    zk_request_unref(children);
    return rc == ZBADVERSION ? zk_settle(a) : rc;
}

/* Notes where the own child is, if it really is ours. */
static int note_own(struct zk_attempt *a, const char *path, const struct Stat *stat)
{
    /* A child of a session that has ended may still be seen for a moment (CURATOR-604). */
    if (stat->ephemeralOwner != zk_session_id(a->session))
        return ZNONODE;
    if (path != NULL && snprintf(a->path, sizeof a->path, "%s", path) >= (int)sizeof a->path)
        return ZBADARGUMENTS;
    a->token = (uint64_t)stat->czxid;
    a->version = stat->version;
    return ZOK;
}

/* The queue, if our last release proves that the own child is all of it. */
static bool alone(struct zk_attempt *a, const struct zk_last_release *last)
{
    const char *child = strrchr(a->path, '/');
    int32_t sequence;

    return child != NULL && zk_sequence(child, &sequence) &&
           zk_stands_alone(last, sequence, a->token) && zk_queue_init_alone(&a->queue, child + 1);
}

/* Makes the child. If there is a request for the children, it goes right behind. */
static int make_child(struct zk_attempt *a, const char *parent, const char *stem,
                      struct zk_request *made, struct zk_request *children)
{
    int64_t now_ns = a->store->base.host->now_ns();
    int rc;
    int read = ZOK;

    a->made_at_ns = now_ns;
    a->path[0] = '\0'; /* whatever was known is about a child that is gone */
    rc = zk_send_create(a->session->handle, made, stem, a->data, zk_acl(a->store),
                        ZOO_EPHEMERAL_SEQUENTIAL);
    if (rc != ZOK)
        return rc;
    a->in_queue = true;
    if (children != NULL)
        read = zk_send_children(a->session->handle, children, parent);
    rc = zk_request_wait(made, &a->patience);
    if (rc == ZNONODE || rc == ZNOAUTH)
        a->in_queue = false;
    if (rc == ZOK)
        rc = note_own(a, made->text, &made->stat);
    if (rc == ZOK)
        a->sent_at_ns = now_ns;
    if (rc == ZOK && children != NULL)
        rc = read == ZOK ? zk_request_wait(children, &a->patience) : read;
    return rc;
}

/* Makes the child and reads the queue, in one go; or makes it, and knows the queue. */
static int enter_once(struct zk_attempt *a, const char *parent, const char *stem)
{
    struct zk_last_release last;
    bool known = zk_last_release_take(a->store, a->claim->name, &last);
    struct zk_request *made = zk_request_new();
    struct zk_request *children = known ? NULL : zk_request_new();
    int rc = ZK_NOMEM;

    zk_queue_release(&a->queue);
    a->sent_at_ns = 0;
    a->alone = false;
    if (made != NULL && (known || children != NULL))
        rc = make_child(a, parent, stem, made, children);
    if (rc == ZOK && !known)
        rc = zk_order_queue(a->session, a->claim->name, &children->names, &a->patience, &a->queue);
    else if (rc == ZOK && !(a->alone = alone(a, &last)))
        rc = zk_read_queue(a->session, a->claim->name, false, &a->patience, &a->queue);
    zk_request_unref(made);
    zk_request_unref(children);
    return rc;
}

/* Finds the own child, of which a transaction is all that is known, in the names that were read. */
static int find_own(struct zk_attempt *a, const struct zk_names *names, struct Stat *stat)
{
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];
    size_t index;
    int rc = zk_order_queue(a->session, a->claim->name, names, &a->patience, &a->queue);

    if (rc != ZOK)
        return rc;
    index = zk_queue_find(&a->queue, a->owner);
    if (index == a->queue.count)
        return ZNONODE;
    if (!zk_child_path(a->store, a->claim->name, a->queue.at[index].name, path))
        return ZBADARGUMENTS;
    stat->czxid = stat->mzxid; /* both were done in one */
    stat->version = 0;
    return note_own(a, path, stat);
}

/* Makes the own child and deletes the other one, or neither, and reads the queue. The other is
 * written to first: only a write says which transaction it was. */
static int change_over(struct zk_attempt *a, const char *parent, const char *stem)
{
    struct zk_request *made = zk_request_new();
    struct zk_request *children = zk_request_new();
    int64_t now_ns = a->store->base.host->now_ns();
    zoo_op_t ops[3];
    int rc = ZK_NOMEM;

    zk_queue_release(&a->queue);
    a->made_at_ns = now_ns;
    a->sent_at_ns = 0;
    a->alone = false;
    a->path[0] = '\0';
    if (made != NULL && children != NULL) {
        zoo_set_op_init(&ops[0], a->instead->path, "", 0, -1, &made->stat);
        zoo_create_op_init(&ops[1], stem, a->data, (int)strlen(a->data), zk_acl(a->store),
                           ZOO_EPHEMERAL_SEQUENTIAL, NULL, 0);
        zoo_delete_op_init(&ops[2], a->instead->path, -1);
        rc = zk_send_multi(a->session->handle, made, ops, 3);
    }
    if (rc == ZOK) {
        int read = zk_send_children(a->session->handle, children, parent);

        a->in_queue = true;
        rc = zk_request_wait(made, &a->patience);
        if (rc == ZNONODE || rc == ZNOAUTH) {
            a->in_queue = false;
            a->instead = NULL; /* its child is gone; or the parent has to be made first */
        } else if (rc == ZOK) {
            given_up(a);
            rc = read == ZOK ? zk_request_wait(children, &a->patience) : read;
        }
    }
    if (rc == ZOK)
        rc = find_own(a, &children->names, &made->stat);
    if (rc == ZOK)
        a->sent_at_ns = now_ns;
    zk_request_unref(made);
    zk_request_unref(children);
    return rc;
}
