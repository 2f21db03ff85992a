/* hold.c - renewing and releasing. */
#include "stores/zookeeper/zookeeper.h"

#include <string.h>

static struct zk_patience patience_of(const struct hf_claim *claim)
{
    return (struct zk_patience){.deadline_ns = claim->deadline_ns, .cancel_fd = -1};
}

/* Reads the child of the claim, if it is the first in line: ZOK; ZNONODE: it is not. *stood tells
 * whether there is anybody in line. */
static int read_first(struct zk_session *session, const struct hf_claim *claim, char *data,
                      struct Stat *stat, bool *stood)
{
    struct zk_patience patience = patience_of(claim);
    struct zk_line line;
    int rc = zk_read_line(session, claim->name, true, &patience, &line);

    *stood = line.count > 0;
    if (rc == ZOK && (line.count == 0 || zk_line_find(&line, claim->owner) != 0))
        rc = ZNONODE;
    if (rc == ZOK)
        rc = zk_read_child(session, claim->name, line.at[0].name, &patience, data, stat);
    zk_line_release(&line);
    return rc;
}

/* A hold that is not in our table: another process's, or none. */
static enum hf_status look_at_line(struct zk_store *store, const struct hf_claim *claim,
                                   struct hf_grant *grant, struct hf_error *err)
{
    struct zk_patience patience = patience_of(claim);
    struct zk_session *session;
    struct Stat stat = {0};
    char data[ZK_DATA_MAX];
    struct zk_said said;
    enum hf_status status = zk_session_get(store, 0, claim->name, &patience, &session, err);
    int64_t sent_at_ns = store->base.host->now_ns();
    int64_t ignored;
    bool stood;
    int rc;

    if (status != HF_OK)
        return status;
    rc = read_first(session, claim, data, &stat, &stood);
    zk_session_unref(session);
    if (rc != ZOK && rc != ZNONODE) /* a look that found no answer has changed nothing */
        return zk_verdict(store, claim->name, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
    if (rc == ZNONODE || (uint64_t)stat.czxid != claim->token || !zk_data_parse(data, &said))
        return zk_lost(store, claim->name, stood ? HF_LOSS_TAKEN : HF_LOSS_FORGOTTEN, grant, err);
    if (zk_holds_judge(store, claim->name, claim->owner, &stat, &ignored) == ZK_OVER)
        return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    if (claim->ttl_ms != 0)
        return hf__fail(err, HF_UNSUPPORTED,
                        "lock \"%.60s\" in store %.80s: only the process that took it can renew it",
                        claim->name, store->url.shown);
    /* Its session knows how long it lasts, and does not tell: a part of it is sure enough for a
     * look, and nothing to write by. */
    grant->sent_at_ns = sent_at_ns;
    grant->ttl_ms = said.ttl_ms;
    grant->remaining_ms = said.ttl_ms / 4;
    return hf__ok(err);
}

/* The hold is over: out of the table, and its child with it. */
static void end_hold(struct zk_store *store, const struct hf_claim *claim)
{
    struct zk_hold hold;

    if (!zk_holds_take(store, claim, &hold))
        return;
    if (!zk_session_dead(hold.session))
        zk_orphan(hold.session, hold.name, hold.owner);
    zk_session_unref(hold.session);
}

/* A write that changes nothing: only a quorum can answer it, and only while the child is there. */
static int write_own(const struct zk_hold *hold, bool write, const struct zk_patience *patience,
                     int64_t *sent_at_ns)
{
    struct zk_request *request = zk_request_new();
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    *sent_at_ns = hold->session->store->base.host->now_ns();
    rc = write ? zk_send_set(hold->session->handle, request, hold->path, hold->data)
               : zk_send_get(hold->session->handle, request, hold->path, NULL, NULL);
    if (rc == ZOK)
        rc = zk_request_wait(request, patience);
    if (rc == ZOK && (request->stat.ephemeralOwner != zk_session_id(hold->session) ||
                      (uint64_t)request->stat.czxid != hold->token))
        rc = ZNONODE;
    zk_request_unref(request);
    return rc;
}

static enum hf_status renew_own(struct zk_store *store, const struct hf_claim *claim,
                                const struct zk_hold *hold, struct hf_grant *grant,
                                struct hf_error *err)
{
    struct zk_patience patience = patience_of(claim);
    uint32_t lease_ms = hold->lease_ms;
    int64_t sent_at_ns;
    enum hf_status status = zk_session_connected(hold->session, claim->name, &patience, err);
    int rc;

    if (status == HF_LOST) {
        end_hold(store, claim);
        return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    }
    if (status != HF_OK)
        return status;
    rc = write_own(hold, claim->ttl_ms != 0, &patience, &sent_at_ns);
    if (rc == ZNONODE || zk_session_dead(hold->session)) {
        enum hf_loss loss = rc == ZNONODE ? HF_LOSS_BROKEN : HF_LOSS_EXPIRED;

        end_hold(store, claim);
        return zk_lost(store, claim->name, loss, grant, err);
    }
    if (claim->ttl_ms == 0 && rc == ZK_GIVEN_UP)
        rc = ZCONNECTIONLOSS; /* a look that found no answer has changed nothing */
    else if (claim->ttl_ms != 0 && (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT))
        rc = ZK_GIVEN_UP; /* it had been sent */
    if (rc != ZOK)
        return zk_verdict(store, claim->name, rc, err);
    grant->sent_at_ns = sent_at_ns;
    /* Another server may have negotiated a shorter session when the connection was lost. */
    if (zk_session_lease_ms(hold->session) < lease_ms)
        lease_ms = zk_session_lease_ms(hold->session);
    grant->ttl_ms = lease_ms;
    grant->remaining_ms = (hold->end_ns - sent_at_ns) / HF__NS_PER_MS;
    if (claim->ttl_ms == 0 ? sent_at_ns < hold->end_ns
                           : zk_holds_extend(store, hold, sent_at_ns, lease_ms))
        return hf__ok(err);
    end_hold(store, claim);
    return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
}

enum hf_status zk_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    struct zk_hold hold;
    enum hf_status status;

    if (!zk_holds_find(store, claim, &hold))
        return look_at_line(store, claim, grant, err);
    if (base->host->now_ns() >= hold.end_ns) {
        end_hold(store, claim);
        status = zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    } else if (claim->ttl_ms != 0 && claim->ttl_ms != hold.claimed_ms &&
               claim->ttl_ms != hold.lease_ms) {
        status =
            hf__fail(err, HF_UNSUPPORTED,
                     "lock \"%.60s\" in store %.80s: a ZooKeeper session keeps its timeout, so the "
                     "ttl stays %u ms",
                     claim->name, store->url.shown, hold.lease_ms);
    } else {
        status = renew_own(store, claim, &hold, grant, err);
    }
    zk_session_unref(hold.session);
    return status;
}

/* Whether the child of a delete that was not answered is still there: then it was not executed, and
 * will not be, because the leader refuses what the old connection still had in its pipes. */
static int look_for_own(const struct zk_hold *hold, const struct zk_patience *patience)
{
    struct zk_line line;
    int rc = zk_read_line(hold->session, hold->name, true, patience, &line);

    if (rc == ZOK && zk_line_find(&line, hold->owner) == line.count)
        rc = ZNONODE;
    zk_line_release(&line);
    return rc;
}

/* The path names the owner, and no path comes twice: deleting it is comparing too. */
static int delete_own(const struct zk_hold *hold, const struct zk_patience *patience)
{
    bool asked = false;

    for (;;) {
        enum hf_status status = zk_session_connected(hold->session, NULL, patience, NULL);
        int rc = ZOK;

        if (status == HF_LOST)
            return ZSESSIONEXPIRED;
        if (status != HF_OK)
            return asked ? ZK_GIVEN_UP : ZCONNECTIONLOSS;
        if (asked)
            rc = look_for_own(hold, patience);
        if (rc == ZNONODE)
            return ZOK; /* by the request that was not answered */
        if (rc == ZOK)
            rc = zk_delete(hold->session, hold->path, patience);
        if (rc != ZCONNECTIONLOSS && rc != ZOPERATIONTIMEOUT && rc != ZSESSIONMOVED)
            return rc;
        asked = true;
    }
}

enum hf_status zk_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    struct zk_patience patience = patience_of(claim);
    enum hf_status status;
    struct zk_hold hold;
    bool late;
    int rc;

    if (!zk_holds_take(store, claim, &hold))
        return zk_lost(store, claim->name, HF_LOSS_FORGOTTEN, NULL, err);
    late = base->host->now_ns() >= hold.end_ns;
    rc = delete_own(&hold, &patience);
    if (rc == ZOK)
        zk_remember(store, &hold);
    if (rc == ZOK && !late)
        status = hf__ok(err);
    else if (late || rc == ZNONODE || zk_session_dead(hold.session))
        status = zk_lost(store, claim->name, rc == ZNONODE ? HF_LOSS_BROKEN : HF_LOSS_EXPIRED, NULL,
                         err);
    else
        status = zk_verdict(store, claim->name, rc, err);
    if (rc != ZOK && rc != ZNONODE && !zk_session_dead(hold.session))
        zk_orphan(hold.session, hold.name, hold.owner);
    zk_session_unref(hold.session);
    explicit_bzero(&hold, sizeof hold);
    return status;
}
