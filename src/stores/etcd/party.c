/* party.c - what is done to all the keys of one who waits, by one transaction. */
#include "base/base.h"
#include "stores/etcd/queue.h"

#include <string.h>

enum { OWN, BEFORE, PARTS }; /* of what is read about one queue */

static bool same_key(const struct ec_kv *a, const struct ec_kv *b)
{
    return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

/* What the answer says of queue i. False: it makes no sense. */
static bool read_queue(struct ec_queue *q, const cJSON *txn, size_t i, struct ec_reading *out)
{
    const cJSON *own = ec_answer_part(txn, i * PARTS + OWN);
    const cJSON *before = ec_answer_part(txn, i * PARTS + BEFORE);
    struct ec_kv found = {.key_len = 0};
    struct ec_kv last = q->before[i];

    if (own == NULL || before == NULL)
        return false;
    if (ec_answer_kv_count(own) > 0) {
        if (!ec_answer_kv(own, 0, &found))
            return false;
        out->own_count += found.create_revision == q->own.create_revision;
        out->own = found;
    }
    q->before[i] = (struct ec_kv){.key_len = 0};
    if (ec_answer_kv_count(before) == 0)
        out->first = out->first < i ? out->first : i;
    else if (!ec_answer_kv(before, 0, &q->before[i]))
        return false;
    out->moved = out->moved || !same_key(&last, &q->before[i]);
    return true;
}

enum hf_status ec_party_inspect(struct ec_queue *q, struct ec_reading *out)
{
    struct ec_request request = ec_queue_request(q);
    struct ec_text body;
    struct ec_call call = ec_call_repeatable(&request, "/v3/kv/txn", &body);
    struct ec_answer answer;
    struct ec_kv head;
    enum hf_status status;
    bool sense = true;

    ec_txn_begin_in(&body, q->buffer, q->buffer_size);
    ec_txn_then(&body);
    for (size_t i = 0; i < q->count; i++) {
        struct ec_range own = ec_keys_own(&q->attempt[i].keys);
        struct ec_range queue = ec_keys_queue(&q->attempt[i].keys);

        ec_txn_range(&body, &own, EC_BY_KEY, 1, 0);
        ec_txn_range(&body, &queue, EC_NEWEST_FIRST, 1, q->own.create_revision);
    }
    if (q->count < HF_SEVERAL_MAX) { /* etcd takes 128 operations, and this is for the text only */
        struct ec_range queue = ec_keys_queue(&q->attempt->keys);

        ec_txn_range(&body, &queue, EC_OLDEST_FIRST, 1, 0);
    }
    ec_txn_end(&body);
    status = ec_call(request.store, &call, &answer, NULL, request.err);
    if (status != HF_OK)
        return status;
    *out = (struct ec_reading){.first = q->count, .revision = ec_answer_revision(answer.json)};
    for (size_t i = 0; sense && i < q->count; i++)
        sense = read_queue(q, answer.json, i, out);
    if (ec_answer_kv(ec_answer_part(answer.json, q->count * PARTS), 0, &head))
        ec_note_holder(q->attempt, &head);
    ec_answer_release(&answer);
    return sense ? HF_OK : ec_nonsense(request.lock, request.store->url.common.shown, request.err);
}

/* Whoever waited before us may have left it to others. */
void ec_party_hear(void *data, const struct ec_kv *kv, bool deleted)
{
    struct ec_queue *q = data;

    for (size_t i = 0; deleted && !q->free && i < q->count; i++)
        if (same_key(kv, &q->before[i]) && q->before[i].said.kind != EC_KIND_WAITING) {
            q->free = true;
            q->which = i;
        }
}

enum hf_status ec_party_put(struct ec_queue *q, const struct ec_request *request, int64_t lease,
                            struct ec_answer *answer, enum ec_verdict *verdict)
{
    struct ec_text body;
    struct ec_call call = ec_call_once(request, "/v3/kv/txn", &body);
    uint64_t seen = q->own.mod_revision;

    ec_txn_begin_in(&body, q->buffer, q->buffer_size);
    for (size_t i = 0; i < q->count; i++) {
        struct ec_range own = ec_keys_own(&q->attempt[i].keys);

        /* A copy of this request that is executed late finds another mod revision. */
        ec_txn_compare(&body, &own, seen != 0 ? "MOD" : "CREATE", "EQUAL", seen);
    }
    ec_txn_then(&body);
    for (size_t i = 0; i < q->count; i++) {
        struct ec_range own = ec_keys_own(&q->attempt[i].keys);
        char value[EC_VALUE_MAX];

        ec_value(request->store, q->attempt[i].claim, EC_KIND_WAITING, value);
        ec_txn_put(&body, &own, value, lease);
    }
    ec_txn_end(&body);
    return ec_call(request->store, &call, answer, verdict, request->err);
}

/* A claim for others may come twice: then the key with its owner may be another client's. If it is
 * not known which one is ours, it is the one on our lease; what is on an earlier one ends soon. */
static void compare_ours(const struct ec_queue *q, struct ec_text *body)
{
    struct ec_range own = ec_keys_own(&q->attempt->keys);

    if (q->own.create_revision != 0)
        ec_txn_compare(body, &own, "CREATE", "EQUAL", q->own.create_revision);
    else
        ec_txn_compare(body, &own, "LEASE", "EQUAL", (uint64_t)q->lease);
}

enum hf_status ec_party_delete(struct ec_queue *q, const struct ec_request *request)
{
    struct ec_text body;
    struct ec_call call = ec_call_repeatable(request, "/v3/kv/txn", &body);
    struct ec_answer answer;
    enum hf_status status;

    ec_txn_begin_in(&body, q->buffer, q->buffer_size);
    if (q->attempt->claim->detached && q->count == 1)
        compare_ours(q, &body);
    ec_txn_then(&body);
    for (size_t i = 0; i < q->count; i++) {
        struct ec_range own = ec_keys_own(&q->attempt[i].keys);

        ec_txn_delete(&body, &own, false); /* the owner is in it: it is nobody else's */
    }
    ec_txn_end(&body);
    status = ec_call(request->store, &call, &answer, NULL, request->err);
    if (status == HF_OK)
        ec_answer_release(&answer);
    return status;
}
