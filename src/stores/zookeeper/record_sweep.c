/* record_sweep.c - removing records that have expired, behind the back of a put.
 *
 * ZooKeeper has no order among the children of a node, so some are picked at random: enough that
 * what has expired does not outnumber the rest for long. Nobody waits for any of it: each step is
 * taken by the answer to the one before, in the library's thread.
 *
 * A record is deleted only while the hold that sweeps lasts, because only then is nobody else at
 * work; and not if it is that hold's own, because an older write of it that comes late must still
 * find it. One sweep at a time: between two looks at a version the node may be another. */
#include "stores/zookeeper/record.h"
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>

#define PICKED_MAX 32

struct sweep {
    atomic_int refs;
    struct zk_store *store;
    zhandle_t *handle;
    char name[HF_NAME_MAX + 1];
    char hold_path[ZK_PATH_MAX];
    uint64_t token;
    int64_t now_ms; /* the leader's clock */
};

/* A record that was picked. */
struct candidate {
    struct sweep *sweep;
    char key[HF_RECORD_KEY_MAX + 1];
    zoo_op_result_t results[2];
};

static void on_written(int rc, const struct Stat *stat, const void *data);
static void on_names(int rc, const struct String_vector *names, const void *data);
static void on_record(int rc, const char *value, int len, const struct Stat *stat,
                      const void *data);
static void on_deleted(int rc, const void *data);

static void unref(struct sweep *sweep)
{
    if (atomic_fetch_sub(&sweep->refs, 1) != 1)
        return;
    pthread_mutex_lock(&sweep->store->lock);
    sweep->store->sweeping = false;
    pthread_mutex_unlock(&sweep->store->lock);
    explicit_bzero(sweep, sizeof *sweep); /* the path has the owner in it */
    free(sweep);
}

static void drop(struct candidate *candidate)
{
    unref(candidate->sweep);
    free(candidate);
}

void zk_sweep(struct zk_store *store, const struct zk_hold *hold, const char *path)
{
    struct sweep *sweep = NULL;
    bool busy;

    pthread_mutex_lock(&store->lock);
    busy = store->sweeping;
    if (!busy)
        sweep = calloc(1, sizeof *sweep);
    store->sweeping = busy || sweep != NULL;
    pthread_mutex_unlock(&store->lock);
    if (sweep == NULL)
        return;
    atomic_init(&sweep->refs, 1);
    sweep->store = store;
    sweep->handle = hold->session->handle;
    sweep->token = hold->token;
    (void)snprintf(sweep->name, sizeof sweep->name, "%s", hold->name);
    memcpy(sweep->hold_path, hold->path, sizeof sweep->hold_path);
    if (zoo_aexists(sweep->handle, path, 0, on_written, sweep) != ZOK)
        unref(sweep);
}

/* The record that was just written tells the time. */
static void on_written(int rc, const struct Stat *stat, const void *data)
{
    struct sweep *sweep = (struct sweep *)data;
    char parent[ZK_RECORD_PATH_MAX];

    if (rc == ZOK && zk_record_path(sweep->store->url.root, sweep->name, NULL, parent)) {
        sweep->now_ms = stat->mtime;
        rc = zoo_aget_children(sweep->handle, parent, 0, on_names, sweep);
        if (rc == ZOK)
            return;
    }
    unref(sweep);
}

static void look_at(struct sweep *sweep, const char *node)
{
    struct candidate *candidate = calloc(1, sizeof *candidate);
    char path[ZK_RECORD_PATH_MAX];

    if (candidate == NULL)
        return;
    if (!zk_node_text(candidate->key, sizeof candidate->key, node) ||
        !zk_record_path(sweep->store->url.root, sweep->name, candidate->key, path)) {
        free(candidate);
        return;
    }
    candidate->sweep = sweep;
    (void)atomic_fetch_add(&sweep->refs, 1);
    if (zoo_aget(sweep->handle, path, 0, on_record, candidate) != ZOK)
        drop(candidate);
}

/* Picks some of them, each at most once: every n-th, from a random one on. */
static void on_names(int rc, const struct String_vector *names, const void *data)
{
    struct sweep *sweep = (struct sweep *)data;
    uint32_t count = rc == ZOK && names != NULL && names->count > 0 ? (uint32_t)names->count : 0;
    uint32_t step = count / PICKED_MAX + 1;
    uint32_t first;

    sweep->store->base.host->random(&first, sizeof first);
    for (uint32_t i = first % step; i < count; i += step)
        look_at(sweep, names->data[i]);
    unref(sweep);
}

static void on_record(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
    struct candidate *candidate = (struct candidate *)data;
    struct sweep *sweep = candidate->sweep;
    char path[ZK_RECORD_PATH_MAX];
    struct hf_record record;
    zoo_op_t ops[2];

    if (rc == ZOK && value != NULL && len > 0 &&
        zk_record_parse(value, (size_t)len, stat, &record) && record.token < sweep->token &&
        zk_record_expired(&record, sweep->now_ms) &&
        zk_record_path(sweep->store->url.root, sweep->name, candidate->key, path)) {
        zk_seen_forget(sweep->store, sweep->name, candidate->key);
        zoo_check_op_init(&ops[0], sweep->hold_path, -1);
        zoo_delete_op_init(&ops[1], path, stat->version);
        if (zoo_amulti(sweep->handle, 2, ops, candidate->results, on_deleted, candidate) == ZOK)
            return;
    }
    drop(candidate);
}

static void on_deleted(int rc, const void *data)
{
    (void)rc; /* whoever comes next will see */
    drop((struct candidate *)data);
}
