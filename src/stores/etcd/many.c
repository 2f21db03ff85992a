/* many.c - renewing many holds at once: the lease that they share is kept alive, and their keys are
 * read in one go. A hold that is not as it should be is renewed on its own, which finds out why. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <string.h>

#define LOOKS_MAX    100                /* keys in one transaction; etcd allows 128 by default */
#define LOOK_ROOM    (2 * EC_KEY_MAX)   /* what one more key may add to a request              */
#define RENEW_MAX_NS (5 * HF__NS_PER_S) /* as for a single one                                 */

/* Holds of one ttl, in a row. */
struct row {
    const struct hf_claim *claims;
    struct hf_grant *grants;
    enum hf_status *results;
    size_t count;
    bool waited[LOOKS_MAX];
};

/* Whether the hold is on the lease of its class, as far as we know, and which key it has. */
static bool is_plain(struct ec_store *store, const struct hf_claim *claim, bool *waited)
{
    bool expired;

    return ec_is_kept(claim) && ec_hold_known(store, claim->owner, waited, &expired) && !expired;
}

/* Asks for the keys of as many holds as fit. row->count comes with how many there are at most. */
static void ask_for_keys(struct ec_store *store, struct row *row, struct ec_text *body)
{
    size_t count = 0;

    ec_txn_begin(body);
    ec_txn_then(body);
    while (count < row->count && count < LOOKS_MAX && sizeof body->data - body->len > LOOK_ROOM) {
        const struct hf_claim *claim = &row->claims[count];
        struct ec_keys keys;
        struct ec_range own;

        if (claim->ttl_ms != row->claims[0].ttl_ms || !is_plain(store, claim, &row->waited[count]))
            break;
        ec_keys_make(&keys, store->url.prefix, claim->name, claim->owner);
        ec_keys_use(&keys, row->waited[count++]);
        own = ec_keys_own(&keys);
        ec_txn_range(body, &own, EC_BY_KEY, 0, 0);
    }
    ec_txn_end(body);
    row->count = count;
}

static bool still_held(const cJSON *part, const struct hf_claim *claim, int64_t lease)
{
    struct ec_kv kv;

    return ec_answer_kv(part, 0, &kv) && kv.create_revision == claim->token && kv.lease == lease &&
           kv.record.ttl_ms == claim->ttl_ms;
}

/* Keeps the lease alive, and reads. HF_OK with answer->json NULL: the server does not take so many
 * keys at once. */
static enum hf_status read_row(struct ec_store *store, const struct row *row,
                               const struct ec_text *body, struct ec_lease *lease,
                               struct ec_answer *answer, struct hf_error *err)
{
    const struct hf_claim *first = &row->claims[0];
    struct ec_patience patience = {
        .deadline_ns = hf__time_add(store->base.host->now_ns(), RENEW_MAX_NS), .cancel_fd = -1};
    struct ec_call call = {
        .lock = first->name, .path = "/v3/kv/txn", .body = body, .repeatable = true};
    enum ec_verdict verdict;
    enum hf_status status;

    answer->json = NULL;
    for (size_t i = 0; i < row->count; i++)
        if (row->claims[i].deadline_ns < patience.deadline_ns)
            patience.deadline_ns = row->claims[i].deadline_ns;
    /* First the lease, then the look: a key seen on it has all of its new life before it. */
    status = ec_lease_class(store, first->name, first->ttl_ms, false, &patience, lease, err);
    if (status != HF_OK)
        return status;
    call.patience = patience;
    status = ec_call(store, &call, answer, &verdict, err);
    return verdict == EC_REFUSED ? HF_OK : status;
}

static enum hf_status renew_row(struct ec_store *store, struct row *row, const struct ec_text *body,
                                struct hf_error *err)
{
    struct ec_lease lease;
    struct ec_answer answer;
    enum hf_status status = read_row(store, row, body, &lease, &answer, err);

    for (size_t i = 0; i < row->count; i++)
        row->results[i] = status;
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < row->count; i++) {
        const struct hf_claim *claim = &row->claims[i];
        struct ec_hold *none = NULL;
        struct hf_error own_err;

        if (still_held(ec_answer_part(answer.json, i), claim, lease.id)) {
            row->grants[i].sent_at_ns = lease.sent_at_ns;
            ec_hold_note(store, &none, claim->owner, row->waited[i], lease.id,
                         lease.sent_at_ns + (int64_t)claim->ttl_ms * HF__NS_PER_MS);
            continue;
        }
        row->results[i] = ec_renew(&store->base, claim, &row->grants[i], &own_err);
        if (row->results[i] != HF_OK && status == HF_OK) {
            status = row->results[i];
            *err = own_err;
        }
    }
    ec_answer_release(&answer);
    return status;
}

enum hf_status ec_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    enum hf_status status = HF_OK;
    size_t done = 0;

    while (done < count) {
        struct row row = {.claims = claims + done,
                          .grants = grants + done,
                          .results = results + done,
                          .count = count - done};
        struct ec_text body;
        struct hf_error row_err;
        enum hf_status row_status;

        ask_for_keys(store, &row, &body);
        if (row.count > 1) {
            row_status = renew_row(store, &row, &body, &row_err);
        } else {
            row.count = 1;
            row_status = ec_renew(base, &claims[done], &grants[done], &row_err);
            results[done] = row_status;
        }
        if (row_status != HF_OK && status == HF_OK) {
            status = row_status;
            if (err != NULL)
                *err = row_err;
        }
        done += row.count;
    }
    return status == HF_OK ? hf__ok(err) : status;
}
