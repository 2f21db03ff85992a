/* record_put.c - writing a record.
 *
 * One multi: the holder's child is there, and the record's node still has the version at which its
 * pair was lower, or is not there. Which version that is is known if this client has read or
 * written the record before; otherwise it is read first. */
#include "stores/zookeeper/attempt.h"
#include "stores/zookeeper/record.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_EVERY 16 /* puts of a hold, beginning with the first */

/* One write under way. */
struct put {
    struct zk_store *store;
    const struct hf_record_write *write;
    struct hf__patience patience;
    struct zk_hold hold; /* name, owner, path, session */
    bool ours;           /* it is in our table */
    char path[ZK_RECORD_PATH_MAX];
    char *data; /* head and value */
    size_t len;
    struct zk_seen seen; /* what it replaces */
    bool stale;
    bool sent; /* and no answer says that it was not executed */
};

/* A hold of another process, if it is the first in the queue. Returns a ZooKeeper code; ZNONODE: it
 * is not. */
static int find_holder(struct put *p)
{
    const struct hf_record_write *write = p->write;
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];
    struct zk_entry first;
    struct Stat stat = {0};
    int64_t ignored;
    int rc = zk_read_first(p->hold.session, write->name, &p->patience, &first, NULL, &stat);

    if (rc != ZOK)
        return rc;
    if (!zk_entry_is(&first, write->owner) || (uint64_t)stat.czxid != write->token ||
        zk_holds_judge(p->store, write->name, write->owner, &stat, &ignored) == ZK_OVER ||
        !zk_child_path(p->store, write->name, first.name, path) ||
        snprintf(p->hold.path, sizeof p->hold.path, "%s", path) >= (int)sizeof p->hold.path)
        return ZNONODE;
    return ZOK;
}

/* The holder's child and the session to ask in. p->hold.session has a reference for the caller,
 * unless this fails. */
static enum hf_status find_hold(struct put *p, int *rc, struct hf_error *err)
{
    const struct hf_record_write *write = p->write;
    struct hf_claim claim = {.name = write->name, .owner = write->owner, .token = write->token};
    enum hf_status status;

    *rc = ZOK;
    p->ours = zk_holds_find(p->store, &claim, &p->hold);
    if (!p->ours) {
        status = zk_session_get(p->store, 0, write->name, &p->patience, &p->hold.session, err);
        if (status == HF_OK)
            *rc = find_holder(p);
        return status;
    }
    if (p->store->base.host->now_ns() >= p->hold.end_ns || zk_session_dead(p->hold.session)) {
        *rc = ZNONODE;
        return HF_OK;
    }
    status = zk_session_connected(p->hold.session, write->name, &p->patience, err);
    if (status == HF_LOST) {
        *rc = ZNONODE;
        return HF_OK;
    }
    if (status != HF_OK)
        zk_session_unref(p->hold.session);
    return status;
}

/* What is there now, as any server knew it. Returns a ZooKeeper code; ZMARSHALLINGERROR: it is
 * damaged. */
static int read_seen(struct put *p)
{
    zhandle_t *handle = p->hold.session->handle;
    struct zk_request *sync = zk_request_new();
    struct zk_request *get = zk_request_new();
    struct hf_record record = {0};
    int rc = sync != NULL && get != NULL ? zk_send_sync(handle, sync, "/") : ZK_NOMEM;

    if (rc == ZOK)
        rc = zk_send_get(handle, get, p->path, NULL, NULL);
    if (rc == ZOK)
        rc = zk_request_wait(sync, &p->patience);
    if (rc == ZOK)
        rc = zk_request_wait(get, &p->patience);
    p->seen.there = rc == ZOK;
    if (rc == ZNONODE)
        rc = ZOK;
    else if (rc == ZOK &&
             (get->text == NULL || !zk_record_parse(get->text, get->text_len, &get->stat, &record)))
        rc = ZMARSHALLINGERROR;
    p->seen.version = rc == ZOK ? get->stat.version : 0;
    p->seen.token = record.token;
    p->seen.number = record.number;
    zk_request_unref(sync);
    zk_request_unref(get);
    return rc;
}

static bool above_seen(const struct put *p)
{
    const struct hf_record_write *write = p->write;

    return !p->seen.there || write->token > p->seen.token ||
           (write->token == p->seen.token && write->number > p->seen.number);
}

/* What a multi that failed with rc has found: ZNONODE: the holder's child is gone; ZNOTEMPTY: there
 * is no container for the record; ZBADVERSION: the record is not as it was seen. */
static int tell_apart(const struct put *p, const struct zk_request *request, int rc)
{
    if (rc == ZNONODE && request->results[0].err == ZOK)
        return p->seen.there ? ZBADVERSION : ZNOTEMPTY;
    return rc == ZNODEEXISTS ? ZBADVERSION : rc;
}

static int send_put(struct put *p)
{
    struct zk_request *request = zk_request_new();
    zoo_op_t ops[2];
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    zoo_check_op_init(&ops[0], p->hold.path, -1);
    if (p->seen.there)
        zoo_set_op_init(&ops[1], p->path, p->data, (int)p->len, p->seen.version, &request->stat);
    else
        zoo_create_op_init(&ops[1], p->path, p->data, (int)p->len, zk_acl(p->store), ZOO_PERSISTENT,
                           NULL, 0);
    rc = zk_send_multi(p->hold.session->handle, request, ops, 2);
    p->sent = rc == ZOK;
    if (rc == ZOK)
        rc = zk_request_wait(request, &p->patience);
    if (rc == ZOK)
        p->seen.version = p->seen.there ? request->stat.version : 0;
    else
        rc = tell_apart(p, request, rc);
    zk_request_unref(request);
    return rc;
}

/* The container may vanish as soon as it is made: then it is made again. */
static int make_container(struct put *p)
{
    char path[ZK_RECORD_PATH_MAX];
    int rc = ZBADARGUMENTS;

    p->sent = false;
    if (zk_record_path(p->store->url.root, p->write->name, NULL, path))
        rc = zk_make_container(p->hold.session, path, &p->patience);
    return rc == ZOK || rc == ZNONODE ? ZNOTEMPTY : rc;
}

/* Returns a ZooKeeper code, or ZOK with p->stale. */
static int put(struct put *p)
{
    bool known = p->ours && zk_seen_find(p->store, &p->seen) && above_seen(p);
    int rc = ZBADVERSION;

    for (int tries = 0; tries < ZK_TRIES_MAX && (rc == ZBADVERSION || rc == ZNOTEMPTY); tries++) {
        p->sent = false;
        if (!known && (rc = read_seen(p)) != ZOK)
            return rc;
        p->stale = !above_seen(p);
        if (p->stale)
            return ZOK;
        rc = send_put(p);
        known = rc == ZNOTEMPTY; /* no container: no record either */
        if (known)
            rc = make_container(p);
    }
    return rc;
}

/* What is known of the record from now on. */
static void note(struct put *p, int rc)
{
    if (rc != ZOK || p->stale) {
        zk_seen_forget(p->store, p->write->name, p->write->key);
        return;
    }
    p->seen.there = true;
    p->seen.token = p->write->token;
    p->seen.number = p->write->number;
    zk_seen_note(p->store, &p->seen);
    if (p->ours && p->write->number % SWEEP_EVERY == 1)
        zk_sweep(p->store, &p->hold, p->path);
}

static enum hf_status conclude(const struct put *p, int rc, struct hf_error *err)
{
    const char *name = p->write->name;
    const char *shown = p->store->url.common.shown;

    if (rc == ZNONODE || (p->ours && zk_session_ended(rc)))
        return zk_lost(p->store, name, p->ours ? HF_LOSS_EXPIRED : HF_LOSS_FORGOTTEN, NULL, err);
    if (rc == ZMARSHALLINGERROR)
        return hf__fail_lock(err, HF_CORRUPT, name, shown,
                             ": its record \"%s\" is damaged; delete its node "
                             "(holdfast-zookeeper(7))",
                             p->write->key);
    if (rc == ZOK && p->stale)
        return hf__fail_old_record(err, name, shown, p->write->key);
    if (rc == ZOK)
        return hf__ok(err);
    if (!p->sent && rc == ZK_GIVEN_UP)
        rc = ZCONNECTIONLOSS; /* a reading that found no answer has changed nothing */
    else if (p->sent && zk_connection_lost(rc))
        rc = ZK_GIVEN_UP;
    return zk_verdict(p->store, name, rc, err);
}

/* Head and value in one. */
static bool make_data(struct put *p)
{
    const struct hf_record_write *write = p->write;
    size_t head_len;

    p->data = malloc(ZK_HEAD_SIZE + write->value_len);
    if (p->data == NULL)
        return false;
    head_len = zk_record_head(p->data, write->token, write->number, write->keep_ms);
    memcpy(p->data + head_len, write->value, write->value_len);
    p->len = head_len + write->value_len;
    (void)snprintf(p->seen.name, sizeof p->seen.name, "%s", write->name);
    (void)snprintf(p->seen.key, sizeof p->seen.key, "%s", write->key);
    return true;
}

enum hf_status zk_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err)
{
    struct put p = {.store = (struct zk_store *)base,
                    .write = write,
                    .patience = {.deadline_ns = write->deadline_ns, .cancel_fd = -1}};
    enum hf_status status;
    int rc;

    if (!zk_record_path(p.store->url.root, write->name, write->key, p.path))
        return zk_verdict(p.store, write->name, ZBADARGUMENTS, err);
    if (!make_data(&p))
        return hf__nomem(err);
    status = find_hold(&p, &rc, err);
    if (status == HF_OK) {
        if (rc == ZOK) {
            rc = put(&p);
            note(&p, rc);
        }
        status = conclude(&p, rc, err);
        zk_session_unref(p.hold.session);
    }
    explicit_bzero(&p.hold, sizeof p.hold);
    free(p.data);
    return status;
}
