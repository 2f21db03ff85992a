/* renew_many.c - renewing many holds at once: the lease that they share is kept alive, and their
 * keys are read in one go. Those that are on another lease are put on it, again in one go. A hold
 * that is not as it should be is renewed on its own, which finds out why. */
#include "base/base.h"
#include "stores/etcd/base64.h"
#include "stores/etcd/etcd.h"

#include <string.h>

#define KEYS_MAX     100                /* keys in one transaction; etcd allows 128 by default */
#define KEY_ROOM     (2 * EC_KEY_MAX)   /* what one more key may add to a request */
#define MOVE_EXTRA   160                /* what a compare or a put has besides key and value */
#define SINGLES_MAX  8                  /* renewed on their own in one row */
#define RENEW_MAX_NS (5 * HF__NS_PER_S) /* as for a single one */

enum state {
    HELD,      /* on the lease that is kept alive */
    ELSEWHERE, /* on another, as an attempt leaves it */
    REVOKED,   /* there, with the mark */
    ODD,       /* there, but not as we thought */
    GONE       /* not there, or not with this token */
};

/* Holds of one ttl, in a row. */
struct row {
    struct ec_store *store;
    const struct hf_claim *claims;
    struct hf_grant *grants;
    enum hf_status *results;
    size_t count;
    bool waited[KEYS_MAX];
    bool gone[KEYS_MAX]; /* heard to be */
    enum state states[KEYS_MAX];
    struct ec_lease lease;
    struct hf__patience patience;
    cJSON *seen;    /* the answer that has their keys; NULL: the server takes no such request */
    size_t singles; /* renewed on their own so far */
    enum hf_status status;
    struct hf_error *err;
};

/* Whether the hold is on a lease of its class, as far as we know, and which key it has. */
static bool is_plain(struct row *row, size_t i)
{
    const struct hf_claim *claim = &row->claims[i];
    struct ec_known known;

    if (!ec_is_kept(claim) || !ec_hold_known(row->store, claim->owner, &known) || known.expired ||
        known.token != claim->token)
        return false;
    row->waited[i] = known.waited;
    row->gone[i] = known.gone;
    return true;
}

static struct ec_range key_of(const struct row *row, size_t i, struct ec_keys *keys)
{
    ec_keys_make(keys, row->store->url.prefix, row->claims[i].name, row->claims[i].owner);
    ec_keys_use(keys, row->waited[i]);
    return ec_keys_own(keys);
}

/* Asks for the keys of as many holds as fit. row->count comes with how many there are at most. */
static void ask_for_keys(struct row *row, struct ec_text *body)
{
    size_t count = 0;

    ec_txn_begin(body);
    ec_txn_then(body);
    while (count < row->count && count < KEYS_MAX && body->size - body->len > KEY_ROOM) {
        struct ec_keys keys;
        struct ec_range own;

        if (row->claims[count].ttl_ms != row->claims[0].ttl_ms || !is_plain(row, count))
            break;
        own = key_of(row, count++, &keys);
        ec_txn_range(body, &own, EC_BY_KEY, 0, 0);
    }
    ec_txn_end(body);
    row->count = count;
}

static void set_patience(struct row *row)
{
    row->patience = (struct hf__patience){
        .deadline_ns = hf__time_add(row->store->base.host->now_ns(), RENEW_MAX_NS),
        .cancel_fd = -1};
    for (size_t i = 0; i < row->count; i++)
        if (row->claims[i].deadline_ns < row->patience.deadline_ns)
            row->patience.deadline_ns = row->claims[i].deadline_ns;
}

/* Keeps the lease alive, and reads. */
static enum hf_status read_row(struct row *row, const struct ec_text *body)
{
    const struct hf_claim *first = &row->claims[0];
    struct ec_call call = {
        .lock = first->name, .path = "/v3/kv/txn", .body = body, .repeatable = true};
    struct ec_request request = {.store = row->store, .lock = first->name, .err = row->err};
    struct ec_answer answer = {0};
    enum ec_verdict verdict;
    enum hf_status status;

    set_patience(row);
    /* First the lease, then the key: one seen on it has all of its new life before it. */
    request.patience = call.patience = row->patience;
    status = ec_lease_class(&request, first->ttl_ms, EC_USE_KEPT, &row->lease);
    if (status != HF_OK)
        return status;
    status = ec_call(row->store, &call, &answer, &verdict, row->err);
    row->seen = answer.json;
    return verdict == EC_REFUSED ? HF_OK : status;
}

static enum state state_of(const struct row *row, size_t i)
{
    const struct hf_claim *claim = &row->claims[i];
    struct ec_kv kv;

    if (row->gone[i])
        return GONE;
    if (row->seen == NULL)
        return ODD;
    if (!ec_answer_kv(ec_answer_part(row->seen, i), 0, &kv) || kv.create_revision != claim->token)
        return GONE;
    if (kv.said.revoked)
        return REVOKED;
    if (kv.said.kind != EC_KIND_KEPT || kv.said.ttl_ms != claim->ttl_ms)
        return ODD;
    return kv.lease == row->lease.id ? HELD : ELSEWHERE;
}

static void renewed(struct row *row, size_t i)
{
    const struct hf_claim *claim = &row->claims[i];
    struct ec_hold *none = NULL;

    row->results[i] = HF_OK;
    row->grants[i].sent_at_ns = row->lease.sent_at_ns;
    ec_hold_note(row->store, &none, claim->owner,
                 &(struct ec_hold_news){.waited = row->waited[i],
                                        .lease = row->lease.id,
                                        .until_ns = row->lease.sent_at_ns +
                                                    (int64_t)claim->ttl_ms * HF__NS_PER_MS,
                                        .token = claim->token});
}

static void failed(struct row *row, size_t i, enum hf_status status, const struct hf_error *err)
{
    row->results[i] = status;
    if (row->status != HF_OK)
        return;
    row->status = status;
    *row->err = *err;
}

static bool unanswered(enum hf_status status)
{
    return status == HF_UNREACHABLE || status == HF_UNKNOWN;
}

/* On its own. Once nobody answers, the others are not asked for either: they have time left, and
 * whoever the keeper comes to after them may not. */
static void renew_single(struct row *row, size_t i)
{
    struct hf_error err = *row->err;
    enum hf_status status = row->status;

    if (!unanswered(status)) {
        status = ec_renew(&row->store->base, &row->claims[i], &row->grants[i], &err);
        row->singles++;
    }
    if (status == HF_OK)
        row->results[i] = HF_OK;
    else
        failed(row, i, status, &err);
}

/* Not there, as was read. Why is found out for the first few only. */
static void lose(struct row *row, size_t i)
{
    const struct hf_claim *claim = &row->claims[i];
    struct hf_error err;
    struct ec_kv kv;

    if (row->singles < SINGLES_MAX && !unanswered(row->status)) {
        renew_single(row, i);
        return;
    }
    row->grants[i].loss = HF_LOSS_EXPIRED;
    if (row->seen != NULL && ec_answer_kv(ec_answer_part(row->seen, i), 0, &kv))
        row->grants[i].loss = HF_LOSS_TAKEN;
    (void)ec_hold_forget(row->store, claim->owner);
    failed(row, i, ec_lost(claim->name, row->store->url.common.shown, row->grants[i].loss, &err),
           &err);
}

static void refuse(struct row *row, size_t i)
{
    struct hf_error err;
    struct ec_kv kv;

    if (ec_answer_kv(ec_answer_part(row->seen, i), 0, &kv))
        failed(row, i, ec_revoked(row->store, &row->claims[i], &kv, &row->grants[i], &err), &err);
}

/* The key of a hold that has to move, and its value there. */
static bool has_to_move(const struct row *row, size_t i, struct ec_kv *kv, char value[EC_VALUE_MAX])
{
    if (row->states[i] != ELSEWHERE || !ec_answer_kv(ec_answer_part(row->seen, i), 0, kv))
        return false;
    ec_said_format(value, &kv->said);
    return true;
}

/* Adds the moves of holds from *i on, as many as fit, and leaves *i behind them. Their number. */
static size_t add_moves(const struct row *row, size_t *i, struct ec_text *body)
{
    size_t room = EC_REQUEST_MAX;
    size_t from = *i;
    size_t count = 0;
    struct ec_keys keys;
    struct ec_range own;
    struct ec_kv kv;
    char value[EC_VALUE_MAX];

    ec_txn_begin(body);
    for (; *i < row->count; ++*i) {
        size_t put;

        if (!has_to_move(row, *i, &kv, value))
            continue;
        own = key_of(row, *i, &keys);
        put = EC_BASE64_LEN(own.key_len) + EC_BASE64_LEN(strlen(value)) + MOVE_EXTRA;
        if (room < body->len + put + EC_BASE64_LEN(own.key_len) + MOVE_EXTRA)
            break;
        room -= put;
        /* That a key was not changed since says as much as that it is the same one. */
        ec_txn_compare(body, &own, "MOD", "EQUAL", kv.mod_revision);
        count++;
    }
    ec_txn_then(body);
    for (size_t k = from; k < *i; k++)
        if (has_to_move(row, k, &kv, value)) {
            own = key_of(row, k, &keys);
            ec_txn_put(body, &own, value, row->lease.id);
        }
    ec_txn_end(body);
    return count;
}

/* Puts holds on the lease that is kept alive. A request that was not answered did it or did not:
 * the next renewal sees. */
static void move_row(struct row *row)
{
    struct ec_text body;
    struct ec_call call = {.lock = row->claims[0].name, .path = "/v3/kv/txn", .body = &body};

    for (size_t i = 0, from = 0; i < row->count; from = i) {
        struct ec_answer answer = {0};
        struct hf_error err;
        enum ec_verdict verdict = EC_FINE;
        enum hf_status status = HF_OK;
        bool moved = false;

        if (add_moves(row, &i, &body) == 0)
            continue;
        call.patience = row->patience;
        status = row->status == HF_OK ? ec_call(row->store, &call, &answer, &verdict, &err)
                                      : row->status;
        moved = status == HF_OK && ec_answer_succeeded(answer.json);
        if (verdict == EC_NO_LEASE)
            ec_lease_retire(row->store, row->lease.id);
        for (size_t k = from; k < i; k++) {
            if (row->states[k] != ELSEWHERE)
                continue;
            if (moved)
                renewed(row, k);
            else if (status == HF_OK || verdict == EC_REFUSED || verdict == EC_NO_LEASE)
                row->states[k] = ODD;
            else
                failed(row, k, status, &err);
        }
        ec_answer_release(&answer);
    }
}

static void renew_row(struct row *row, const struct ec_text *body)
{
    row->status = read_row(row, body);
    for (size_t i = 0; i < row->count; i++) {
        row->states[i] = row->status == HF_OK || row->gone[i] ? state_of(row, i) : ODD;
        row->results[i] = row->status;
        if (row->states[i] == HELD)
            renewed(row, i);
    }
    if (row->status == HF_OK)
        move_row(row);
    for (size_t i = 0; i < row->count; i++)
        if (row->states[i] == REVOKED)
            refuse(row, i);
    for (size_t i = 0; i < row->count; i++)
        if (row->states[i] == GONE)
            lose(row, i);
    for (size_t i = 0; i < row->count; i++)
        if (row->states[i] == ODD)
            renew_single(row, i);
    cJSON_Delete(row->seen);
}

enum hf_status ec_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err)
{
    enum hf_status status = HF_OK;
    size_t done = 0;

    while (done < count) {
        struct hf_error row_err = {0};
        struct row row = {.store = (struct ec_store *)base,
                          .claims = claims + done,
                          .grants = grants + done,
                          .results = results + done,
                          .count = count - done,
                          .err = &row_err};
        struct ec_text body;

        ask_for_keys(&row, &body);
        if (row.count > 1) {
            renew_row(&row, &body);
        } else {
            row.count = 1;
            row.status = ec_renew(base, &claims[done], &grants[done], &row_err);
            results[done] = row.status;
        }
        if (row.status != HF_OK && status == HF_OK) {
            status = row.status;
            if (err != NULL)
                *err = row_err;
        }
        done += row.count;
    }
    return status == HF_OK ? hf__ok(err) : status;
}
