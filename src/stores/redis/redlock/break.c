/* break.c - breaking a hold at a majority of the nodes.
 *
 * The first question is who has the lock: some nodes hold the owner's key without knowing its
 * token, and they too have to refuse its renewal. Then every node is told, compares by itself, and
 * only those that answer *revoked* count. With a majority of them no renewal finds a majority any
 * more. With fewer it may, so that is unknown: whoever asks again breaks the rest. */
#include "base/base.h"
#include "stores/redis/redlock/redlock.h"

#include <string.h>

/* Why the hold that is meant is not the present one; NULL: it is. */
static const char *why_not(const struct rl_holder *holder, uint64_t token)
{
    bool foreign = holder->label[0] == '\0';

    if (holder->owner[0] == '\0')
        return "is not held by a majority of the nodes";
    if (token == 0)
        return foreign ? NULL : "is not held by a foreign client";
    if (foreign && holder->foreign[0] != '\0')
        return "is held by a client that is not holdfast";
    return holder->token == token ? NULL : "is held with another token";
}

/* What the nodes made of it. */
static enum hf_status judge(struct rl_poll *p, enum hf_status status, struct hf_error *err)
{
    const char *name = p->claim->name;
    const char *shown = p->store->setup.url.parts.shown;

    if (status == HF_LOST)
        return hf__fail_not_broken(err, name, shown, "is not held any more");
    if (status == HF_OK || status == HF_UNKNOWN || p->revoked == 0)
        return status;
    return hf__fail_lock(err, HF_UNKNOWN, name, shown,
                         ": only %u of %u nodes have broken it, and a majority is needed; break it "
                         "again",
                         p->revoked, p->store->count);
}

enum hf_status rl_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err)
{
    struct rl_store *store = (struct rl_store *)base;
    struct rl_holder holder;
    struct hf_claim claim = {
        .name = revoke->name, .token = revoke->token, .deadline_ns = revoke->deadline_ns};
    struct rl_poll p = {
        .store = store, .claim = &claim, .script = RD_SCRIPT_REDLOCK_REVOKE, .revoke = revoke};
    enum hf_status status = rd_claim_keys(&store->setup.url, revoke->name, &p.keys, err);
    const char *why;

    if (status == HF_OK)
        status = rl_find_holder(store, revoke->name, revoke->deadline_ns, &holder, err);
    if (status != HF_OK)
        return status;
    why = why_not(&holder, revoke->token);
    claim.owner = revoke->token == 0 ? holder.foreign : holder.owner;
    status = why != NULL ? hf__fail_not_broken(err, revoke->name, store->setup.url.parts.shown, why)
                         : judge(&p, rl_poll_all(&p, err), err);
    if (status == HF_OK) {
        memcpy(out->label, holder.label, sizeof out->label);
        out->remaining_ms = p.remaining_ms[0];
        out->detached = holder.detached;
        out->foreign = revoke->token == 0;
        out->again = holder.broken;
    }
    explicit_bzero(&holder, sizeof holder);
    return status;
}
