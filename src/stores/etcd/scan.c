/* scan.c - a range of keys, read page by page. */
#include "stores/etcd/etcd.h"

#include <string.h>

void ec_scan_init(struct ec_scan *scan, const struct ec_request *request, const char *start,
                  size_t len, int page)
{
    scan->request = *request;
    scan->page = page;
    scan->more = true;
    scan->start_len = len;
    memcpy(scan->start, start, len);
    ec_prefix_range(scan->start, &scan->start_len, scan->end, &scan->end_len);
}

/* The smallest key above the last one of a page. Above one that does not fit: the smallest that
 * does not begin like it, if there can be any. */
static bool next_start(struct ec_scan *scan, const cJSON *page)
{
    char next[EC_START_MAX + 1];
    bool cut;

    if (!ec_answer_key(page, ec_answer_kv_count(page) - 1, scan->start, EC_START_MAX,
                       &scan->start_len, &cut))
        return false;
    if (cut) {
        ec_prefix_range(scan->start, &scan->start_len, next, &scan->start_len);
        memcpy(scan->start, next, scan->start_len);
        scan->more = scan->start[0] != '\0';
    } else {
        scan->start[scan->start_len++] = '\0';
    }
    return true;
}

enum hf_status ec_scan_page(struct ec_scan *scan, bool dated, struct ec_answer *answer)
{
    const struct ec_request *request = &scan->request;
    struct ec_range range = {
        .key = scan->start, .key_len = scan->start_len, .end = scan->end, .end_len = scan->end_len};
    struct ec_text body;
    struct ec_call call = {.lock = request->lock,
                           .path = "/v3/kv/range",
                           .body = &body,
                           .patience = request->patience,
                           .repeatable = true,
                           .may_shrink = scan->page > 1,
                           .dated = dated};
    enum ec_verdict verdict;
    enum hf_status status;

    ec_text_clear(&body);
    ec_text_add(&body, "{");
    ec_text_range(&body, &range);
    ec_text_add(&body, ",\"limit\":\"%d\"}", scan->page);
    status = ec_call(request->store, &call, answer, &verdict, request->err);
    if (verdict == EC_TOO_LONG && call.may_shrink) {
        scan->page = (scan->page + 3) / 4; /* values may be large, others' too */
        return HF_OK;
    }
    if (status != HF_OK)
        return status;
    scan->more = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer->json, "more")) &&
                 ec_answer_kv_count(answer->json) > 0;
    if (scan->more && !next_start(scan, answer->json))
        return ec_nonsense(request->lock, request->store->url.common.shown, request->err);
    return HF_OK;
}
