/* fence.c - fenced keys: the mark beside the key is read and judged, and one transaction changes
 * both, if the mark is still as it was read. The mark of KEY is the key KEY 0x1f "fence". */
#include "base/base.h"
#include "core/fence_text.h"
#include "stores/etcd/base64.h"
#include "stores/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 64 /* how often the mark may change under us */

enum { MARK_KEY_SIZE = HF_FENCE_KEY_MAX + 8 };

/* One request on a fenced key. */
struct work {
    struct ec_store *store;
    const struct hf_fence_request *asked;
    struct ec_request request;
    char mark_key[MARK_KEY_SIZE];
    size_t mark_key_len;
    uint64_t seen;                  /* the mod revision of the mark; 0: there is none */
    char text[HF__FENCE_TEXT_SIZE]; /* of the new mark; "": it stays */
    char *buffer;                   /* for the transaction */
    size_t size;
    bool done;
};

static enum hf_status fail(const struct work *w, enum hf_status status, const char *what)
{
    return hf__fail(w->request.err, status, "key \"%.60s\" in store %.80s: %s", w->asked->key,
                    w->store->url.common.shown, what);
}

static struct ec_range mark_range(const struct work *w)
{
    return (struct ec_range){.key = w->mark_key, .key_len = w->mark_key_len};
}

/* Judges the request by the mark that is there. */
static enum hf_status judge(struct work *w, const cJSON *answer, struct hf_fence_mark *mark)
{
    bool there = ec_answer_kv_count(answer) > 0;
    struct ec_item item = {0};
    enum hf_status status;
    bool nomem = false;

    if (there && !ec_answer_item(answer, 0, &item, &nomem))
        return nomem ? hf__nomem(w->request.err)
                     : ec_nonsense(NULL, w->store->url.common.shown, w->request.err);
    w->seen = item.mod_revision;
    status = hf__fence_judge(w->asked, there ? item.value : NULL, w->store->base.host->wall_us(),
                             mark, w->text);
    ec_item_release(&item);
    if (status == HF_CORRUPT)
        return fail(w, status, "its mark is damaged: fence reset makes a new one");
    return status;
}

static enum hf_status read_mark(struct work *w, struct hf_fence_mark *mark)
{
    struct ec_range range = mark_range(w);
    struct ec_text body;
    struct ec_call call = {
        .path = "/v3/kv/range", .body = &body, .patience = w->request.patience, .repeatable = true};
    struct ec_answer answer;
    enum hf_status status;

    ec_text_clear(&body);
    ec_text_add(&body, "{");
    ec_text_range(&body, &range);
    ec_text_add(&body, "}");
    status = ec_call(w->store, &call, &answer, NULL, w->request.err);
    if (status != HF_OK)
        return status;
    status = judge(w, answer.json, mark);
    ec_answer_release(&answer);
    return status;
}

/* lease 0: for good. */
static void make_body(struct work *w, int64_t lease, struct ec_text *body)
{
    const struct hf_fence_request *asked = w->asked;
    struct ec_range mark = mark_range(w);
    struct ec_range key = {.key = asked->key, .key_len = strlen(asked->key)};

    ec_txn_begin_in(body, w->buffer, w->size);
    ec_txn_compare(body, &mark, "MOD", "EQUAL", w->seen);
    ec_txn_then(body);
    if (w->text[0] != '\0')
        ec_txn_put_bytes(body, &mark, w->text, strlen(w->text), 0);
    if (asked->op == HF_FENCE_SET)
        ec_txn_put_bytes(body, &key, asked->value_len > 0 ? asked->value : "", asked->value_len,
                         lease);
    else if (asked->op == HF_FENCE_DEL)
        ec_txn_delete(body, &key, false);
    ec_txn_end(body);
}

/* HF_OK with w->done, or when the mark is not as it was read any more. Sent once: a late copy would
 * undo what the same holder has written since. */
static enum hf_status change(struct work *w)
{
    struct ec_text body;
    struct ec_call call = {.path = "/v3/kv/txn", .body = &body, .patience = w->request.patience};
    struct ec_lease lease = {0};
    struct ec_answer answer;
    enum hf_status status = HF_OK;

    if (w->asked->op == HF_FENCE_SET && w->asked->ttl_ms > 0)
        status = ec_lease_private(&w->request, 0, w->asked->ttl_ms, &lease);
    if (status != HF_OK)
        return status;
    make_body(w, lease.id, &body);
    status = ec_call(w->store, &call, &answer, NULL, w->request.err);
    if (status == HF_OK) {
        w->done = ec_answer_succeeded(answer.json);
        ec_answer_release(&answer);
    }
    if (lease.id != 0 && !w->done && status != HF_UNKNOWN)
        ec_lease_drop(w->store, lease.id);
    return status;
}

static enum hf_status try(struct work *w, struct hf_fence_mark *mark)
{
    enum hf_status status = read_mark(w, mark);

    if (status != HF_OK)
        return status;
    /* What was read was true while we asked, and there is nothing else to do. */
    w->done = w->asked->op == HF_FENCE_READ_KEY ||
              (w->asked->op == HF_FENCE_ENTER_KEY && w->text[0] == '\0');
    return w->done ? HF_OK : change(w);
}

/* Keys of locks, records and marks have control characters in them; nobody writes these but us. */
static bool is_plain(const char *key)
{
    for (; *key != '\0'; key++)
        if ((unsigned char)*key < ' ')
            return false;
    return true;
}

enum hf_status ec_fence(struct hf_store_base *base, const struct hf_fence_request *request,
                        struct hf_fence_mark *mark, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    struct work w = {.store = store,
                     .asked = request,
                     .request = {.store = store,
                                 .patience = {.deadline_ns = request->deadline_ns, .cancel_fd = -1},
                                 .err = err}};
    enum hf_status status = HF_OK;

    if (!is_plain(request->key))
        return fail(&w, HF_INVALID, "it has a control character in it");
    w.mark_key_len =
        (size_t)snprintf(w.mark_key, sizeof w.mark_key, "%s%cfence", request->key, EC_NAME_END);
    w.size = EC_REQUEST_MAX + EC_BASE64_LEN(request->value_len) + EC_BASE64_LEN(sizeof w.text);
    w.buffer = malloc(w.size);
    if (w.buffer == NULL)
        return hf__nomem(err);
    for (int i = 0; i < TRIES_MAX && status == HF_OK && !w.done; i++)
        status = try(&w, mark);
    free(w.buffer);
    if (status == HF_OK && !w.done)
        return fail(&w, HF_UNREACHABLE, "others keep raising its mark; try again");
    return status == HF_OK ? hf__ok(err) : status;
}
