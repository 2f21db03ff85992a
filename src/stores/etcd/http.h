/* http.h - one libcurl handle, with the connections to the servers that it keeps.
 *
 * A handle is used by one thread at a time. It never sends a request twice: libcurl repeats one by
 * itself when a kept connection turns out to be dead, and that is refused here, because the first
 * copy may have been executed. */
#ifndef HF_STORES_ETCD_HTTP_H
#define HF_STORES_ETCD_HTTP_H

#include "base/patience.h"
#include "stores/etcd/url.h"
#include <curl/curl.h>
#include <holdfast/store.h>

enum {
    EC_BODY_MAX = 8 << 20,   /* bytes of an answer */
    EC_AUTH_MAX = 2048,      /* bytes of an auth token */
    EC_SOCKETS_MAX = 8,      /* connections that a handle keeps */
    EC_CANCEL_GRACE_MS = 200 /* what a request under way gets after cancel */
};

enum ec_fate {
    EC_ANSWERED,
    EC_NOT_SENT, /* no byte of the request left: it was not executed */
    EC_NO_ANSWER /* it may have been executed */
};

typedef void ec_sink_fn(void *data, const char *bytes, size_t len);

struct ec_http {
    struct ec_http *next; /* of the store's */
    bool busy;
    const struct hf_host *host;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    char auth[EC_AUTH_MAX];      /* what headers were made for */
    int sockets[EC_SOCKETS_MAX]; /* open ones, else -1 */
    int64_t heard_ns;            /* when it was opened, or an answer came last */
    unsigned sends;              /* of the request, by libcurl */
    bool added;
    bool draining; /* an answer is outstanding that nobody wants */
    char *body;
    size_t len;
    size_t size;
    ec_sink_fn *sink; /* takes the answer instead of body */
    void *sink_data;
    long http_status;
    CURLcode code;
    bool cancelled;
    char detail[CURL_ERROR_SIZE];
};

/* A request: JSON for a path of an endpoint. All of it is the caller's. */
struct ec_post {
    const char *endpoint;
    const char *path;
    const char *json;
    size_t json_len;
    const char *auth; /* "": none */
};

/* NULL: out of memory or descriptors. */
struct ec_http *ec_http_open(const struct hf_host *host, const struct ec_url *url);
/* forked: the sockets are shared with the parent, nothing is said on them. */
void ec_http_close(struct ec_http *http, bool forked);

/* Sends a request and collects the answer in http->body. connect_ms bounds the
 * time to connect, roughly. */
enum ec_fate ec_http_post(struct ec_http *http, const struct ec_post *post,
                          const struct hf__patience *patience, int64_t connect_ms);

/* Sends a request and does not wait for the answer: it is waited for, and thrown away, when the
 * handle is used next. */
void ec_http_send(struct ec_http *http, const struct ec_post *post, int64_t limit_ms);

/* The same for an answer that does not end: begins it; what comes goes to sink. */
bool ec_http_begin(struct ec_http *http, const struct ec_post *post, ec_sink_fn *sink, void *data);
/* Works on it until *stop is set by the sink (true), or the answer ended (false), or time is up or
 * the call cancelled (true). */
bool ec_http_work(struct ec_http *http, const struct hf__patience *patience, const bool *stop);
/* Why the last request was not answered, for a person. HF_DENIED: certificates; HF_UNREACHABLE. */
enum hf_status ec_http_explain(const struct ec_http *http, const char *endpoint, char *out,
                               size_t size);
/* The Date of the answer, in ms since 1970; 0: it has none. */
int64_t ec_http_date_ms(struct ec_http *http);
/* Ends whatever is under way. */
void ec_http_end(struct ec_http *http);

#endif /* HF_STORES_ETCD_HTTP_H */
