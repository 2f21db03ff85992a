/* list.c - what is held, as the server tells it. A listing of many may be a second old: the server
 * asks its store once for all who look. */
#include "base/base.h"
#include "stores/http/http.h"

#include <stdio.h>
#include <string.h>

#define LOCKS_MAX  10000 /* in one answer of the server */
#define PATH_BYTES (3 * HF_NAME_MAX + 64)

/* Calls fn for one element of "locks". False: it wants no more. */
static bool show(const cJSON *lock, hf_list_fn *fn, void *data)
{
    const cJSON *broken = cJSON_GetObjectItemCaseSensitive(lock, "broken");
    struct hf_revocation revocation = {.at_ms = ht_number(broken, "at_ms", 0)};
    struct hf_lock_info info = {.size = sizeof info,
                                .name = ht_text(lock, "name", ""),
                                .label = ht_text(lock, "label", ""),
                                .token = ht_token(lock),
                                .remaining_ms = ht_number(lock, "remaining_ms", -1),
                                .age_ms = ht_number(lock, "age_ms", -1),
                                .waiters = (uint64_t)ht_number(lock, "waiters", 0),
                                .held = ht_flag(lock, "held"),
                                .detached = ht_flag(lock, "detached"),
                                .foreign = ht_flag(lock, "foreign"),
                                .endless = ht_flag(lock, "endless"),
                                .renewed_ms = ht_number(lock, "renewed_ms", 0),
                                .ttl_ms = (uint32_t)ht_number(lock, "ttl_ms", 0)};

    if (cJSON_IsObject(broken)) {
        hf__copy_printable(revocation.by, sizeof revocation.by, ht_text(broken, "by", ""));
        hf__copy_printable(revocation.reason, sizeof revocation.reason,
                           ht_text(broken, "reason", ""));
        info.revocation = &revocation;
    }
    return !hf__name_valid(info.name) || fn(&info, data);
}

static enum hf_status make_path(const struct ht_store *store, const struct hf_query *query,
                                char path[PATH_BYTES], struct hf_error *err)
{
    char encoded[3 * HF_NAME_MAX + 1];

    if (!hf__utf8_valid(query->name) || !hf__url_encode(encoded, sizeof encoded, query->name))
        return hf__fail_lock(err, HF_INVALID, query->name, store->url.common.shown,
                             ": a name sent over HTTP has to be UTF-8");
    if (query->exact)
        (void)snprintf(path, PATH_BYTES, "/v1/lock?name=%s", encoded);
    else
        (void)snprintf(path, PATH_BYTES, "/v1/locks?prefix=%s&limit=%d", encoded, LOCKS_MAX);
    return HF_OK;
}

enum hf_status ht_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct ht_store *store = (struct ht_store *)base;
    char path[PATH_BYTES];
    struct ht_call call = {.lock = query->exact ? query->name : NULL,
                           .path = path,
                           .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1}};
    const cJSON *lock;
    int64_t sent_at_ns, more;
    cJSON *answer;
    enum hf_status status = make_path(store, query, path, err);

    if (status != HF_OK || (status = ht_call(store, &call, &answer, &sent_at_ns, err)) != HF_OK)
        return status;
    cJSON_ArrayForEach(lock, cJSON_GetObjectItemCaseSensitive(answer, "locks"))
    {
        if (!show(lock, fn, data))
            break;
    }
    more = ht_number(answer, "more", 0);
    cJSON_Delete(answer);
    if (lock == NULL && more > 0)
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->url.common.shown,
                             ": %lld more locks than the server lists; ask for a prefix",
                             (long long)more);
    return hf__ok(err);
}
