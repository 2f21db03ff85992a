/* break.c - breaking a hold at a majority of the nodes.
 *
 * The first question is who has the lock: some nodes hold the owner's key without knowing its
 * token, and they too have to refuse its renewal. Then every node is told, compares by itself, and
 * only those that answer *revoked* count. With a majority of them no renewal finds a majority any
 * more. With fewer it may, so that is unknown: whoever asks again breaks the rest. */
#include "base/base.h"
#include "stores/redis/redlock/redlock.h"

#include <string.h>

/* Whether the hold that is meant is the present one; else *why not. */
static bool is_meant(const struct rl_holder *holder, uint64_t token, enum hf__not_broken *why)
{
    bool foreign = holder->label[0] == '\0';

    if (holder->owner[0] == '\0') {
        *why = HF__NOT_HELD_BY_MAJORITY;
        return false;
    }
    *why = token != 0 && foreign && holder->foreign[0] != '\0' ? HF__HELD_BY_FOREIGN
                                                               : HF__HELD_WITH_OTHER_TOKEN;
    if (token == 0)
        return foreign;
    return *why != HF__HELD_BY_FOREIGN && holder->token == token;
}

/* What the nodes made of it. */
static enum hf_status judge(struct rl_poll *p, enum hf_status status, struct hf_error *err)
{
    const char *name = p->claim->name;
    const char *shown = p->store->setup.url.parts.shown;

    if (status == HF_LOST)
        return hf__fail_not_broken(err, name, shown, p->revoke->token, HF__NOT_HELD_ANY_MORE);
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
    enum hf__not_broken why;

    if (status == HF_OK)
        status = rl_find_holder(store, revoke->name, revoke->deadline_ns, &holder, err);
    if (status != HF_OK)
        return status;
    claim.owner = revoke->token == 0 ? holder.foreign : holder.owner;
    if (is_meant(&holder, revoke->token, &why))
        status = judge(&p, rl_poll_all(&p, err), err);
    else
        status = hf__fail_not_broken(err, revoke->name, store->setup.url.parts.shown, revoke->token,
                                     why);
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
