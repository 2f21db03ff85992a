/* break.c - breaking a hold.
 *
 * The first child is read, and if it is the hold that is meant, its data is written again with the
 * mark, at the version that was read. A renewal in between makes that fail: it is read again, and
 * after some such races the mark is written over whatever version is there. The holder's next
 * renewal expects the version before the mark, fails, reads, and is told.
 *
 * A hold that is ended at once leaves a notice, so that its holder can tell by whom: notice.c. */
#include "stores/zookeeper/attempt.h"

#include <string.h>

#define COMPARED_TRIES 4 /* races against renewals, before the mark wins for certain */

/* One break. */
struct work {
    struct zk_store *store;
    const struct hf_revoke *revoke;
    struct zk_session *session;
    struct hf__patience patience;
    struct zk_entry first;
    struct Stat stat;
    struct zk_said said; /* what the first child says; all zero if it is not holdfast's */
    struct hf_revocation revocation;
    int tries;
    bool caught_up; /* our server has, with those that granted before we asked */
    bool sent;      /* and no answer says that it was not executed */
    bool done;
};

static enum hf_status not_broken(const struct work *w, enum hf__not_broken why,
                                 struct hf_error *err)
{
    return hf__fail_not_broken(err, w->revoke->name, w->store->url.common.shown, w->revoke->token,
                               why);
}

static bool is_meant(const struct work *w)
{
    if (w->first.name[0] == '\0' || w->first.foreign != (w->revoke->token == 0))
        return false;
    return w->first.foreign || (uint64_t)w->stat.czxid == w->revoke->token;
}

/* HF_OK: the first child is the hold that is meant. */
static enum hf_status check(const struct work *w, struct hf_error *err)
{
    const struct hf_revoke *revoke = w->revoke;
    bool there = w->first.name[0] != '\0';
    bool meant = is_meant(w);

    if (!meant && w->sent)
        return hf__fail_lock(err, HF_UNKNOWN, revoke->name, w->store->url.common.shown,
                             ": the connection was lost; the hold is over, whoever ended it");
    if (!there)
        return not_broken(w, HF__NOT_HELD, err);
    if (!meant && w->first.foreign)
        return not_broken(w, HF__HELD_BY_FOREIGN, err);
    if (!meant)
        return not_broken(w, HF__HELD_WITH_OTHER_TOKEN, err);
    return HF_OK;
}

static bool is_ours(const struct work *w)
{
    const struct hf_revocation *there = &w->said.revocation;

    return w->sent && there->at_ms == w->revocation.at_ms &&
           strcmp(there->by, w->revocation.by) == 0 &&
           strcmp(there->reason, w->revocation.reason) == 0;
}

static int read_first(struct work *w)
{
    char data[ZK_DATA_MAX];
    int rc = zk_read_first(w->session, w->revoke->name, &w->patience, &w->first, data, &w->stat);

    memset(&w->said, 0, sizeof w->said);
    if (rc == ZOK && !w->first.foreign && !zk_data_parse(data, &w->said))
        hf__copy_printable(w->said.label, sizeof w->said.label, data);
    return rc == ZNONODE && w->first.name[0] == '\0' ? ZOK : rc;
}

/* The same. Our server may follow the one that granted: before it says that the hold is not there
 * it catches up. */
static int read_surely(struct work *w)
{
    int rc = read_first(w);

    if (rc != ZOK || is_meant(w) || w->caught_up)
        return rc;
    rc = zk_catch_up(w->session, &w->patience);
    if (rc != ZOK)
        return rc;
    w->caught_up = true;
    return read_first(w);
}

/* The version that is to be marked. A holder that renews all the time would win every race, since
 * its write is one request and ours are two; so in the end its node is marked, whatever it wrote
 * meanwhile: the node is the hold's alone, and its next renewal finds another version and reads. */
static int expected(const struct work *w)
{
    return w->tries < COMPARED_TRIES ? w->stat.version : -1;
}

/* Marks or ends what was read. */
static int carry_out(struct work *w)
{
    char path[ZK_PATH_MAX + ZK_CHILD_MAX];
    char data[ZK_DATA_MAX];
    struct zk_said marked = w->said;
    struct zk_request *request;
    int rc = ZK_NOMEM;

    if (!zk_child_path(w->store, w->revoke->name, w->first.name, path))
        return ZBADARGUMENTS;
    request = zk_request_new();
    if (request == NULL)
        return rc;
    marked.revocation = w->revocation;
    zk_data_revoke(data, &marked);
    if (w->revoke->now && !w->first.foreign)
        zk_notice_leave(w->session, w->revoke->name, (uint64_t)w->stat.czxid, data, &w->patience);
    /* No path of ours comes twice, so deleting it compares as well. Nobody knows what others do
     * with theirs. */
    rc = w->revoke->now ? zk_send_delete(w->session->handle, request, path,
                                         w->first.foreign ? w->stat.version : -1)
                        : zk_send_set(w->session->handle, request, path, data, expected(w));
    if (rc == ZOK) {
        w->sent = true;
        rc = zk_request_wait(request, &w->patience);
    }
    zk_request_unref(request);
    if (rc == ZNONODE || rc == ZBADVERSION || rc == ZNOAUTH)
        w->sent = false;
    w->done = rc == ZOK;
    return rc == ZNONODE || rc == ZBADVERSION ? ZOK : rc;
}

/* One reading, and what follows from it. HF_OK with w->done, or to try again. */
static enum hf_status try(struct work *w, struct hf_broken *out, struct hf_error *err)
{
    enum hf_status status = zk_session_connected(w->session, w->revoke->name, &w->patience, err);
    int rc;

    if (status != HF_OK && w->sent)
        return zk_verdict(w->store, w->revoke->name, ZK_GIVEN_UP, err);
    if (status != HF_OK)
        return status == HF_LOST ? zk_verdict(w->store, w->revoke->name, ZSESSIONEXPIRED, err)
                                 : status;
    rc = read_surely(w);
    if (rc == ZOK && (status = check(w, err)) != HF_OK)
        return status;
    if (rc == ZOK) {
        out->again = w->said.revoked && !is_ours(w);
        w->done = w->said.revoked && !w->revoke->now;
        if (!w->done)
            rc = carry_out(w);
    }
    if (rc == ZOK || rc == ZNONODE || zk_connection_lost(rc))
        return HF_OK;
    /* A reading that found no answer has changed nothing. */
    return zk_verdict(w->store, w->revoke->name,
                      rc == ZK_GIVEN_UP && !w->sent ? ZCONNECTIONLOSS : rc, err);
}

/* Only its own process knows how long the hold lasts, and the server that hears of it. */
static void describe(const struct work *w, struct hf_broken *out)
{
    int64_t remaining_ms = -1;

    hf__copy_printable(out->label, sizeof out->label, w->said.label);
    out->foreign = w->first.foreign;
    (void)zk_holds_judge(w->store, w->revoke->name, w->first.name, &w->stat, &remaining_ms);
    out->remaining_ms = w->revoke->now ? 0 : remaining_ms;
}

enum hf_status zk_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err)
{
    struct work w = {.store = (struct zk_store *)base,
                     .revoke = revoke,
                     .patience = {.deadline_ns = revoke->deadline_ns, .cancel_fd = -1},
                     .revocation = {.at_ms = base->host->wall_us() / 1000}};
    enum hf_status status = zk_session_get(w.store, 0, revoke->name, &w.patience, &w.session, err);

    if (status != HF_OK)
        return status;
    hf__copy_printable(w.revocation.by, sizeof w.revocation.by, revoke->by);
    hf__copy_printable(w.revocation.reason, sizeof w.revocation.reason, revoke->reason);
    for (; w.tries < ZK_TRIES_MAX && status == HF_OK && !w.done; w.tries++)
        status = try(&w, out, err);
    zk_session_unref(w.session);
    if (status != HF_OK)
        return status;
    if (!w.done)
        return hf__fail_lock(err, w.sent ? HF_UNKNOWN : HF_UNREACHABLE, revoke->name,
                             w.store->url.common.shown, ": its node keeps changing; try again");
    describe(&w, out);
    return hf__ok(err);
}
