/* wait.c - standing in line for a lock.
 *
 * A waiter puts its key behind the others, on a short lease that it keeps alive itself, and watches
 * the key right in front of it. When that one is gone and nobody else is before it, it confirms: a
 * transaction that puts its key on the lease of its ttl, if it is still there and the first. Only
 * that makes it the holder. Every few seconds it looks for itself, in case a watch says nothing. */
#include "base/base.h"
#include "stores/etcd/etcd.h"
#include "stores/etcd/watch.h"

#include <string.h>

#define KEEP_NS  (1200 * HF__NS_PER_MS) /* how often the place in line is kept alive      */
#define LOOK_NS  (5 * HF__NS_PER_S)     /* how often the line is read, whatever one hears */
#define PAUSE_NS (200 * HF__NS_PER_MS)  /* after something failed                         */

/* A place in line. */
struct place {
    bool taken;
    bool perhaps;        /* a key of ours may come, or have come, that we do not know of */
    struct ec_kv own;    /* key and revisions */
    struct ec_kv before; /* whom we wait for; key_len 0: not known */
    bool first;          /* nobody is before us */
    int64_t lease;
    int64_t confirming;     /* a lease that a confirmation of unknown fate names */
    uint64_t seen;          /* the revision at which `before` was there */
    int64_t look_ns;        /* when to look next */
    enum hf_status trouble; /* of the last step */
    struct ec_watch watch;
};

static enum hf_status stand(struct ec_try *t, struct place *p, struct hf_grant *grant,
                            struct hf_error *err);
static enum hf_status leave(struct ec_try *t, struct place *p, enum hf_status why,
                            struct hf_error *err);

/* For one request of the many that a wait takes. */
static struct ec_patience request_patience(const struct ec_try *t)
{
    return (struct ec_patience){.deadline_ns =
                                    hf__time_add(t->store->base.host->now_ns(), t->budget_ns),
                                .cancel_fd = t->claim->cancel_fd};
}

/* Worth going on: the servers may come back. */
static bool passing(enum hf_status status)
{
    return status == HF_UNREACHABLE || status == HF_UNKNOWN;
}

/* A moment's rest, so that trouble is no busy loop. */
static void pause_for(const struct ec_try *t)
{
    struct pollfd cancel = {.fd = t->claim->cancel_fd, .events = POLLIN};
    int64_t until_ns = t->store->base.host->now_ns() + PAUSE_NS;

    (void)hf__poll_until(&cancel, 1,
                         until_ns < t->claim->wait_until_ns ? until_ns : t->claim->wait_until_ns);
}

enum hf_status ec_wait(struct ec_try *t, struct hf_grant *grant, struct hf_error *err)
{
    struct place p = {0};
    enum hf_status status = HF_OK;

    ec_keys_use(&t->keys, true);
    while (status == HF_OK && grant->token == 0) {
        int64_t now_ns = t->store->base.host->now_ns();

        if (ec_cancelled(&t->patience))
            status = HF_CANCELLED;
        else if (now_ns >= t->claim->wait_until_ns)
            status = p.trouble == HF_OK ? HF_BUSY : HF_UNREACHABLE;
        else
            status = stand(t, &p, grant, err);
    }
    if (p.watch.http != NULL)
        ec_watch_close(t->store, &p.watch);
    return status == HF_OK ? HF_OK : leave(t, &p, status, err);
}

/* What the line looks like now. */
static void note_line(struct ec_try *t, struct place *p, const struct ec_look *look)
{
    bool same = look->before_there && p->before.key_len == look->before.key_len &&
                memcmp(p->before.key, look->before.key, look->before.key_len) == 0;

    p->look_ns = t->store->base.host->now_ns() + LOOK_NS;
    if (look->head_there)
        ec_note_holder(t, &look->head);
    if (!look->own_there || look->own.create_revision != p->own.create_revision) {
        p->taken = false; /* our lease has ended: to the end of the line */
        return;
    }
    p->own = look->own;
    p->lease = look->own.lease;
    p->first = !look->before_there;
    if (!same && p->watch.http != NULL)
        ec_watch_close(t->store, &p->watch);
    if (!same || p->watch.http == NULL)
        p->seen = look->revision;
    p->before = look->before;
}

static enum hf_status look_at_line(struct ec_try *t, struct place *p, struct hf_error *err)
{
    struct ec_patience patience = request_patience(t);
    struct ec_look look;
    enum hf_status status =
        ec_look(t->store, t->claim->name, &t->keys, p->own.create_revision, &patience, &look, err);

    if (status == HF_OK)
        note_line(t, p, &look);
    return status;
}

/* Our key was put, or so it seems: what is its revision? */
static enum hf_status find_place(struct ec_try *t, struct place *p, struct hf_error *err)
{
    struct ec_patience patience = {.deadline_ns = t->store->base.host->now_ns() + t->budget_ns,
                                   .cancel_fd = -1};
    struct ec_look look;
    enum hf_status status = ec_look(t->store, t->claim->name, &t->keys, 0, &patience, &look, err);

    if (status == HF_OK && look.own_there) {
        p->taken = true;
        p->own = look.own;
        p->lease = look.own.lease;
        return HF_OK;
    }
    ec_lease_retire(t->store, p->lease);
    p->perhaps = true;
    p->own.create_revision = 0;
    return hf__fail(err, HF_UNREACHABLE,
                    "lock \"%.50s\" in store %.70s: etcd did not answer, and the place in line was "
                    "not had",
                    t->claim->name, t->store->url.shown);
}

/* Our place in line is on that lease, which was alive at alive_ns. */
static void note_place(struct ec_try *t, int64_t lease, int64_t alive_ns)
{
    struct ec_hold_news news = {
        .waited = true, .lease = lease, .until_ns = alive_ns + EC_WAIT_TTL_MS * HF__NS_PER_MS};

    ec_hold_note(t->store, &t->spare, t->claim->owner, &news);
}

/* Puts our key at the end of the line. */
static enum hf_status line_up(struct ec_try *t, struct place *p, struct hf_error *err)
{
    struct ec_patience patience = request_patience(t);
    struct ec_range own = ec_keys_own(&t->keys);
    struct ec_text body;
    struct ec_call call = {
        .lock = t->claim->name, .path = "/v3/kv/txn", .body = &body, .patience = patience};
    char value[EC_VALUE_MAX];
    struct ec_lease lease;
    struct ec_answer answer;
    enum ec_verdict verdict;
    bool there;
    enum hf_status status =
        ec_lease_class(t->store, t->claim->name, 0, EC_USE_WAITING, &patience, &lease, err);

    if (status != HF_OK)
        return status;
    ec_value(t->store, t->claim, EC_KIND_WAITING, value);
    ec_txn_begin(&body);
    ec_txn_compare(&body, &own, "CREATE", "EQUAL", 0);
    ec_txn_then(&body);
    ec_txn_put(&body, &own, value, lease.id);
    ec_txn_end(&body);
    memset(&p->own, 0, sizeof p->own);
    p->lease = lease.id;
    p->look_ns = 0;
    status = ec_call(t->store, &call, &answer, &verdict, err);
    if (status == HF_UNKNOWN)
        return find_place(t, p, err);
    if (verdict == EC_NO_LEASE) {
        ec_lease_retire(t->store, lease.id);
        return hf__ok(err);
    }
    if (status != HF_OK)
        return status;
    there = !ec_answer_succeeded(answer.json);
    p->own.create_revision = p->own.mod_revision = ec_answer_revision(answer.json);
    ec_answer_release(&answer);
    if (there) /* after all: a request that was given up has come through */
        return find_place(t, p, err);
    p->taken = true;
    note_place(t, lease.id, lease.sent_at_ns);
    return HF_OK;
}

/* Keeps our place alive, on another lease if ours is not the one in use any more. */
static enum hf_status keep_place(struct ec_try *t, struct place *p, struct hf_error *err)
{
    struct ec_patience patience = request_patience(t);
    char value[EC_VALUE_MAX];
    enum ec_verdict verdict;
    struct ec_lease lease;
    uint64_t mod_revision;
    bool moved = false;
    enum hf_status status;

    /* We are alive, so our key is no reason to let the lease go. */
    note_place(t, p->lease, t->store->base.host->now_ns());
    status = ec_lease_class(t->store, t->claim->name, 0, EC_USE_WAITING, &patience, &lease, err);
    if (status != HF_OK || lease.id == p->lease)
        return status;
    ec_value(t->store, t->claim, EC_KIND_WAITING, value);
    /* From now on it may be on either, and nobody keeps the old one alive. */
    p->lease = lease.id;
    status = ec_move(t->store, t->claim->name, &t->keys, &p->own, false, value, lease.id, &patience,
                     &moved, &mod_revision, &verdict, err);
    p->look_ns = 0;
    if (verdict == EC_NO_LEASE) {
        ec_lease_retire(t->store, lease.id);
        return hf__ok(err);
    }
    if (status != HF_OK || !moved)
        return status; /* the next look tells what became of it */
    p->own.mod_revision = mod_revision;
    return HF_OK;
}

/* We are first: makes us the holder. */
static enum hf_status confirm(struct ec_try *t, struct place *p, struct hf_grant *grant,
                              struct hf_error *err)
{
    const struct hf_claim *claim = t->claim;
    struct ec_patience patience = request_patience(t);
    char value[EC_VALUE_MAX];
    enum ec_verdict verdict;
    struct ec_lease lease;
    uint64_t mod_revision;
    bool moved = false;
    enum hf_status status;

    if (ec_is_kept(claim))
        status = ec_lease_class(t->store, claim->name, claim->ttl_ms, EC_USE_ATTEMPT, &patience,
                                &lease, err);
    else
        status = ec_lease_private(t->store, claim->name, ec_lease_id(claim->owner), claim->ttl_ms,
                                  &patience, &lease, err);
    if (status != HF_OK)
        return status;
    /* No sooner than we ask: what was promised to the one before us is over by then. */
    ec_value(t->store, claim, ec_kind(claim), value);
    status = ec_move(t->store, claim->name, &t->keys, &p->own, true, value, lease.id, &patience,
                     &moved, &mod_revision, &verdict, err);
    if (verdict == EC_NO_LEASE) {
        ec_lease_retire(t->store, lease.id);
        return hf__ok(err);
    }
    if (status == HF_UNKNOWN) {
        struct ec_look look;

        p->confirming = lease.id;
        patience = request_patience(t);
        status =
            ec_look(t->store, claim->name, &t->keys, p->own.create_revision, &patience, &look, err);
        if (status != HF_OK)
            return status;
        moved = look.own_there && look.own.create_revision == p->own.create_revision &&
                look.own.lease == lease.id && !look.before_there;
        if (!moved)
            note_line(t, p, &look);
    }
    if (status != HF_OK)
        return status;
    p->look_ns = 0; /* if it was not to be: something has changed */
    p->first = moved;
    if (!moved)
        return HF_OK;
    grant->token = p->own.create_revision;
    grant->sent_at_ns = lease.sent_at_ns;
    if (ec_is_kept(claim))
        ec_hold_note(t->store, &t->spare, claim->owner,
                     &(struct ec_hold_news){.waited = true,
                                            .lease = lease.id,
                                            .until_ns = lease.sent_at_ns +
                                                        (int64_t)claim->ttl_ms * HF__NS_PER_MS,
                                            .token = grant->token});
    else
        (void)ec_hold_forget(t->store, claim->owner);
    return HF_OK;
}

/* Sleeps until the one before us is gone, or it is time to do something else. */
static void listen_for_end(struct ec_try *t, struct place *p)
{
    int64_t now_ns = t->store->base.host->now_ns();
    struct ec_patience patience = {.deadline_ns = now_ns + KEEP_NS,
                                   .cancel_fd = t->claim->cancel_fd};
    enum ec_heard heard = EC_HEARD_BROKEN;

    if (patience.deadline_ns > t->claim->wait_until_ns)
        patience.deadline_ns = t->claim->wait_until_ns;
    if (patience.deadline_ns > p->look_ns)
        patience.deadline_ns = p->look_ns;
    if (p->watch.http != NULL || ec_watch_open(t->store, &p->watch, &p->before, p->seen + 1))
        heard = ec_watch_listen(&p->watch, &patience);
    if (heard == EC_HEARD_NOTHING)
        return;
    if (heard == EC_HEARD_DELETED)
        p->first = true; /* as a rule; the confirmation finds out */
    p->look_ns = 0;
    if (heard == EC_HEARD_BROKEN) {
        ec_turn_away(t->store, p->watch.endpoint);
        pause_for(t);
    }
    if (p->watch.http != NULL)
        ec_watch_close(t->store, &p->watch);
}

/* One step of the wait. HF_OK: go on, or granted if grant->token is set. */
static enum hf_status stand(struct ec_try *t, struct place *p, struct hf_grant *grant,
                            struct hf_error *err)
{
    enum hf_status status = HF_OK;
    bool look = p->taken && t->store->base.host->now_ns() >= p->look_ns && !p->first;

    if (!p->taken)
        status = line_up(t, p, err);
    else if (p->first)
        status = confirm(t, p, grant, err);
    else if (look)
        status = look_at_line(t, p, err);
    if (status == HF_OK && !look && p->taken && !p->first && grant->token == 0 && p->look_ns > 0) {
        status = keep_place(t, p, err);
        if (status == HF_OK && p->look_ns > 0)
            listen_for_end(t, p);
    }
    p->trouble = status;
    if (!passing(status))
        return status;
    p->first = false;
    p->look_ns = 0;
    pause_for(t);
    return HF_OK;
}

/* Out of the line, for whatever reason. */
static enum hf_status leave(struct ec_try *t, struct place *p, enum hf_status why,
                            struct hf_error *err)
{
    struct ec_patience patience = {
        .deadline_ns = t->store->base.host->now_ns() + EC_UNDO_MS * HF__NS_PER_MS, .cancel_fd = -1};
    struct hf_error own_err;
    enum hf_status status = HF_OK;

    if (p->taken || p->perhaps)
        status = ec_delete(t->store, t->claim->name, &t->keys, p->own.create_revision, false,
                           &patience, NULL, NULL, &own_err);
    (void)ec_hold_forget(t->store, t->claim->owner);
    if (status != HF_OK || p->own.create_revision == 0) {
        ec_lease_retire(t->store, p->lease);
        ec_lease_retire(t->store, p->confirming);
    }
    if (p->confirming != 0 && !ec_is_kept(t->claim))
        ec_lease_revoke(t->store, p->confirming, &patience);
    /* A place in line that stays behind ends in seconds; a hold that may, not so soon. */
    if (status != HF_OK && p->confirming != 0)
        return hf__fail(
            err, HF_UNKNOWN,
            "lock \"%.50s\" in store %.70s: etcd did not answer; it may have been taken, "
            "and is free after its ttl at the latest",
            t->claim->name, t->store->url.shown);
    if (why == HF_BUSY)
        return ec_busy(t, err);
    if (why == HF_CANCELLED)
        return hf__fail(err, HF_CANCELLED, "lock \"%.50s\" in store %.70s: cancelled",
                        t->claim->name, t->store->url.shown);
    return why;
}
