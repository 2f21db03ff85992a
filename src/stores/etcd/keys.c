/* keys.c - what is done to the keys of a lock: read, move to another lease, delete. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdio.h>
#include <string.h>

bool ec_is_kept(const struct hf_claim *claim)
{
    return claim->kept == HF_KEPT_NOW;
}

char ec_kind(const struct hf_claim *claim)
{
    switch (claim->kept) {
    case HF_KEPT_NOW:
        return EC_KIND_KEPT;
    case HF_KEPT_LATER:
        return EC_KIND_PRIVATE;
    case HF_KEPT_NEVER:
        break;
    }
    return EC_KIND_DETACHED;
}

void ec_value(const struct ec_store *store, const struct hf_claim *claim, char kind,
              char out[EC_VALUE_MAX])
{
    struct ec_said said = {
        .kind = kind, .ttl_ms = claim->ttl_ms, .since_us = store->base.host->wall_us()};

    if (said.since_us < 0)
        said.since_us = 0;
    hf__copy_printable(said.owner, sizeof said.owner, claim->owner);
    hf__copy_printable(said.label, sizeof said.label, claim->label != NULL ? claim->label : "");
    ec_said_format(out, &said);
}

/* The first key of part i, if there is one. False: there is one and it cannot be read. */
static bool first_of(const cJSON *txn, size_t i, bool *there, struct ec_kv *out)
{
    const cJSON *part = ec_answer_part(txn, i);

    *there = ec_answer_kv_count(part) > 0;
    return !*there || ec_answer_kv(part, 0, out);
}

/* Which of the two keys that may be ours is, and what is in front of it. */
static bool read_inspection(const cJSON *txn, struct ec_keys *keys, struct ec_inspection *out)
{
    struct ec_kv waited;
    bool waited_there;

    memset(out, 0, sizeof *out);
    out->revision = ec_answer_revision(txn);
    if (!first_of(txn, 0, &out->own_there, &out->own) ||
        !first_of(txn, 1, &waited_there, &waited) ||
        !first_of(txn, 2, &out->head_there, &out->head) ||
        !first_of(txn, 3, &out->before_there, &out->before))
        return false;
    if (out->own_there && strcmp(out->own.said.owner, keys->own + keys->queue_len) == 0) {
        ec_keys_use(keys, false);
    } else {
        out->own_there = waited_there;
        out->own = waited;
        if (waited_there)
            ec_keys_use(keys, true);
    }
    return true;
}

enum hf_status ec_inspect(const struct ec_request *request, struct ec_keys *keys, uint64_t token,
                          struct ec_inspection *out)
{
    struct ec_range queue = ec_keys_queue(keys);
    struct ec_keys both = *keys;
    struct ec_range own;
    struct ec_text body;
    struct ec_call call = ec_call_repeatable(request, "/v3/kv/txn", &body);
    struct ec_answer answer;
    enum hf_status status;

    ec_txn_begin(&body);
    ec_txn_then(&body);
    for (int waited = 0; waited < 2; waited++) {
        ec_keys_use(&both, waited != 0);
        own = ec_keys_own(&both);
        ec_txn_range(&body, &own, EC_BY_KEY, 1, 0);
    }
    ec_txn_range(&body, &queue, EC_OLDEST_FIRST, 1, 0);
    if (token > 1)
        ec_txn_range(&body, &queue, EC_NEWEST_FIRST, 1, token);
    ec_txn_end(&body);
    status = ec_call(request->store, &call, &answer, NULL, request->err);
    if (status != HF_OK)
        return status;
    if (!read_inspection(answer.json, keys, out))
        status = ec_nonsense(request->lock, request->store->url.common.shown, request->err);
    ec_answer_release(&answer);
    return status;
}

enum hf_status ec_delete(const struct ec_request *request, struct ec_deletion *deletion)
{
    const struct ec_keys *keys = deletion->keys;
    struct ec_range own = ec_keys_own(keys);
    struct ec_text body;
    struct ec_call call = deletion->for_good ? ec_call_repeatable(request, "/v3/kv/txn", &body)
                                             : ec_call_once(request, "/v3/kv/txn", &body);
    struct ec_answer answer;
    enum hf_status status;

    ec_txn_begin(&body);
    ec_txn_compare(&body, &own, "CREATE", deletion->token != 0 ? "EQUAL" : "GREATER",
                   deletion->token);
    if (!ec_keys_waited(keys) && !deletion->known)
        ec_txn_compare_word(&body, &own, keys->own + keys->queue_len);
    ec_txn_then(&body);
    ec_txn_delete(&body, &own, deletion->deleted != NULL);
    ec_txn_end(&body);
    status = ec_call(request->store, &call, &answer, NULL, request->err);
    if (status != HF_OK)
        return status;
    deletion->was_there = ec_answer_succeeded(answer.json);
    if (deletion->was_there && deletion->deleted != NULL &&
        !ec_answer_deleted(ec_answer_part(answer.json, 0), deletion->deleted))
        status = ec_nonsense(request->lock, request->store->url.common.shown, request->err);
    ec_answer_release(&answer);
    return status;
}

enum hf_status ec_move(const struct ec_request *request, struct ec_move *move)
{
    struct ec_range own = ec_keys_own(move->keys);
    struct ec_range queue = ec_keys_queue(move->keys);
    const struct ec_kv *seen = move->seen;
    struct ec_text body;
    struct ec_call call = ec_call_once(request, "/v3/kv/txn", &body);
    struct ec_answer answer;
    enum hf_status status;

    ec_txn_begin_in(&body, move->buffer, move->buffer_size);
    ec_txn_compare(&body, &own, "CREATE", "EQUAL", seen->create_revision);
    /* A copy of this request that is executed late finds another mod revision and does nothing. */
    ec_txn_compare(&body, &own, "MOD", "EQUAL", seen->mod_revision);
    if (move->at_head)
        ec_txn_compare(&body, &queue, "CREATE", "GREATER", seen->create_revision - 1);
    ec_txn_then(&body);
    ec_txn_put(&body, &own, move->value, move->lease);
    for (size_t i = 0; i < move->other_count; i++) {
        struct ec_range other = ec_keys_own(&move->others[i].keys);

        if (&move->others[i].keys != move->keys)
            ec_txn_delete(&body, &other, false);
    }
    ec_txn_end(&body);
    status = ec_call(request->store, &call, &answer, &move->verdict, request->err);
    if (status != HF_OK)
        return status;
    move->moved = ec_answer_succeeded(answer.json);
    if (move->moved)
        move->mod_revision = ec_answer_revision(answer.json);
    ec_answer_release(&answer);
    return HF_OK;
}
