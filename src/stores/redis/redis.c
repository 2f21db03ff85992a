/* redis.c - the Redis store: its table of operations, opening and closing. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/redlock.h"

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
    .features = HF_FEATURE_FAIR | HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL,
    .open = store_open,
    .close = store_close,
    .acquire = rd_acquire,
    .renew = rd_renew,
    .release = rd_release,
    .list = rd_list,
    .renew_many = rd_renew_many,
    .fence = rd_fence,
    .open_readonly = store_open_readonly,
    .max_ttl_ms = store_max_ttl_ms,
    .end_quarantine = rd_end_quarantine,
    .quarantine = rd_quarantine,
};

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}

/* Meets the server, so that a wrong password is told now and the first acquire is one round trip.
 * One in quarantine is open all the same: renewals, releases and listings go on. A damaged record
 * keeps nobody from reading. */
static enum hf_status meet(struct rd_store *store, const struct rd_patience *patience,
                           struct hf_error *err)
{
    struct rd_met met = {0};
    struct rd_node *node;
    enum hf_status status = rd_route_learn(store, patience, err);

    if (status == HF_OK)
        status = rd_route(store, 0, patience, &node, err);
    if (status == HF_OK)
        status = rd_guard_pass(node, patience, &met, err);
    if (met.first && !store->url.readonly)
        rd_guard_meet_all(store, patience);
    if (status == HF_QUARANTINE || (status == HF_CORRUPT && store->url.readonly))
        return hf__ok(err);
    return status;
}

static enum hf_status open_store(const struct hf_host *host, const char *url, bool readonly,
                                 int64_t deadline_ns, struct hf_store_base **out,
                                 struct hf_error *err)
{
    struct rd_patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct rd_store *store;
    enum hf_status status;

    if (hf__url_rest(url, "redlock") != NULL)
        return rl_open(host, url, readonly, deadline_ns, out, err);
    store = calloc(1, sizeof *store);
    if (store == NULL)
        return hf__nomem(err);
    store->base = (struct hf_store_base){.ops = &ops, .host = host};
    if (pthread_mutex_init(&store->lock, NULL) != 0) {
        free(store);
        return hf__nomem(err);
    }
    status = rd_url_parse(url, &store->url, err);
    store->url.readonly = readonly;
    if (status == HF_OK)
        status = rd_url_find_password(&store->url, err);
    if (status == HF_OK && store->url.tls)
        status = rd_tls_config_open(&store->url, &store->tls, err);
    if (status == HF_OK && store->url.kind == RD_DIRECT) {
        store->master = rd_route_node(store, &store->url.addresses[0]);
        if (store->master == NULL)
            status = hf__nomem(err);
    }
    if (status == HF_OK)
        status = meet(store, &patience, err);
    if (status != HF_OK) {
        store_close(&store->base, false);
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
    struct rd_store *store = (struct rd_store *)base;

    for (size_t i = 0; i < store->node_count; i++)
        rd_node_close(store->nodes[i], forked);
    rd_tls_config_close(store->tls);
    if (!forked)
        (void)pthread_mutex_destroy(&store->lock);
    explicit_bzero(&store->url, sizeof store->url);
    explicit_bzero(store->vouched, sizeof store->vouched);
    free(store);
}

static uint32_t store_max_ttl_ms(struct hf_store_base *base)
{
    int64_t max_ttl_ms = ((struct rd_store *)base)->url.max_ttl_ms;

    return max_ttl_ms < HF_TTL_MAX_MS ? (uint32_t)max_ttl_ms : HF_TTL_MAX_MS;
}

enum hf_status rd_claim_keys(const struct rd_store *store, const char *name, struct rd_keys *out,
                             struct hf_error *err)
{
    const char *why;

    if (!rd_keys_make(out, store->url.prefix, name, &why))
        return hf__fail(err, HF_INVALID, "lock \"%.60s\" in store %.80s: %s", name,
                        store->url.shown, why);
    return HF_OK;
}

enum hf_status rd_lost(const struct rd_store *store, const char *name, const struct rd_reply *reply,
                       struct hf_grant *grant, struct hf_error *err)
{
    static const struct {
        const char *word;
        enum hf_loss loss;
    } reasons[] = {
        {"taken", HF_LOSS_TAKEN}, {"expired", HF_LOSS_EXPIRED}, {"forgotten", HF_LOSS_FORGOTTEN}};
    const char *word = rd_reply_text(rd_reply_at(reply, 1));

    if (rd_reply_is(reply, "lost"))
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
            if (strcmp(reasons[i].word, word) == 0) {
                if (grant != NULL)
                    grant->loss = reasons[i].loss;
                return hf__fail(
                    err, HF_LOST, "lock \"%.60s\" in store %.80s is not held any more: %s", name,
                    store->url.shown,
                    reasons[i].loss == HF_LOSS_TAKEN     ? "another owner has it"
                    : reasons[i].loss == HF_LOSS_EXPIRED ? "it expired"
                                                         : "the server has forgotten it");
            }
    return rd_nonsense(store, name, err);
}

enum hf_status rd_corrupt(const struct rd_store *store, const char *name,
                          const struct rd_keys *keys, const struct rd_reply *reply,
                          struct hf_error *err)
{
    if (strcmp(rd_reply_text(rd_reply_at(reply, 1)), "clock") == 0)
        return hf__fail(err, HF_CORRUPT,
                        "lock \"%.60s\" in store %.80s: the server's clock is beyond the year "
                        "2255, where tokens end; set it right",
                        name, store->url.shown);
    return hf__fail(err, HF_CORRUPT,
                    "lock \"%.60s\" in store %.80s: the key %.60s does not hold a token; delete "
                    "it, after a look at the fence",
                    name, store->url.shown, keys->record);
}

enum hf_status rd_pass(struct hf_error *err, const struct hf_error *said)
{
    if (err != NULL)
        *err = *said;
    return said->code;
}

enum hf_status rd_nonsense(const struct rd_store *store, const char *name, struct hf_error *err)
{
    return hf__fail(
        err, HF_CORRUPT,
        "lock \"%.60s\" in store %.80s: the server's answer makes no sense; is it Redis?", name,
        store->url.shown);
}
