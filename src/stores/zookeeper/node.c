/* node.c - paths, and requests about a lock's children. */
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>

bool zk_lock_path(const struct zk_store *store, const char *name, char out[ZK_PATH_MAX])
{
    size_t used = strlen(store->url.root);

    memcpy(out, store->url.root, used);
    out[used++] = '/';
    return zk_node_name(out + used, ZK_NAME_MAX + 1, name);
}

/* Whoever has no credentials shares with everybody; with credentials, with nobody else. */
const struct ACL_vector *zk_acl(const struct zk_store *store)
{
    return store->url.common.user[0] != '\0' ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

static int create(struct zk_session *session, const char *path, int mode,
                  const struct hf__patience *patience)
{
    struct zk_request *request = zk_request_new();
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    rc = zk_send_create(session->handle, request, path, "", zk_acl(session->store), mode);
    if (rc == ZOK)
        rc = zk_request_wait(request, patience);
    zk_request_unref(request);
    return rc == ZNODEEXISTS ? ZOK : rc;
}

int zk_make_parent(struct zk_session *session, const char *name,
                   const struct hf__patience *patience)
{
    char path[ZK_PATH_MAX];

    if (!zk_lock_path(session->store, name, path))
        return ZBADARGUMENTS;
    return zk_make_container(session, path, patience);
}

int zk_make_container(struct zk_session *session, char *path, const struct hf__patience *patience)
{
    bool denied = false;
    int rc;

    rc = create(session, path, ZOO_CONTAINER, patience);
    if (rc != ZNONODE)
        return rc;
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = create(session, path, ZOO_PERSISTENT, patience);
        /* A chroot may be somebody else's, who lets us work below it but not beside it. */
        denied = rc == ZNOAUTH;
        if (rc != ZOK && !denied)
            return rc;
        *slash = '/';
    }
    rc = create(session, path, ZOO_CONTAINER, patience);
    return rc == ZNONODE && denied ? ZNOAUTH : rc;
}

int zk_catch_up(struct zk_session *session, const struct hf__patience *patience)
{
    struct zk_request *sync = zk_request_new();
    int rc = ZK_NOMEM;

    if (sync != NULL) {
        rc = zk_send_sync(session->handle, sync, "/");
        if (rc == ZOK)
            rc = zk_request_wait(sync, patience);
    }
    zk_request_unref(sync);
    return rc;
}

int zk_delete(struct zk_session *session, const char *path, int32_t version,
              const struct hf__patience *patience)
{
    struct zk_request *request = zk_request_new();
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    rc = zk_send_delete(session->handle, request, path, version);
    if (rc == ZOK)
        rc = zk_request_wait(request, patience);
    zk_request_unref(request);
    return rc;
}

int zk_ask_queue(struct zk_session *session, const char *name, struct zk_request *request)
{
    char path[ZK_PATH_MAX];

    return zk_lock_path(session->store, name, path)
               ? zk_send_children(session->handle, request, path)
               : ZBADARGUMENTS;
}

int zk_ask_child(struct zk_session *session, const char *name, const char *child,
                 struct zk_request *request)
{
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];
    size_t used;

    if (!zk_lock_path(session->store, name, path))
        return ZBADARGUMENTS;
    used = strlen(path);
    (void)snprintf(path + used, sizeof path - used, "/%s", child);
    return zk_send_get(session->handle, request, path, NULL, NULL);
}

int zk_hear_child(struct zk_request *request, const struct hf__patience *patience,
                  char out_data[ZK_DATA_MAX], struct Stat *stat)
{
    int rc = zk_request_wait(request, patience);

    if (rc == ZOK && stat != NULL)
        *stat = request->stat;
    if (rc == ZOK && out_data != NULL)
        (void)snprintf(out_data, ZK_DATA_MAX, "%s", request->text != NULL ? request->text : "");
    return rc;
}

int zk_read_child(struct zk_session *session, const char *name, const char *child,
                  const struct hf__patience *patience, char out_data[ZK_DATA_MAX],
                  struct Stat *stat)
{
    struct zk_request *request = zk_request_new();
    int rc = request != NULL ? zk_ask_child(session, name, child, request) : ZK_NOMEM;

    if (rc == ZOK)
        rc = zk_hear_child(request, patience, out_data, stat);
    zk_request_unref(request);
    return rc;
}

int zk_order_queue(struct zk_session *session, const char *name, const struct zk_names *names,
                   const struct hf__patience *patience, struct zk_queue *out)
{
    if (names->count > ZK_CONTENDERS_MAX || !zk_queue_init(out, names))
        return ZK_NOMEM;
    if (!out->unsure)
        return ZOK;
    for (size_t i = 0; i < out->count; i++) {
        struct Stat stat = {0};
        int rc = zk_read_child(session, name, out->at[i].name, patience, NULL, &stat);

        if (rc == ZNONODE)
            continue;
        if (rc != ZOK) {
            zk_queue_release(out);
            return rc;
        }
        out->at[i].czxid = stat.czxid;
    }
    zk_queue_sort_czxid(out);
    return ZOK;
}

int zk_read_queue(struct zk_session *session, const char *name, bool synced,
                  const struct hf__patience *patience, struct zk_queue *out)
{
    struct zk_request *sync = synced ? zk_request_new() : NULL;
    struct zk_request *children = zk_request_new();
    char path[ZK_PATH_MAX];
    int rc = ZOK;

    *out = (struct zk_queue){0};
    if (children == NULL || (synced && sync == NULL))
        rc = ZK_NOMEM;
    else if (!zk_lock_path(session->store, name, path))
        rc = ZBADARGUMENTS;
    if (rc == ZOK && synced)
        rc = zk_send_sync(session->handle, sync, path);
    if (rc == ZOK)
        rc = zk_send_children(session->handle, children, path);
    if (rc == ZOK && synced && (rc = zk_request_wait(sync, patience)) == ZNONODE)
        rc = ZOK;
    if (rc == ZOK)
        rc = zk_request_wait(children, patience);
    if (rc == ZOK)
        rc = zk_order_queue(session, name, &children->names, patience, out);
    if (rc == ZNONODE) /* no container: nobody is there */
        rc = ZOK;
    zk_request_unref(sync);
    zk_request_unref(children);
    return rc;
}

int zk_read_first(struct zk_session *session, const char *name, const struct hf__patience *patience,
                  struct zk_entry *first, char data[ZK_DATA_MAX], struct Stat *stat)
{
    struct zk_queue queue;
    int rc = zk_read_queue(session, name, true, patience, &queue);

    first->name[0] = '\0';
    if (rc == ZOK && queue.count == 0)
        rc = ZNONODE;
    if (rc == ZOK) {
        *first = queue.at[0];
        rc = zk_read_child(session, name, first->name, patience, data, stat);
    }
    zk_queue_release(&queue);
    return rc;
}

bool zk_child_path(const struct zk_store *store, const char *name, const char *child,
                   char out[ZK_PATH_MAX + ZK_CHILD_MAX])
{
    size_t used;

    if (!zk_lock_path(store, name, out))
        return false;
    used = strlen(out);
    return snprintf(out + used, ZK_PATH_MAX + ZK_CHILD_MAX - used, "/%s", child) > 0;
}
