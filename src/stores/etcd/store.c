/* store.c - the etcd store: its table of operations, opening and closing. */
#include "stores/etcd/etcd.h"
#include "base/base.h"
#include "stores/etcd/listener.h"

#include <stdlib.h>
#include <string.h>

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err);
static void store_close(struct hf_store_base *base, bool forked);

static const char *const schemes[] = {"etcd", NULL};

static const struct hf_store_ops ops = {
    .size = sizeof ops,
    .schemes = schemes,
    .features = HF_FEATURE_FAIR | HF_FEATURE_DURABLE_TOKENS | HF_FEATURE_DETACHED |
                HF_FEATURE_RENEW_TTL | HF_FEATURE_RECORDS | HF_FEATURE_BREAK,
    .open = store_open,
    .close = store_close,
    .acquire = ec_acquire,
    .acquire_any = ec_acquire_any,
    .renew = ec_renew,
    .release = ec_release,
    .list = ec_list,
    .renew_many = ec_renew_many,
    .listen = ec_listen,
    .identity = ec_identity,
    .forget = ec_forget,
    .waiters = ec_waiters,
    .record_put = ec_record_put,
    .record_get = ec_record_get,
    .record_list = ec_record_list,
    .revoke = ec_revoke,
    .fence = ec_fence,
    .audit = ec_audit,
};

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}

/* Reads under the prefix, so that a wrong password and a missing permission are told now. Any
 * server may answer for itself: it is not yet about locks. */
enum hf_status ec_meet(struct ec_store *store, int64_t deadline_ns, struct ec_answer *answer,
                       struct hf_error *err)
{
    char start[EC_PREFIX_MAX];
    char end[EC_PREFIX_MAX];
    struct ec_range range = {.key = start, .end = end};
    struct ec_text body;
    struct ec_call call = {.path = "/v3/kv/range",
                           .body = &body,
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                           .repeatable = true,
                           .hasty = true,
                           .dated = true};
    enum hf_status status;

    memcpy(start, store->url.prefix, sizeof start);
    range.key_len = strlen(start);
    ec_prefix_range(start, &range.key_len, end, &range.end_len);
    ec_text_clear(&body);
    ec_text_add(&body, "{");
    ec_text_range(&body, &range);
    ec_text_add(&body, ",\"limit\":\"1\",\"keys_only\":true,\"serializable\":true}");
    status = ec_call(store, &call, answer, NULL, err);
    if (status == HF_OK)
        ec_date_note(store, answer);
    return status;
}

enum hf_status ec_store_new(const struct hf_host *host, const char *url, struct ec_store **out,
                            struct hf_error *err)
{
    struct ec_store *store = calloc(1, sizeof *store);
    enum hf_status status;

    *out = NULL;
    if (store == NULL)
        return hf__nomem(err);
    store->base = (struct hf_store_base){.ops = &ops, .host = host};
    if (pthread_mutex_init(&store->lock, NULL) != 0) {
        free(store);
        return hf__nomem(err);
    }
    status = hf__http_pool_init(&store->pool, host, &(struct hf__http_options){0}, err);
    if (status != HF_OK) {
        pthread_mutex_destroy(&store->lock);
        free(store);
        return status;
    }
    status = ec_url_parse(url, &store->url, err);
    if (status == HF_OK)
        status = ec_url_find_secrets(&store->url, err);
    ec_url_options(&store->url, &store->pool.options);
    if (status != HF_OK)
        ec_store_free(store, false);
    else
        *out = store;
    return status;
}

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    struct ec_store *store;
    struct ec_answer answer;
    enum hf_status status = ec_store_new(host, url, &store, err);

    if (status != HF_OK)
        return status;
    status = ec_meet(store, deadline_ns, &answer, err);
    if (status != HF_OK) {
        ec_store_free(store, false);
        return status;
    }
    ec_answer_release(&answer);
    *out = &store->base;
    return hf__ok(err);
}

static void store_close(struct hf_store_base *base, bool forked)
{
    ec_store_free((struct ec_store *)base, forked);
}

void ec_store_free(struct ec_store *store, bool forked)
{
    if (!forked)
        ec_lease_end_idle(store);
    hf__http_pool_release(&store->pool, forked);
    ec_listener_close(store);
    ec_holds_release(&store->holds);
    if (!forked)
        pthread_mutex_destroy(&store->lock);
    explicit_bzero(store->auth, sizeof store->auth);
    explicit_bzero(&store->url, sizeof store->url);
    free(store);
}
