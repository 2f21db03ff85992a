/* http.h - what the parts of the http store know of each other.
 *
 * The store is behind a server, `holdfast serve`: docs/serve.md has its API. One request of ours is
 * one request of the server to its store, so what is promised there is promised here.
 *
 *   store.c    opening, closing, who and what the store behind the server is
 *   url.c      where the server is, and the secret by which it knows us
 *   call.c     one request and its answer
 *   answer.c   what an answer says. Pure
 *   errors.c   what went wrong, as a status and in words
 *   acquire.c  one attempt: a plain request, or a stream of lines to wait by
 *   hold.c     renewing, looking, releasing
 *   list.c     what is held
 *
 * An answer without the server's own header is somebody else's, a proxy's as a rule, and proves
 * nothing: what was asked for may have been done. Nothing is sent twice, and an owner is one
 * attempt is one request. */
#ifndef HF_STORES_HTTP_HTTP_H
#define HF_STORES_HTTP_HTTP_H

#include "http/http.h"
#include "stores/http/answer.h"
#include "stores/http/url.h"
#include <cjson/cJSON.h>
#include <holdfast/store.h>

struct ht_store {
    struct hf_store_base base;
    struct ht_url url;
    struct hf__http_pool pool;
    unsigned features; /* as the server said when it was opened */
    uint32_t max_ttl_ms;
};

/* call.c */

struct ht_call {
    const char *lock; /* for error texts; NULL: none */
    const char *path; /* with its query, if there is one */
    cJSON *body;      /* NULL: a GET, which may be sent again */
    struct hf__patience patience;
    long http_status; /* of the answer, whoever gave it; 0: none */
};

/* Sends the request, and takes the answer. *out: the JSON of an answer that is the server's own,
 * whatever it says, for the caller to delete; NULL: none. *sent_at_ns: before it left. Sets
 * call->http_status.
 * HF_OK, or what the server said; HF_UNKNOWN: no answer, or none of the server's. HF_UNREACHABLE,
 * HF_DENIED, HF_CANCELLED: it was not sent. */
enum hf_status ht_call(struct ht_store *store, struct ht_call *call, cJSON **out,
                       int64_t *sent_at_ns, struct hf_error *err);
/* The name and the owner of a claim; NULL: the error says why. */
cJSON *ht_body(struct ht_store *store, const struct hf_claim *claim, struct hf_error *err);
/* Whether all of that could be added to a body; deletes it and says so if not. */
bool ht_body_made(cJSON **body, bool added, struct hf_error *err);
/* A request with that text, for hf__http_exchange and hf__http_begin. */
struct hf__http_request ht_request(const struct ht_store *store, const char *path,
                                   const char *json);
/* errors.c */

/* "HF_BUSY". False: it is the name of no status. */
bool ht_status(const char *name, enum hf_status *out);
/* An error as the server told it: *err, and its status; that the server gave up waiting is
 * HF_UNREACHABLE. lock and shown are for one without words. */
enum hf_status ht_problem(const cJSON *object, enum hf_status status, const char *lock,
                          const char *shown, struct hf_error *err);
/* HF_UNKNOWN, or HF_UNREACHABLE for what only looks: somebody else than the server answered. */
enum hf_status ht_stranger(const struct ht_store *store, const struct ht_call *call,
                           long http_status, struct hf_error *err);
/* Nobody answered: HF_UNKNOWN, HF_UNREACHABLE, HF_DENIED or HF_CANCELLED. */
enum hf_status ht_unanswered(const struct ht_store *store, const struct ht_call *call,
                             const struct hf__http *http, enum hf__http_fate fate,
                             struct hf_error *err);

/* acquire.c, hold.c, list.c */

enum hf_status ht_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_grant *grant, struct hf_error *err);
enum hf_status ht_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err);
enum hf_status ht_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err);
enum hf_status ht_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err);

#endif /* HF_STORES_HTTP_HTTP_H */
