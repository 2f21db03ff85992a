/* call.c - one request and its answer, by whichever server. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS     1500 /* to connect, where there are other servers to turn to   */
#define TRY_MIN_NS     (300 * HF__NS_PER_MS)
#define HASTY_NS       (200 * HF__NS_PER_MS) /* for one that is in a hurry, once for each server */
#define PAUSE_NS       (50 * HF__NS_PER_MS)
#define RESOLVE_MAX_NS (1500 * HF__NS_PER_MS) /* kept back to find out what became of a request */
#define SIGN_INS_MAX   3                      /* per call */
#define ROUNDS_MAX     1000                   /* requests per call */

static enum hf_status sign_in(struct ec_store *store, const struct ec_call *call, unsigned serial,
                              struct hf_error *err);

/* What a call has been through. */
struct course {
    size_t unsent; /* servers in a row that were not reached */
    unsigned signed_in;
    size_t hasty;          /* tries that were cut short on purpose    */
    bool silent;           /* the last one was sent, and nobody answered in time */
    enum hf_status status; /* why the last try failed */
};

/* Idle handles that were heard from last before a request that was not answered: their connections
 * may be just as dead. Takes them out. Lock held. */
static struct ec_http *cut_silent(struct ec_store *store)
{
    struct ec_http **at = &store->http;
    struct ec_http *silent = NULL;

    while (*at != NULL) {
        struct ec_http *http = *at;

        if (http->busy || http->heard_ns > store->silent_ns) {
            at = &http->next;
            continue;
        }
        *at = http->next;
        http->next = silent;
        silent = http;
    }
    return silent;
}

/* Nobody answered a request that was sent then. */
static void note_silence(struct ec_store *store, int64_t sent_at_ns)
{
    (void)pthread_mutex_lock(&store->lock);
    if (store->silent_ns < sent_at_ns)
        store->silent_ns = sent_at_ns;
    (void)pthread_mutex_unlock(&store->lock);
}

struct ec_http *ec_http_take(struct ec_store *store)
{
    struct ec_http *silent;
    struct ec_http *http;

    (void)pthread_mutex_lock(&store->lock);
    silent = cut_silent(store);
    for (http = store->http; http != NULL && http->busy;)
        http = http->next;
    if (http != NULL)
        http->busy = true;
    (void)pthread_mutex_unlock(&store->lock);
    while (silent != NULL) {
        struct ec_http *next = silent->next;

        ec_http_close(silent, false);
        silent = next;
    }
    if (http != NULL || (http = ec_http_open(store->base.host, &store->url)) == NULL)
        return http;
    http->busy = true;
    (void)pthread_mutex_lock(&store->lock);
    http->next = store->http;
    store->http = http;
    (void)pthread_mutex_unlock(&store->lock);
    return http;
}

void ec_http_give(struct ec_store *store, struct ec_http *http)
{
    struct ec_http **at = &store->http;
    size_t idle = 0;
    bool drop;

    if (!http->draining)
        ec_http_end(http);
    (void)pthread_mutex_lock(&store->lock);
    for (const struct ec_http *other = store->http; other != NULL; other = other->next)
        idle += !other->busy;
    drop = idle >= EC_IDLE_HTTP_MAX;
    if (drop) {
        while (*at != http)
            at = &(*at)->next;
        *at = http->next;
    }
    http->busy = false;
    (void)pthread_mutex_unlock(&store->lock);
    if (drop)
        ec_http_close(http, false);
}

void ec_where(struct ec_store *store, char endpoint[EC_ENDPOINT_MAX], char auth[EC_AUTH_MAX])
{
    (void)pthread_mutex_lock(&store->lock);
    memcpy(endpoint, store->url.endpoints[store->at], EC_ENDPOINT_MAX);
    memcpy(auth, store->auth, EC_AUTH_MAX);
    (void)pthread_mutex_unlock(&store->lock);
}

void ec_turn_away(struct ec_store *store, const char *endpoint)
{
    (void)pthread_mutex_lock(&store->lock);
    if (strcmp(store->url.endpoints[store->at], endpoint) == 0)
        store->at = (store->at + 1) % store->url.endpoint_count;
    (void)pthread_mutex_unlock(&store->lock);
}

bool ec_cancelled(const struct ec_patience *patience)
{
    struct pollfd cancel = {.fd = patience->cancel_fd, .events = POLLIN};

    return patience->cancel_fd >= 0 && poll(&cancel, 1, 0) > 0;
}

void ec_answer_release(struct ec_answer *answer)
{
    cJSON_Delete(answer->json);
    answer->json = NULL;
}

static enum hf_status fail_about(const struct ec_store *store, const struct ec_call *call,
                                 enum hf_status status, const char *what, struct hf_error *err)
{
    if (call->lock != NULL)
        return hf__fail(err, status, "lock \"%.50s\" in store %.70s: %s", call->lock,
                        store->url.shown, what);
    return hf__fail(err, status, "store %.110s: %s", store->url.shown, what);
}

/* What libcurl could not do, for a person. */
static enum hf_status explain_failure(const struct ec_store *store, const struct ec_call *call,
                                      const struct ec_http *http, const char *endpoint,
                                      struct hf_error *err)
{
    const char *detail = http->detail[0] != '\0' ? http->detail : curl_easy_strerror(http->code);
    bool alert = strstr(detail, " alert ") != NULL; /* of TLS; a host's name has no spaces */
    char what[200];

    if (http->code == CURLE_PEER_FAILED_VERIFICATION)
        (void)snprintf(what, sizeof what,
                       "the server's certificate is not to be trusted: %.80s; "
                       "check the host name and ca=",
                       detail);
    else if (http->code == CURLE_SSL_CERTPROBLEM || http->code == CURLE_SSL_CACERT_BADFILE)
        (void)snprintf(what, sizeof what,
                       "a certificate or key of ours is of no use: %.80s; check "
                       "ca=, cert= and key=",
                       detail);
    else if (alert)
        (void)snprintf(what, sizeof what,
                       "the server refuses our certificate (%.70s); check cert= "
                       "and key=",
                       detail);
    else if (http->code == CURLE_SSL_CONNECT_ERROR)
        (void)snprintf(what, sizeof what, "no TLS with %.60s: %.80s", endpoint, detail);
    else
        (void)snprintf(what, sizeof what, "no answer from %.60s: %.80s", endpoint, detail);
    if (http->code == CURLE_PEER_FAILED_VERIFICATION || http->code == CURLE_SSL_CERTPROBLEM ||
        http->code == CURLE_SSL_CACERT_BADFILE || alert)
        return fail_about(store, call, HF_DENIED, what, err);
    return fail_about(store, call, HF_UNREACHABLE, what, err);
}

/* All servers have to be of one cluster, else two clients could hold one lock. */
static bool same_cluster(struct ec_store *store, const cJSON *json)
{
    const char *cluster = ec_answer_cluster(json);
    bool same = true;

    if (cluster[0] == '\0' || strlen(cluster) >= sizeof store->cluster)
        return true;
    (void)pthread_mutex_lock(&store->lock);
    if (store->cluster[0] == '\0')
        memcpy(store->cluster, cluster, strlen(cluster) + 1);
    else
        same = strcmp(store->cluster, cluster) == 0;
    (void)pthread_mutex_unlock(&store->lock);
    return same;
}

/* {"error":..., "message":..., "code":N}, or inside {"error":{...}} for streams. */
static enum ec_verdict judge(const struct ec_http *http, const cJSON *json, char *message,
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
        hf__copy_printable(message, size, raw[0] != '\0' ? raw : "an answer that is no JSON");
    } else {
        hf__copy_printable(message, size, text != NULL ? text : error != NULL ? "an error" : "");
    }
    return ec_verdict(http->http_status, code, message);
}

/* How long this try may take. */
static int64_t try_until_ns(const struct ec_store *store, const struct ec_call *call,
                            struct course *course, int64_t now_ns)
{
    int64_t left_ns = call->patience.deadline_ns - now_ns;
    int64_t back_ns = left_ns / 3 < RESOLVE_MAX_NS ? left_ns / 3 : RESOLVE_MAX_NS;
    int64_t share_ns;

    if (!call->repeatable)
        return call->patience.deadline_ns - back_ns;
    share_ns = left_ns / (int64_t)store->url.endpoint_count;
    /* Once around quickly: one server that is stuck must not hold up every start. */
    if (call->hasty && store->url.endpoint_count > 1 && course->hasty++ < store->url.endpoint_count)
        share_ns = HASTY_NS;
    else if (share_ns < TRY_MIN_NS)
        share_ns = TRY_MIN_NS;
    return share_ns < left_ns ? now_ns + share_ns : call->patience.deadline_ns;
}

/* One answered try. True: the call is over, with *status. */
static bool answered(struct ec_store *store, const struct ec_call *call, struct ec_http *http,
                     struct course *course, unsigned serial, struct ec_answer *out,
                     enum ec_verdict *verdict, struct hf_error *err)
{
    char message[160];
    cJSON *json = ec_answer_parse(http->body, http->len);

    *verdict = judge(http, json, message, sizeof message);
    if (*verdict == EC_FINE && !ec_answer_is_etcd(json)) {
        *verdict = EC_UNSURE;
        hf__copy_printable(message, sizeof message, "an answer that is not etcd's");
    }
    if (*verdict == EC_FINE) {
        if (same_cluster(store, json)) {
            out->json = json;
            course->status = HF_OK;
            return true;
        }
        cJSON_Delete(json);
        course->status =
            fail_about(store, call, HF_CORRUPT,
                       "its servers belong to different clusters; correct the URL", err);
        return true;
    }
    cJSON_Delete(json);
    if (*verdict == EC_SIGN_IN && store->url.user[0] != '\0' && !call->signing_in &&
        course->signed_in++ < SIGN_INS_MAX) {
        course->status = sign_in(store, call, serial, err);
        return course->status != HF_OK;
    }
    course->status = ec_verdict_fail(*verdict, message, call->lock, store->url.shown, err);
    if (*verdict == EC_UNSURE && !call->repeatable)
        course->status = HF_UNKNOWN;
    return *verdict != EC_LATER && !(*verdict == EC_UNSURE && call->repeatable);
}

/* One try that was not answered. True: the call is over. */
static bool unanswered(struct ec_store *store, const struct ec_call *call,
                       const struct ec_http *http, enum ec_fate fate, const char *endpoint,
                       struct course *course, enum ec_verdict *verdict, struct hf_error *err)
{
    course->status = explain_failure(store, call, http, endpoint, err);
    *verdict = http->code == CURLE_WRITE_ERROR ? EC_TOO_LONG : EC_UNSURE;
    if (*verdict == EC_TOO_LONG && call->may_shrink)
        return true;
    if (http->cancelled) {
        course->status = fail_about(store, call, HF_CANCELLED, "cancelled", err);
        if (fate == EC_NO_ANSWER && !call->repeatable)
            course->status = HF_UNKNOWN;
        return true;
    }
    if (course->status == HF_DENIED)
        return true;
    if (fate == EC_NOT_SENT)
        return ++course->unsent >= store->url.endpoint_count;
    course->unsent = 0;
    course->silent = http->code == CURLE_OPERATION_TIMEDOUT;
    if (!call->repeatable)
        course->status = HF_UNKNOWN;
    return !call->repeatable;
}

/* One try at one server. True: the call is over. */
static bool try_once(struct ec_store *store, const struct ec_call *call, struct ec_http *http,
                     struct course *course, struct ec_answer *out, enum ec_verdict *verdict,
                     struct hf_error *err)
{
    char endpoint[EC_ENDPOINT_MAX];
    char auth[EC_AUTH_MAX];
    struct ec_patience patience = call->patience;
    bool alone = store->url.endpoint_count == 1;
    enum ec_fate fate;
    unsigned serial;
    int64_t connect_ms;

    (void)pthread_mutex_lock(&store->lock);
    serial = store->auth_serial;
    (void)pthread_mutex_unlock(&store->lock);
    ec_where(store, endpoint, auth);
    out->sent_at_ns = store->base.host->now_ns();
    patience.deadline_ns = try_until_ns(store, call, course, out->sent_at_ns);
    connect_ms = (patience.deadline_ns - out->sent_at_ns) / HF__NS_PER_MS;
    if (!alone && connect_ms > CONNECT_MS)
        connect_ms = CONNECT_MS;
    fate = ec_http_post(http,
                        &(struct ec_post){.endpoint = endpoint,
                                          .path = call->path,
                                          .json = call->body->data,
                                          .json_len = call->body->len,
                                          .auth = auth},
                        &patience, connect_ms);
    explicit_bzero(auth, sizeof auth);
    if (fate == EC_ANSWERED) {
        course->unsent = 0;
        if (answered(store, call, http, course, serial, out, verdict, err))
            return true;
        if (*verdict == EC_SIGN_IN)
            return false; /* the same server, with the new token */
    } else {
        bool over = unanswered(store, call, http, fate, endpoint, course, verdict, err);

        if (course->silent)
            note_silence(store, out->sent_at_ns);
        if (over) {
            ec_turn_away(store, endpoint);
            return true;
        }
    }
    ec_turn_away(store, endpoint);
    if (fate == EC_ANSWERED || course->unsent == 0) {
        struct pollfd cancel = {.fd = call->patience.cancel_fd, .events = POLLIN};
        int64_t until_ns = store->base.host->now_ns() + PAUSE_NS;

        (void)hf__poll_until(&cancel, 1, until_ns);
    }
    return false;
}

enum hf_status ec_call(struct ec_store *store, const struct ec_call *call, struct ec_answer *out,
                       enum ec_verdict *verdict, struct hf_error *err)
{
    struct course course = {.status = HF_UNREACHABLE};
    enum ec_verdict ignored = EC_UNSURE;
    struct ec_http *http;
    bool over = false;

    if (verdict == NULL)
        verdict = &ignored;
    *verdict = EC_UNSURE;
    out->json = NULL;
    if (call->body->cut)
        return fail_about(store, call, HF_INVALID, "the request is too long", err);
    http = ec_http_take(store);
    if (http == NULL)
        return hf__nomem(err);
    for (int round = 0; round < ROUNDS_MAX && !over; round++) {
        if (course.silent) { /* not on a connection of the same age */
            ec_http_give(store, http);
            if ((http = ec_http_take(store)) == NULL)
                return hf__nomem(err);
            course.silent = false;
        }
        over = try_once(store, call, http, &course, out, verdict, err);
        if (!over && store->base.host->now_ns() >= call->patience.deadline_ns)
            over = true;
    }
    ec_http_give(store, http);
    if (course.status == HF_OK && out->json == NULL) /* signed in, and then time was up */
        course.status = fail_about(store, call, HF_UNREACHABLE, "etcd did not answer in time", err);
    if (course.status == HF_UNKNOWN)
        return fail_about(store, call, HF_UNKNOWN,
                          "etcd did not answer: the request may have taken effect; see the status "
                          "of the lock, or try again after its ttl",
                          err);
    return course.status;
}

/* Fetches an auth token, unless another thread did since `serial`. */
static enum hf_status sign_in(struct ec_store *store, const struct ec_call *call, unsigned serial,
                              struct hf_error *err)
{
    struct ec_text body;
    struct ec_call ask = {.lock = call->lock,
                          .path = "/v3/auth/authenticate",
                          .body = &body,
                          .patience = call->patience,
                          .repeatable = true,
                          .signing_in = true};
    struct ec_answer answer;
    const char *token;
    enum ec_verdict verdict;
    enum hf_status status;
    bool fresh;

    (void)pthread_mutex_lock(&store->lock);
    fresh = store->auth_serial != serial;
    store->auth[0] = fresh ? store->auth[0] : '\0';
    (void)pthread_mutex_unlock(&store->lock);
    if (fresh)
        return hf__ok(err);
    ec_text_clear(&body);
    ec_text_add(&body, "{\"name\":");
    ec_text_string(&body, store->url.user);
    ec_text_add(&body, ",\"password\":");
    ec_text_string(&body, store->url.password);
    ec_text_add(&body, "}");
    status = ec_call(store, &ask, &answer, &verdict, err);
    explicit_bzero(&body, sizeof body);
    /* It was switched off since: the token that the server does not know has been dropped above. */
    if (verdict == EC_NO_AUTH)
        return hf__ok(err);
    if (status != HF_OK)
        return status;
    token = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer.json, "token"));
    if (token == NULL || token[0] == '\0' || strlen(token) >= EC_AUTH_MAX ||
        strpbrk(token, "\r\n") != NULL)
        status = fail_about(store, call, HF_UNSUPPORTED, "etcd gave an auth token of no use", err);
    (void)pthread_mutex_lock(&store->lock);
    if (status == HF_OK) {
        memcpy(store->auth, token, strlen(token) + 1);
        store->auth_serial++;
    }
    (void)pthread_mutex_unlock(&store->lock);
    ec_answer_release(&answer);
    return status;
}
