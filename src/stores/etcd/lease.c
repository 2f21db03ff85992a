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
 * renewed. To keep an attempt of unknown fate from costing the many that are held anything, there
 * are two leases: a key is first put on that of the attempts, and moves to that of the holds with
 * its first renewal. So nothing is ever put on the second that was not seen before. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <inttypes.h>
#include <stdlib.h>

#define SLACK_S       1 /* at the least, and a tenth of the ttl */
#define GRANTED_MAX_S 1000000

/* One request about a lease, of those that may be sent again. */
static enum hf_status ask(const struct ec_request *request, const char *path,
                          const struct ec_text *body, struct ec_answer *out,
                          enum ec_verdict *verdict)
{
    /* Granted a second time, a lease is refused; kept alive twice, or late, it only lives longer; a
     * late grant harms nobody, it is empty. */
    struct ec_call call = ec_call_repeatable(request, path, body);

    return ec_call(request->store, &call, out, verdict, request->err);
}

int64_t ec_lease_draw(const struct ec_store *store)
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
    id = (int64_t)(hf__hash64(raw, sizeof raw, 0) & INT64_MAX);
    return id > 0 ? id : 1;
}

static void name_lease(struct ec_text *body, int64_t id)
{
    ec_text_clear(body);
    ec_text_add(body, "{\"ID\":\"%" PRId64 "\"}", id);
}

enum hf_status ec_lease_keep(const struct ec_request *request, int64_t id, struct ec_life *out)
{
    struct ec_text body;
    struct ec_answer answer;
    enum hf_status status;
    int64_t ttl_s;

    name_lease(&body, id);
    status = ask(request, "/v3/lease/keepalive", &body, &answer, NULL);
    if (status != HF_OK)
        return status;
    ttl_s = ec_answer_number(cJSON_GetObjectItemCaseSensitive(answer.json, "result"), "TTL");
    out->sent_at_ns = answer.sent_at_ns;
    ec_answer_release(&answer);
    /* A lease that is gone is told by leaving out its ttl. */
    if (ttl_s <= 0 || ttl_s > GRANTED_MAX_S)
        return HF_LOST;
    out->granted_ms = ttl_s * 1000;
    return HF_OK;
}

static enum hf_status grant(const struct ec_request *request, int64_t id, int64_t ttl_s,
                            struct ec_life *out)
{
    const char *shown = request->store->url.common.shown;
    struct ec_text body;
    struct ec_answer answer;
    enum ec_verdict verdict;
    enum hf_status status;
    int64_t granted_s;

    ec_text_clear(&body);
    ec_text_add(&body, "{\"ID\":\"%" PRId64 "\",\"TTL\":\"%" PRId64 "\"}", id, ttl_s);
    status = ask(request, "/v3/lease/grant", &body, &answer, &verdict);
    if (verdict == EC_LEASE_EXISTS) {
        status = ec_lease_keep(request, id, out);
        return status == HF_LOST ? ec_fail(NULL, shown, HF_UNREACHABLE,
                                           "a lease ended as soon as it was granted", request->err)
                                 : status;
    }
    if (status != HF_OK)
        return status;
    granted_s = ec_answer_number(answer.json, "TTL");
    out->sent_at_ns = answer.sent_at_ns;
    ec_answer_release(&answer);
    if (granted_s < ttl_s || granted_s > GRANTED_MAX_S)
        return ec_nonsense(request->lock, shown, request->err);
    out->granted_ms = granted_s * 1000;
    return HF_OK;
}

/* From when on ttl_ms can be promised on a lease with that life. */
static int64_t promise_from_ns(const struct ec_life *life, uint32_t ttl_ms, int64_t now_ns)
{
    int64_t latest_ns = life->sent_at_ns + (life->granted_ms - (int64_t)ttl_ms) * HF__NS_PER_MS;

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
    out->sent_at_ns = promise_from_ns(&class->life, ttl_ms, now_ns);
    return class->id != 0 && out->sent_at_ns == now_ns;
}

/* A request for the lease was answered. */
static void note_alive(struct ec_store *store, const struct ec_class *which,
                       const struct ec_life *life)
{
    struct ec_class *class;

    pthread_mutex_lock(&store->lock);
    class = find_class(store, which->ttl_s, which->use);
    if (class->id == which->id && class->life.sent_at_ns < life->sent_at_ns)
        class->life = *life;
    pthread_mutex_unlock(&store->lock);
}

/* A new lease for the class, unless another thread has just got one. */
static enum hf_status grant_class(const struct ec_request *request, const struct ec_class *which,
                                  uint32_t ttl_ms, struct ec_lease *out)
{
    struct ec_store *store = request->store;
    int64_t id = ec_lease_draw(store);
    struct ec_class *class;
    struct ec_life life = {0};
    bool spare;
    enum hf_status status = grant(request, id, which->ttl_s, &life);

    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&store->lock);
    class = find_class(store, which->ttl_s, which->use);
    spare = use_class(class, ttl_ms, store->base.host->now_ns(), out);
    if (!spare) {
        class->id = id;
        class->life = life;
        *out = (struct ec_lease){.id = id, .sent_at_ns = life.sent_at_ns};
    }
    pthread_mutex_unlock(&store->lock);
    if (spare)
        ec_lease_drop(store, id);
    return HF_OK;
}

/* The lease of the class if it will do; else *which is the class as it is. */
static bool find_fresh(struct ec_store *store, struct ec_class *which, uint32_t ttl_ms,
                       struct ec_lease *out)
{
    int64_t now_ns = store->base.host->now_ns();
    struct ec_class *class;
    bool fresh;

    pthread_mutex_lock(&store->lock);
    class = find_class(store, which->ttl_s, which->use);
    fresh = use_class(class, ttl_ms, now_ns, out);
    /* etcd does not answer for a lease that has expired until it has ended it, which may take long
     * when its clock went back: one that may have expired is not asked for. */
    if (!fresh && class->id != 0 &&
        (now_ns >= class->life.sent_at_ns + class->life.granted_ms * HF__NS_PER_MS ||
         ec_holds_overdue(&store->holds, class->id, now_ns)))
        class->id = 0;
    *which = *class;
    pthread_mutex_unlock(&store->lock);
    return fresh;
}

enum hf_status ec_lease_class(const struct ec_request *request, uint32_t ttl_ms, enum ec_use use,
                              struct ec_lease *out)
{
    struct ec_class which = {.use = use, .ttl_s = EC_WAIT_LEASE_S};
    struct ec_life life = {0};
    enum hf_status status;

    if (use == EC_USE_WAITING)
        ttl_ms = EC_WAIT_TTL_MS;
    else
        which.ttl_s = (ttl_ms + 999) / 1000 + SLACK_S + ttl_ms / 10000;
    if (find_fresh(request->store, &which, ttl_ms, out))
        return HF_OK;
    if (which.id != 0) {
        status = ec_lease_keep(request, which.id, &life);
        if (status == HF_OK) {
            note_alive(request->store, &which, &life);
            *out = (struct ec_lease){.id = which.id, .sent_at_ns = life.sent_at_ns};
            return HF_OK;
        }
        if (status != HF_LOST)
            return status;
        ec_lease_retire(request->store, which.id);
    }
    return grant_class(request, &which, ttl_ms, out);
}

enum hf_status ec_lease_private(const struct ec_request *request, int64_t id, uint32_t ttl_ms,
                                struct ec_lease *out)
{
    struct ec_life life = {0};
    enum hf_status status;

    out->id = id != 0 ? id : ec_lease_draw(request->store);
    status = grant(request, out->id, (ttl_ms + 999) / 1000, &life);
    if (status == HF_OK)
        out->sent_at_ns = promise_from_ns(&life, ttl_ms, request->store->base.host->now_ns());
    return status;
}

enum hf_status ec_lease_left(const struct ec_request *request, int64_t id, struct ec_life *out)
{
    struct ec_text body;
    struct ec_answer answer;
    enum hf_status status;
    int64_t left_s;

    name_lease(&body, id);
    status = ask(request, "/v3/lease/timetolive", &body, &answer, NULL);
    if (status != HF_OK)
        return status;
    left_s = ec_answer_number(answer.json, "TTL");
    out->granted_ms = ec_answer_number(answer.json, "grantedTTL") * 1000;
    out->sent_at_ns = answer.sent_at_ns;
    ec_answer_release(&answer);
    if (left_s < 0 || left_s > GRANTED_MAX_S || out->granted_ms <= 0)
        return HF_LOST;
    out->left_ms = left_s * 1000; /* whole seconds, rounded down */
    return HF_OK;
}

void ec_lease_revoke(struct ec_store *store, int64_t id, const struct hf__patience *patience)
{
    struct ec_text body;
    struct ec_call call = {.path = "/v3/lease/revoke", .body = &body, .patience = *patience};
    struct ec_answer answer;

    name_lease(&body, id);
    if (ec_call(store, &call, &answer, NULL, NULL) == HF_OK)
        ec_answer_release(&answer);
}

void ec_lease_drop(struct ec_store *store, int64_t id)
{
    struct ec_text body;

    name_lease(&body, id);
    ec_send_unheard(store, "/v3/lease/revoke", &body);
}

void ec_lease_retire(struct ec_store *store, int64_t id)
{
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < EC_CLASSES_MAX && id != 0; i++)
        if (store->classes[i].id == id)
            store->classes[i].id = 0;
    pthread_mutex_unlock(&store->lock);
}

void ec_lease_end_idle(struct ec_store *store)
{
    for (size_t i = 0; i < EC_CLASSES_MAX; i++) {
        int64_t id = store->classes[i].id;

        if (id != 0 && !ec_holds_use(&store->holds, id))
            ec_lease_drop(store, id);
    }
}
