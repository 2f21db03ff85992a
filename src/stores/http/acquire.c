/* acquire.c - taking a lock, and waiting for it.
 *
 * An attempt is one request with one owner, and is never sent again. Without a wait the answer is
 * the verdict. With one the server tells line by line that it waits, and the last line is the
 * verdict: so proxies see that somebody is there, and we notice if nobody is. Whatever ends without
 * a verdict may have been granted: then the owner is released, twice, because the first release may
 * overtake the request on its way through proxies. */
#include "base/base.h"
#include "core/wait.h"
#include "stores/http/http.h"

#include <string.h>

#define CONNECT_MS     2000L
#define SILENCE_NS     (30 * HF__NS_PER_S)  /* the server says something every few seconds */
#define LAST_LINE_NS   (20 * HF__NS_PER_MS) /* for the end of an answer whose verdict we have */
#define RELEASE_MS     2000
#define AGAIN_NS       HF__NS_PER_S          /* from the first release to the second */
#define SHORT_PAUSE_NS (100 * HF__NS_PER_MS) /* before another attempt, if a wait was cut short */

/* The HTTP status for an owner that was used before: somebody on the way repeated the request. This
 * copy was not executed; what became of the other one is not known, and nobody but that one may end
 * it. */
#define USED_BEFORE 409

struct attempt {
    struct ht_store *store;
    struct hf_claim claim; /* with this attempt's owner */
    struct ht_call call;
    int64_t sent_at_ns;
    long http_status; /* of the answer; 0: none */
};

/* A stream of lines. */
struct stream {
    const struct hf_host *host;
    struct hf__http *http;
    int64_t heard_ns;
    size_t len;
    bool stop;      /* the verdict is there, or what cannot be one */
    cJSON *verdict; /* NULL: none */
    char line[HT_LINE_MAX];
};

/* A whole line is there. */
static void read_line(struct stream *stream)
{
    cJSON *json = ht_parse(stream->line, stream->len);

    stream->len = 0;
    stream->heard_ns = stream->host->now_ns();
    if (json != NULL && strcmp(ht_text(json, "status", ""), "waiting") == 0) {
        cJSON_Delete(json);
        return;
    }
    stream->verdict = json;
    stream->stop = true;
}

static void hear(void *data, const char *bytes, size_t len)
{
    struct stream *stream = data;

    for (size_t i = 0; i < len && !stream->stop; i++) {
        if (bytes[i] == '\n')
            read_line(stream);
        else if (stream->len < sizeof stream->line)
            stream->line[stream->len++] = bytes[i];
        else
            stream->stop = true;
    }
}

/* The stream ended, or we do not listen any more, and there is no verdict. */
static enum hf_status break_off(const struct attempt *a, const struct stream *stream,
                                struct hf_error *err)
{
    const char *shown = a->store->url.common.shown;
    char why[HF_ERROR_TEXT_SIZE];
    enum hf_status status;

    if (stream->http->cancelled)
        return hf__fail_lock(err, HF_CANCELLED, a->claim.name, shown, ": cancelled while waiting");
    if (stream->http->sends > 0)
        return hf__fail_lock(err, HF_UNKNOWN, a->claim.name, shown,
                             ": the wait was cut short, and how it ended is not known");
    status = hf__http_explain(stream->http, shown, why, sizeof why);
    return hf__fail_lock(err, status, a->claim.name, shown, ": %.120s", why);
}

/* Listens until the verdict, or as long as there is hope for one. answer_by_ns: by then the wait is
 * over at the server, and told. False: no verdict. */
static bool listen_to(const struct attempt *a, struct stream *stream, int64_t answer_by_ns)
{
    struct hf__patience patience = {.cancel_fd = a->claim.cancel_fd};
    bool going = true;

    while (going && !stream->stop && !stream->http->cancelled) {
        int64_t now_ns = stream->host->now_ns();

        patience.deadline_ns =
            stream->http->sends == 0 ? a->claim.deadline_ns : stream->heard_ns + SILENCE_NS;
        if (patience.deadline_ns > answer_by_ns)
            patience.deadline_ns = answer_by_ns;
        if (now_ns >= patience.deadline_ns)
            break;
        going = hf__http_work(stream->http, &patience, &stream->stop);
    }
    return stream->verdict != NULL && hf__http_header(stream->http, "Holdfast-Status") != NULL;
}

/* What the answer says; *grant if it is a grant. */
static enum hf_status judge(const struct attempt *a, const cJSON *answer, enum hf_status status,
                            struct hf_grant *grant, struct hf_error *err)
{
    const struct ht_store *store = a->store;

    if (status != HF_OK)
        return ht_problem(answer, status, a->claim.name, store->url.common.shown, err);
    if (!ht_granted(answer, a->sent_at_ns, store->base.host->now_ns(), grant))
        return ht_stranger(store, &a->call, 200, err);
    return hf__ok(err);
}

static enum hf_status wait_by_stream(struct attempt *a, const char *json, struct hf_grant *grant,
                                     struct hf_error *err)
{
    const struct hf_host *host = a->store->base.host;
    struct hf__http_request request = ht_request(a->store, a->call.path, json);
    struct stream stream = {.host = host, .http = hf__http_take(&a->store->pool)};
    int64_t budget_ns = a->claim.deadline_ns - host->now_ns();
    enum hf_status status = HF_UNKNOWN;

    if (stream.http == NULL)
        return hf__nomem(err);
    request.accept = "application/x-ndjson";
    a->sent_at_ns = stream.heard_ns = host->now_ns();
    (void)curl_easy_setopt(stream.http->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    if (hf__http_begin(stream.http, &request, hear, &stream) &&
        listen_to(a, &stream, hf__time_add(a->claim.wait_until_ns, budget_ns)) &&
        ht_status(ht_text(stream.verdict, "status", ""), &status)) {
        struct hf__patience end = {.deadline_ns = host->now_ns() + LAST_LINE_NS, .cancel_fd = -1};

        status = judge(a, stream.verdict, status, grant, err);
        (void)hf__http_work(stream.http, &end, NULL); /* so that the connection can be used again */
        a->http_status = stream.http->http_status;
        stream.http->heard_ns = host->now_ns();
        hf__http_give(&a->store->pool, stream.http);
    } else {
        status = break_off(a, &stream, err);
        hf__http_drop(&a->store->pool, stream.http);
    }
    cJSON_Delete(stream.verdict);
    explicit_bzero(stream.line, sizeof stream.line);
    return status;
}

/* The time that is left to wait, in ms; 0: none. */
static int64_t wait_left_ms(const struct attempt *a)
{
    int64_t left_ns = a->claim.wait_until_ns - a->store->base.host->now_ns();

    if (a->claim.wait_until_ns == 0 || left_ns <= 0)
        return 0;
    return left_ns / HF__NS_PER_MS < HF_TTL_MAX_MS ? left_ns / HF__NS_PER_MS + 1 : HF_TTL_MAX_MS;
}

static bool fill_body(const struct attempt *a, int64_t wait_ms)
{
    cJSON *body = a->call.body;
    const char *label = a->claim.label != NULL ? a->claim.label : "";

    return cJSON_AddNumberToObject(body, "ttl_ms", a->claim.ttl_ms) != NULL &&
           cJSON_AddStringToObject(body, "label", label) != NULL &&
           (wait_ms == 0 || cJSON_AddNumberToObject(body, "wait_ms", (double)wait_ms) != NULL);
}

/* One attempt, from the request to the verdict. */
static enum hf_status attempt(struct attempt *a, struct hf_grant *grant, struct hf_error *err)
{
    int64_t wait_ms = wait_left_ms(a);
    cJSON *answer = NULL;
    char *json = NULL;
    enum hf_status status;

    a->http_status = 0;
    a->call = (struct ht_call){.lock = a->claim.name,
                               .path = "/v1/acquire",
                               .patience = {.deadline_ns = a->claim.deadline_ns, .cancel_fd = -1}};
    if ((a->call.body = ht_body(a->store, &a->claim, err)) == NULL ||
        !ht_body_made(&a->call.body, fill_body(a, wait_ms), err))
        return hf__utf8_valid(a->claim.name) ? HF_NOMEM : HF_INVALID;
    if (wait_ms == 0) {
        status = ht_call(a->store, &a->call, &answer, &a->sent_at_ns, err);
        a->http_status = a->call.http_status;
        if (status == HF_OK)
            status = judge(a, answer, status, grant, err);
    } else {
        json = cJSON_PrintUnformatted(a->call.body);
        status = json != NULL ? wait_by_stream(a, json, grant, err) : hf__nomem(err);
    }
    if (json != NULL)
        explicit_bzero(json, strlen(json)); /* the owner is in it */
    cJSON_free(json);
    cJSON_Delete(answer);
    cJSON_Delete(a->call.body);
    return status;
}

/* HF_OK: it was held, and is not any more. */
static enum hf_status release_owner(const struct attempt *a)
{
    const struct hf_host *host = a->store->base.host;
    struct hf_claim undo = a->claim;

    undo.token = 0; /* whatever it holds */
    undo.deadline_ns = host->now_ns() + RELEASE_MS * HF__NS_PER_MS;
    return ht_release(&a->store->base, &undo, NULL);
}

/* For an attempt that may have been granted. */
static void take_back(const struct attempt *a, enum hf_status status)
{
    struct hf__patience patience = {.deadline_ns = HF_NEVER, .cancel_fd = a->claim.cancel_fd};

    /* A client that goes away closes the connection, and the server leaves the queue; this is for
     * what it was granted in the same moment. */
    if (release_owner(a) == HF_OK || status == HF_CANCELLED)
        return;
    (void)hf__patience_pause(&patience, a->store->base.host->now_ns() + AGAIN_NS);
    (void)release_owner(a);
}

/* The next attempt has an owner of its own. */
static void begin_anew(struct attempt *a, int64_t budget_ns, char owner[HF_OWNER_LEN + 1])
{
    const struct hf_host *host = a->store->base.host;
    unsigned char raw[HF_OWNER_LEN / 2];

    host->random(raw, sizeof raw);
    hf__hex_encode(owner, raw, sizeof raw);
    a->claim.owner = owner;
    a->claim.deadline_ns = hf__time_add(host->now_ns(), budget_ns);
}

/* The server waits for an hour at the most, or less: whoever wants to wait longer comes again, to
 * the end of the queue. Any other answer is the caller's. */
static bool comes_again(const struct attempt *a, struct hf__wait_queue *wait_queue,
                        enum hf_status status)
{
    const struct hf_host *host = a->store->base.host;
    struct hf__patience patience = {.deadline_ns = a->claim.wait_until_ns,
                                    .cancel_fd = a->claim.cancel_fd};
    int64_t now_ns = host->now_ns();
    struct hf__wait_answer answer = {.status = status, .look_ns = now_ns + SHORT_PAUSE_NS};
    struct hf__wait_step step = hf__wait_queued(wait_queue, &answer, now_ns, 0);

    return step.next != HF__WAIT_RETURN &&
           hf__patience_pause(&patience, step.until_ns) == HF__WAITED_READY;
}

enum hf_status ht_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err)
{
    struct attempt a = {.store = (struct ht_store *)base, .claim = *claim};
    int64_t budget_ns = claim->deadline_ns - base->host->now_ns();
    char owner[HF_OWNER_LEN + 1] = "";
    struct hf__wait_queue wait_queue;
    enum hf_status status;

    hf__wait_queue_init(&wait_queue, claim->wait_until_ns);
    for (;;) {
        status = attempt(&a, grant, err);
        if ((status == HF_UNKNOWN && a.http_status != USED_BEFORE) || status == HF_CANCELLED)
            take_back(&a, status);
        if (!comes_again(&a, &wait_queue, status))
            break;
        begin_anew(&a, budget_ns, owner);
    }
    explicit_bzero(owner, sizeof owner);
    return status;
}
