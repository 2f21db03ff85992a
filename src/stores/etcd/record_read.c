/* record_read.c - reading records: one, or all whose keys begin alike. Whether one has expired is
 * judged by the Date of the answer that it came in. */
#include "base/base.h"
#include "stores/etcd/etcd.h"
#include "stores/etcd/record.h"

#include <string.h>

#define PAGE      64 /* records per request: that many of the longest fit into an answer */
#define PAGES_MAX 100000

/* A reading under way. */
struct reading {
    struct ec_request request;
    size_t key_at; /* where in etcd's key the record's begins */
    hf_record_fn *fn;
    void *data;
    bool stopped;
    char damaged[HF_RECORD_KEY_MAX + 1]; /* the first that cannot be read; "": none */
};

static struct reading begin(struct hf_store_base *base, const struct hf_record_query *query,
                            struct ec_record_key *start, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;

    ec_record_key(start, store->url.prefix, query->name, query->key);
    return (struct reading){
        .request = {.store = store,
                    .lock = query->name,
                    .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                    .err = err},
        .key_at = start->len - strlen(query->key)};
}

/* Shows key i of an answer that was given at now_ms. False: no memory. */
static bool show(struct reading *r, const cJSON *json, size_t i, int64_t now_ms)
{
    struct hf_record record = {0};
    struct ec_item item;
    bool nomem;

    if (!ec_answer_item(json, i, &item, &nomem))
        return !nomem; /* nothing that etcd would send */
    if (item.key_len <= r->key_at || item.key_len - r->key_at > HF_RECORD_KEY_MAX ||
        strlen(item.key) != item.key_len) {
        ec_item_release(&item); /* no key of a record: somebody else's */
        return true;
    }
    record.key = item.key + r->key_at;
    if (!ec_record_parse(item.value, item.value_len, &record)) {
        if (r->damaged[0] == '\0')
            hf__copy_printable(r->damaged, sizeof r->damaged, record.key);
    } else if (!ec_record_expired(&record, now_ms)) {
        r->stopped = !r->fn(&record, r->data);
    }
    ec_item_release(&item);
    return true;
}

/* Shows what a page has, and releases it. */
static enum hf_status show_all(struct reading *r, struct ec_answer *answer)
{
    size_t count = ec_answer_kv_count(answer->json);
    enum hf_status status = HF_OK;

    ec_date_note(r->request.store, answer);
    if (answer->date_ms == 0)
        status = ec_date_missing(&r->request);
    for (size_t i = 0; i < count && status == HF_OK && !r->stopped; i++)
        if (!show(r, answer->json, i, answer->date_ms))
            status = hf__nomem(r->request.err);
    ec_answer_release(answer);
    return status;
}

static enum hf_status conclude(const struct reading *r)
{
    if (r->damaged[0] == '\0')
        return hf__ok(r->request.err);
    return hf__fail_lock(
        r->request.err, HF_CORRUPT, r->request.lock, r->request.store->url.common.shown,
        ": its record \"%s\" is damaged; delete its key (holdfast-etcd(7))", r->damaged);
}

enum hf_status ec_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err)
{
    struct ec_record_key key;
    struct reading r = begin(base, query, &key, err);
    struct ec_range range = ec_key_range(&key);
    struct ec_text body;
    struct ec_call call = {.lock = query->name,
                           .path = "/v3/kv/range",
                           .body = &body,
                           .patience = r.request.patience,
                           .repeatable = true,
                           .dated = true};
    struct ec_answer answer;
    enum hf_status status;

    r.fn = fn;
    r.data = data;
    ec_text_clear(&body);
    ec_text_add(&body, "{");
    ec_text_range(&body, &range);
    ec_text_add(&body, "}");
    status = ec_call(r.request.store, &call, &answer, NULL, err);
    if (status != HF_OK)
        return status;
    if (now_ms != NULL)
        *now_ms = answer.date_ms;
    status = show_all(&r, &answer);
    return status == HF_OK ? conclude(&r) : status;
}

enum hf_status ec_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err)
{
    struct ec_record_key start;
    struct reading r = begin(base, query, &start, err);
    enum hf_status status = HF_OK;
    struct ec_scan scan;

    r.fn = fn;
    r.data = data;
    ec_scan_init(&scan, &r.request, start.text, start.len, PAGE);
    for (int i = 0; i < PAGES_MAX && scan.more && status == HF_OK && !r.stopped; i++) {
        struct ec_answer answer;

        status = ec_scan_page(&scan, true, &answer);
        if (status != HF_OK)
            ec_answer_release(&answer);
        else if (answer.json != NULL) /* NULL: a shorter page is next */
            status = show_all(&r, &answer);
    }
    return status == HF_OK ? conclude(&r) : status;
}
