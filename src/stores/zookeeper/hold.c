/* hold.c - renewing and releasing. */
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>

#define MOMENT_MS  500 /* how long a hold of another process is promised to last */
#define WRITES_MAX 3   /* how often a child may change under us before we give up */

static struct hf__patience patience_of(const struct hf_claim *claim)
{
    return (struct hf__patience){.deadline_ns = claim->deadline_ns, .cancel_fd = -1};
}

/* A hold that is not in our table: another process's, or none. */
static enum hf_status inspect(struct zk_store *store, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err)
{
    struct hf__patience patience = patience_of(claim);
    struct zk_session *session;
    struct zk_entry first;
    struct Stat stat = {0};
    char data[ZK_DATA_MAX];
    struct zk_said said;
    enum hf_status status = zk_session_get(store, 0, claim->name, &patience, &session, err);
    int64_t sent_at_ns = store->base.host->now_ns();
    uint32_t moment_ms;
    int64_t ignored;
    int rc;

    if (status != HF_OK)
        return status;
    rc = zk_read_first(session, claim->name, &patience, &first, data, &stat);
    zk_session_unref(session);
    if (rc != ZOK && rc != ZNONODE) /* a look that found no answer has changed nothing */
        return zk_verdict(store, claim->name, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
    if (rc == ZNONODE || !zk_entry_is(&first, claim->owner) ||
        (uint64_t)stat.czxid != claim->token || !zk_data_parse(data, &said))
        return zk_lost(store, claim->name,
                       first.name[0] != '\0' ? HF_LOSS_TAKEN : HF_LOSS_FORGOTTEN, grant, err);
    if (zk_holds_judge(store, claim->name, claim->owner, &stat, &ignored) == ZK_OVER)
        return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    if (claim->ttl_ms != 0)
        return hf__fail_lock(err, HF_UNSUPPORTED, claim->name, store->url.common.shown,
                             ": only the process that took it can renew it");
    /* It is held, and only its own process knows for how long. So the promise is for a moment, and
     * what clocks may differ by is on top of it, because that is taken off again. */
    moment_ms = MOMENT_MS + said.ttl_ms / 100;
    grant->sent_at_ns = sent_at_ns;
    grant->ttl_ms = said.ttl_ms;
    grant->remaining_ms = moment_ms < said.ttl_ms / 4 ? moment_ms : said.ttl_ms / 4;
    if (said.revoked)
        (void)zk_broken(store, claim->name, &said.revocation, grant, NULL);
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

/* One renewal on its way. */
struct renewal {
    struct zk_hold hold;
    struct zk_request *request;
    int64_t sent_at_ns;
    bool revoked;                    /* as its child says */
    struct hf_revocation revocation; /* if it is */
};

/* Whether it need not be sent at all: HF_OK, or what is wrong with it. */
static enum hf_status check(struct zk_store *store, const struct hf_claim *claim,
                            const struct zk_hold *hold, struct hf_grant *grant,
                            struct hf_error *err)
{
    char ttl[16];

    if (store->base.host->now_ns() >= hold->end_ns || zk_session_dead(hold->session)) {
        end_hold(store, claim);
        return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    }
    if (claim->ttl_ms != 0 && claim->ttl_ms != hold->claimed_ms && claim->ttl_ms != hold->lease_ms)
        return hf__fail_lock(err, HF_UNSUPPORTED, claim->name, store->url.common.shown,
                             ": a ZooKeeper session keeps its timeout, so the ttl stays %s",
                             hf__format_duration(ttl, sizeof ttl, hold->lease_ms));
    return HF_OK;
}

/* A write that changes nothing: only a quorum can answer it, and only while the child is there, as
 * we wrote it last: a mark that was set since must stay. A look is a read. Returns a ZooKeeper
 * code. */
static int send_own(struct renewal *r, bool write)
{
    zhandle_t *handle = r->hold.session->handle;

    zk_request_unref(r->request);
    r->request = zk_request_new();
    if (r->request == NULL)
        return ZK_NOMEM;
    r->sent_at_ns = r->hold.session->store->base.host->now_ns();
    return write ? zk_send_set(handle, r->request, r->hold.path, r->hold.data, r->hold.version)
                 : zk_send_get(handle, r->request, r->hold.path, NULL, NULL);
}

static int hear_own(struct renewal *r, const struct hf__patience *patience)
{
    int rc = zk_request_wait(r->request, patience);
    const struct Stat *stat = &r->request->stat;

    if (rc == ZOK && (stat->ephemeralOwner != zk_session_id(r->hold.session) ||
                      (uint64_t)stat->czxid != r->hold.token))
        rc = ZNONODE;
    if (rc == ZOK)
        r->hold.version = stat->version;
    return rc;
}

/* The same for a read. */
static int hear_look(struct renewal *r, const struct hf__patience *patience)
{
    int rc = hear_own(r, patience);
    struct zk_said said;

    if (rc == ZOK && r->request->text != NULL && zk_data_parse(r->request->text, &said)) {
        r->revoked = said.revoked;
        r->revocation = said.revocation;
    }
    return rc;
}

/* Hears of a renewal. If the child was written to since, then by a renewal of ours that was not
 * answered, or by whoever broke the hold: reading tells. */
static int hear_write(struct renewal *r, const struct hf__patience *patience)
{
    int rc = hear_own(r, patience);

    for (int tries = 0; tries < WRITES_MAX && rc == ZBADVERSION; tries++) {
        rc = send_own(r, false);
        if (rc == ZOK)
            rc = hear_look(r, patience);
        if (rc != ZOK || r->revoked)
            return rc;
        rc = send_own(r, true);
        if (rc == ZOK)
            rc = hear_own(r, patience);
    }
    return rc;
}

/* Somebody deleted the child. */
static enum hf_status ended(const struct zk_store *store, const struct zk_hold *hold,
                            struct hf_grant *grant, struct hf_error *err)
{
    struct hf_revocation revocation;

    zk_notice_take(hold, &revocation);
    return zk_broken(store, hold->name, &revocation, grant, err);
}

/* What the code rc of a request about the own child means for the hold. */
static enum hf_status conclude(struct zk_store *store, const struct hf_claim *claim,
                               const struct renewal *r, int rc, struct hf_grant *grant,
                               struct hf_error *err)
{
    uint32_t lease_ms = r->hold.lease_ms;
    uint32_t most_ms = zk_session_lease_ms(r->hold.session);

    if (rc == ZNONODE) {
        end_hold(store, claim);
        return ended(store, &r->hold, grant, err);
    }
    if (zk_session_dead(r->hold.session)) {
        end_hold(store, claim);
        return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    }
    if (claim->ttl_ms == 0 && rc == ZK_GIVEN_UP)
        rc = ZCONNECTIONLOSS; /* a look that found no answer has changed nothing */
    else if (claim->ttl_ms != 0 && (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT))
        rc = ZK_GIVEN_UP; /* it had been sent */
    if (rc != ZOK)
        return zk_verdict(store, claim->name, rc, err);
    if (r->revoked && claim->ttl_ms != 0) /* and there it stays, until its release or its end */
        return zk_broken(store, claim->name, &r->revocation, grant, err);
    if (most_ms < lease_ms) /* another server may have made the session shorter meanwhile */
        lease_ms = most_ms;
    grant->sent_at_ns = r->sent_at_ns;
    grant->ttl_ms = lease_ms;
    grant->remaining_ms = (r->hold.end_ns - r->sent_at_ns) / HF__NS_PER_MS;
    if (r->revoked)
        (void)zk_broken(store, claim->name, &r->revocation, grant, NULL);
    if (claim->ttl_ms == 0 ? r->sent_at_ns < r->hold.end_ns
                           : zk_holds_extend(store, &r->hold, r->sent_at_ns, lease_ms))
        return hf__ok(err);
    end_hold(store, claim);
    return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
}

static enum hf_status renew_own(struct zk_store *store, const struct hf_claim *claim,
                                struct renewal *r, struct hf_grant *grant, struct hf_error *err)
{
    struct hf__patience patience = patience_of(claim);
    enum hf_status status = zk_session_connected(r->hold.session, claim->name, &patience, err);
    int rc;

    if (status != HF_OK && status != HF_LOST)
        return status;
    rc = status == HF_LOST ? ZSESSIONEXPIRED : send_own(r, claim->ttl_ms != 0);
    if (rc == ZOK)
        rc = claim->ttl_ms != 0 ? hear_write(r, &patience) : hear_look(r, &patience);
    zk_request_unref(r->request);
    return conclude(store, claim, r, rc, grant, err);
}

enum hf_status zk_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    struct renewal r = {0};
    enum hf_status status;

    if (!zk_holds_find(store, claim, &r.hold))
        return inspect(store, claim, grant, err);
    status = check(store, claim, &r.hold, grant, err);
    if (status == HF_OK)
        status = renew_own(store, claim, &r, grant, err);
    zk_session_unref(r.hold.session);
    return status;
}

/* Sends the renewal without waiting for anything, not even a connection: a session that has none
 * would hold up the renewals of the others, and this one is tried again soon. */
static enum hf_status begin(struct zk_store *store, const struct hf_claim *claim, struct renewal *r,
                            struct hf_grant *grant, struct hf_error *err)
{
    enum hf_status status;
    int rc = ZCONNECTIONLOSS;

    if (!zk_holds_find(store, claim, &r->hold)) /* its time was over */
        return zk_lost(store, claim->name, HF_LOSS_EXPIRED, grant, err);
    status = check(store, claim, &r->hold, grant, err);
    if (status == HF_OK && zoo_state(r->hold.session->handle) == ZOO_CONNECTED_STATE)
        rc = send_own(r, true);
    if (status == HF_OK && rc != ZOK)
        status = zk_verdict(store, claim->name, rc, err);
    if (status != HF_OK)
        zk_session_unref(r->hold.session);
    return status;
}

enum hf_status zk_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    struct renewal *renewals = calloc(count, sizeof *renewals);
    enum hf_status first = HF_OK; /* that is not HF_OK: err is about it */

    for (size_t i = 0; i < count; i++) {
        struct hf_error *about = first == HF_OK ? err : NULL;

        results[i] = renewals != NULL ? begin(store, &claims[i], &renewals[i], &grants[i], about)
                                      : hf__nomem(about);
        first = first == HF_OK ? results[i] : first;
    }
    for (size_t i = 0; i < count; i++) {
        struct hf__patience patience = patience_of(&claims[i]);

        if (results[i] == HF_OK) {
            int rc = hear_write(&renewals[i], &patience);

            results[i] = conclude(store, &claims[i], &renewals[i], rc, &grants[i],
                                  first == HF_OK ? err : NULL);
            zk_session_unref(renewals[i].hold.session);
            first = first == HF_OK ? results[i] : first;
        }
        if (renewals != NULL)
            zk_request_unref(renewals[i].request);
    }
    if (renewals != NULL)
        explicit_bzero(renewals, count * sizeof *renewals);
    free(renewals);
    return first;
}

/* Whether the child of a delete that was not answered is still there: then it was not executed, and
 * will not be, because the leader refuses what the old connection still had in its pipes. */
static int read_own(const struct zk_hold *hold, const struct hf__patience *patience)
{
    struct zk_queue queue;
    int rc = zk_read_queue(hold->session, hold->name, true, patience, &queue);

    if (rc == ZOK && zk_queue_find(&queue, hold->owner) == queue.count)
        rc = ZNONODE;
    zk_queue_release(&queue);
    return rc;
}

/* The path names the owner, and no path comes twice, so deleting it compares as well. */
static int delete_own(const struct zk_hold *hold, const struct hf__patience *patience)
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
            rc = read_own(hold, patience);
        if (rc == ZNONODE)
            return ZOK; /* by the request that was not answered */
        if (rc == ZOK)
            rc = zk_delete(hold->session, hold->path, -1, patience);
        if (rc != ZCONNECTIONLOSS && rc != ZOPERATIONTIMEOUT && rc != ZSESSIONMOVED)
            return rc;
        asked = true;
    }
}

enum hf_status zk_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    struct hf__patience patience = patience_of(claim);
    enum hf_status status;
    struct zk_hold hold;
    bool late;
    int rc;

    if (!zk_holds_take(store, claim, &hold))
        return zk_lost(store, claim->name, HF_LOSS_FORGOTTEN, NULL, err);
    late = base->host->now_ns() >= hold.end_ns;
    rc = delete_own(&hold, &patience);
    if (rc == ZOK)
        zk_last_release_note(store, &hold);
    if (rc == ZOK && !late)
        status = hf__ok(err);
    else if (rc == ZNONODE)
        status = ended(store, &hold, NULL, err);
    else if (late || zk_session_dead(hold.session))
        status = zk_lost(store, claim->name, HF_LOSS_EXPIRED, NULL, err);
    else
        status = zk_verdict(store, claim->name, rc, err);
    if (rc != ZOK && rc != ZNONODE && !zk_session_dead(hold.session))
        zk_orphan(hold.session, hold.name, hold.owner);
    zk_session_unref(hold.session);
    explicit_bzero(&hold, sizeof hold);
    return status;
}
