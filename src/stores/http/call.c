/* call.c - one request and its answer. */
#include "base/base.h"
#include "stores/http/http.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 2000
#define ASKS_MAX   2 /* of what only looks: a kept connection may turn out to be dead */

bool ht_body_made(cJSON **body, bool added, struct hf_error *err)
{
    if (added)
        return true;
    cJSON_Delete(*body);
    *body = NULL;
    (void)hf__nomem(err);
    return false;
}

cJSON *ht_body(struct ht_store *store, const struct hf_claim *claim, struct hf_error *err)
{
    cJSON *body;

    if (!hf__utf8_valid(claim->name)) {
        (void)hf__fail_lock(err, HF_INVALID, claim->name, store->url.common.shown,
                            ": a name sent over HTTP has to be UTF-8");
        return NULL;
    }
    body = cJSON_CreateObject();
    (void)ht_body_made(&body,
                       body != NULL && cJSON_AddStringToObject(body, "name", claim->name) != NULL &&
                           cJSON_AddStringToObject(body, "owner", claim->owner) != NULL,
                       err);
    return body;
}

struct hf__http_request ht_request(const struct ht_store *store, const char *path, const char *json)
{
    return (struct hf__http_request){.endpoint = store->url.endpoint,
                                     .path = path,
                                     .json = json,
                                     .json_len = json != NULL ? strlen(json) : 0,
                                     .auth = store->url.auth};
}

/* An answer came: whose? */
static enum hf_status judge(struct ht_store *store, const struct ht_call *call,
                            struct hf__http *http, cJSON **out, struct hf_error *err)
{
    const char *word = hf__http_header(http, "Holdfast-Status");
    enum hf_status status;
    cJSON *json;

    if (word == NULL || !ht_status(word, &status))
        return ht_stranger(store, call, http->http_status, err);
    json = ht_parse(http->body, http->len);
    if (json == NULL) /* the header tells what became of it; what else there was to say is lost */
        return status == HF_OK ? ht_stranger(store, call, http->http_status, err)
                               : ht_problem(NULL, status, call->lock, store->url.common.shown, err);
    *out = json;
    return status == HF_OK ? hf__ok(err)
                           : ht_problem(json, status, call->lock, store->url.common.shown, err);
}

/* One try. *again: it was a look, and the connection was to blame. */
static enum hf_status ask(struct ht_store *store, struct ht_call *call, const char *json,
                          cJSON **out, bool *again, struct hf_error *err)
{
    struct hf__http_request request = ht_request(store, call->path, json);
    int64_t from_ns = store->base.host->now_ns();
    struct hf__http *http = hf__http_take(&store->pool);
    enum hf__http_fate fate;
    enum hf_status status;

    *again = false;
    if (http == NULL)
        return hf__nomem(err);
    fate = hf__http_exchange(http, &request, &call->patience, CONNECT_MS);
    call->http_status = fate == HF__HTTP_ANSWERED ? http->http_status : 0;
    if (fate == HF__HTTP_ANSWERED) {
        status = judge(store, call, http, out, err);
    } else {
        status = ht_unanswered(store, call, http, fate, err);
        *again = fate == HF__HTTP_NO_ANSWER && json == NULL && !http->cancelled;
        hf__http_silent(&store->pool, from_ns);
    }
    if (fate == HF__HTTP_ANSWERED)
        hf__http_give(&store->pool, http);
    else
        hf__http_drop(&store->pool, http);
    return status;
}

enum hf_status ht_call(struct ht_store *store, struct ht_call *call, cJSON **out,
                       int64_t *sent_at_ns, struct hf_error *err)
{
    char *json = call->body != NULL ? cJSON_PrintUnformatted(call->body) : NULL;
    enum hf_status status;
    bool again = true;

    *out = NULL;
    *sent_at_ns = store->base.host->now_ns();
    if (call->body != NULL && json == NULL)
        return hf__nomem(err);
    status = HF_UNREACHABLE;
    for (int i = 0; i < ASKS_MAX && again; i++)
        status = ask(store, call, json, out, &again, err);
    if (json != NULL)
        explicit_bzero(json, strlen(json)); /* the owner is in it */
    cJSON_free(json);
    return status;
}
