/* acquire.c - taking a lock, and taking over a detached one. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAKE_BACK_MS 1000 /* what ending a hold that may be ours is given, before we ask again */

static enum hf_status check_options(struct hf_store *store, const char *name,
                                    const struct hf_acquire_options *given,
                                    struct hf_acquire_options *out, struct hf_error *err);
static void draw_owner(struct hf_store *store, char *out);
static enum hf_status grant_lease(struct hf_lease *lease, const struct hf_claim *claim,
                                  const struct hf_grant *grant, struct hf_error *err);

/* Asks the store for the lock once; the lease gets its token and core if it is granted. */
static enum hf_status ask(struct hf_lease *lease, const struct hf_acquire_options *options,
                          int64_t wait_until_ns, struct hf_error *err)
{
    struct hf_store *store = lease->store;
    char label[HF_LABEL_MAX + 1];
    struct hf_claim claim = {
        .name = lease->name,
        .owner = lease->owner,
        .label = label,
        .ttl_ms = options->ttl_ms,
        .detached = options->detached,
        .kept = options->detached    ? HF_KEPT_NEVER
                : options->no_keeper ? HF_KEPT_LATER
                                     : HF_KEPT_NOW,
        .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS,
        .wait_until_ns = wait_until_ns,
        .cancel_fd = options->cancel_fd > 0 ? options->cancel_fd : -1,
    };
    struct hf_grant grant = {0};
    enum hf_status status;

    hf__copy_printable(label, sizeof label, options->label != NULL ? options->label : store->label);
    status = store->base->ops->acquire(store->base, &claim, &grant, err);
    return status == HF_OK ? grant_lease(lease, &claim, &grant, err) : status;
}

/* Makes the lease a new attempt's. Of the old one nothing is left: what it may hold is ended as
 * well as can be, and lasts its ttl otherwise. */
static void begin_anew(struct hf_lease *lease, bool take_back)
{
    struct hf_store *store = lease->store;
    struct hf_claim undo = hf__lease_claim(lease, 0, hf__now_ns() + TAKE_BACK_MS * HF__NS_PER_MS);

    undo.token = 0; /* whatever that owner holds */
    if (take_back)
        (void)store->base->ops->release(store->base, &undo, NULL);
    pthread_mutex_lock(&store->lock);
    draw_owner(store, lease->owner);
    pthread_mutex_unlock(&store->lock);
    lease->token = 0;
    lease->core = (struct hf__lease_core){0};
}

/* Asks until there is an answer, or the wait is over. */
static enum hf_status ask_patiently(struct hf_lease *lease,
                                    const struct hf_acquire_options *options, struct hf_error *err)
{
    const struct hf_open_options waiting = {
        .cancel_fd = options->cancel_fd, .on_trouble = options->on_trouble, .data = options->data};
    struct hf__wait wait = hf__wait_begin(options->wait_ms);
    int64_t asked_ns = hf__now_ns();

    for (;; asked_ns = hf__now_ns()) {
        enum hf_status status, answer;

        (void)hf__ok(err);
        status = ask(lease, options, asked_ns < wait.until_ns ? wait.until_ns : 0, err);
        if (status == HF_OK)
            return HF_OK;
        if (err->code != status) /* a store that found no words */
            (void)hf__fail_lock(err, status, lease->name, lease->store->url, ": %s",
                                hf_status_text(status));
        answer = status;
        if (!hf__wait_go_on(&wait, &waiting, asked_ns, &status, err))
            return status == answer ? status
                                    : hf__fail_lock(err, status, lease->name, lease->store->url,
                                                    ": %s while waiting", hf_status_text(status));
        begin_anew(lease, answer == HF_UNKNOWN);
    }
}

enum hf_status hf_acquire(struct hf_store *store, const char *name,
                          const struct hf_acquire_options *options, struct hf_lease **out,
                          struct hf_error *err)
{
    struct hf_acquire_options o;
    struct hf_error own;
    struct hf_lease *lease;
    enum hf_status status;
    bool kept;

    *out = NULL;
    if (err == NULL)
        err = &own;
    status = check_options(store, name, options, &o, err);
    if (status != HF_OK || (status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    kept = !o.no_keeper && !o.detached;
    lease = hf__lease_new(store, name);
    if (lease == NULL) {
        status = hf__nomem(err);
        goto out;
    }
    lease->detached = o.detached;
    lease->on_lost = o.on_lost;
    lease->on_renewed = o.on_renewed;
    lease->data = o.data;

    pthread_mutex_lock(&store->lock);
    draw_owner(store, lease->owner);
    if (kept)
        status = hf__keeper_reserve(store, err);
    pthread_mutex_unlock(&store->lock);
    if (status != HF_OK)
        goto discard;

    status = ask_patiently(lease, &o, err);
    pthread_mutex_lock(&store->lock);
    if (status == HF_OK)
        hf__lease_publish(lease);
    if (kept && status == HF_OK)
        hf__keeper_add(lease);
    else if (kept)
        hf__keeper_unreserve(store);
    pthread_mutex_unlock(&store->lock);
    if (status == HF_OK) {
        *out = lease;
        (void)hf__ok(err);
        goto out;
    }
discard:
    hf__lease_discard(lease);
out:
    hf__store_end(store);
    return status;
}

static enum hf_status check_options(struct hf_store *store, const char *name,
                                    const struct hf_acquire_options *given,
                                    struct hf_acquire_options *out, struct hf_error *err)
{
    memset(out, 0, sizeof *out);
    if (given != NULL) {
        /* A caller built against an older header knows fewer options. */
        size_t known = given->size < sizeof *out ? given->size : sizeof *out;

        if (given->size == 0)
            return hf__fail(err, HF_INVALID,
                            "options.size must be sizeof(struct hf_acquire_options)");
        memcpy(out, given, known);
    }
    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(err);
    if (out->ttl_ms == 0) {
        out->ttl_ms = hf_store_max_ttl_ms(store);
        if (out->ttl_ms > HF_TTL_DEFAULT_MS)
            out->ttl_ms = HF_TTL_DEFAULT_MS;
    }
    if (out->ttl_ms < HF_TTL_MIN_MS || out->ttl_ms > HF_TTL_MAX_MS)
        return hf__bad_ttl(store, name, err);
    if (out->ttl_ms > hf_store_max_ttl_ms(store))
        return hf__ttl_too_long(store, name, out->ttl_ms, err);
    if (out->detached && (store->base->ops->features & HF_FEATURE_DETACHED) == 0)
        return hf__fail_lock(err, HF_UNSUPPORTED, name, store->url,
                             ": this store has no detached leases");
    return HF_OK;
}

/* A fresh owner for every attempt: a late answer to an earlier one can never be taken for this
 * one. */
static void draw_owner(struct hf_store *store, char *out)
{
    if (store->owners_left == 0) {
        hf__random(store->owners, sizeof store->owners);
        store->owners_left = HF__OWNER_BATCH;
    }
    store->owners_left--;
    hf__hex_encode(out, store->owners[store->owners_left], sizeof store->owners[0]);
    explicit_bzero(store->owners[store->owners_left], sizeof store->owners[0]);
}

static enum hf_status grant_lease(struct hf_lease *lease, const struct hf_claim *claim,
                                  const struct hf_grant *grant, struct hf_error *err)
{
    struct hf_store *store = lease->store;
    uint32_t ttl_ms = claim->ttl_ms;
    struct hf_claim undo;

    if (grant->ttl_ms != 0 && grant->ttl_ms < ttl_ms)
        ttl_ms = grant->ttl_ms;
    lease->token = grant->token;
    if (grant->owner[0] != '\0')
        memcpy(lease->owner, grant->owner, sizeof lease->owner);
    hf__lease_granted(&lease->core, grant->sent_at_ns, ttl_ms);
    if (grant->token != 0 && grant->token <= INT64_MAX &&
        hf__lease_tick(&lease->core, hf__now_ns()))
        return HF_OK;

    undo = hf__lease_claim(lease, 0, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS);
    (void)store->base->ops->release(store->base, &undo, NULL);
    if (lease->core.state == HF__LEASE_HELD)
        return hf__fail_lock(err, HF_CORRUPT, lease->name, store->url,
                             " was granted with a token out of range");
    return hf__fail_lock(err, HF_UNKNOWN, lease->name, store->url,
                         " was granted, but the answer came after the deadline");
}

enum hf_status hf_adopt(struct hf_store *store, const char *name, const char *owner, uint64_t token,
                        struct hf_lease **out, struct hf_error *err)
{
    unsigned char raw[HF_OWNER_LEN / 2];
    struct hf_grant grant = {0};
    struct hf_claim claim;
    struct hf_lease *lease;
    enum hf_status status;

    *out = NULL;
    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(err);
    if (owner == NULL || !hf__hex_decode(raw, sizeof raw, owner) || token == 0 || token > INT64_MAX)
        return hf__fail_lock(err, HF_INVALID, name, store->url,
                             ": an owner is %d hex digits, a token is not 0", HF_OWNER_LEN);
    if ((status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    lease = hf__lease_new(store, name);
    if (lease == NULL) {
        status = hf__nomem(err);
        goto out;
    }
    lease->token = token;
    lease->detached = true;
    lease->adopted = true;
    hf__hex_encode(lease->owner, raw, sizeof raw);
    claim = hf__lease_claim(lease, 0, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS);
    status = store->base->ops->renew(store->base, &claim, &grant, err);
    if (status == HF_OK) {
        /* A store may not know the ttl on record; what is left it must know. */
        if (grant.ttl_ms == 0 && grant.remaining_ms > 0)
            grant.ttl_ms =
                grant.remaining_ms < HF_TTL_MAX_MS ? (uint32_t)grant.remaining_ms : HF_TTL_MAX_MS;
        if (grant.ttl_ms == 0)
            grant.ttl_ms = HF_TTL_MIN_MS;
        hf__lease_adopted(&lease->core, grant.sent_at_ns, grant.ttl_ms, grant.remaining_ms);
        if (!hf__lease_tick(&lease->core, hf__now_ns()))
            status = hf__fail_lock(err, HF_LOST, name, store->url, ": the lease has expired");
    }
    if (status != HF_OK) {
        hf__lease_discard(lease);
        goto out;
    }
    pthread_mutex_lock(&store->lock);
    hf__lease_publish(lease);
    pthread_mutex_unlock(&store->lock);
    *out = lease;
    (void)hf__ok(err);
out:
    hf__store_end(store);
    return status;
}
