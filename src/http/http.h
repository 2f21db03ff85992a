/* http.h - one libcurl handle, with the connections to the servers that it keeps; and a pool of
 * them. For plugins over libcurl.
 *
 * A handle is used by one thread at a time. It never sends a request twice: libcurl repeats one by
 * itself when a kept connection turns out to be dead, and that is refused here, because the first
 * copy may have been executed. */
#ifndef HF_HTTP_HTTP_H
#define HF_HTTP_HTTP_H

#include "base/patience.h"
#include "base/url.h"
#include <curl/curl.h>
#include <holdfast/store.h>
#include <pthread.h>

enum {
    HF__HTTP_BODY_MAX = 8 << 20,   /* bytes of an answer */
    HF__HTTP_AUTH_MAX = 2048,      /* bytes of an auth token */
    HF__HTTP_SOCKETS_MAX = 8,      /* connections that a handle keeps */
    HF__HTTP_IDLE_MAX = 16,        /* handles that a pool keeps for later */
    HF__HTTP_URL_MAX = 2048,       /* bytes of endpoint and path, NUL included */
    HF__HTTP_CANCEL_GRACE_MS = 200 /* what a request under way gets after cancel */
};

enum hf__http_fate {
    HF__HTTP_ANSWERED,
    HF__HTTP_NOT_SENT, /* no byte of the request left: it was not executed */
    HF__HTTP_NO_ANSWER /* it may have been executed */
};

typedef void hf__http_sink_fn(void *data, const char *bytes, size_t len);

/* How connections are made. Strings live as long as the handles; "" or NULL: none. */
struct hf__http_options {
    bool trusting; /* https: whoever answers is believed to be the server */
    const char *ca;
    const char *cert;
    const char *key;
    const char *socket; /* the path of a Unix socket, whatever the endpoint says */
    long idle_s;        /* a connection that was idle for longer is not used again; 0: libcurl's */
};

/* "https://host:port", for libcurl. False: a host that libcurl might read otherwise than we do, or
 * that does not fit. */
bool hf__http_endpoint(char *out, size_t size, bool tls, const struct hf__address *address);
/* Whether the files of certificates can be read. shown: the store's URL. HF_OK, HF_INVALID or
 * HF_DENIED. */
enum hf_status hf__http_check_files(const struct hf__http_options *options, const char *shown,
                                    struct hf_error *err);

struct hf__http {
    struct hf__http *next; /* of the pool's */
    bool busy;
    const struct hf_host *host;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    char auth[HF__HTTP_AUTH_MAX];      /* what headers were made for */
    const char *accept;                /* likewise */
    int sockets[HF__HTTP_SOCKETS_MAX]; /* open ones, else -1 */
    int64_t heard_ns;                  /* when it was opened, or an answer came last */
    unsigned sends;                    /* of the request, by libcurl */
    bool added;
    bool draining; /* an answer is outstanding that nobody wants */
    char *body;
    size_t len;
    size_t size;
    hf__http_sink_fn *sink; /* takes the answer instead of body */
    void *sink_data;
    long http_status;
    CURLcode code;
    bool cancelled;
    char detail[CURL_ERROR_SIZE];
};

/* A request: JSON for a path of an endpoint. All of it is the caller's. */
struct hf__http_request {
    const char *endpoint;
    const char *path;
    const char *json; /* NULL: it is a GET */
    size_t json_len;
    const char *auth;   /* "": none */
    const char *accept; /* a literal, "application/json" for instance; NULL: anything */
};

/* NULL: out of memory or descriptors. */
struct hf__http *hf__http_open(const struct hf_host *host, const struct hf__http_options *options);
/* forked: the sockets are shared with the parent, nothing is said on them. */
void hf__http_close(struct hf__http *http, bool forked);

/* Sends a request and collects the answer in http->body. connect_ms bounds the
 * time to connect, roughly. */
enum hf__http_fate hf__http_exchange(struct hf__http *http, const struct hf__http_request *post,
                                     const struct hf__patience *patience, int64_t connect_ms);

/* Sends a request and does not wait for the answer: it is waited for, and thrown away, when the
 * handle is used next. */
void hf__http_send(struct hf__http *http, const struct hf__http_request *post, int64_t limit_ms);

/* The same for an answer that does not end: begins it; what comes goes to sink. */
bool hf__http_begin(struct hf__http *http, const struct hf__http_request *post,
                    hf__http_sink_fn *sink, void *data);
/* Works on it until *stop is set by the sink (true), or the answer ended (false), or time is up or
 * the call cancelled (true). */
bool hf__http_work(struct hf__http *http, const struct hf__patience *patience, const bool *stop);
/* Why the last request was not answered, for a person. HF_DENIED: certificates; HF_UNREACHABLE. */
enum hf_status hf__http_explain(const struct hf__http *http, const char *endpoint, char *out,
                                size_t size);
/* The Date of the answer, in ms since 1970; 0: it has none. */
int64_t hf__http_date_ms(struct hf__http *http);
/* A header of the answer, or NULL. It is libcurl's, until the next request; also while an answer
 * that was begun is under way. */
const char *hf__http_header(struct hf__http *http, const char *name);
/* Ends whatever is under way. */
void hf__http_end(struct hf__http *http);

/* The handles of a store. For many threads. */
struct hf__http_pool {
    const struct hf_host *host;
    struct hf__http_options options;
    pthread_mutex_t lock; /* for what follows */
    struct hf__http *first;
    int64_t silent_ns; /* when a request was sent, the last of those that were not answered */
};

/* HF_OK or HF_NOMEM. */
enum hf_status hf__http_pool_init(struct hf__http_pool *pool, const struct hf_host *host,
                                  const struct hf__http_options *options, struct hf_error *err);
/* No handle is in use; forked: as hf__http_close. */
void hf__http_pool_release(struct hf__http_pool *pool, bool forked);
/* NULL: out of memory or descriptors. */
struct hf__http *hf__http_take(struct hf__http_pool *pool);
void hf__http_give(struct hf__http_pool *pool, struct hf__http *http);
/* Instead: its connection is out of step, and the next answer on it may be to another request. */
void hf__http_drop(struct hf__http_pool *pool, struct hf__http *http);
/* Nobody answered a request that was sent then: idle handles that were heard from last before that
 * are not used any more. */
void hf__http_silent(struct hf__http_pool *pool, int64_t sent_at_ns);

#endif /* HF_HTTP_HTTP_H */
