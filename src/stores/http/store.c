/* store.c - the http store: opening, closing, and what the store behind the server is. */
#include "base/base.h"
#include "stores/http/http.h"

#include <stdlib.h>
#include <string.h>

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err);
static void store_close(struct hf_store_base *base, bool forked);
static unsigned store_features(struct hf_store_base *base);
static uint32_t store_max_ttl_ms(struct hf_store_base *base);
static enum hf_status store_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                                     int64_t deadline_ns, struct hf_error *err);

static const char *const schemes[] = {"http", "https", "http+unix", NULL};

static const struct hf_store_ops ops = {
    .size = sizeof ops,
    .schemes = schemes,
    .features = HF_FEATURE_DETACHED,
    .open = store_open,
    .close = store_close,
    .acquire = ht_acquire,
    .renew = ht_renew,
    .release = ht_release,
    .list = ht_list,
    .max_ttl_ms = store_max_ttl_ms,
    .identity = store_identity,
    .open_features = store_features,
};

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}

/* What the server says of its store. */
static enum hf_status meet(struct ht_store *store, int64_t deadline_ns, cJSON **out,
                           struct hf_error *err)
{
    struct ht_call call = {.path = "/v1/store",
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1}};
    int64_t sent_at_ns;

    return ht_call(store, &call, out, &sent_at_ns, err);
}

static void store_free(struct ht_store *store, bool forked)
{
    hf__http_pool_release(&store->pool, forked);
    explicit_bzero(&store->url, sizeof store->url);
    free(store);
}

static void note_store(struct ht_store *store, const cJSON *answer)
{
    int64_t max_ttl_ms = ht_number(answer, "max_ttl_ms", HF_TTL_MAX_MS);

    store->max_ttl_ms = max_ttl_ms < HF_TTL_MAX_MS ? (uint32_t)max_ttl_ms : HF_TTL_MAX_MS;
    store->features = ht_features(answer);
}

static enum hf_status open_url(struct ht_store *store, const char *url, int64_t deadline_ns,
                               struct hf_error *err)
{
    struct hf_error said; /* also a warning, with HF_OK */
    enum hf_status status = ht_url_parse(url, &store->url, &said);
    cJSON *answer = NULL;

    if (status == HF_OK)
        status = ht_url_find_secrets(&store->url, &said);
    if (status == HF_OK) {
        struct hf_error refused;

        ht_url_options(&store->url, &store->pool.options);
        status = meet(store, deadline_ns, &answer, &refused);
        if (status == HF_OK)
            note_store(store, answer);
        else
            said = refused;
    }
    cJSON_Delete(answer);
    if (err != NULL)
        *err = said;
    return status;
}

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    struct ht_store *store = calloc(1, sizeof *store);
    enum hf_status status;

    if (store == NULL)
        return hf__nomem(err);
    store->base = (struct hf_store_base){.ops = &ops, .host = host};
    status = hf__http_pool_init(&store->pool, host, &(struct hf__http_options){0}, err);
    if (status != HF_OK) {
        free(store);
        return status;
    }
    status = open_url(store, url, deadline_ns, err);
    if (status == HF_OK)
        *out = &store->base;
    else
        store_free(store, false);
    return status;
}

static void store_close(struct hf_store_base *base, bool forked)
{
    store_free((struct ht_store *)base, forked);
}

static unsigned store_features(struct hf_store_base *base)
{
    return ((struct ht_store *)base)->features;
}

static uint32_t store_max_ttl_ms(struct hf_store_base *base)
{
    return ((struct ht_store *)base)->max_ttl_ms;
}

/* That of the store behind the server: to a fence it is the same whether or not a client goes by
 * HTTP. */
static enum hf_status store_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                                     int64_t deadline_ns, struct hf_error *err)
{
    struct ht_store *store = (struct ht_store *)base;
    cJSON *answer;
    enum hf_status status = meet(store, deadline_ns, &answer, err);

    if (status == HF_OK) {
        const char *identity = ht_text(answer, "identity", "");

        if (identity[0] == '\0' || strlen(identity) >= HF_IDENTITY_SIZE)
            status = hf__fail_lock(err, HF_UNKNOWN, NULL, store->url.common.shown,
                                   ": the server cannot tell yet who its store is");
        else
            (void)stpcpy(out, identity);
    }
    cJSON_Delete(answer);
    return status;
}
