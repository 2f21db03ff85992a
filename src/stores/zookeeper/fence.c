/* fence.c - fenced nodes: the mark beside the node is read and judged, and one multi changes both,
 * if the mark still has the version that was read. A key is a path below the chroot, as other
 * clients know it; the mark of /app/state is the node /app/state.fence. */
#include "core/fence_text.h"
#include "stores/zookeeper/attempt.h"

#include <string.h>

#define TRIES_MAX 64      /* how often the mark may change under us */
#define DATA_MAX  1000000 /* bytes of a node: jute.maxbuffer is 1 MiB by default, on all servers */

static const char mark_end[] = ".fence";

/* One request on a fenced node. */
struct work {
    struct zk_store *store;
    struct zk_session *session;
    const struct hf_fence_request *asked;
    struct hf__patience patience;
    char path[ZK_ROOT_MAX + HF_FENCE_KEY_MAX + 1];
    char mark_path[ZK_ROOT_MAX + HF_FENCE_KEY_MAX + sizeof mark_end];
    bool there;                     /* the mark is there, */
    int32_t version;                /* with that version */
    char text[HF__FENCE_TEXT_SIZE]; /* of the new mark; "": it stays */
    bool key_there;                 /* as far as we know */
    bool sent;                      /* and no answer says that it was not executed */
    bool done;
    struct hf_error *err;
};

static enum hf_status fail(const struct work *w, enum hf_status status, const char *what)
{
    return hf__fail(w->err, status, "key \"%.60s\" in store %.80s: %s", w->asked->key,
                    w->store->url.common.shown, what);
}

/* A path as ZooKeeper takes it: /app/state. */
static bool is_path(const char *key)
{
    for (const char *at = key; *at != '\0';) {
        size_t len;

        if (*at++ != '/')
            return false;
        len = strcspn(at, "/");
        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && memcmp(at, "..", 2) == 0))
            return false;
        for (size_t i = 0; i < len; i++)
            if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
                return false;
        at += len;
    }
    return key[0] != '\0';
}

/* The paths of node and mark, if it is one that may be fenced. */
static enum hf_status prepare(struct work *w)
{
    static const char own[] = "/holdfast";
    const char *key = w->asked->key;
    size_t len = strlen(key);
    size_t chroot_len = strlen(w->store->url.root) - (sizeof own - 1);

    if (!is_path(key))
        return fail(w, HF_INVALID, "a key is the path of a node below the chroot: /app/state");
    if (strncmp(key, own, sizeof own - 1) == 0 &&
        (key[sizeof own - 1] == '\0' || key[sizeof own - 1] == '/'))
        return fail(w, HF_INVALID, "the locks live there");
    if (len >= sizeof mark_end && strcmp(key + len - (sizeof mark_end - 1), mark_end) == 0)
        return fail(w, HF_INVALID, "that is another key's mark");
    if (w->asked->ttl_ms != 0)
        return fail(w, HF_UNSUPPORTED, "a ZooKeeper node does not expire");
    if (w->asked->value_len > DATA_MAX)
        return fail(w, HF_INVALID, "a ZooKeeper node holds at most 1,000,000 bytes");
    (void)snprintf(w->path, sizeof w->path, "%.*s%s", (int)chroot_len, w->store->url.root, key);
    (void)snprintf(w->mark_path, sizeof w->mark_path, "%s%s", w->path, mark_end);
    return HF_OK;
}

/* Reads the mark as any server knew it, and judges by it. Returns a ZooKeeper code; *status is the
 * verdict if that is ZOK. */
static int read_mark(struct work *w, struct hf_fence_mark *mark, enum hf_status *status)
{
    zhandle_t *handle = w->session->handle;
    struct zk_request *sync = zk_request_new();
    struct zk_request *get = zk_request_new();
    int rc = sync != NULL && get != NULL ? zk_send_sync(handle, sync, "/") : ZK_NOMEM;

    if (rc == ZOK)
        rc = zk_send_get(handle, get, w->mark_path, NULL, NULL);
    if (rc == ZOK)
        rc = zk_request_wait(sync, &w->patience);
    if (rc == ZOK)
        rc = zk_request_wait(get, &w->patience);
    w->there = rc == ZOK;
    if (rc == ZNONODE)
        rc = ZOK;
    if (rc == ZOK) {
        w->version = get->stat.version;
        *status = hf__fence_judge(w->asked,
                                  !w->there           ? NULL
                                  : get->text != NULL ? get->text
                                                      : "",
                                  w->store->base.host->wall_us(), mark, w->text);
    }
    zk_request_unref(sync);
    zk_request_unref(get);
    return rc;
}

/* What becomes of the mark, and of the node. Returns the number of operations. */
static int make_ops(struct work *w, struct zk_request *request, zoo_op_t ops[2])
{
    const struct hf_fence_request *asked = w->asked;
    int len = (int)asked->value_len;

    if (!w->there)
        zoo_create_op_init(&ops[0], w->mark_path, w->text, (int)strlen(w->text), zk_acl(w->store),
                           ZOO_PERSISTENT, NULL, 0);
    else if (w->text[0] != '\0')
        zoo_set_op_init(&ops[0], w->mark_path, w->text, (int)strlen(w->text), w->version,
                        &request->stat);
    else
        zoo_check_op_init(&ops[0], w->mark_path, w->version);
    if (asked->op == HF_FENCE_SET && w->key_there)
        zoo_set_op_init(&ops[1], w->path, asked->value, len, -1, &request->stat);
    else if (asked->op == HF_FENCE_SET)
        zoo_create_op_init(&ops[1], w->path, asked->value, len, zk_acl(w->store), ZOO_PERSISTENT,
                           NULL, 0);
    else if (asked->op == HF_FENCE_DEL && w->key_there)
        zoo_delete_op_init(&ops[1], w->path, -1);
    else
        return 1;
    return 2;
}

/* What a multi that was refused with rc found: ZOK: to be tried again, because the mark has
 * changed, or the node is there, or is not. */
static int tell_apart(struct work *w, const struct zk_request *request, int rc)
{
    bool first = request->results[0].err != ZOK; /* it was about the mark */

    if (rc == ZBADVERSION || rc == ZNODEEXISTS || rc == ZNONODE || rc == ZNOTEMPTY || rc == ZNOAUTH)
        w->sent = false;
    if (first)
        return rc == ZBADVERSION || rc == ZNODEEXISTS || (rc == ZNONODE && w->there) ? ZOK : rc;
    if ((rc == ZNONODE && w->key_there) || (rc == ZNODEEXISTS && !w->key_there)) {
        w->key_there = !w->key_there;
        return ZOK;
    }
    return rc;
}

static int change(struct work *w)
{
    struct zk_request *request = zk_request_new();
    zoo_op_t ops[2];
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    rc = zk_send_multi(w->session->handle, request, ops, make_ops(w, request, ops));
    w->sent = rc == ZOK;
    if (rc == ZOK)
        rc = zk_request_wait(request, &w->patience);
    w->done = rc == ZOK;
    if (rc != ZOK)
        rc = tell_apart(w, request, rc);
    zk_request_unref(request);
    return rc;
}

static enum hf_status conclude(struct work *w, int rc)
{
    if (rc == ZNONODE)
        return fail(w, HF_INVALID, "the node above it does not exist");
    if (rc == ZNOTEMPTY)
        return fail(w, HF_INVALID, "it has nodes below it");
    if (!w->sent && rc == ZK_GIVEN_UP)
        rc = ZCONNECTIONLOSS; /* a reading that found no answer has changed nothing */
    else if (w->sent && zk_connection_lost(rc))
        rc = ZK_GIVEN_UP;
    return zk_verdict(w->store, NULL, rc, w->err);
}

static enum hf_status try(struct work *w, struct hf_fence_mark *mark)
{
    enum hf_status status = HF_OK;
    int rc = read_mark(w, mark, &status);

    if (rc == ZOK && status == HF_CORRUPT)
        return fail(w, status, "its mark is damaged: fence reset makes a new one");
    if (rc == ZOK && status != HF_OK)
        return status;
    /* What was read was true while we asked, and there is nothing else to do. */
    w->done = rc == ZOK && (w->asked->op == HF_FENCE_READ_KEY ||
                            (w->asked->op == HF_FENCE_ENTER_KEY && w->text[0] == '\0'));
    if (rc == ZOK && !w->done)
        rc = change(w);
    return rc == ZOK ? HF_OK : conclude(w, rc);
}

enum hf_status zk_fence(struct hf_store_base *base, const struct hf_fence_request *request,
                        struct hf_fence_mark *mark, struct hf_error *err)
{
    struct work w = {.store = (struct zk_store *)base,
                     .asked = request,
                     .patience = {.deadline_ns = request->deadline_ns, .cancel_fd = -1},
                     .key_there = true,
                     .err = err};
    enum hf_status status = prepare(&w);

    if (status == HF_OK)
        status = zk_session_get(w.store, 0, NULL, &w.patience, &w.session, err);
    if (status != HF_OK)
        return status;
    for (int i = 0; i < TRIES_MAX && status == HF_OK && !w.done; i++)
        status = try(&w, mark);
    zk_session_unref(w.session);
    if (status == HF_OK && !w.done)
        return fail(&w, HF_UNREACHABLE, "others keep raising its mark; try again");
    return status == HF_OK ? hf__ok(err) : status;
}
