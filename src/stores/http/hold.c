/* hold.c - renewing, looking at and releasing what is held. */
#include "base/base.h"
#include "core/lease.h"
#include "stores/http/http.h"

#include <inttypes.h>
#include <stdio.h>

static bool add_token(cJSON *body, uint64_t token)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, token);
    return cJSON_AddStringToObject(body, "token", text) != NULL;
}

/* valid_ms is what is left, less what clocks may differ by in a ttl; and that is taken off again by
 * whoever goes by remaining_ms. */
static bool note_look(const cJSON *answer, struct hf_grant *grant)
{
    int64_t valid_ms = ht_number(answer, "valid_ms", -1);
    int64_t left_ms = valid_ms + hf__drift_ns(grant->ttl_ms) / HF__NS_PER_MS;

    grant->remaining_ms = left_ms < grant->ttl_ms ? left_ms : grant->ttl_ms;
    grant->loss = ht_loss(answer);
    return valid_ms >= 0;
}

static bool note_renewal(const cJSON *answer, uint32_t ttl_ms, struct hf_grant *grant)
{
    int64_t granted_ms = ht_number(answer, "ttl_ms", 0);

    if (granted_ms <= 0 || granted_ms > HF_TTL_MAX_MS)
        return false;
    grant->ttl_ms = (uint32_t)granted_ms;
    return ttl_ms != 0 || note_look(answer, grant);
}

static void note_loss(const cJSON *answer, struct hf_grant *grant)
{
    grant->loss = ht_loss(answer);
    if (grant->loss == HF_LOSS_NONE) /* a word of a later version */
        grant->loss = HF_LOSS_TAKEN;
    if (grant->loss != HF_LOSS_BROKEN || grant->revocation == NULL)
        return;
    hf__copy_printable(grant->revocation->by, sizeof grant->revocation->by,
                       ht_text(answer, "by", ""));
    hf__copy_printable(grant->revocation->reason, sizeof grant->revocation->reason,
                       ht_text(answer, "reason", ""));
}

enum hf_status ht_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct ht_store *store = (struct ht_store *)base;
    struct ht_call call = {.lock = claim->name,
                           .path = "/v1/renew",
                           .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1}};
    cJSON *answer;
    enum hf_status status;

    if ((call.body = ht_body(store, claim, err)) == NULL ||
        !ht_body_made(&call.body,
                      add_token(call.body, claim->token) &&
                          cJSON_AddNumberToObject(call.body, "ttl_ms", claim->ttl_ms) != NULL,
                      err))
        return hf__utf8_valid(claim->name) ? HF_NOMEM : HF_INVALID;
    status = ht_call(store, &call, &answer, &grant->sent_at_ns, err);
    if (status == HF_OK && !note_renewal(answer, claim->ttl_ms, grant))
        status = ht_stranger(store, &call, 200, err);
    if (status == HF_LOST)
        note_loss(answer, grant);
    if (status == HF_UNKNOWN && claim->ttl_ms == 0)
        status = hf__fail_lock(err, HF_UNREACHABLE, claim->name, store->url.common.shown,
                               ": no answer"); /* a look changes nothing */
    cJSON_Delete(answer);
    cJSON_Delete(call.body);
    return status;
}

enum hf_status ht_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct ht_store *store = (struct ht_store *)base;
    struct ht_call call = {.lock = claim->name,
                           .path = "/v1/release",
                           .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1}};
    int64_t sent_at_ns;
    cJSON *answer;
    enum hf_status status;

    if ((call.body = ht_body(store, claim, err)) == NULL ||
        !ht_body_made(&call.body, claim->token == 0 || add_token(call.body, claim->token), err))
        return hf__utf8_valid(claim->name) ? HF_NOMEM : HF_INVALID;
    status = ht_call(store, &call, &answer, &sent_at_ns, err);
    cJSON_Delete(answer);
    cJSON_Delete(call.body);
    return status;
}
