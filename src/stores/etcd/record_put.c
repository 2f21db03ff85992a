/* record_put.c - writing a record.
 *
 * One transaction, one round trip: if the holder's key is there, with its owner and its create
 * revision, then the record is put unless what is there has that pair or a higher one. The answer
 * names a few records that have expired, too; these are deleted by a request that nobody waits
 * for. */
#include "base/base.h"
#include "stores/etcd/base64.h"
#include "stores/etcd/etcd.h"
#include "stores/etcd/record.h"

#include <stdlib.h>
#include <string.h>

#define EXPIRED_MAX 4 /* removed by one write, which leaves at most one more */

/* One write under way. */
struct put {
    struct ec_store *store;
    const struct hf_record_write *write;
    struct ec_request request;
    struct ec_keys holder;
    struct ec_record_key key;
    struct hf_record record; /* written_ms, until_ms: what it gets */
    char *buffer;            /* RAW_SIZE for the value, then BODY_SIZE for the request */
    size_t raw_len;
    bool held;         /* the answer said so */
    bool stale;        /* likewise */
    enum hf_loss loss; /* if it is not held */
};

enum {
    RAW_SIZE = EC_HEAD_SIZE + HF_RECORD_VALUE_MAX,
    BODY_SIZE = EC_BASE64_LEN(RAW_SIZE) + EC_REQUEST_MAX
};

/* When it is written and until when it is kept. */
static enum hf_status set_times(struct put *p)
{
    int64_t keep_ms = p->write->keep_ms;
    enum hf_status status = ec_date_now(&p->request, &p->record.written_ms);

    if (status != HF_OK)
        return status;
    if (keep_ms > INT64_MAX - p->record.written_ms)
        p->record.until_ms = INT64_MAX;
    else if (keep_ms != 0)
        p->record.until_ms = p->record.written_ms + keep_ms;
    return HF_OK;
}

/* Into p->buffer. */
static void make_raw(struct put *p)
{
    size_t head_len = ec_record_head(p->buffer, &p->record);

    memcpy(p->buffer + head_len, p->write->value, p->write->value_len);
    p->raw_len = head_len + p->write->value_len;
}

/* Unless what is there is as new or newer, the record, and its entry in the list of those that
 * expire. A key that is not there is not above anything: hence this way round. */
static void add_put(struct put *p, struct ec_text *body)
{
    const struct hf_record_write *write = p->write;
    struct ec_range key = ec_key_range(&p->key);
    struct ec_record_key expiry;
    struct ec_range entry;

    ec_txn_nest(body);
    ec_txn_compare_value(body, &key, "GREATER", p->buffer, EC_PAIR_LEN);
    ec_txn_then(body);
    ec_txn_otherwise(body);
    ec_txn_put_bytes(body, &key, p->buffer, p->raw_len, 0);
    if (p->record.until_ms != 0) {
        ec_expiry_key(&expiry, p->store->url.prefix, write->name, p->record.until_ms, write->key);
        entry = ec_key_range(&expiry);
        ec_txn_put_bytes(body, &entry, "", 0, 0);
    }
    ec_txn_unnest(body);
}

static void make_body(struct put *p, struct ec_text *body)
{
    struct ec_range own = ec_keys_own(&p->holder);
    struct ec_range queue = ec_keys_queue(&p->holder);
    struct ec_record_key first;
    struct ec_record_key last;
    struct ec_range expired;

    ec_expiry_key(&first, p->store->url.prefix, p->write->name, 0, "");
    ec_expiry_key(&last, p->store->url.prefix, p->write->name,
                  p->record.written_ms - EC_GRACE_MS + 1, "");
    expired = ec_key_range(&first);
    expired.end = last.text;
    expired.end_len = last.len;
    ec_txn_begin_in(body, p->buffer + RAW_SIZE, BODY_SIZE);
    ec_txn_compare(body, &own, "CREATE", "EQUAL", p->write->token);
    if (!ec_keys_waited(&p->holder))
        ec_txn_compare_word(body, &own, p->write->owner);
    ec_txn_then(body);
    add_put(p, body);
    ec_txn_range(body, &expired, EC_BY_KEY, EXPIRED_MAX, 0);
    ec_txn_otherwise(body);
    ec_txn_range(body, &queue, EC_OLDEST_FIRST, 1, 0);
    ec_txn_end(body);
}

/* If the record that the entry is about has not been written since, both; else the entry. */
static void add_removal(const struct put *p, const struct ec_item *item, const char *key,
                        struct ec_text *body)
{
    struct ec_range entry = {.key = item->key, .key_len = item->key_len};
    struct ec_record_key text;
    struct ec_range record;

    ec_record_key(&text, p->store->url.prefix, p->write->name, key);
    record = ec_key_range(&text);
    ec_txn_nest(body);
    ec_txn_compare(body, &record, "MOD", "EQUAL", item->mod_revision);
    ec_txn_then(body);
    ec_txn_delete(body, &record, false);
    ec_txn_delete(body, &entry, false);
    ec_txn_otherwise(body);
    ec_txn_delete(body, &entry, false);
    ec_txn_unnest(body);
}

/* Removes what has expired of other holds. What this hold wrote stays while it lasts: an older
 * write of it that comes late must still find it. */
static void remove_expired(const struct put *p, const cJSON *range)
{
    size_t count = ec_answer_kv_count(range);
    size_t found = 0;
    struct ec_text body;

    ec_txn_begin(&body);
    ec_txn_then(&body);
    for (size_t i = 0; i < count && i < EXPIRED_MAX; i++) {
        struct ec_item item;
        const char *key;
        bool nomem;

        if (!ec_answer_item(range, i, &item, &nomem))
            return;
        if (item.mod_revision < p->write->token &&
            ec_expiry_parse(item.key, item.key_len, p->store->url.prefix, p->write->name, &key)) {
            add_removal(p, &item, key, &body);
            found++;
        }
        ec_item_release(&item);
    }
    ec_txn_end(&body);
    if (found > 0)
        ec_send_unheard(p->store, "/v3/kv/txn", &body);
}

/* What the transaction did. */
static enum hf_status judge(struct put *p, const cJSON *answer)
{
    const cJSON *nested = ec_answer_part(answer, 0);
    struct ec_kv head;

    p->held = ec_answer_succeeded(answer);
    if (!p->held) {
        p->loss = ec_answer_kv(nested, 0, &head) && head.said.kind != EC_KIND_WAITING
                      ? HF_LOSS_TAKEN
                      : HF_LOSS_EXPIRED;
        return HF_OK;
    }
    p->stale = ec_answer_succeeded(nested);
    if (!p->stale && ec_answer_part(nested, 0) == NULL) /* it does not say that it was put */
        return ec_fail(p->write->name, p->store->url.common.shown, HF_UNKNOWN,
                       "etcd's answer does not tell whether the record was written",
                       p->request.err);
    remove_expired(p, ec_answer_part(answer, 1));
    return HF_OK;
}

/* For the key that the holder has if it waited, or if it did not. */
static enum hf_status try(struct put *p, bool waited)
{
    struct ec_text body;
    struct ec_call call = {.lock = p->write->name,
                           .path = "/v3/kv/txn",
                           .body = &body,
                           .patience = p->request.patience,
                           .dated = true};
    struct ec_answer answer;
    enum hf_status status;

    ec_keys_use(&p->holder, waited);
    make_body(p, &body);
    status = ec_call(p->store, &call, &answer, NULL, p->request.err);
    if (status != HF_OK)
        return status;
    ec_date_note(p->store, &answer);
    status = judge(p, answer.json);
    ec_answer_release(&answer);
    return status;
}

/* A hold that we know nothing of may have waited or not. */
static enum hf_status try_both(struct put *p, const struct ec_known *known, bool shared)
{
    enum hf_status status = try(p, known->waited);

    if (status == HF_OK && !p->held && !shared)
        status = try(p, true);
    return status;
}

enum hf_status ec_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct put p = {.store = store,
                    .write = write,
                    .request = {.store = store,
                                .lock = write->name,
                                .patience = {.deadline_ns = write->deadline_ns, .cancel_fd = -1},
                                .err = err},
                    .record = {.token = write->token, .number = write->number}};
    const char *shown = store->url.common.shown;
    struct ec_known known;
    bool shared = ec_hold_known(store, write->owner, &known);
    enum hf_status status;

    /* It was not renewed in time: nobody may count on it, whether or not its key is gone. */
    if (known.expired && known.token == write->token)
        return ec_lost(write->name, shown, HF_LOSS_EXPIRED, err);
    p.buffer = malloc(RAW_SIZE + BODY_SIZE);
    if (p.buffer == NULL)
        return hf__nomem(err);
    ec_keys_make(&p.holder, store->url.prefix, write->name, write->owner);
    ec_record_key(&p.key, store->url.prefix, write->name, write->key);
    status = set_times(&p);
    if (status == HF_OK) {
        make_raw(&p);
        status = try_both(&p, &known, shared);
    }
    free(p.buffer);
    if (status != HF_OK)
        return status;
    if (!p.held)
        return ec_lost(write->name, shown, p.loss, err);
    if (p.stale)
        return hf__fail_old_record(err, write->name, shown, write->key);
    return hf__ok(err);
}
