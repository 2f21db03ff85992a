/* acquire.c - taking a lock.
 *
 * One transaction: if the line of the lock is empty, put our key; its create revision is the token.
 * Otherwise the answer tells who is there. A request that was not answered is settled by reading.
 */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 3 /* leases that may be found dead in a row */

static enum hf_status take(struct ec_try *t, const struct ec_lease *lease, struct hf_grant *grant,
                           enum ec_verdict *verdict, struct hf_error *err);

/* Whether the server we talk to thinks that the lock is free: quick, and perhaps out of date. */
static bool looks_free(struct ec_try *t)
{
    struct ec_range line = ec_keys_line(&t->keys);
    struct ec_text body;
    struct ec_call call = {.lock = t->claim->name,
                           .path = "/v3/kv/range",
                           .body = &body,
                           .patience = t->patience,
                           .repeatable = true};
    struct ec_answer answer;
    bool empty;

    ec_text_clear(&body);
    ec_text_add(&body, "{");
    ec_text_range(&body, &line);
    ec_text_add(&body, ",\"limit\":\"1\",\"keys_only\":true,\"serializable\":true}");
    if (ec_call(t->store, &call, &answer, NULL, NULL) != HF_OK)
        return false;
    empty = ec_answer_kv_count(answer.json) == 0;
    ec_answer_release(&answer);
    return empty;
}

static void note_contention(struct ec_store *store, bool contended)
{
    (void)pthread_mutex_lock(&store->lock);
    store->contended = contended;
    (void)pthread_mutex_unlock(&store->lock);
}

static bool was_contended(struct ec_store *store)
{
    bool contended;

    (void)pthread_mutex_lock(&store->lock);
    contended = store->contended;
    (void)pthread_mutex_unlock(&store->lock);
    return contended;
}

/* A lease to put the key on. A private one costs etcd two writes. So a client that found a lock
 * busy looks first, from then on; one that did not saves the round trip. */
static enum hf_status find_lease(struct ec_try *t, struct ec_lease *out, struct hf_error *err)
{
    struct ec_look look;
    enum hf_status status = HF_OK;

    if (ec_is_kept(t->claim))
        return ec_lease_class(t->store, t->claim->name, t->claim->ttl_ms, EC_USE_ATTEMPT,
                              &t->patience, out, err);
    memset(&look, 0, sizeof look);
    if (was_contended(t->store) && !looks_free(t))
        status = ec_look(t->store, t->claim->name, &t->keys, 0, &t->patience, &look, err);
    if (status != HF_OK)
        return status;
    if (look.head_there) {
        ec_note_holder(t, &look.head);
        return ec_busy(t, err);
    }
    return ec_lease_private(t->store, t->claim->name, ec_lease_id(t->claim->owner),
                            t->claim->ttl_ms, &t->patience, out, err);
}

/* One go at a free lock. */
static enum hf_status try_now(struct ec_try *t, struct hf_grant *grant, struct hf_error *err)
{
    struct ec_lease lease = {0};
    enum hf_status status = HF_UNREACHABLE;

    for (int i = 0; i < TRIES_MAX; i++) {
        enum ec_verdict verdict = EC_FINE;

        status = find_lease(t, &lease, err);
        if (status != HF_OK)
            return status;
        status = take(t, &lease, grant, &verdict, err);
        if (status != HF_OK && !ec_is_kept(t->claim) && status != HF_UNKNOWN && !t->ours)
            ec_lease_drop(t->store, lease.id);
        if (verdict != EC_NO_LEASE)
            break;
        /* The lease was ended behind our back. Nothing was put; a new one will do. */
        ec_lease_retire(t->store, lease.id);
        status = hf__fail(err, HF_UNREACHABLE,
                          "lock \"%.50s\" in store %.70s: etcd ends our leases at once",
                          t->claim->name, t->store->url.shown);
    }
    return status;
}

enum hf_status ec_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct ec_try t = {
        .store = store,
        .claim = claim,
        .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = claim->cancel_fd}};
    enum hf_status status;

    t.budget_ns = claim->deadline_ns - base->host->now_ns();
    ec_keys_make(&t.keys, store->url.prefix, claim->name, claim->owner);
    t.spare = ec_hold_new(claim->owner, claim->name);
    if (t.spare == NULL)
        return hf__nomem(err);
    status = try_now(&t, grant, err);
    if (status == HF_OK || status == HF_BUSY)
        note_contention(store, status == HF_BUSY);
    if (claim->wait_until_ns != 0 && (status == HF_BUSY || status == HF_UNREACHABLE))
        status = ec_wait(&t, grant, err);
    free(t.spare);
    return status == HF_OK ? hf__ok(err) : status;
}

static enum hf_status granted(struct ec_try *t, const struct ec_lease *lease, uint64_t token,
                              struct hf_grant *grant)
{
    grant->token = token;
    grant->sent_at_ns = lease->sent_at_ns;
    if (ec_is_kept(t->claim))
        ec_hold_note(t->store, &t->spare, t->claim->owner,
                     &(struct ec_hold_news){.lease = lease->id,
                                            .until_ns = lease->sent_at_ns +
                                                        (int64_t)t->claim->ttl_ms * HF__NS_PER_MS,
                                            .token = token});
    return HF_OK;
}

/* No answer: our key is there or it is not. If not, it may still come, but not for long: the lease
 * it would be on is not kept alive any more. */
static enum hf_status settle(struct ec_try *t, const struct ec_lease *lease, struct hf_grant *grant,
                             struct hf_error *err)
{
    struct ec_patience patience = {.deadline_ns = t->claim->deadline_ns, .cancel_fd = -1};
    struct hf_error ignored;
    struct ec_look look;

    if (!ec_cancelled(&t->patience) &&
        ec_look(t->store, t->claim->name, &t->keys, 0, &patience, &look, &ignored) == HF_OK &&
        look.own_there && look.head_there && look.head.create_revision == look.own.create_revision)
        return granted(t, lease, look.own.create_revision, grant);
    ec_lease_retire(t->store, lease->id);
    if (!ec_is_kept(t->claim))
        ec_lease_revoke(t->store, lease->id, &patience);
    else
        (void)ec_delete(t->store, t->claim->name, &t->keys, 0, false, &patience, NULL, NULL,
                        &ignored);
    return hf__fail(
        err, HF_UNKNOWN,
        "lock \"%.50s\" in store %.70s: etcd did not answer; it may have been taken, and "
        "is free after its ttl at the latest",
        t->claim->name, t->store->url.shown);
}

static enum hf_status take(struct ec_try *t, const struct ec_lease *lease, struct hf_grant *grant,
                           enum ec_verdict *verdict, struct hf_error *err)
{
    struct ec_range own = ec_keys_own(&t->keys);
    struct ec_range line = ec_keys_line(&t->keys);
    struct ec_text body;
    struct ec_call call = {
        .lock = t->claim->name, .path = "/v3/kv/txn", .body = &body, .patience = t->patience};
    char value[EC_VALUE_MAX];
    struct ec_answer answer;
    struct ec_kv head;
    enum hf_status status;

    ec_value(t->store, t->claim, ec_kind(t->claim), value);
    ec_txn_begin(&body);
    ec_txn_compare(&body, &line, "CREATE", "EQUAL", 0);
    ec_txn_then(&body);
    ec_txn_put(&body, &own, value, lease->id);
    ec_txn_otherwise(&body);
    ec_txn_range(&body, &line, EC_OLDEST_FIRST, 1, 0);
    ec_txn_end(&body);
    status = ec_call(t->store, &call, &answer, verdict, err);
    if (status == HF_UNKNOWN)
        return settle(t, lease, grant, err);
    if (status != HF_OK)
        return status;
    if (ec_answer_succeeded(answer.json)) {
        uint64_t token = ec_answer_revision(answer.json);

        /* Put, and not told with which token: that can be read. */
        status = token > 0 ? granted(t, lease, token, grant) : settle(t, lease, grant, err);
    } else {
        if (ec_answer_kv(ec_answer_part(answer.json, 0), 0, &head)) {
            ec_note_holder(t, &head);
            t->ours = head.lease == lease->id;
        }
        status = ec_busy(t, err);
    }
    ec_answer_release(&answer);
    return status;
}
