/* break.c - breaking a hold, and what its holder hears of it. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

void hf__lease_broken(struct hf_lease *lease, const struct hf_revocation *revocation)
{
    if (lease->core.loss != HF_LOSS_BROKEN || lease->revocation != NULL || revocation == NULL)
        return;
    /* Without memory it is known that it was broken, but not by whom. */
    lease->revocation = calloc(1, sizeof *lease->revocation);
    if (lease->revocation == NULL)
        return;
    hf__copy_printable(lease->revocation->by, sizeof lease->revocation->by, revocation->by);
    hf__copy_printable(lease->revocation->reason, sizeof lease->revocation->reason,
                       revocation->reason);
    lease->revocation->at_ms = revocation->at_ms;
}

bool hf_lease_revocation(const struct hf_lease *lease, struct hf_revocation *out)
{
    bool broken;

    memset(out, 0, sizeof *out);
    if (hf__forked(&lease->mark))
        return false;
    pthread_mutex_lock(&lease->store->lock);
    broken = lease->core.loss == HF_LOSS_BROKEN;
    if (broken && lease->revocation != NULL)
        *out = *lease->revocation;
    pthread_mutex_unlock(&lease->store->lock);
    return broken;
}

enum hf_status hf_last_break(struct hf_store *store, const char *name, struct hf_revocation *out,
                             struct hf_error *err)
{
    struct hf_query query = {.name = name, .exact = true};
    enum hf_status status;

    memset(out, 0, sizeof *out);
    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(err);
    if (HF__OPERATION(store->base->ops, last_break) == NULL)
        return hf__fail_lock(err, HF_UNSUPPORTED, name, store->url,
                             ": this kind of store does not report past breaks");
    status = hf__store_begin(store, err);
    if (status != HF_OK)
        return status;
    query.deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    status = store->base->ops->last_break(store->base, &query, out, err);
    hf__store_end(store);
    return status == HF_OK ? hf__ok(err) : status;
}

static enum hf_status check(const struct hf_store *store, const struct hf_revoke *revoke,
                            struct hf_error *err)
{
    if (revoke->name == NULL || !hf__name_valid(revoke->name))
        return hf__bad_name(err);
    if (revoke->token > INT64_MAX)
        return hf__fail_lock(err, HF_INVALID, revoke->name, store->url, ": there is no such token");
    if (revoke->token == 0 && !revoke->now)
        return hf__fail_lock(err, HF_INVALID, revoke->name, store->url,
                             ": a hold that is not holdfast's can only be broken at once (now)");
    if (HF__OPERATION(store->base->ops, revoke) == NULL)
        return hf__fail_lock(err, HF_UNSUPPORTED, revoke->name, store->url,
                             ": this kind of store cannot break a lock");
    return HF_OK;
}

enum hf_status hf_break(struct hf_store *store, const char *name, uint64_t token,
                        const struct hf_break_options *options, struct hf_broken *out,
                        struct hf_error *err)
{
    struct hf_break_options o = {.size = 0};
    char by[HF_LABEL_MAX + 1];
    char reason[HF_REASON_MAX + 1];
    struct hf_revoke revoke = {.name = name, .token = token, .by = by, .reason = reason};
    struct hf_broken own;
    enum hf_status status;

    if (options != NULL)
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (out == NULL)
        out = &own;
    memset(out, 0, sizeof *out);
    revoke.now = o.now;
    if ((status = check(store, &revoke, err)) != HF_OK ||
        (status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    hf__copy_printable(by, sizeof by, o.label != NULL ? o.label : store->label);
    hf__copy_printable(reason, sizeof reason, o.reason != NULL ? o.reason : "");
    revoke.deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    status = store->base->ops->revoke(store->base, &revoke, out, err);
    hf__store_end(store);
    return status == HF_OK ? hf__ok(err) : status;
}
