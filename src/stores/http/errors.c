/* errors.c - what went wrong, as a status and in words: the server's own, if it is the server's. */
#include "base/base.h"
#include "stores/http/http.h"

#include <string.h>

bool ht_status(const char *name, enum hf_status *out)
{
    static const struct {
        const char *name;
        enum hf_status status;
    } known[] = {
#define X(symbol, value, text) {#symbol, symbol},
        HF_STATUS_MAP(X)
#undef X
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i].status;
            return true;
        }
    return false;
}

enum hf_status ht_problem(const cJSON *object, enum hf_status status, const char *lock,
                          const char *shown, struct hf_error *err)
{
    char detail[HF_ERROR_TEXT_SIZE];

    /* It was not the caller who gave up: the server ends, and another may be there soon. */
    if (status == HF_CANCELLED)
        return hf__fail_lock(err, HF_UNREACHABLE, lock, shown, ": the server is shutting down");
    hf__copy_printable(detail, sizeof detail, ht_text(object, "detail", ""));
    if (detail[0] != '\0')
        (void)hf__fail(err, status, "%s", detail);
    else
        (void)hf__fail_lock(err, status, lock, shown, ": %s", hf_status_text(status));
    if (err != NULL)
        err->retry_after_ms = ht_number(object, "retry_after_ms", 0);
    return status;
}

enum hf_status ht_stranger(const struct ht_store *store, const struct ht_call *call,
                           long http_status, struct hf_error *err)
{
    return hf__fail_lock(
        err, call->body != NULL ? HF_UNKNOWN : HF_UNREACHABLE, call->lock, store->url.common.shown,
        ": the answer (%ld) is not from holdfast serve, but perhaps from a proxy%s", http_status,
        call->body != NULL ? "; it may have taken effect" : "");
}

enum hf_status ht_unanswered(const struct ht_store *store, const struct ht_call *call,
                             const struct hf__http *http, enum hf__http_fate fate,
                             struct hf_error *err)
{
    bool unknown = fate == HF__HTTP_NO_ANSWER && call->body != NULL;
    char why[HF_ERROR_TEXT_SIZE];
    enum hf_status status = hf__http_explain(http, store->url.common.shown, why, sizeof why);

    if (!unknown && http->cancelled)
        return hf__fail_lock(err, HF_CANCELLED, call->lock, store->url.common.shown, ": cancelled");
    return hf__fail_lock(err, unknown ? HF_UNKNOWN : status, call->lock, store->url.common.shown,
                         ": %.120s%s", why, unknown ? "; it may have taken effect" : "");
}
