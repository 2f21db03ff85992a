/* enter.c - getting into the queue, and staying there. */
#include "base/base.h"
#include "stores/etcd/queue.h"

struct ec_request ec_queue_request(const struct ec_queue *q)
{
    const struct ec_attempt *a = q->attempt;

    return (struct ec_request){
        .store = a->store,
        .lock = a->claim->name,
        .patience = {.deadline_ns = hf__time_add(a->store->base.host->now_ns(), a->budget_ns),
                     .cancel_fd = a->claim->cancel_fd},
        .err = a->err};
}

/* A key of our name that is on none of the leases we put it on. Only a claim made on behalf of
 * others may arrive twice, and such a claim waits for a single lock. */
static bool is_of_another(const struct ec_queue *q, const struct ec_kv *own)
{
    return q->attempt->claim->detached && q->count == 1 && own->lease != q->lease &&
           own->lease != q->doubted;
}

static enum hf_status came_twice(struct ec_queue *q)
{
    ec_queue_move(q, EC_TWICE);
    return HF_BUSY;
}

/* Our key was put, or so it seems: what is its revision? */
static enum hf_status find_own(struct ec_queue *q)
{
    struct ec_attempt *a = q->attempt;
    struct ec_request request = ec_queue_request(q);
    struct ec_inspection found;
    enum hf_status status;

    request.patience.cancel_fd = -1;
    status = ec_inspect(&request, &a->keys, 0, &found);
    if (status == HF_OK && found.own_there && is_of_another(q, &found.own))
        return came_twice(q);
    if (status == HF_OK && found.own_there) {
        q->own = found.own;
        q->lease = found.own.lease;
        ec_queue_move(q, EC_INSIDE);
        return HF_OK;
    }
    ec_lease_retire(a->store, q->lease);
    q->doubted = q->lease;
    ec_queue_move(q, EC_UNCERTAIN);
    return ec_fail(a->claim->name, a->store->url.common.shown, HF_UNREACHABLE,
                   "etcd did not answer, and there is no place in the queue", a->err);
}

/* Our key in the queue is on that lease, which was alive at alive_ns. */
static void note_alive(struct ec_queue *q, int64_t lease, int64_t alive_ns)
{
    struct ec_hold_news news = {
        .waited = true, .lease = lease, .until_ns = alive_ns + EC_WAIT_TTL_MS * HF__NS_PER_MS};

    ec_hold_note(q->attempt->store, &q->attempt->spare, q->attempt->claim->owner, &news);
}

enum hf_status ec_queue_enter(struct ec_queue *q)
{
    struct ec_attempt *a = q->attempt;
    struct ec_request request = ec_queue_request(q);
    struct ec_lease lease;
    struct ec_answer answer;
    enum ec_verdict verdict;
    bool there;
    enum hf_status status = ec_lease_class(&request, 0, EC_USE_WAITING, &lease);

    if (status != HF_OK)
        return status;
    q->lease = lease.id;
    status = ec_party_put(q, &request, lease.id, &answer, &verdict);
    if (status == HF_UNKNOWN)
        return find_own(q);
    if (verdict == EC_NO_LEASE) {
        ec_lease_retire(a->store, lease.id);
        return hf__ok(a->err);
    }
    if (status != HF_OK)
        return status;
    there = !ec_answer_succeeded(answer.json);
    if (!there)
        q->own.create_revision = q->own.mod_revision = ec_answer_revision(answer.json);
    ec_answer_release(&answer);
    if (there && q->state == EC_OUTSIDE && q->count == 1)
        return came_twice(q);
    if (there || q->own.create_revision == 0)
        return find_own(q); /* a request that was given up has come through after all */
    ec_queue_move(q, EC_INSIDE);
    note_alive(q, lease.id, lease.sent_at_ns);
    return HF_OK;
}

enum hf_status ec_queue_keep_alive(struct ec_queue *q)
{
    struct ec_attempt *a = q->attempt;
    struct ec_request request = ec_queue_request(q);
    struct ec_lease lease;
    struct ec_answer answer;
    enum ec_verdict verdict;
    enum hf_status status;

    /* We are alive, so our key is no reason to let the lease go. */
    note_alive(q, q->lease, a->store->base.host->now_ns());
    status = ec_lease_class(&request, 0, EC_USE_WAITING, &lease);
    if (status != HF_OK || lease.id == q->lease)
        return status;
    /* From now on it may be on either, and nobody keeps the old one alive. */
    q->lease = lease.id;
    status = ec_party_put(q, &request, lease.id, &answer, &verdict);
    ec_queue_move(q, EC_INSIDE);
    if (verdict == EC_NO_LEASE) {
        ec_lease_retire(a->store, lease.id);
        return hf__ok(a->err);
    }
    if (status != HF_OK)
        return status;
    if (ec_answer_succeeded(answer.json))
        q->own.mod_revision = ec_answer_revision(answer.json); /* else the next inspection tells */
    ec_answer_release(&answer);
    return HF_OK;
}
