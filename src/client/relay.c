/* relay.c - locks on behalf of others: one question to the store for each of theirs. */
#include "client/client.h"

#include <holdfast/relay.h>
#include <string.h>

/* In one spelling only: owners are compared as they are written. */
static bool is_owner(const char *owner)
{
    return owner != NULL && strspn(owner, "0123456789abcdef") == HF_OWNER_LEN &&
           owner[HF_OWNER_LEN] == '\0';
}

/* What all three have in common, and *out is the claim as the store gets it. */
static enum hf_status check(struct hf_store *store, const struct hf_claim *given,
                            struct hf_claim *out, struct hf_error *err)
{
    if (given->name == NULL || !hf__name_valid(given->name))
        return hf__bad_name(err);
    if (!is_owner(given->owner))
        return hf__fail_lock(err, HF_INVALID, given->name, store->url,
                             ": an owner is %d lower-case hex digits", HF_OWNER_LEN);
    if (given->token > INT64_MAX)
        return hf__fail_lock(err, HF_INVALID, given->name, store->url, ": there is no such token");
    if ((hf_store_features(store) & HF_FEATURE_DETACHED) == 0)
        return hf__fail_lock(err, HF_UNSUPPORTED, given->name, store->url,
                             ": this store has no detached leases");
    *out = *given;
    out->detached = true;
    out->kept = HF_KEPT_NEVER;
    if (out->deadline_ns == 0)
        out->deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    return HF_OK;
}

static enum hf_status check_ttl(struct hf_store *store, const struct hf_claim *claim,
                                struct hf_error *err)
{
    if (claim->ttl_ms < HF_TTL_MIN_MS || claim->ttl_ms > HF_TTL_MAX_MS)
        return hf__bad_ttl(store, claim->name, err);
    if (claim->ttl_ms > hf_store_max_ttl_ms(store))
        return hf__ttl_too_long(store, claim->name, claim->ttl_ms, err);
    return HF_OK;
}

/* The store's answer, in words if it found none. */
static enum hf_status answer(struct hf_store *store, const char *name, enum hf_status status,
                             struct hf_error *err)
{
    hf__store_end(store);
    if (status == HF_OK)
        return hf__ok(err);
    if (err->code != status)
        return hf__fail_lock(err, status, name, store->url, ": %s", hf_status_text(status));
    return status;
}

/* What the store leaves out because it is as claimed. */
static enum hf_status complete(struct hf_store *store, const struct hf_claim *claim,
                               struct hf_grant *grant, struct hf_error *err)
{
    if (grant->ttl_ms == 0 || grant->ttl_ms > claim->ttl_ms)
        grant->ttl_ms = claim->ttl_ms;
    if (grant->owner[0] == '\0')
        memcpy(grant->owner, claim->owner, sizeof grant->owner);
    if (grant->token == 0 || grant->token > INT64_MAX)
        return hf__fail_lock(err, HF_CORRUPT, claim->name, store->url,
                             " was granted with a token out of range");
    return HF_OK;
}

enum hf_status hf_relay_acquire(struct hf_store *store, const struct hf_claim *claim,
                                struct hf_grant *grant, struct hf_error *err)
{
    char label[HF_LABEL_MAX + 1];
    struct hf_claim asked;
    struct hf_error own;
    enum hf_status status;

    memset(grant, 0, sizeof *grant);
    if (err == NULL)
        err = &own;
    if ((status = check(store, claim, &asked, err)) != HF_OK ||
        (status = check_ttl(store, claim, err)) != HF_OK)
        return status;
    if (claim->token != 0)
        return hf__fail_lock(err, HF_INVALID, claim->name, store->url,
                             ": an acquire has no token yet");
    if ((status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    hf__copy_printable(label, sizeof label, claim->label != NULL ? claim->label : store->label);
    asked.label = label;
    (void)hf__ok(err);
    status = store->base->ops->acquire(store->base, &asked, grant, err);
    if (status == HF_OK)
        status = complete(store, &asked, grant, err);
    return answer(store, claim->name, status, err);
}

enum hf_status hf_relay_renew(struct hf_store *store, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err)
{
    struct hf_grant cleared = {.revocation = grant->revocation};
    struct hf_claim asked;
    struct hf_error own;
    enum hf_status status;

    *grant = cleared;
    if (err == NULL)
        err = &own;
    if ((status = check(store, claim, &asked, err)) != HF_OK ||
        (claim->ttl_ms != 0 && (status = check_ttl(store, claim, err)) != HF_OK))
        return status;
    if (claim->token == 0)
        return hf__fail_lock(err, HF_INVALID, claim->name, store->url, ": a token is not 0");
    if ((status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    (void)hf__ok(err);
    status = store->base->ops->renew(store->base, &asked, grant, err);
    if (status == HF_OK && claim->ttl_ms != 0 &&
        (grant->ttl_ms == 0 || grant->ttl_ms > claim->ttl_ms))
        grant->ttl_ms = claim->ttl_ms;
    return answer(store, claim->name, status, err);
}

enum hf_status hf_relay_release(struct hf_store *store, const struct hf_claim *claim,
                                struct hf_error *err)
{
    struct hf_claim asked;
    struct hf_error own;
    enum hf_status status;

    if (err == NULL)
        err = &own;
    if ((status = check(store, claim, &asked, err)) != HF_OK ||
        (status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    (void)hf__ok(err);
    status = store->base->ops->release(store->base, &asked, err);
    return answer(store, claim->name, status, err);
}
