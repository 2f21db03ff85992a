/* lease.c - etcd's leases.
 *
 * A key lives as long as the lease it is on. All holds of one ttl class of a client share a lease,
 * so that taking and releasing a lock costs one request each. The lease of a class gets a longer
 * ttl than its holds: in the difference, the slack, every hold can be promised its full ttl without
 * asking etcd; after it the lease is kept alive first. etcd counts in whole seconds, always
 * upwards.
 *
 * Because the lease lives for all, it must not be kept alive for a key that nobody looks after: one
 * whose hold was not renewed in time, or that a request of unknown fate may have left behind. Then
 * the lease is retired: it ends by itself, and the holds on it move to a new one when they are
 * renewed. So that an attempt of unknown fate costs the many that are held nothing, keys are put on
 * one lease, that of attempts, and move to another with their first renewal: nothing is ever put
 * there that was not seen before. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_S       1  /* at the least, and a tenth of the ttl */
#define DROP_MS       50 /* what sending a request may take that nobody waits for */
#define GRANTED_MAX_S 1000000

static enum hf_status lease_request(struct ec_store *store, const char *lock, const char *path,
                                    const struct ec_text *body, bool repeatable,
                                    const struct ec_patience *patience, struct ec_answer *out,
                                    enum ec_verdict *verdict, struct hf_error *err)
{
    struct ec_call call = {
        .lock = lock, .path = path, .body = body, .patience = *patience, .repeatable = repeatable};

    return ec_call(store, &call, out, verdict, err);
}

static int64_t random_id(const struct ec_store *store)
{
    int64_t id = 0;

    store->base.host->random(&id, sizeof id);
    id &= INT64_MAX;
    return id > 0 ? id : 1;
}

int64_t ec_lease_id(const char *owner)
{
    unsigned char raw[HF_OWNER_LEN / 2] = {0};
    int64_t id;

    (void)hf__hex_decode(raw, sizeof raw, owner);
    memcpy(&id, raw, sizeof id);
    id &= INT64_MAX;
    return id > 0 ? id : 1;
}

enum hf_status ec_lease_keep(struct ec_store *store, const char *lock, int64_t id,
                             const struct ec_patience *patience, int64_t *sent_at_ns,
                             int64_t *granted_ms, struct hf_error *err)
{
    struct ec_text body;
    struct ec_answer answer;
    enum hf_status status;
    int64_t ttl_s;

    ec_text_clear(&body);
    ec_text_add(&body, "{\"ID\":\"%" PRId64 "\"}", id);
    /* Kept alive twice, or late, a lease only lives longer. */
    status = lease_request(store, lock, "/v3/lease/keepalive", &body, true, patience, &answer, NULL,
                           err);
    if (status != HF_OK)
        return status;
    ttl_s = ec_answer_number(cJSON_GetObjectItemCaseSensitive(answer.json, "result"), "TTL");
    *sent_at_ns = answer.sent_at_ns;
    ec_answer_release(&answer);
    /* A lease that is gone is told by leaving out its ttl. */
    if (ttl_s <= 0 || ttl_s > GRANTED_MAX_S)
        return HF_LOST;
    *granted_ms = ttl_s * 1000;
    return HF_OK;
}

static enum hf_status grant(struct ec_store *store, const char *lock, int64_t id, int64_t ttl_s,
                            const struct ec_patience *patience, int64_t *sent_at_ns,
                            int64_t *granted_ms, struct hf_error *err)
{
    struct ec_text body;
    struct ec_answer answer;
    enum ec_verdict verdict;
    enum hf_status status;
    int64_t granted_s;

    ec_text_clear(&body);
    ec_text_add(&body, "{\"ID\":\"%" PRId64 "\",\"TTL\":\"%" PRId64 "\"}", id, ttl_s);
    /* A second one with the same id is refused, and a late one harms nobody: it is empty. */
    status = lease_request(store, lock, "/v3/lease/grant", &body, true, patience, &answer, &verdict,
                           err);
    if (verdict == EC_LEASE_EXISTS) {
        status = ec_lease_keep(store, lock, id, patience, sent_at_ns, granted_ms, err);
        return status == HF_LOST ? hf__fail(err, HF_UNREACHABLE,
                                            "store %.110s: a lease ended as soon as it was granted",
                                            store->url.shown)
                                 : status;
    }
    if (status != HF_OK)
        return status;
    granted_s = ec_answer_number(answer.json, "TTL");
    *sent_at_ns = answer.sent_at_ns;
    ec_answer_release(&answer);
    if (granted_s < ttl_s || granted_s > GRANTED_MAX_S)
        return ec_nonsense(store, lock, err);
    *granted_ms = granted_s * 1000;
    return HF_OK;
}

/* From when on ttl_ms can be promised on a lease that was alive at alive_ns. */
static int64_t promise_from_ns(int64_t alive_ns, int64_t granted_ms, uint32_t ttl_ms,
                               int64_t now_ns)
{
    int64_t latest_ns = alive_ns + (granted_ms - (int64_t)ttl_ms) * HF__NS_PER_MS;

    return latest_ns < now_ns ? latest_ns : now_ns;
}

/* The entry of a class, made if need be at the expense of the one unused for longest: holds on its
 * lease move when they are renewed. Lock held. */
static struct ec_class *find_class(struct ec_store *store, uint32_t ttl_s, enum ec_use use)
{
    struct ec_class *oldest = &store->classes[0];

    for (size_t i = 0; i < EC_CLASSES_MAX; i++) {
        struct ec_class *class = &store->classes[i];

        if (class->ttl_s == ttl_s && class->use == use)
            return class;
        if (class->ttl_s == 0 || (oldest->ttl_s != 0 && class->used_ns < oldest->used_ns))
            oldest = class;
    }
    *oldest = (struct ec_class){.ttl_s = ttl_s, .use = use};
    return oldest;
}

/* The lease of the class if it will do. Lock held. */
static bool use_class(struct ec_class *class, uint32_t ttl_ms, int64_t now_ns, struct ec_lease *out)
{
    class->used_ns = now_ns;
    out->id = class->id;
    out->sent_at_ns = promise_from_ns(class->alive_ns, class->granted_ms, ttl_ms, now_ns);
    return class->id != 0 && out->sent_at_ns == now_ns;
}

/* A request for the lease was answered. */
static void note_alive(struct ec_store *store, uint32_t ttl_s, enum ec_use use, int64_t id,
                       int64_t sent_at_ns, int64_t granted_ms)
{
    struct ec_class *class;

    (void)pthread_mutex_lock(&store->lock);
    class = find_class(store, ttl_s, use);
    if (class->id == id && class->alive_ns < sent_at_ns) {
        class->alive_ns = sent_at_ns;
        class->granted_ms = granted_ms;
    }
    (void)pthread_mutex_unlock(&store->lock);
}

/* A new lease for the class, unless another thread has just got one. */
static enum hf_status grant_class(struct ec_store *store, const char *lock, uint32_t ttl_ms,
                                  uint32_t ttl_s, enum ec_use use,
                                  const struct ec_patience *patience, struct ec_lease *out,
                                  struct hf_error *err)
{
    int64_t id = random_id(store);
    struct ec_class *class;
    int64_t granted_ms = 0;
    int64_t sent_at_ns = 0;
    bool spare = false;
    enum hf_status status = grant(store, lock, id, ttl_s, patience, &sent_at_ns, &granted_ms, err);

    if (status != HF_OK)
        return status;
    (void)pthread_mutex_lock(&store->lock);
    class = find_class(store, ttl_s, use);
    if (use_class(class, ttl_ms, store->base.host->now_ns(), out)) {
        spare = true;
    } else {
        class->id = id;
        class->alive_ns = sent_at_ns;
        class->granted_ms = granted_ms;
        *out = (struct ec_lease){.id = id, .sent_at_ns = sent_at_ns};
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (spare)
        ec_lease_drop(store, id);
    return HF_OK;
}

enum hf_status ec_lease_class(struct ec_store *store, const char *lock, uint32_t ttl_ms,
                              enum ec_use use, const struct ec_patience *patience,
                              struct ec_lease *out, struct hf_error *err)
{
    uint32_t ttl_s =
        use == EC_USE_WAITING ? EC_WAIT_LEASE_S : (ttl_ms + 999) / 1000 + SLACK_S + ttl_ms / 10000;
    int64_t now_ns = store->base.host->now_ns();
    struct ec_class *class;
    enum hf_status status;
    int64_t granted_ms = 0;
    int64_t sent_at_ns = 0;
    bool fresh;

    if (use == EC_USE_WAITING)
        ttl_ms = EC_WAIT_TTL_MS;
    (void)pthread_mutex_lock(&store->lock);
    class = find_class(store, ttl_s, use);
    fresh = use_class(class, ttl_ms, now_ns, out);
    /* etcd does not answer for a lease that has expired until it has ended it, which may take long
     * when its clock went back: one that may have expired is not asked for. */
    if (!fresh && class->id != 0 &&
        (now_ns >= class->alive_ns + class->granted_ms * HF__NS_PER_MS ||
         ec_holds_overdue(&store->holds, class->id, now_ns)))
        class->id = 0;
    out->id = class->id;
    (void)pthread_mutex_unlock(&store->lock);
    if (fresh)
        return HF_OK;
    if (out->id != 0) {
        status = ec_lease_keep(store, lock, out->id, patience, &sent_at_ns, &granted_ms, err);
        if (status == HF_OK) {
            note_alive(store, ttl_s, use, out->id, sent_at_ns, granted_ms);
            out->sent_at_ns = sent_at_ns;
            return HF_OK;
        }
        if (status != HF_LOST)
            return status;
        ec_lease_retire(store, out->id);
    }
    return grant_class(store, lock, ttl_ms, ttl_s, use, patience, out, err);
}

enum hf_status ec_lease_private(struct ec_store *store, const char *lock, int64_t id,
                                uint32_t ttl_ms, const struct ec_patience *patience,
                                struct ec_lease *out, struct hf_error *err)
{
    int64_t granted_ms = 0;
    int64_t sent_at_ns = 0;
    enum hf_status status;

    out->id = id != 0 ? id : random_id(store);
    status =
        grant(store, lock, out->id, (ttl_ms + 999) / 1000, patience, &sent_at_ns, &granted_ms, err);
    if (status == HF_OK)
        out->sent_at_ns =
            promise_from_ns(sent_at_ns, granted_ms, ttl_ms, store->base.host->now_ns());
    return status;
}

enum hf_status ec_lease_left(struct ec_store *store, const char *lock, int64_t id,
                             const struct ec_patience *patience, int64_t *sent_at_ns,
                             int64_t *left_ms, int64_t *granted_ms, struct hf_error *err)
{
    struct ec_text body;
    struct ec_answer answer;
    enum hf_status status;
    int64_t left_s;

    ec_text_clear(&body);
    ec_text_add(&body, "{\"ID\":\"%" PRId64 "\"}", id);
    status = lease_request(store, lock, "/v3/lease/timetolive", &body, true, patience, &answer,
                           NULL, err);
    if (status != HF_OK)
        return status;
    left_s = ec_answer_number(answer.json, "TTL");
    *granted_ms = ec_answer_number(answer.json, "grantedTTL") * 1000;
    *sent_at_ns = answer.sent_at_ns;
    ec_answer_release(&answer);
    if (left_s < 0 || left_s > GRANTED_MAX_S || *granted_ms <= 0)
        return HF_LOST;
    *left_ms = left_s * 1000; /* whole seconds, rounded down */
    return HF_OK;
}

void ec_lease_revoke(struct ec_store *store, int64_t id, const struct ec_patience *patience)
{
    struct ec_text body;
    struct ec_answer answer;

    ec_text_clear(&body);
    ec_text_add(&body, "{\"ID\":\"%" PRId64 "\"}", id);
    if (lease_request(store, NULL, "/v3/lease/revoke", &body, false, patience, &answer, NULL,
                      NULL) == HF_OK)
        ec_answer_release(&answer);
}

void ec_lease_drop(struct ec_store *store, int64_t id)
{
    char endpoint[EC_ENDPOINT_MAX];
    char auth[EC_AUTH_MAX];
    struct ec_text body;
    struct ec_post post = {
        .endpoint = endpoint, .path = "/v3/lease/revoke", .json = body.data, .auth = auth};
    struct ec_http *http = ec_http_take(store);

    if (http == NULL)
        return;
    ec_text_clear(&body);
    ec_text_add(&body, "{\"ID\":\"%" PRId64 "\"}", id);
    ec_where(store, endpoint, auth);
    post.json_len = body.len;
    ec_http_send(http, &post, DROP_MS);
    explicit_bzero(auth, sizeof auth);
    ec_http_give(store, http);
}

void ec_lease_retire(struct ec_store *store, int64_t id)
{
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < EC_CLASSES_MAX && id != 0; i++)
        if (store->classes[i].id == id)
            store->classes[i].id = 0;
    (void)pthread_mutex_unlock(&store->lock);
}

void ec_lease_end_idle(struct ec_store *store)
{
    for (size_t i = 0; i < EC_CLASSES_MAX; i++) {
        int64_t id = store->classes[i].id;

        if (id != 0 && !ec_holds_use(&store->holds, id))
            ec_lease_drop(store, id);
    }
}
