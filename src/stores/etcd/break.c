/* break.c - breaking a hold, and what its holder hears of that.
 *
 * The head of the queue is read, and if it is the hold that is meant, its key is put again with the
 * mark, on the lease it is on, in a transaction that fails if anything has happened to it since. A
 * renewal may have moved it to another lease: then it is read again. With the mark goes a notice,
 * for those who watch; and if the hold is ended at once, so that its holder can tell by whom. */
#include "base/base.h"
#include "stores/etcd/base64.h"
#include "stores/etcd/etcd.h"

#include <stdio.h>
#include <string.h>

#define TRIES_MAX 8 /* how often the key may change under us */

/* One break. */
struct work {
    struct ec_store *store;
    const struct hf_revoke *revoke;
    struct ec_request request;
    struct ec_keys keys;
    struct ec_inspection found;
    struct hf_revocation revocation;
    bool done;
};

static enum hf_status not_broken(const struct work *w, enum hf__not_broken why)
{
    return hf__fail_not_broken(w->request.err, w->revoke->name, w->store->url.common.shown,
                               w->revoke->token, why);
}

static bool is_ours(const struct work *w)
{
    const struct hf_revocation *there = &w->found.head.said.revocation;

    return w->found.head.said.revoked && there->at_ms == w->revocation.at_ms &&
           strcmp(there->by, w->revocation.by) == 0 &&
           strcmp(there->reason, w->revocation.reason) == 0;
}

/* HF_OK: the head of the queue is the hold that is meant. */
static enum hf_status check(const struct work *w)
{
    const struct hf_revoke *revoke = w->revoke;
    const struct ec_kv *head = &w->found.head;

    if (!w->found.head_there)
        return not_broken(w, HF__NOT_HELD);
    if (head->said.kind == EC_KIND_WAITING)
        return not_broken(w, HF__HANDED_OVER);
    if (revoke->token == 0 ? head->said.kind != 0 : head->create_revision != revoke->token)
        return not_broken(w,
                          head->said.kind == 0 ? HF__HELD_BY_FOREIGN : HF__HELD_WITH_OTHER_TOKEN);
    if (head->said.kind == 0 && !revoke->now)
        return ec_fail(revoke->name, w->store->url.common.shown, HF_INVALID,
                       "a client that is not holdfast holds it, and hears of nothing: only --now "
                       "ends that",
                       w->request.err);
    if (head->said.kind == 0 && head->cut)
        return ec_fail(revoke->name, w->store->url.common.shown, HF_UNSUPPORTED,
                       "the key of the client that holds it is too long; delete it with etcdctl",
                       w->request.err);
    return HF_OK;
}

/* The transaction that marks or ends the hold. */
static void make_body(const struct work *w, struct ec_text *body)
{
    const struct ec_kv *head = &w->found.head;
    struct ec_range key = {.key = head->key, .key_len = head->key_len};
    struct ec_said said = head->said;
    char value[EC_VALUE_MAX];
    char text[EC_KEY_MAX];
    struct ec_range notice = {.key = text};

    ec_txn_begin(body);
    ec_txn_compare(body, &key, "CREATE", "EQUAL", head->create_revision);
    ec_txn_compare(body, &key, "MOD", "EQUAL", head->mod_revision);
    ec_txn_then(body);
    if (w->revoke->now) {
        ec_txn_delete(body, &key, false);
    } else {
        said.revoked = true;
        said.revocation = w->revocation;
        ec_said_format(value, &said);
        ec_txn_put(body, &key, value, head->lease);
    }
    if (head->lease != 0 && said.kind != 0) {
        notice.key_len =
            ec_notice_key(text, w->store->url.prefix, w->revoke->name, head->create_revision);
        ec_notice_format(value, &w->revocation);
        ec_txn_put(body, &notice, value, head->lease);
    }
    ec_txn_end(body);
}

/* HF_OK with w->done, or when the key is not as it was read any more. */
static enum hf_status carry_out(struct work *w)
{
    struct ec_text body;
    /* Whichever copy of a mark is first, the others find another mod revision and do nothing; and
     * what is there then is known to be ours by its time and words. A key that is gone tells
     * nothing. */
    struct ec_call call = {.lock = w->revoke->name,
                           .path = "/v3/kv/txn",
                           .body = &body,
                           .patience = w->request.patience,
                           .repeatable = !w->revoke->now};
    struct ec_answer answer;
    enum ec_verdict verdict;
    enum hf_status status;

    make_body(w, &body);
    status = ec_call(w->store, &call, &answer, &verdict, w->request.err);
    if (verdict == EC_NO_LEASE) /* the hold has just ended */
        return HF_OK;
    if (status != HF_OK)
        return status == HF_UNREACHABLE && !w->revoke->now
                   ? ec_fail(w->revoke->name, w->store->url.common.shown, HF_UNKNOWN,
                             "etcd did not answer; it may be broken: break it again",
                             w->request.err)
                   : status;
    w->done = ec_answer_succeeded(answer.json);
    ec_answer_release(&answer);
    return HF_OK;
}

/* What was found, for a person. The key lives as long as its lease: that is longer than the hold,
 * as a rule, and told in whole seconds. */
static void describe(const struct work *w, struct hf_broken *out)
{
    const struct ec_kv *head = &w->found.head;
    struct ec_request request = w->request;
    struct ec_life life;

    memcpy(out->label, head->said.label, sizeof out->label);
    out->detached = head->said.kind == EC_KIND_DETACHED;
    out->foreign = head->said.kind == 0;
    out->remaining_ms = w->revoke->now ? 0 : -1;
    request.err = NULL;
    if (!w->revoke->now && head->lease != 0 && ec_lease_left(&request, head->lease, &life) == HF_OK)
        out->remaining_ms = life.left_ms + 1000 < (int64_t)head->said.ttl_ms ? life.left_ms + 1000
                                                                             : head->said.ttl_ms;
}

/* Reads, and marks or ends what was read. */
static enum hf_status try(struct work *w, struct hf_broken *out)
{
    enum hf_status status = ec_inspect(&w->request, &w->keys, 0, &w->found);

    if (status == HF_OK)
        status = check(w);
    if (status != HF_OK)
        return status;
    if (w->found.head.said.revoked && !w->revoke->now) {
        out->again = !is_ours(w);
        w->done = true;
        return HF_OK;
    }
    out->again = w->found.head.said.revoked;
    return carry_out(w);
}

enum hf_status ec_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                         struct hf_broken *out, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct work w = {.store = store,
                     .revoke = revoke,
                     .request = {.store = store,
                                 .lock = revoke->name,
                                 .patience = {.deadline_ns = revoke->deadline_ns, .cancel_fd = -1},
                                 .err = err},
                     .revocation = {.at_ms = base->host->wall_us() / 1000}};
    enum hf_status status = HF_OK;

    hf__copy_printable(w.revocation.by, sizeof w.revocation.by, revoke->by);
    hf__copy_printable(w.revocation.reason, sizeof w.revocation.reason, revoke->reason);
    ec_keys_make(&w.keys, store->url.prefix, revoke->name, "");
    for (int i = 0; i < TRIES_MAX && status == HF_OK && !w.done; i++)
        status = try(&w, out);
    if (status != HF_OK)
        return status;
    if (!w.done)
        return ec_fail(revoke->name, store->url.common.shown, HF_UNREACHABLE,
                       "its key keeps changing; try again", err);
    describe(&w, out);
    return hf__ok(err);
}

enum hf_status ec_broken(struct ec_store *store, const struct hf_claim *claim,
                         const struct hf_revocation *revocation, struct hf_grant *grant,
                         struct hf_error *err)
{
    if (grant != NULL)
        grant->loss = HF_LOSS_BROKEN;
    if (grant != NULL && grant->revocation != NULL)
        *grant->revocation = *revocation;
    return hf__fail_broken(err, claim->name, store->url.common.shown, revocation);
}

enum hf_status ec_revoked(struct ec_store *store, const struct hf_claim *claim,
                          const struct ec_kv *kv, struct hf_grant *grant, struct hf_error *err)
{
    /* The key stays until it is released, and must not live on with the others on its lease. */
    ec_lease_retire(store, kv->lease);
    return ec_broken(store, claim, &kv->said.revocation, grant, err);
}

bool ec_notice_find(const struct ec_request *request, uint64_t token, struct hf_revocation *out)
{
    struct ec_store *store = request->store;
    char key[EC_KEY_MAX];
    struct ec_range range = {
        .key = key, .key_len = ec_notice_key(key, store->url.prefix, request->lock, token)};
    struct ec_text body;
    struct ec_call call = ec_call_repeatable(request, "/v3/kv/range", &body);
    struct ec_answer answer;
    struct ec_item item;
    bool nomem;
    bool found;

    ec_text_clear(&body);
    ec_text_add(&body, "{");
    ec_text_range(&body, &range);
    ec_text_add(&body, "}");
    if (ec_call(store, &call, &answer, NULL, NULL) != HF_OK)
        return false;
    found = ec_answer_kv_count(answer.json) > 0 && ec_answer_item(answer.json, 0, &item, &nomem);
    ec_answer_release(&answer);
    if (!found)
        return false;
    ec_notice_read(out, item.value);
    ec_item_release(&item);
    return true;
}
