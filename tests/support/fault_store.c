/* fault_store.c - a store around any store, whose calls fail when a test wants them to. */
#include "fault_store.h"
#include "base/base.h"
#include "check.h"
#include "client/client.h"

#include <pthread.h>
#include <stdlib.h>

struct fault_store {
    struct hf_store_base base;
    struct hf_store_base *inner;
    struct hf_store_ops ops;
    pthread_mutex_t lock;
    struct fault faults[FAULT_MAX];
    unsigned seen[FAULT_MAX]; /* calls since the fault was added */
    size_t count;
    unsigned made[FAULT_CALLS];
    unsigned reached[FAULT_CALLS];
};

static struct fault_store *of(struct hf_store_base *base)
{
    return (struct fault_store *)base;
}

/* The fault that hits this call; one with status HF_OK and no delay if none does. */
static struct fault strike(struct fault_store *store, enum fault_call call)
{
    struct fault hit = {.after = true};

    pthread_mutex_lock(&store->lock);
    store->made[call]++;
    for (size_t i = 0; i < store->count; i++) {
        const struct fault *fault = &store->faults[i];

        if (fault->call != call)
            continue;
        store->seen[i]++;
        if (store->seen[i] >= fault->from && store->seen[i] - fault->from < fault->times)
            hit = *fault;
    }
    if (hit.after || hit.status == HF_OK)
        store->reached[call]++;
    pthread_mutex_unlock(&store->lock);
    return hit;
}

static bool is_lost_before(const struct fault *fault)
{
    return !fault->after && fault->status != HF_OK;
}

/* What the caller gets in the end: the inner store's answer or the fault's. */
static enum hf_status answer(const struct fault *fault, int64_t deadline_ns, enum hf_status inner,
                             const char *name, struct hf_error *err)
{
    while (fault->until_deadline && hf__now_ns() < deadline_ns)
        check_pause_ms(1);
    if (fault->delay_ms > 0)
        check_pause_ms(fault->delay_ms);
    if (fault->status == HF_OK)
        return inner;
    return hf__fail(err, fault->status, "lock \"%s\": a fault was put in the way", name);
}

static enum hf_status fault_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                    struct hf_grant *grant, struct hf_error *err)
{
    struct fault_store *store = of(base);
    struct fault fault = strike(store, FAULT_ACQUIRE);
    enum hf_status status = HF_OK;

    if (!is_lost_before(&fault))
        status = store->inner->ops->acquire(store->inner, claim, grant, err);
    return answer(&fault, claim->deadline_ns, status, claim->name, err);
}

static enum hf_status fault_renew(struct hf_store_base *base, const struct hf_claim *claim,
                                  struct hf_grant *grant, struct hf_error *err)
{
    struct fault_store *store = of(base);
    struct fault fault = strike(store, FAULT_RENEW);
    enum hf_status status = HF_OK;

    if (!is_lost_before(&fault))
        status = store->inner->ops->renew(store->inner, claim, grant, err);
    return answer(&fault, claim->deadline_ns, status, claim->name, err);
}

static enum hf_status fault_release(struct hf_store_base *base, const struct hf_claim *claim,
                                    struct hf_error *err)
{
    struct fault_store *store = of(base);
    struct fault fault = strike(store, FAULT_RELEASE);
    enum hf_status status = HF_OK;

    if (!is_lost_before(&fault))
        status = store->inner->ops->release(store->inner, claim, err);
    return answer(&fault, claim->deadline_ns, status, claim->name, err);
}

static enum hf_status fault_list(struct hf_store_base *base, const struct hf_query *query,
                                 hf_list_fn *fn, void *data, struct hf_error *err)
{
    struct fault_store *store = of(base);
    struct fault fault = strike(store, FAULT_LIST);
    enum hf_status status = HF_OK;

    if (!is_lost_before(&fault))
        status = store->inner->ops->list(store->inner, query, fn, data, err);
    return answer(&fault, query->deadline_ns, status, query->name, err);
}

static enum hf_status fault_record_put(struct hf_store_base *base,
                                       const struct hf_record_write *write, struct hf_error *err)
{
    struct fault_store *store = of(base);
    struct fault fault = strike(store, FAULT_RECORD_PUT);
    enum hf_status status = HF_OK;

    if (!is_lost_before(&fault))
        status = store->inner->ops->record_put(store->inner, write, err);
    return answer(&fault, write->deadline_ns, status, write->name, err);
}

static enum hf_status fault_record_get(struct hf_store_base *base,
                                       const struct hf_record_query *query, hf_record_fn *fn,
                                       void *data, int64_t *now_ms, struct hf_error *err)
{
    struct fault_store *store = of(base);
    struct fault fault = strike(store, FAULT_RECORD_GET);
    enum hf_status status = HF_OK;

    if (!is_lost_before(&fault))
        status = store->inner->ops->record_get(store->inner, query, fn, data, now_ms, err);
    return answer(&fault, query->deadline_ns, status, query->name, err);
}

static enum hf_status fault_record_list(struct hf_store_base *base,
                                        const struct hf_record_query *query, hf_record_fn *fn,
                                        void *data, struct hf_error *err)
{
    struct fault_store *store = of(base);

    return store->inner->ops->record_list(store->inner, query, fn, data, err);
}

static void fault_close(struct hf_store_base *base, bool forked)
{
    struct fault_store *store = of(base);

    store->inner->ops->close(store->inner, forked);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

struct fault_store *fault_wrap(struct hf_store_base *inner)
{
    struct fault_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        abort();
    store->inner = inner;
    store->ops.size = sizeof store->ops;
    store->ops.schemes = inner->ops->schemes;
    store->ops.features = hf__features(inner);
    store->ops.open = inner->ops->open;
    store->ops.close = fault_close;
    store->ops.acquire = fault_acquire;
    store->ops.renew = fault_renew;
    store->ops.release = fault_release;
    store->ops.list = fault_list;
    if ((hf__features(inner) & HF_FEATURE_RECORDS) != 0) {
        store->ops.record_put = fault_record_put;
        store->ops.record_get = fault_record_get;
        store->ops.record_list = fault_record_list;
    }
    store->base.ops = &store->ops;
    store->base.host = inner->host;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

struct hf_store_base *fault_base(struct fault_store *store)
{
    return &store->base;
}

void fault_add(struct fault_store *store, struct fault fault)
{
    pthread_mutex_lock(&store->lock);
    if (store->count == FAULT_MAX)
        abort();
    store->seen[store->count] = 0;
    store->faults[store->count++] = fault;
    pthread_mutex_unlock(&store->lock);
}

void fault_clear(struct fault_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->count = 0;
    pthread_mutex_unlock(&store->lock);
}

static unsigned read_count(struct fault_store *store, const unsigned *count)
{
    unsigned value;

    pthread_mutex_lock(&store->lock);
    value = *count;
    pthread_mutex_unlock(&store->lock);
    return value;
}

unsigned fault_made(struct fault_store *store, enum fault_call call)
{
    return read_count(store, &store->made[call]);
}

unsigned fault_reached(struct fault_store *store, enum fault_call call)
{
    return read_count(store, &store->reached[call]);
}
