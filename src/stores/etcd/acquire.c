/* acquire.c - taking a lock, or one of several.
 *
 * One transaction: if the queue of the lock is empty, put our key; its create revision is the
 * token. Otherwise the answer shows who is there. A request that was not answered is settled by
 * reading. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASES_MAX 3 /* leases that may be found dead in a row */

static enum hf_status take(struct ec_attempt *a, const struct ec_lease *lease,
                           struct hf_grant *grant, enum ec_verdict *verdict);

static struct ec_request request_of(const struct ec_attempt *a)
{
    return (struct ec_request){
        .store = a->store, .lock = a->claim->name, .patience = a->patience, .err = a->err};
}

/* Whether the server we talk to thinks that the lock is free: quick, and perhaps out of date. */
static bool reads_free(struct ec_attempt *a)
{
    struct ec_range queue = ec_keys_queue(&a->keys);
    struct ec_text body;
    struct ec_call call = {.lock = a->claim->name,
                           .path = "/v3/kv/range",
                           .body = &body,
                           .patience = a->patience,
                           .repeatable = true};
    struct ec_answer answer;
    bool empty;

    ec_text_clear(&body);
    ec_text_add(&body, "{");
    ec_text_range(&body, &queue);
    ec_text_add(&body, ",\"limit\":\"1\",\"keys_only\":true,\"serializable\":true}");
    if (ec_call(a->store, &call, &answer, NULL, NULL) != HF_OK)
        return false;
    empty = ec_answer_kv_count(answer.json) == 0;
    ec_answer_release(&answer);
    return empty;
}

static void note_contention(struct ec_store *store, bool contended)
{
    pthread_mutex_lock(&store->lock);
    store->contended = contended;
    pthread_mutex_unlock(&store->lock);
}

static bool was_contended(struct ec_store *store)
{
    bool contended;

    pthread_mutex_lock(&store->lock);
    contended = store->contended;
    pthread_mutex_unlock(&store->lock);
    return contended;
}

enum hf_status ec_attempt_lease(const struct ec_attempt *a, const struct ec_request *request,
                                struct ec_lease *out)
{
    if (ec_is_kept(a->claim))
        return ec_lease_class(request, a->claim->ttl_ms, EC_USE_ATTEMPT, out);
    return ec_lease_private(request, a->lease_id, a->claim->ttl_ms, out);
}

/* A lease to put the key on. A private one costs etcd two writes. So a client that found a lock
 * busy reads first, from then on; one that did not saves the round trip. */
static enum hf_status find_lease(struct ec_attempt *a, struct ec_lease *out)
{
    struct ec_request request = request_of(a);
    struct ec_inspection found;
    enum hf_status status = HF_OK;

    memset(&found, 0, sizeof found);
    if (!ec_is_kept(a->claim) && was_contended(a->store) && !reads_free(a))
        status = ec_inspect(&request, &a->keys, 0, &found);
    if (status != HF_OK)
        return status;
    if (found.head_there) {
        ec_note_holder(a, &found.head);
        return ec_busy(a);
    }
    return ec_attempt_lease(a, &request, out);
}

/* One go at a free lock. */
static enum hf_status try_now(struct ec_attempt *a, struct hf_grant *grant)
{
    struct ec_lease lease = {0};
    enum hf_status status = HF_UNREACHABLE;

    for (int i = 0; i < LEASES_MAX; i++) {
        enum ec_verdict verdict = EC_FINE;

        status = find_lease(a, &lease);
        if (status != HF_OK)
            return status;
        status = take(a, &lease, grant, &verdict);
        if (status != HF_OK && !ec_is_kept(a->claim) && status != HF_UNKNOWN)
            ec_lease_drop(a->store, lease.id);
        if (verdict != EC_NO_LEASE)
            break;
        /* The lease was ended behind our back. Nothing was put; a new one will do. */
        ec_lease_retire(a->store, lease.id);
        status = ec_fail(a->claim->name, a->store->url.common.shown, HF_UNREACHABLE,
                         "etcd ends our leases at once", a->err);
    }
    return status;
}

/* HF_OK: the caller ends it by freeing its spare. */
static enum hf_status attempt_init(struct ec_attempt *a, struct ec_store *store,
                                   const struct hf_claim *claim, struct hf_error *err)
{
    *a = (struct ec_attempt){
        .store = store,
        .claim = claim,
        .err = err,
        .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = claim->cancel_fd},
        .budget_ns = claim->deadline_ns - store->base.host->now_ns(),
        .spare = ec_hold_new(claim->owner, claim->name),
        .lease_id = claim->detached ? ec_lease_draw(store) : ec_lease_id(claim->owner)};
    ec_keys_make(&a->keys, store->url.prefix, claim->name, claim->owner);
    return a->spare != NULL ? HF_OK : hf__nomem(err);
}

/* Whether an attempt that was answered so goes on in the queue. */
static bool goes_on(const struct hf_claim *claim, enum hf_status status)
{
    return claim->wait_until_ns != 0 && (status == HF_BUSY || status == HF_UNREACHABLE);
}

enum hf_status ec_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct ec_attempt a;
    enum hf_status status = attempt_init(&a, store, claim, err);
    size_t which;

    if (status != HF_OK)
        return status;
    status = try_now(&a, grant);
    if (status == HF_OK || status == HF_BUSY)
        note_contention(store, status == HF_BUSY);
    if (goes_on(claim, status))
        status = ec_queue_wait(&a, 1, &which, grant);
    free(a.spare);
    return status == HF_OK ? hf__ok(err) : status;
}

/* Which queues are empty, from the second on; free[i] tells. */
static enum hf_status find_free(struct ec_attempt *attempts, size_t count, bool *free_ones)
{
    struct ec_request request = request_of(attempts);
    size_t size = count * EC_KEY_MAX * 4;
    char *buffer = malloc(size);
    struct ec_text body;
    struct ec_call call = ec_call_repeatable(&request, "/v3/kv/txn", &body);
    struct ec_answer answer;
    enum hf_status status;

    if (buffer == NULL)
        return hf__nomem(request.err);
    ec_txn_begin_in(&body, buffer, size);
    ec_txn_then(&body);
    for (size_t i = 1; i < count; i++) {
        struct ec_range queue = ec_keys_queue(&attempts[i].keys);

        ec_txn_range(&body, &queue, EC_BY_KEY, 1, 0);
    }
    ec_txn_end(&body);
    status = ec_call(request.store, &call, &answer, NULL, request.err);
    for (size_t i = 1; status == HF_OK && i < count; i++) {
        const cJSON *part = ec_answer_part(answer.json, i - 1);

        free_ones[i] = part != NULL && ec_answer_kv_count(part) == 0;
    }
    if (status == HF_OK)
        ec_answer_release(&answer);
    free(buffer);
    return status;
}

/* The first that is free. *which: the one that was granted, or about which there is trouble. */
static enum hf_status try_each(struct ec_attempt *attempts, size_t count, size_t *which,
                               struct hf_grant *grant)
{
    bool free_ones[HF_SEVERAL_MAX] = {false};
    struct hf_error first;
    enum hf_status status = try_now(attempts, grant);

    *which = 0;
    if (status != HF_BUSY)
        return status;
    first = *attempts->err;
    status = find_free(attempts, count, free_ones);
    for (size_t i = 1; i < count && (status == HF_OK || status == HF_BUSY); i++) {
        if (!free_ones[i])
            continue;
        *which = i;
        status = try_now(&attempts[i], grant);
        if (status == HF_OK)
            return HF_OK;
    }
    if (status != HF_OK && status != HF_BUSY)
        return status;
    *which = 0;
    *attempts->err = first;
    return HF_BUSY;
}

enum hf_status ec_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                              size_t count, size_t *which, struct hf_grant *grant,
                              struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct ec_attempt *attempts = calloc(count, sizeof *attempts);
    struct hf_error own;
    enum hf_status status = HF_OK;

    *which = 0;
    if (err == NULL)
        err = &own;
    if (attempts == NULL)
        return hf__nomem(err);
    for (size_t i = 0; status == HF_OK && i < count; i++)
        status = attempt_init(&attempts[i], store, &claims[i], err);
    if (status == HF_OK)
        status = try_each(attempts, count, which, grant);
    if (status == HF_OK || status == HF_BUSY)
        note_contention(store, status == HF_BUSY);
    if (goes_on(claims, status))
        status = ec_queue_wait(attempts, count, which, grant);
    for (size_t i = 0; i < count; i++)
        free(attempts[i].spare);
    free(attempts);
    return status == HF_OK ? hf__ok(err) : status;
}

void ec_attempt_granted(struct ec_attempt *a, const struct ec_lease *lease, uint64_t token,
                        struct hf_grant *grant)
{
    struct ec_hold_news news = {.waited = ec_keys_waited(&a->keys),
                                .lease = lease->id,
                                .until_ns =
                                    lease->sent_at_ns + (int64_t)a->claim->ttl_ms * HF__NS_PER_MS,
                                .token = token};

    grant->token = token;
    grant->sent_at_ns = lease->sent_at_ns;
    if (ec_is_kept(a->claim))
        ec_hold_note(a->store, &a->spare, a->claim->owner, &news);
    else
        (void)ec_hold_forget(a->store, a->claim->owner);
}

/* No answer: our key is there or it is not. If not, it may still come, but not for long: the lease
 * it would be on is not kept alive any more. One on another lease is that of another attempt of
 * this owner, whose claim came twice. */
static enum hf_status settle(struct ec_attempt *a, const struct ec_lease *lease,
                             struct hf_grant *grant)
{
    struct hf_error ignored;
    struct ec_request request = request_of(a);
    struct ec_deletion deletion = {.keys = &a->keys, .for_good = true};
    struct ec_inspection found;

    request.patience = (struct hf__patience){.deadline_ns = a->claim->deadline_ns, .cancel_fd = -1};
    request.err = &ignored;
    if (!hf__patience_cancelled(&a->patience) &&
        ec_inspect(&request, &a->keys, 0, &found) == HF_OK && found.own_there && found.head_there &&
        found.head.create_revision == found.own.create_revision && found.own.lease == lease->id) {
        ec_attempt_granted(a, lease, found.own.create_revision, grant);
        return HF_OK;
    }
    ec_lease_retire(a->store, lease->id);
    if (!ec_is_kept(a->claim))
        ec_lease_revoke(a->store, lease->id, &request.patience);
    else
        (void)ec_delete(&request, &deletion);
    return ec_perhaps_taken(a->claim->name, a->store->url.common.shown, a->err);
}

/* What the transaction did. */
static enum hf_status judge_taken(struct ec_attempt *a, const struct ec_lease *lease,
                                  const cJSON *answer, struct hf_grant *grant)
{
    uint64_t token = ec_answer_revision(answer);
    struct ec_kv head;

    if (ec_answer_succeeded(answer)) {
        if (token == 0) /* put, and not told with which token: that can be read */
            return settle(a, lease, grant);
        ec_attempt_granted(a, lease, token, grant);
        return HF_OK;
    }
    if (ec_answer_kv(ec_answer_part(answer, 0), 0, &head))
        ec_note_holder(a, &head);
    return ec_busy(a);
}

static enum hf_status take(struct ec_attempt *a, const struct ec_lease *lease,
                           struct hf_grant *grant, enum ec_verdict *verdict)
{
    struct ec_range own = ec_keys_own(&a->keys);
    struct ec_range queue = ec_keys_queue(&a->keys);
    struct ec_text body;
    struct ec_call call = {
        .lock = a->claim->name, .path = "/v3/kv/txn", .body = &body, .patience = a->patience};
    char value[EC_VALUE_MAX];
    struct ec_answer answer;
    enum hf_status status;

    ec_value(a->store, a->claim, ec_kind(a->claim), value);
    ec_txn_begin(&body);
    ec_txn_compare(&body, &queue, "CREATE", "EQUAL", 0);
    ec_txn_then(&body);
    ec_txn_put(&body, &own, value, lease->id);
    ec_txn_otherwise(&body);
    ec_txn_range(&body, &queue, EC_OLDEST_FIRST, 1, 0);
    ec_txn_end(&body);
    status = ec_call(a->store, &call, &answer, verdict, a->err);
    if (status == HF_UNKNOWN)
        return settle(a, lease, grant);
    if (status != HF_OK)
        return status;
    status = judge_taken(a, lease, answer.json, grant);
    ec_answer_release(&answer);
    return status;
}

void ec_note_holder(struct ec_attempt *a, const struct ec_kv *kv)
{
    if (kv->said.kind == 0)
        (void)snprintf(a->holder, sizeof a->holder, "a client that is not holdfast");
    else
        (void)snprintf(a->holder, sizeof a->holder, "%.60s (token %llu%s%.40s)", kv->said.label,
                       (unsigned long long)kv->create_revision,
                       kv->said.revoked ? ", broken by " : "", kv->said.revocation.by);
}

enum hf_status ec_busy(const struct ec_attempt *a)
{
    return hf__fail_lock(a->err, HF_BUSY, a->claim->name, a->store->url.common.shown,
                         " is held by %.150s", a->holder[0] != '\0' ? a->holder : "another");
}
