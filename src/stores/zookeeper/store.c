/* store.c - the ZooKeeper store: its table of operations, opening and closing. */
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err);
static void store_close(struct hf_store_base *base, bool forked);

static const char *const schemes[] = {"zookeeper", NULL};

static const struct hf_store_ops ops = {
    .size = sizeof ops,
    .schemes = schemes,
    .features = HF_FEATURE_FAIR | HF_FEATURE_DURABLE_TOKENS | HF_FEATURE_RECORDS | HF_FEATURE_BREAK,
    .open = store_open,
    .close = store_close,
    .acquire = zk_acquire,
    .acquire_any = zk_acquire_any,
    .renew = zk_renew,
    .release = zk_release,
    .list = zk_list,
    .identity = zk_identity,
    .forget = zk_forget,
    .waiters = zk_waiters,
    .renew_many = zk_renew_many,
    .record_put = zk_record_put,
    .record_get = zk_record_get,
    .record_list = zk_record_list,
    .revoke = zk_revoke,
    .fence = zk_fence,
    .audit = zk_audit,
};

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}

/* Connects, and tries the root, so that a wrong password is told now. */
static enum hf_status meet(struct zk_store *store, const struct hf__patience *patience,
                           struct hf_error *err)
{
    struct zk_session *session;
    struct zk_request *request;
    enum hf_status status = zk_session_get(store, 0, NULL, patience, &session, err);
    int rc = ZK_NOMEM;

    if (status != HF_OK)
        return status;
    request = zk_request_new();
    if (request != NULL) {
        rc = zk_send_children(session->handle, request, store->url.root);
        if (rc == ZOK)
            rc = zk_request_wait(request, patience);
    }
    zk_request_unref(request);
    zk_session_unref(session);
    if (rc == ZOK || rc == ZNONODE)
        return hf__ok(err);
    return zk_verdict(store, NULL, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
}

enum hf_status zk_store_new(const struct hf_host *host, const char *url, struct zk_store **out,
                            struct hf_error *err)
{
    struct zk_store *store = calloc(1, sizeof *store);
    enum hf_status status;

    *out = NULL;
    if (store == NULL)
        return hf__nomem(err);
    store->base = (struct hf_store_base){.ops = &ops, .host = host};
    host->random(&store->first_host, sizeof store->first_host);
    pthread_mutex_init(&store->lock, NULL);
    store->reaper_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    status = store->reaper_fd >= 0 ? zk_url_parse(url, &store->url, err) : hf__nomem(err);
    if (status == HF_OK)
        status = zk_url_find_password(&store->url, err);
    if (status != HF_OK)
        zk_store_free(store, false);
    else
        *out = store;
    return status;
}

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct zk_store *store;
    enum hf_status status = zk_store_new(host, url, &store, err);

    if (status != HF_OK)
        return status;
    status = meet(store, &patience, err);
    if (status != HF_OK) {
        zk_store_free(store, false);
        return status;
    }
    *out = &store->base;
    return hf__ok(err);
}

static void store_close(struct hf_store_base *base, bool forked)
{
    zk_store_free((struct zk_store *)base, forked);
}

void zk_store_free(struct zk_store *store, bool forked)
{
    if (!forked)
        zk_reaper_stop(store);
    zk_holds_clear(store, forked);
    zk_sessions_close(store, forked);
    if (store->reaper_fd >= 0)
        (void)close(store->reaper_fd);
    explicit_bzero(&store->url, sizeof store->url);
    if (!forked) {
        pthread_mutex_destroy(&store->lock);
        free(store);
    }
    /* In a forked child the handles, which stay, still point here. */
}
