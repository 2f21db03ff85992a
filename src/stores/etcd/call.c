/* call.c - one request and its answer, by whichever server. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 1500 /* to connect, where there are other servers to turn to */
/* And where there are none. The first address of a name gets half of it: one behind which nobody is
 * must leave time for the other. */
#define CONNECT_ALONE_MS 3000
#define ROUND_MIN_NS     (300 * HF__NS_PER_MS)
#define HASTY_NS         (200 * HF__NS_PER_MS) /* for one in a hurry, once per server */
#define PAUSE_NS         (50 * HF__NS_PER_MS)
#define RESOLVE_MAX_NS   (1500 * HF__NS_PER_MS) /* kept back to find out what became of a request */
#define SIGN_INS_MAX     3                      /* per call */
#define ROUNDS_MAX       1000                   /* requests per call */

/* A call under way. In each round one server is asked. */
struct asking {
    struct ec_store *store;
    const struct ec_call *call;
    struct ec_answer *out;
    struct hf_error *err;
    struct hf__http *http;
    char endpoint[EC_ENDPOINT_MAX]; /* of the last round */
    unsigned serial;                /* of the auth token that was sent in it */
    size_t unsent;                  /* servers in a row that were not reached */
    unsigned signed_in;
    size_t hasty; /* rounds that were cut short on purpose */
    bool silent;  /* the last one was sent, and nobody answered in time */
    bool odd;     /* what answered the last one is not etcd */
    enum ec_verdict verdict;
    enum hf_status status; /* why the last round failed */
};

static enum hf_status sign_in(struct asking *asking);

void ec_answer_release(struct ec_answer *answer)
{
    cJSON_Delete(answer->json);
    answer->json = NULL;
}

static enum hf_status fail(struct asking *asking, enum hf_status status, const char *what)
{
    return ec_fail(asking->call->lock, asking->store->url.common.shown, status, what, asking->err);
}

/* All servers have to be of one cluster, else two clients could hold one lock. */
static bool same_cluster(struct ec_store *store, const cJSON *json)
{
    const char *cluster = ec_answer_cluster(json);
    bool same = true;

    if (cluster[0] == '\0' || strlen(cluster) >= sizeof store->cluster)
        return true;
    pthread_mutex_lock(&store->lock);
    if (store->cluster[0] == '\0')
        memcpy(store->cluster, cluster, strlen(cluster) + 1);
    else
        same = strcmp(store->cluster, cluster) == 0;
    pthread_mutex_unlock(&store->lock);
    return same;
}

/* {"error":..., "message":..., "code":N}, or inside {"error":{...}} for streams. */
static enum ec_verdict judge(const struct hf__http *http, const cJSON *json, char *message,
                             size_t size)
{
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
    const cJSON *where = cJSON_IsObject(error) ? error : json;
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(where, "message"));
    int64_t code = ec_answer_number(where, "code");

    if (code == 0)
        code = ec_answer_number(where, "grpc_code");
    if (json == NULL) {
        char raw[160];
        size_t len = http->len < sizeof raw - 1 ? http->len : sizeof raw - 1;

        if (len > 0)
            memcpy(raw, http->body, len);
        raw[len] = '\0';
        raw[strcspn(raw, "\r\n")] = '\0';
        hf__copy_printable(message, size, raw[0] != '\0' ? raw : "an answer that is not JSON");
    } else {
        hf__copy_printable(message, size, text != NULL ? text : error != NULL ? "an error" : "");
    }
    return ec_verdict(http->http_status, code, message);
}

/* How long this round may take. */
static int64_t round_until_ns(struct asking *asking, int64_t now_ns)
{
    const struct ec_call *call = asking->call;
    size_t servers = asking->store->url.common.host_count;
    int64_t left_ns = call->patience.deadline_ns - now_ns;
    int64_t back_ns = left_ns / 3 < RESOLVE_MAX_NS ? left_ns / 3 : RESOLVE_MAX_NS;
    int64_t share_ns;

    if (!call->repeatable)
        return call->patience.deadline_ns - back_ns;
    share_ns = left_ns / (int64_t)servers;
    /* Once around quickly: one server that is stuck must not hold up every start. */
    if (call->hasty && servers > 1 && asking->hasty++ < servers)
        share_ns = HASTY_NS;
    else if (share_ns < ROUND_MIN_NS)
        share_ns = ROUND_MIN_NS;
    return share_ns < left_ns ? now_ns + share_ns : call->patience.deadline_ns;
}

/* The server has done it. */
static void take_answer(struct asking *asking, cJSON *json)
{
    if (same_cluster(asking->store, json)) {
        asking->out->json = json;
        if (asking->call->dated)
            asking->out->date_ms = hf__http_date_ms(asking->http);
        asking->status = HF_OK;
        return;
    }
    cJSON_Delete(json);
    asking->status =
        fail(asking, HF_CORRUPT, "its servers belong to different clusters; correct the URL");
}

/* One that was answered. True: the call is over. */
static bool answered(struct asking *asking)
{
    const struct ec_call *call = asking->call;
    const struct ec_store *store = asking->store;
    char message[160];
    cJSON *json = ec_answer_parse(asking->http->body, asking->http->len);

    asking->verdict = judge(asking->http, json, message, sizeof message);
    if (asking->verdict == EC_FINE && !ec_answer_is_etcd(json)) {
        asking->verdict = EC_UNSURE;
        hf__copy_printable(message, sizeof message, "an answer that is not etcd's");
    }
    asking->odd = json == NULL || asking->verdict == EC_UNSURE;
    if (asking->verdict == EC_FINE) {
        take_answer(asking, json);
        return true;
    }
    cJSON_Delete(json);
    if (asking->verdict == EC_SIGN_IN && store->url.common.user[0] != '\0' && !call->signing_in &&
        asking->signed_in++ < SIGN_INS_MAX) {
        asking->status = sign_in(asking);
        return asking->status != HF_OK;
    }
    asking->status =
        ec_verdict_fail(asking->verdict, message, call->lock, store->url.common.shown, asking->err);
    if (asking->verdict == EC_UNSURE && !call->repeatable)
        asking->status = HF_UNKNOWN;
    return asking->verdict != EC_LATER && !(asking->verdict == EC_UNSURE && call->repeatable);
}

/* One that was not. True: the call is over. */
static bool unanswered(struct asking *asking, enum hf__http_fate fate)
{
    const struct ec_call *call = asking->call;
    const struct hf__http *http = asking->http;
    bool unknown = fate == HF__HTTP_NO_ANSWER && !call->repeatable;
    char what[200];

    asking->status = hf__http_explain(http, asking->endpoint, what, sizeof what);
    (void)fail(asking, asking->status, what);
    asking->verdict = http->code == CURLE_WRITE_ERROR ? EC_TOO_LONG : EC_UNSURE;
    if (asking->verdict == EC_TOO_LONG && call->may_shrink)
        return true;
    if (http->cancelled) {
        asking->status = unknown ? HF_UNKNOWN : fail(asking, HF_CANCELLED, "cancelled");
        return true;
    }
    if (asking->status == HF_DENIED)
        return true;
    if (fate == HF__HTTP_NOT_SENT)
        return ++asking->unsent >= asking->store->url.common.host_count;
    asking->unsent = 0;
    asking->silent = http->code == CURLE_OPERATION_TIMEDOUT;
    if (unknown)
        asking->status = HF_UNKNOWN;
    return unknown;
}

static enum hf__http_fate post(struct asking *asking)
{
    struct ec_store *store = asking->store;
    const struct ec_call *call = asking->call;
    char auth[HF__HTTP_AUTH_MAX];
    struct hf__http_request post = {.endpoint = asking->endpoint,
                                    .path = call->path,
                                    .json = call->body->data,
                                    .json_len = call->body->len,
                                    .auth = auth};
    struct hf__patience patience = call->patience;
    int64_t most_ms = store->url.common.host_count > 1 ? CONNECT_MS : CONNECT_ALONE_MS;
    int64_t sent_at_ns;
    int64_t connect_ms;
    enum hf__http_fate fate;

    pthread_mutex_lock(&store->lock);
    asking->serial = store->auth_serial;
    pthread_mutex_unlock(&store->lock);
    ec_where(store, asking->endpoint, auth);
    sent_at_ns = asking->out->sent_at_ns = store->base.host->now_ns();
    patience.deadline_ns = round_until_ns(asking, sent_at_ns);
    connect_ms = (patience.deadline_ns - sent_at_ns) / HF__NS_PER_MS;
    if (connect_ms > most_ms)
        connect_ms = most_ms;
    fate = hf__http_exchange(asking->http, &post, &patience, connect_ms);
    explicit_bzero(auth, sizeof auth);
    return fate;
}

/* Asks one server. True: the call is over. */
static bool ask_one(struct asking *asking)
{
    struct ec_store *store = asking->store;
    enum hf__http_fate fate = post(asking);
    bool over;

    if (fate == HF__HTTP_ANSWERED) {
        asking->unsent = 0;
        if (answered(asking))
            return true;
        if (asking->verdict == EC_SIGN_IN)
            return false; /* the same server, with the new token */
        over = false;
    } else {
        over = unanswered(asking, fate);
        if (asking->silent)
            hf__http_silent(&store->pool, asking->out->sent_at_ns);
    }
    ec_turn_away(store, asking->endpoint);
    if (!over && (fate == HF__HTTP_ANSWERED || asking->unsent == 0))
        (void)hf__patience_pause(&asking->call->patience, store->base.host->now_ns() + PAUSE_NS);
    return over;
}

static void end_with(struct asking *asking)
{
    if (asking->odd)
        hf__http_drop(&asking->store->pool, asking->http);
    else
        hf__http_give(&asking->store->pool, asking->http);
}

/* Round after round, until the call is over. False: out of memory. */
static bool ask_around(struct asking *asking)
{
    struct ec_store *store = asking->store;
    bool over = false;

    asking->http = hf__http_take(&store->pool);
    for (int round = 0; round < ROUNDS_MAX && !over && asking->http != NULL; round++) {
        over = ask_one(asking) || store->base.host->now_ns() >= asking->call->patience.deadline_ns;
        if (!over && (asking->silent || asking->odd)) { /* not on a connection of the same age */
            end_with(asking);
            asking->http = hf__http_take(&store->pool);
            asking->silent = asking->odd = false;
        }
    }
    if (asking->http == NULL)
        return false;
    end_with(asking);
    return true;
}

enum hf_status ec_call(struct ec_store *store, const struct ec_call *call, struct ec_answer *out,
                       enum ec_verdict *verdict, struct hf_error *err)
{
    struct asking asking = {.store = store,
                            .call = call,
                            .out = out,
                            .err = err,
                            .verdict = EC_UNSURE,
                            .status = HF_UNREACHABLE};

    out->json = NULL;
    out->date_ms = 0;
    if (call->body->cut)
        asking.status = fail(&asking, HF_INVALID, "the request is too long");
    else if (!ask_around(&asking))
        asking.status = hf__nomem(err);
    else if (asking.status == HF_OK && out->json == NULL) /* signed in, and then time was up */
        asking.status = fail(&asking, HF_UNREACHABLE, "etcd did not answer in time");
    else if (asking.status == HF_UNKNOWN)
        (void)fail(&asking, HF_UNKNOWN,
                   "etcd did not answer: the request may have taken effect; see the status of the "
                   "lock, or try again after its ttl");
    if (verdict != NULL)
        *verdict = asking.verdict;
    return asking.status;
}

/* Keeps a new auth token. */
static enum hf_status take_auth(struct asking *asking, const cJSON *json)
{
    struct ec_store *store = asking->store;
    const char *token = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "token"));

    if (token == NULL || token[0] == '\0' || strlen(token) >= HF__HTTP_AUTH_MAX ||
        strpbrk(token, "\r\n") != NULL)
        return fail(asking, HF_UNSUPPORTED, "etcd gave an auth token that cannot be used");
    pthread_mutex_lock(&store->lock);
    memcpy(store->auth, token, strlen(token) + 1);
    store->auth_serial++;
    pthread_mutex_unlock(&store->lock);
    return HF_OK;
}

/* Fetches an auth token, unless another thread did since the last one was sent. */
static enum hf_status sign_in(struct asking *asking)
{
    struct ec_store *store = asking->store;
    struct ec_text body;
    struct ec_call ask = {.lock = asking->call->lock,
                          .path = "/v3/auth/authenticate",
                          .body = &body,
                          .patience = asking->call->patience,
                          .repeatable = true,
                          .signing_in = true};
    struct ec_answer answer;
    enum ec_verdict verdict;
    enum hf_status status;
    bool fresh;

    pthread_mutex_lock(&store->lock);
    fresh = store->auth_serial != asking->serial;
    store->auth[0] = fresh ? store->auth[0] : '\0';
    pthread_mutex_unlock(&store->lock);
    if (fresh)
        return hf__ok(asking->err);
    ec_text_clear(&body);
    ec_text_add(&body, "{\"name\":");
    ec_text_string(&body, store->url.common.user);
    ec_text_add(&body, ",\"password\":");
    ec_text_string(&body, store->url.common.password);
    ec_text_add(&body, "}");
    status = ec_call(store, &ask, &answer, &verdict, asking->err);
    explicit_bzero(&body, sizeof body);
    /* It was switched off since: the token that the server does not know has been dropped above. */
    if (verdict == EC_NO_AUTH)
        return hf__ok(asking->err);
    if (status != HF_OK)
        return status;
    status = take_auth(asking, answer.json);
    ec_answer_release(&answer);
    return status;
}
