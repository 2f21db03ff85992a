/* http.c - delivery over HTTP, through libcurl: a POST for each message.
 *
 * 2xx is delivered, 412 means that a later relay is known there, everything else is tried again:
 * decided by src/core/outbox.c. Redirects are not followed: they would lead a token and a payload
 * elsewhere. */
#include "senders/http/headers.h"
#include "senders/sender.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECT_MS = 5000,
    TEXT_MAX = 3 * 255, /* of topic and key: a byte of the database may be three in UTF-8 */
    LINE_SIZE = HEADERS_NAME_MAX + HEADERS_VALUE_MAX + 8
};

struct delivery {
    CURL *easy;
    struct curl_slist *headers;
    bool under_way;
    bool failed; /* it could not be sent at all: answer says why */
    bool whole;  /* the headers of the answer came to their end */
    struct hf__sender_answer answer;
    char error[CURL_ERROR_SIZE];
};

struct hf__sender {
    struct hf__sender_options options;
    char *url;
    CURLM *multi;
    struct delivery deliveries[];
};

static size_t drop_body(char *bytes, size_t size, size_t count, void *data)
{
    (void)bytes;
    (void)data;
    return size * count;
}

/* libcurl takes headers that were cut off for all there are. There may be several answers: those of
 * 1xx come before the last. */
static size_t hear_header(char *bytes, size_t size, size_t count, void *data)
{
    struct delivery *delivery = data;
    size_t len = size * count;

    if (len >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        delivery->whole = false;
    else if (len > 0 && len <= 2 && bytes[len - 1] == '\n')
        delivery->whole = true;
    return len;
}

static void close_http(struct hf__sender *sender)
{
    if (sender == NULL)
        return;
    for (unsigned i = 0; i < sender->options.deliveries; i++) {
        struct delivery *delivery = &sender->deliveries[i];

        if (delivery->under_way && delivery->easy != NULL)
            (void)curl_multi_remove_handle(sender->multi, delivery->easy);
        curl_easy_cleanup(delivery->easy);
        curl_slist_free_all(delivery->headers);
    }
    (void)curl_multi_cleanup(sender->multi);
    if (sender->url != NULL)
        explicit_bzero(sender->url, strlen(sender->url));
    free(sender->url);
    free(sender);
}

/* What does not change from message to message. */
static bool prepare(struct hf__sender *sender, struct delivery *delivery)
{
    CURL *easy = curl_easy_init();

    delivery->easy = easy;
    return easy != NULL && curl_easy_setopt(easy, CURLOPT_URL, sender->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "holdfast/" HF_VERSION_STRING) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, hear_header) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, delivery) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)sender->options.limit_ms) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, delivery->error) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *)delivery) == CURLE_OK;
}

static enum hf_status open_http(const struct hf__sender_options *options, struct hf__sender **out,
                                struct hf_error *err)
{
    struct hf__sender *sender;
    bool good;

    *out = NULL;
    if ((strncmp(options->url, "http://", 7) != 0 && strncmp(options->url, "https://", 8) != 0) ||
        !hf__url_is_clear(options->url))
        return hf__fail(err, HF_INVALID, "--http: write http://HOST/PATH or https://HOST/PATH");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hf__nomem(err);
    sender = calloc(1, sizeof *sender + options->deliveries * sizeof sender->deliveries[0]);
    if (sender == NULL)
        return hf__nomem(err);
    sender->options = *options;
    sender->url = strdup(options->url);
    sender->multi = curl_multi_init();
    good = sender->url != NULL && sender->multi != NULL;
    for (unsigned i = 0; i < options->deliveries && good; i++) {
        sender->deliveries[i].answer.delivery = i;
        good = prepare(sender, &sender->deliveries[i]);
    }
    if (!good) {
        close_http(sender);
        return hf__nomem(err);
    }
    *out = sender;
    return HF_OK;
}

static bool add_line(struct delivery *delivery, const char *line)
{
    struct curl_slist *longer = curl_slist_append(delivery->headers, line);

    if (longer != NULL)
        delivery->headers = longer;
    return longer != NULL;
}

/* A value that is empty is written with a semicolon, for libcurl. */
static bool add_header(const char *name, const char *value, void *data)
{
    char line[LINE_SIZE];

    (void)snprintf(line, sizeof line, value[0] != '\0' ? "%s: %s" : "%s;", name, value);
    return add_line(data, line);
}

static bool has_type(const struct curl_slist *headers)
{
    for (; headers != NULL; headers = headers->next)
        if (strncasecmp(headers->data, "content-type:", 13) == 0)
            return true;
    return false;
}

static bool add_headers(struct delivery *delivery, const struct hf__sender_message *message)
{
    char text[3 * TEXT_MAX + 5];
    char line[sizeof text + 40];

    (void)snprintf(line, sizeof line, "Idempotency-Key: \"%s\"", message->uid);
    if (!add_line(delivery, line))
        return false;
    (void)snprintf(line, sizeof line, "Fencing-Token: %" PRIu64, message->token);
    if (!add_line(delivery, line))
        return false;
    headers_encode(text, sizeof text, message->topic);
    (void)snprintf(line, sizeof line, "Holdfast-Topic: %s", text);
    if (!add_line(delivery, line))
        return false;
    headers_encode(text, sizeof text, message->key);
    (void)snprintf(line, sizeof line, "Holdfast-Key: %s", text);
    /* Without "Expect: 100-continue", which costs a second with servers that do not know it. */
    return add_line(delivery, line) && add_line(delivery, "Expect:") &&
           (has_type(delivery->headers) ||
            add_line(delivery, "Content-Type: application/octet-stream"));
}

static enum hf_status send_http(struct hf__sender *sender, unsigned place,
                                const struct hf__sender_message *message, struct hf_error *err)
{
    struct delivery *delivery = &sender->deliveries[place];

    curl_slist_free_all(delivery->headers);
    delivery->headers = NULL;
    delivery->error[0] = '\0';
    delivery->whole = false;
    delivery->failed = !headers_read(message->headers, add_header, delivery, delivery->answer.why,
                                     sizeof delivery->answer.why);
    delivery->under_way = !delivery->failed;
    if (delivery->failed)
        return HF_OK;
    if (!add_headers(delivery, message) ||
        curl_easy_setopt(delivery->easy, CURLOPT_HTTPHEADER, delivery->headers) != CURLE_OK ||
        curl_easy_setopt(delivery->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)message->payload_len) != CURLE_OK ||
        curl_easy_setopt(delivery->easy, CURLOPT_POSTFIELDS, message->payload) != CURLE_OK ||
        curl_multi_add_handle(sender->multi, delivery->easy) != CURLM_OK) {
        delivery->under_way = false;
        return hf__nomem(err);
    }
    return HF_OK;
}

static bool has_failed(const struct hf__sender *sender)
{
    for (unsigned i = 0; i < sender->options.deliveries; i++)
        if (sender->deliveries[i].failed)
            return true;
    return false;
}

static void wait_http(struct hf__sender *sender, struct pollfd *fds, nfds_t count, int64_t until_ns)
{
    struct curl_waitfd others[HF__SENDER_FDS_MAX];
    int64_t left_ms = (until_ns - hf__now_ns()) / HF__NS_PER_MS + 1;
    int running_before = 0;
    int running = 0;

    for (nfds_t i = 0; i < count; i++)
        others[i] = (struct curl_waitfd){.fd = fds[i].fd, .events = CURL_WAIT_POLLIN};
    (void)curl_multi_perform(sender->multi, &running_before);
    if (left_ms < 0 || has_failed(sender))
        left_ms = 0;
    if (left_ms > 60000)
        left_ms = 60000;
    (void)curl_multi_poll(sender->multi, others, (unsigned)count, (int)left_ms, NULL);
    (void)curl_multi_perform(sender->multi, &running);
    for (nfds_t i = 0; i < count; i++)
        fds[i].revents = others[i].revents != 0 ? POLLIN : 0;
}

static void judge(struct delivery *delivery, CURLcode result)
{
    struct hf__sender_answer *answer = &delivery->answer;
    curl_off_t after_s = 0;
    long code = 0;

    answer->asked_ms = -1;
    answer->verdict = HF__OUTBOX_RETRY;
    if (result != CURLE_OK) {
        hf__copy_printable(answer->why, sizeof answer->why,
                           delivery->error[0] != '\0' ? delivery->error
                                                      : curl_easy_strerror(result));
        return;
    }
    if (!delivery->whole) {
        (void)snprintf(answer->why, sizeof answer->why, "the answer was cut off in its headers");
        return;
    }
    (void)curl_easy_getinfo(delivery->easy, CURLINFO_RESPONSE_CODE, &code);
    answer->verdict = hf__outbox_http_verdict(code);
    (void)snprintf(answer->why, sizeof answer->why, "HTTP status %ld", code);
    if (curl_easy_getinfo(delivery->easy, CURLINFO_RETRY_AFTER, &after_s) == CURLE_OK &&
        after_s > 0)
        answer->asked_ms = after_s < 86400 ? after_s * 1000 : HF__OUTBOX_ASKED_MAX_MS;
}

static bool answer_http(struct hf__sender *sender, struct hf__sender_answer *out)
{
    CURLMsg *message;
    struct delivery *delivery = NULL;
    int left;

    for (unsigned i = 0; i < sender->options.deliveries; i++)
        if (sender->deliveries[i].failed) {
            sender->deliveries[i].failed = false;
            sender->deliveries[i].answer.verdict = HF__OUTBOX_RETRY;
            sender->deliveries[i].answer.asked_ms = -1;
            *out = sender->deliveries[i].answer;
            return true;
        }
    while ((message = curl_multi_info_read(sender->multi, &left)) != NULL) {
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&delivery) !=
                CURLE_OK)
            continue;
        (void)curl_multi_remove_handle(sender->multi, delivery->easy);
        delivery->under_way = false;
        judge(delivery, result);
        *out = delivery->answer;
        return true;
    }
    return false;
}

const struct hf__sender_ops *hf_sender_plugin(void)
{
    static const struct hf__sender_ops ops = {.abi = HF__SENDER_ABI,
                                              .open = open_http,
                                              .close = close_http,
                                              .send = send_http,
                                              .wait = wait_http,
                                              .answer = answer_http};

    return &ops;
}
