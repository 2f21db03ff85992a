/* store.c - the Redis store: its table of operations, opening and closing. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/audit/audit.h"
#include "stores/redis/redlock/redlock.h"

#include <stdlib.h>
#include <string.h>

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err);
static enum hf_status store_open_readonly(const struct hf_host *host, const char *url,
                                          int64_t deadline_ns, struct hf_store_base **out,
                                          struct hf_error *err);
static void store_close(struct hf_store_base *base, bool forked);
static uint32_t store_max_ttl_ms(struct hf_store_base *base);

static const char *const schemes[] = {"redis",          "rediss",  "redis+unix",
                                      "redis+sentinel", "redlock", NULL};

static const struct hf_store_ops ops = {
    .size = sizeof ops,
    .schemes = schemes,
    .features = HF_FEATURE_FAIR | HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL | HF_FEATURE_RECORDS |
                HF_FEATURE_BREAK,
    .open = store_open,
    .close = store_close,
    .acquire = rd_acquire,
    .renew = rd_renew,
    .release = rd_release,
    .list = rd_list,
    .renew_many = rd_renew_many,
    .fence = rd_fence,
    .identity = rd_identity,
    .forget = rd_forget,
    .waiters = rd_waiters,
    .last_break = rd_last_break,
    .open_readonly = store_open_readonly,
    .max_ttl_ms = store_max_ttl_ms,
    .end_quarantine = rd_end_quarantine,
    .quarantine = rd_quarantine,
    .record_put = rd_record_put,
    .record_get = rd_record_get,
    .record_list = rd_record_list,
    .revoke = rd_revoke,
    .audit = rd_audit,
    .acquire_any = rd_acquire_any,
    .begin = rd_begin,
    .answered = rd_answered,
    .end = rd_end,
};

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}

/* Meets the server, so that a wrong password is told now and the first acquire is one round trip.
 * One in quarantine is open all the same: renewals, releases and listings go on. A damaged record
 * keeps nobody from reading. */
static enum hf_status meet(struct rd_store *store, const struct hf__patience *patience,
                           struct hf_error *err)
{
    struct rd_met met = {0};
    struct rd_node *node;
    enum hf_status status = rd_route_learn(store, patience, err);

    if (status == HF_OK)
        status = rd_route(store, 0, patience, &node, err);
    if (status == HF_OK)
        status = rd_incarnation_pass(node, patience, &met, err);
    if (met.first && !store->setup.readonly)
        rd_incarnation_meet_all(store, patience);
    if (status == HF_QUARANTINE || (status == HF_CORRUPT && store->setup.readonly))
        return hf__ok(err);
    return status;
}

enum hf_status rd_store_new(const struct hf_host *host, const char *url, bool readonly,
                            struct rd_store **out, struct hf_error *err)
{
    struct rd_store *store = calloc(1, sizeof *store);
    enum hf_status status;

    *out = NULL;
    if (store == NULL)
        return hf__nomem(err);
    store->base = (struct hf_store_base){.ops = &ops, .host = host};
    if (pthread_mutex_init(&store->lock, NULL) != 0) {
        free(store);
        return hf__nomem(err);
    }
    store->setup.readonly = readonly;
    status = rd_setup_init(&store->setup, host, url, err);
    if (status == HF_OK && store->setup.url.kind == RD_DIRECT) {
        store->master = rd_route_node(store, &store->setup.url.parts.hosts[0]);
        if (store->master == NULL)
            status = hf__nomem(err);
    }
    if (status != HF_OK)
        rd_store_free(store, false);
    else
        *out = store;
    return status;
}

static enum hf_status open_store(const struct hf_host *host, const char *url, bool readonly,
                                 int64_t deadline_ns, struct hf_store_base **out,
                                 struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct rd_store *store;
    enum hf_status status;

    if (hf__url_rest(url, "redlock") != NULL)
        return rl_open(host, url, readonly, deadline_ns, out, err);
    status = rd_store_new(host, url, readonly, &store, err);
    if (status != HF_OK)
        return status;
    status = meet(store, &patience, err);
    if (status != HF_OK) {
        rd_store_free(store, false);
        return status;
    }
    *out = &store->base;
    return hf__ok(err);
}

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    return open_store(host, url, false, deadline_ns, out, err);
}

static enum hf_status store_open_readonly(const struct hf_host *host, const char *url,
                                          int64_t deadline_ns, struct hf_store_base **out,
                                          struct hf_error *err)
{
    return open_store(host, url, true, deadline_ns, out, err);
}

static void store_close(struct hf_store_base *base, bool forked)
{
    rd_store_free((struct rd_store *)base, forked);
}

void rd_store_free(struct rd_store *store, bool forked)
{
    for (size_t i = 0; i < store->node_count; i++)
        rd_node_close(store->nodes[i], forked);
    if (!forked)
        pthread_mutex_destroy(&store->lock);
    rd_setup_release(&store->setup);
    explicit_bzero(store->vouched, sizeof store->vouched);
    free(store);
}

static uint32_t store_max_ttl_ms(struct hf_store_base *base)
{
    int64_t max_ttl_ms = ((struct rd_store *)base)->setup.url.max_ttl_ms;

    return max_ttl_ms < HF_TTL_MAX_MS ? (uint32_t)max_ttl_ms : HF_TTL_MAX_MS;
}
