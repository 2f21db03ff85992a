/* fence.c - fenced keys: from the public call to the store that holds them. */
#include "client/client.h"
#include "core/fence.h"

#include <inttypes.h>
#include <string.h>

static const char script[] =
#include "client/fence.inc"
    ;

const char *hf_fence_script(void)
{
    return script;
}

static enum hf_status check(const struct hf_fence_request *request, struct hf_error *err)
{
    if (request->key == NULL || request->key[0] == '\0' || strlen(request->key) > HF_FENCE_KEY_MAX)
        return hf__fail(err, HF_INVALID, "a fenced key has 1 to %d bytes", HF_FENCE_KEY_MAX);
    if (request->token > HF_FENCE_TOKEN_MAX ||
        (request->token == 0 && request->op != HF_FENCE_RESET_KEY &&
         request->op != HF_FENCE_READ_KEY))
        return hf__fail(err, HF_INVALID, "%" PRIu64 " is not a token: tokens are 1 to %" PRIu64,
                        request->token, HF_FENCE_TOKEN_MAX);
    if (request->value_len > HF_FENCE_VALUE_MAX)
        return hf__fail(err, HF_INVALID, "a fenced value has at most %d MiB",
                        HF_FENCE_VALUE_MAX / (1024 * 1024));
    if (request->op == HF_FENCE_RESET_KEY &&
        (request->reason == NULL || request->reason[0] == '\0'))
        return hf__fail(err, HF_INVALID, "%s: a reset needs a reason", request->key);
    return HF_OK;
}

/* A call into the store's slot; *mark comes zeroed. */
static enum hf_status call(struct hf_store *store, struct hf_fence_request *request,
                           struct hf_fence_mark *mark, struct hf_error *err)
{
    const struct hf_store_ops *ops = store->base->ops;
    enum hf_status status;

    if (HF__OPERATION(ops, fence) == NULL)
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->url,
                             " holds locks only: fence a file, a table, or a key in Redis, etcd or "
                             "ZooKeeper instead");
    request->deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    status = hf__store_begin_use(store, err);
    if (status != HF_OK)
        return status;
    (void)hf__ok(err); /* a store that refuses leaves the words to us */
    status = ops->fence(store->base, request, mark, err);
    hf__store_end(store);
    return status;
}

enum hf_status hf_fence_read_key(struct hf_store *store, const char *key,
                                 struct hf_fence_mark *mark, struct hf_error *err)
{
    struct hf_fence_request request = {.size = sizeof request,
                                       .op = HF_FENCE_READ_KEY,
                                       .key = key,
                                       .issuer = "",
                                       .issuer_url = "",
                                       .reason = ""};
    enum hf_status status = check(&request, err);

    *mark = (struct hf_fence_mark){.token = 0};
    if (status == HF_OK)
        status = call(store, &request, mark, err);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf_fence_key(struct hf_store *store, const struct hf_fence_request *request,
                            struct hf_error *err)
{
    struct hf_fence_request checked = {.size = sizeof checked};
    struct hf_fence_mark mark = {.token = 0};
    char issuer[HF_FENCE_ISSUER_MAX + 1];
    char reason[HF_FENCE_REASON_MAX + 1];
    char url[HF_FENCE_ISSUER_MAX + 1];
    enum hf_status status;

    memcpy(&checked, request, request->size < sizeof checked ? request->size : sizeof checked);
    status = check(&checked, err);
    if (status != HF_OK)
        return status;
    hf__fence_issuer(issuer, request->issuer);
    hf__fence_issuer(url, checked.issuer_url);
    checked.issuer_url = url;
    hf__copy_printable(reason, sizeof reason, request->reason != NULL ? request->reason : "");
    checked.issuer = issuer;
    checked.reason = reason;
    status = call(store, &checked, &mark, err);
    if (status == HF_STALE || (status == HF_INVALID && mark.issuer[0] != '\0')) {
        struct hf_fence_pass pass = {.size = sizeof pass,
                                     .token = checked.token,
                                     .issuer = checked.issuer,
                                     .issuer_url = url};

        return hf_fence_refuse(status == HF_STALE ? HF_FENCE_STALE : HF_FENCE_FOREIGN, &mark, &pass,
                               checked.key, err);
    }
    return status == HF_OK ? hf__ok(err) : status;
}
