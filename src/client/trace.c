/* trace.c - a store around a store that writes a line per call.
 *
 * Switched on by HOLDFAST_TRACE. A line tells the call, the lock, the answer and how long it took;
 * never an owner, never a password. */
#include "client/client.h"

#include <holdfast/fence.h>
#include <stdlib.h>

struct trace_store {
    struct hf_store_base base;
    struct hf_store_base *inner;
    struct hf_store_ops ops; /* ours, with the features and schemes of the inner store */
};

static void say(const struct trace_store *trace, const char *call, const char *name,
                enum hf_status status, int64_t start_ns, const struct hf_error *err)
{
    bool failed = status != HF_OK && err != NULL;
    char shown[HF_FENCE_KEY_MAX + 1];

    /* A key may have anything in its name; a line of the trace is one line. */
    hf__copy_printable(shown, sizeof shown, name);
    trace->base.host->log("%-8s %-20s %s in %lld us%s%s", call, shown, hf_status_name(status),
                          (long long)((hf__now_ns() - start_ns) / 1000), failed ? ": " : "",
                          failed ? err->text : "");
}

static struct trace_store *of(struct hf_store_base *base)
{
    return (struct trace_store *)base;
}

static void trace_close(struct hf_store_base *base, bool forked)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();

    trace->inner->ops->close(trace->inner, forked);
    say(trace, "close", "", HF_OK, start_ns, NULL);
    free(trace);
}

static enum hf_status trace_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                    struct hf_grant *grant, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->acquire(trace->inner, claim, grant, err);

    say(trace, "acquire", claim->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                                        size_t count, size_t *which, struct hf_grant *grant,
                                        struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status =
        trace->inner->ops->acquire_any(trace->inner, claims, count, which, grant, err);

    say(trace, "any", claims[*which].name, status, start_ns, err);
    return status;
}

static enum hf_status trace_renew(struct hf_store_base *base, const struct hf_claim *claim,
                                  struct hf_grant *grant, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->renew(trace->inner, claim, grant, err);

    say(trace, "renew", claim->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_fence(struct hf_store_base *base,
                                  const struct hf_fence_request *request,
                                  struct hf_fence_mark *mark, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->fence(trace->inner, request, mark, err);

    say(trace, "fence", request->key, status, start_ns, err);
    return status;
}

static enum hf_status trace_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                                       struct hf_grant *grants, enum hf_status *results,
                                       size_t count, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status =
        trace->inner->ops->renew_many(trace->inner, claims, grants, results, count, err);

    for (size_t i = 0; i < count; i++)
        say(trace, "renew", claims[i].name, results[i], start_ns, NULL);
    return status;
}

static enum hf_status trace_release(struct hf_store_base *base, const struct hf_claim *claim,
                                    struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->release(trace->inner, claim, err);

    say(trace, "release", claim->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_list(struct hf_store_base *base, const struct hf_query *query,
                                 hf_list_fn *fn, void *data, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->list(trace->inner, query, fn, data, err);

    say(trace, "list", query->name, status, start_ns, err);
    return status;
}

static int trace_life_fd(struct hf_store_base *base)
{
    struct trace_store *trace = of(base);

    return trace->inner->ops->life_fd(trace->inner);
}

static const char *trace_url(struct hf_store_base *base)
{
    struct trace_store *trace = of(base);

    return trace->inner->ops->url(trace->inner);
}

static uint32_t trace_max_ttl_ms(struct hf_store_base *base)
{
    struct trace_store *trace = of(base);

    return trace->inner->ops->max_ttl_ms(trace->inner);
}

static enum hf_status trace_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                                     int64_t deadline_ns, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->identity(trace->inner, out, deadline_ns, err);

    say(trace, "identity", "", status, start_ns, err);
    return status;
}

static enum hf_status trace_waiters(struct hf_store_base *base, const struct hf_query *query,
                                    hf_waiter_fn *fn, void *data, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->waiters(trace->inner, query, fn, data, err);

    say(trace, "waiters", query->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_last_break(struct hf_store_base *base, const struct hf_query *query,
                                       struct hf_revocation *out, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->last_break(trace->inner, query, out, err);

    say(trace, "last_break", query->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_forget(struct hf_store_base *base, const char *name,
                                   int64_t deadline_ns, struct hf_error *report)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->forget(trace->inner, name, deadline_ns, report);

    say(trace, "forget", name, status, start_ns, report);
    return status;
}

static void trace_listen(struct hf_store_base *base, int wake_fd, hf_doubt_fn *doubt, void *data)
{
    struct trace_store *trace = of(base);

    trace->inner->ops->listen(trace->inner, wake_fd, doubt, data);
}

static enum hf_status trace_end_quarantine(struct hf_store_base *base, const char *label,
                                           const char *reason, int64_t deadline_ns,
                                           struct hf_error *report)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status =
        trace->inner->ops->end_quarantine(trace->inner, label, reason, deadline_ns, report);

    say(trace, "open", "", status, start_ns, report);
    return status;
}

static enum hf_status trace_quarantine(struct hf_store_base *base, int64_t deadline_ns,
                                       struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->quarantine(trace->inner, deadline_ns, err);

    say(trace, "quarantine", "", status, start_ns, err);
    return status;
}

static enum hf_status trace_record_put(struct hf_store_base *base,
                                       const struct hf_record_write *write, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->record_put(trace->inner, write, err);

    say(trace, "put", write->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_record_put_both(struct hf_store_base *base,
                                            const struct hf_record_write *first,
                                            const struct hf_record_write *write,
                                            struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->record_put_both(trace->inner, first, write, err);

    say(trace, "put both", write->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_put_forgettable(struct hf_store_base *base,
                                            const struct hf_record_write *first,
                                            const struct hf_record_write *write,
                                            struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->put_forgettable(trace->inner, first, write, err);

    say(trace, "put soft", write->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_record_get(struct hf_store_base *base,
                                       const struct hf_record_query *query, hf_record_fn *fn,
                                       void *data, int64_t *now_ms, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status =
        trace->inner->ops->record_get(trace->inner, query, fn, data, now_ms, err);

    say(trace, "get", query->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_record_list(struct hf_store_base *base,
                                        const struct hf_record_query *query, hf_record_fn *fn,
                                        void *data, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->record_list(trace->inner, query, fn, data, err);

    say(trace, "records", query->name, status, start_ns, err);
    return status;
}

static enum hf_status trace_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                                   struct hf_broken *out, struct hf_error *err)
{
    struct trace_store *trace = of(base);
    int64_t start_ns = hf__now_ns();
    enum hf_status status = trace->inner->ops->revoke(trace->inner, revoke, out, err);

    say(trace, "revoke", revoke->name, status, start_ns, err);
    return status;
}

struct hf_store_base *hf__trace_wrap(struct hf_store_base *inner)
{
    struct trace_store *trace = calloc(1, sizeof *trace);

    if (trace == NULL)
        return inner;
    trace->inner = inner;
    trace->ops.size = sizeof trace->ops;
    trace->ops.schemes = inner->ops->schemes;
    trace->ops.features = hf__features(inner);
    trace->ops.close = trace_close;
    trace->ops.acquire = trace_acquire;
    trace->ops.renew = trace_renew;
    trace->ops.release = trace_release;
    trace->ops.list = trace_list;
    if (HF__OPERATION(inner->ops, acquire_any) != NULL)
        trace->ops.acquire_any = trace_acquire_any;
    if (HF__OPERATION(inner->ops, life_fd) != NULL)
        trace->ops.life_fd = trace_life_fd;
    if (HF__OPERATION(inner->ops, url) != NULL)
        trace->ops.url = trace_url;
    if (HF__OPERATION(inner->ops, fence) != NULL)
        trace->ops.fence = trace_fence;
    if (HF__OPERATION(inner->ops, renew_many) != NULL)
        trace->ops.renew_many = trace_renew_many;
    if (HF__OPERATION(inner->ops, identity) != NULL)
        trace->ops.identity = trace_identity;
    if (HF__OPERATION(inner->ops, max_ttl_ms) != NULL)
        trace->ops.max_ttl_ms = trace_max_ttl_ms;
    if (HF__OPERATION(inner->ops, end_quarantine) != NULL)
        trace->ops.end_quarantine = trace_end_quarantine;
    if (HF__OPERATION(inner->ops, quarantine) != NULL)
        trace->ops.quarantine = trace_quarantine;
    if (HF__OPERATION(inner->ops, record_list) != NULL) {
        trace->ops.record_put = trace_record_put;
        trace->ops.record_get = trace_record_get;
        trace->ops.record_list = trace_record_list;
    }
    if (HF__OPERATION(inner->ops, record_put_both) != NULL)
        trace->ops.record_put_both = trace_record_put_both;
    if (HF__OPERATION(inner->ops, put_forgettable) != NULL)
        trace->ops.put_forgettable = trace_put_forgettable;
    if (HF__OPERATION(inner->ops, revoke) != NULL)
        trace->ops.revoke = trace_revoke;
    if (HF__OPERATION(inner->ops, forget) != NULL)
        trace->ops.forget = trace_forget;
    if (HF__OPERATION(inner->ops, waiters) != NULL)
        trace->ops.waiters = trace_waiters;
    if (HF__OPERATION(inner->ops, last_break) != NULL)
        trace->ops.last_break = trace_last_break;
    /* cppcheck-suppress arithOperationsOnVoidPointer ; it returns void, and is no void pointer */
    if (HF__OPERATION(inner->ops, listen) != NULL)
        trace->ops.listen = trace_listen;
    trace->base.ops = &trace->ops;
    trace->base.host = inner->host;
    return &trace->base;
}
