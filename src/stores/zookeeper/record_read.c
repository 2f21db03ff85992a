/* record_read.c - reading records, and the clock that they are judged by.
 *
 * ZooKeeper tells the time only by what is written. So a node is made, written and deleted in one
 * multi, which nobody ever sees: what the write says of its time is the leader's clock. */
#include "stores/zookeeper/record.h"
#include "stores/zookeeper/zookeeper.h"

#include <string.h>

#define TOGETHER 32 /* records that are asked for at once */

/* A reading under way. */
struct reading {
    struct zk_session *session;
    struct hf__patience patience;
    const char *name;
    hf_record_fn *fn;
    void *data;
    bool alone;                          /* it is about one record */
    bool more;                           /* what fn said */
    int64_t now_ms;                      /* the leader's clock; 0: not asked yet */
    char damaged[HF_RECORD_KEY_MAX + 1]; /* the first that cannot be read; "": none */
};

static int send_clock(struct zk_session *session, struct zk_request *request, const char *parent)
{
    char path[ZK_ROOT_MAX + 16];
    zoo_op_t ops[3];

    (void)snprintf(path, sizeof path, "%s/%%clock", parent);
    zoo_create_op_init(&ops[0], path, "", 0, zk_acl(session->store), ZOO_PERSISTENT, NULL, 0);
    zoo_set_op_init(&ops[1], path, "", 0, -1, &request->stat);
    zoo_delete_op_init(&ops[2], path, -1);
    return zk_send_multi(session->handle, request, ops, 3);
}

/* Where nothing is yet, one of the nodes above has to serve. Returns a ZooKeeper code. */
static int read_clock(struct reading *r)
{
    char parent[ZK_ROOT_MAX];
    int rc = ZNONODE;

    if (r->now_ms != 0)
        return ZOK;
    (void)snprintf(parent, sizeof parent, "%s", r->session->store->url.root);
    while (rc == ZNONODE) {
        struct zk_request *request = zk_request_new();
        char *slash = strrchr(parent, '/');

        rc = request != NULL ? send_clock(r->session, request, parent) : ZK_NOMEM;
        if (rc == ZOK)
            rc = zk_request_wait(request, &r->patience);
        if (rc == ZOK)
            r->now_ms = request->stat.mtime;
        zk_request_unref(request);
        if (slash == NULL)
            break;
        *slash = '\0';
    }
    return rc;
}

static struct zk_request *ask(struct reading *r, const char *key, int *rc)
{
    struct zk_request *request = zk_request_new();
    char path[ZK_RECORD_PATH_MAX];

    if (request == NULL)
        *rc = ZK_NOMEM;
    else if (!zk_record_path(r->session->store->url.root, r->name, key, path))
        *rc = ZBADARGUMENTS;
    else
        *rc = zk_send_get(r->session->handle, request, path, NULL, NULL);
    return request;
}

/* For the next put of this client. */
static void note(struct reading *r, const struct hf_record *record, const struct Stat *stat)
{
    struct zk_seen seen = {.there = stat != NULL,
                           .version = stat != NULL ? stat->version : 0,
                           .token = record->token,
                           .number = record->number};

    (void)snprintf(seen.name, sizeof seen.name, "%s", r->name);
    (void)snprintf(seen.key, sizeof seen.key, "%s", record->key);
    zk_seen_note(r->session->store, &seen);
}

/* Waits for a record that was asked for, and shows it. */
static int show(struct reading *r, const char *key, struct zk_request *request)
{
    struct hf_record record = {.key = key};
    int rc = zk_request_wait(request, &r->patience);
    bool there = rc == ZOK;

    if (rc != ZOK && rc != ZNONODE)
        return rc;
    if (there && (request->text == NULL ||
                  !zk_record_parse(request->text, request->text_len, &request->stat, &record))) {
        if (r->damaged[0] == '\0')
            hf__copy_printable(r->damaged, sizeof r->damaged, key);
        return ZOK;
    }
    if (r->alone)
        note(r, &record, there ? &request->stat : NULL);
    rc = record.until_ms != 0 ? read_clock(r) : ZOK;
    if (rc == ZOK && there && !zk_record_expired(&record, r->now_ms))
        r->more = r->fn(&record, r->data);
    return rc;
}

static enum hf_status begin(struct hf_store_base *base, const struct hf_record_query *query,
                            struct reading *r, struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1};
    struct zk_session *session;
    enum hf_status status =
        zk_session_get((struct zk_store *)base, 0, query->name, &patience, &session, err);

    if (status == HF_OK)
        *r = (struct reading){
            .session = session, .patience = patience, .name = query->name, .more = true};
    return status;
}

static enum hf_status end(struct reading *r, int rc, struct hf_error *err)
{
    const struct zk_store *store = r->session->store;
    enum hf_status status;

    if (rc == ZK_GIVEN_UP) /* a reading that found no answer has changed nothing */
        rc = ZCONNECTIONLOSS;
    if (rc != ZOK)
        status = zk_verdict(store, r->name, rc, err);
    else if (r->damaged[0] != '\0')
        status = hf__fail_lock(err, HF_CORRUPT, r->name, store->url.common.shown,
                               ": its record \"%s\" is damaged; delete its node "
                               "(holdfast-zookeeper(7))",
                               r->damaged);
    else
        status = hf__ok(err);
    zk_session_unref(r->session);
    return status;
}

/* Behind a write of ours, or a sync, so that what is read is not out of date: in one round trip. */
static int read_one(struct reading *r, const char *key, bool timed)
{
    struct zk_session *session = r->session;
    struct zk_request *before = zk_request_new();
    struct zk_request *record = NULL;
    int rc = ZK_NOMEM;

    if (before != NULL)
        rc = timed ? send_clock(session, before, session->store->url.root)
                   : zk_send_sync(session->handle, before, "/");
    if (rc == ZOK)
        record = ask(r, key, &rc);
    if (rc == ZOK)
        rc = zk_request_wait(before, &r->patience);
    if (timed && rc == ZOK)
        r->now_ms = before->stat.mtime;
    else if (timed && rc == ZNONODE) /* nothing is here yet */
        rc = read_clock(r);
    if (rc == ZOK)
        rc = show(r, key, record);
    zk_request_unref(before);
    zk_request_unref(record);
    return rc;
}

enum hf_status zk_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err)
{
    struct reading r;
    enum hf_status status = begin(base, query, &r, err);
    int rc;

    if (status != HF_OK)
        return status;
    r.fn = fn;
    r.data = data;
    r.alone = true;
    rc = read_one(&r, query->key, now_ms != NULL);
    if (now_ms != NULL)
        *now_ms = r.now_ms;
    return end(&r, rc, err);
}

/* The names of the nodes; ZOK with none if nothing was ever written. */
static int read_names(struct reading *r, struct zk_request *request)
{
    char path[ZK_RECORD_PATH_MAX];
    int rc = ZBADARGUMENTS;

    if (zk_record_path(r->session->store->url.root, r->name, NULL, path))
        rc = zk_send_children(r->session->handle, request, path);
    if (rc == ZOK)
        rc = zk_request_wait(request, &r->patience);
    return rc == ZNONODE ? ZOK : rc;
}

/* Shows count records, read in one round trip. */
static int show_together(struct reading *r, char keys[][HF_RECORD_KEY_MAX + 1], size_t count)
{
    struct zk_request *requests[TOGETHER] = {0};
    int rc = ZOK;

    for (size_t i = 0; rc == ZOK && i < count; i++)
        requests[i] = ask(r, keys[i], &rc);
    for (size_t i = 0; rc == ZOK && r->more && i < count; i++)
        rc = show(r, keys[i], requests[i]);
    for (size_t i = 0; i < count; i++)
        zk_request_unref(requests[i]);
    return rc;
}

static int show_all(struct reading *r, const struct zk_names *names, const char *prefix)
{
    char keys[TOGETHER][HF_RECORD_KEY_MAX + 1];
    size_t count = 0;
    int rc = ZOK;

    for (size_t i = 0; rc == ZOK && r->more && i < names->count; i++) {
        if (zk_node_text(keys[count], sizeof keys[count], names->at[i]) &&
            strncmp(keys[count], prefix, strlen(prefix)) == 0)
            count++;
        if (count == TOGETHER || (count > 0 && i + 1 == names->count)) {
            rc = show_together(r, keys, count);
            count = 0;
        }
    }
    return rc;
}

enum hf_status zk_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err)
{
    struct reading r;
    struct zk_request *names;
    enum hf_status status = begin(base, query, &r, err);
    int rc;

    if (status != HF_OK)
        return status;
    r.fn = fn;
    r.data = data;
    names = zk_request_new();
    rc = names != NULL ? zk_catch_up(r.session, &r.patience) : ZK_NOMEM;
    if (rc == ZOK)
        rc = read_names(&r, names);
    if (rc == ZOK)
        rc = show_all(&r, &names->names, query->key);
    zk_request_unref(names);
    return end(&r, rc, err);
}
