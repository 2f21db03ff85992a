/* store.c - opening, closing and listing. */
#include "client/client.h"

#include <holdfast/repair.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void close_leases(struct hf_store *store);

const char *hf_version(void)
{
    return HF_VERSION_STRING;
}

static enum hf_status open_store(const char *url, bool readonly, struct hf_store **out,
                                 struct hf_error *err)
{
    const struct hf_store_ops *ops;
    struct hf_store_base *base;
    char warning[HF_ERROR_TEXT_SIZE];
    struct hf_error own;
    enum hf_status status;

    *out = NULL;
    if (err == NULL)
        err = &own;
    url = hf__url_or_default(url);
    status = hf__registry_find(url, &ops, err);
    if (status != HF_OK)
        return status;
    (void)hf__ok(err);
    if (readonly && HF__OPERATION(ops, open_readonly) != NULL)
        status = ops->open_readonly(&hf__host, url, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS,
                                    &base, err);
    else
        status = hf__registry_open(url, &base, err);
    if (status != HF_OK)
        return status;
    /* A text with another code is what is left of a try that failed before this one. */
    hf__copy_printable(warning, sizeof warning, err->code == HF_OK ? err->text : "");
    if (secure_getenv("HOLDFAST_TRACE") != NULL)
        base = hf__trace_wrap(base);
    status = hf__store_wrap(base, url, out, err);
    if (status != HF_OK)
        return status;
    (*out)->readonly = readonly;
    return hf__fail(err, HF_OK, "%s", warning);
}

enum hf_status hf_open(const char *url, struct hf_store **out, struct hf_error *err)
{
    return open_store(url, false, out, err);
}

enum hf_status hf_open_readonly(const char *url, struct hf_store **out, struct hf_error *err)
{
    return open_store(url, true, out, err);
}

/* host/pid/program */
static void default_label(char *out, size_t size)
{
    char host[64] = "localhost";
    char text[HF_LABEL_MAX * 2];

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(text, sizeof text, "%s/%ld/%s", host, (long)getpid(),
                   program_invocation_short_name);
    hf__copy_printable(out, size, text);
}

enum hf_status hf__store_wrap(struct hf_store_base *base, const char *url, struct hf_store **out,
                              struct hf_error *err)
{
    const char *(*own_url)(struct hf_store_base *) = HF__OPERATION(base->ops, url);
    struct hf_store *store = calloc(1, sizeof *store);

    if (store == NULL) {
        base->ops->close(base, false);
        return hf__nomem(err);
    }
    store->base = base;
    hf__fork_mark_init(&store->mark);
    hf__url_redact(store->url, sizeof store->url, own_url != NULL ? own_url(base) : url);
    default_label(store->label, sizeof store->label);
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->idle, NULL);
    store->refs = 1;
    store->keeper.wake_fd = -1;
    store->keeper.timer_fd = -1;
    store->keeper.either_fd = -1;
    *out = store;
    return hf__ok(err);
}

void hf_close(struct hf_store *store)
{
    if (store == NULL)
        return;
    if (hf__forked(&store->mark)) {
        /* The parent's threads do not exist here, and its mutex may be locked for ever. The mark
         * stays, for leases that are still to be freed. */
        store->base->ops->close(store->base, true);
        hf__keeper_close_fds(&store->keeper);
        free(store->keeper.heap);
        free(store);
        return;
    }
    pthread_mutex_lock(&store->lock);
    hf__keeper_stop(store);
    close_leases(store);
    store->closed = true;
    while (store->calls > 0)
        pthread_cond_wait(&store->idle, &store->lock);
    store->base->ops->close(store->base, false);
    hf__store_unref(store);
}

/* One live lease is lost: released in the store unless it is detached; so is what was broken. */
static void close_lease(struct hf_lease *lease)
{
    struct hf_store *store = lease->store;
    int64_t now_ns = hf__now_ns();
    struct hf_claim claim = hf__lease_claim(lease, 0, now_ns + HF__REQUEST_MS * HF__NS_PER_MS);
    bool there;

    (void)hf__lease_tick(&lease->core, now_ns);
    there = hf__lease_excludes(&lease->core, now_ns);
    hf__lease_refused(&lease->core, HF_LOSS_CLOSED);
    if (there && !lease->detached) {
        lease->busy = true;
        pthread_mutex_unlock(&store->lock);
        (void)store->base->ops->release(store->base, &claim, NULL);
        pthread_mutex_lock(&store->lock);
        lease->busy = false;
        pthread_cond_broadcast(&store->idle);
    }
    hf__lease_signal(lease);
}

/* Closes every lease that is not closed yet, and tells its owner: also of a loss that the keeper
 * had no time to announce. */
static void close_leases(struct hf_store *store)
{
    struct hf_lease *lease = store->leases;

    while (lease != NULL) {
        if (lease->busy) {
            pthread_cond_wait(&store->idle, &store->lock);
        } else if (!lease->closed) {
            lease->closed = true;
            close_lease(lease);
            if (!lease->detached)
                (void)hf__lease_notify(lease);
        } else {
            lease = lease->next;
            continue;
        }
        /* The list may have changed meanwhile: from the start again. Those that are done are
         * marked, so this ends. */
        lease = store->leases;
    }
}

void hf__store_unref(struct hf_store *store)
{
    bool last = --store->refs == 0;

    pthread_mutex_unlock(&store->lock);
    if (!last)
        return;
    pthread_cond_destroy(&store->idle);
    pthread_mutex_destroy(&store->lock);
    free(store->keeper.heap);
    hf__fork_mark_release(&store->mark);
    free(store);
}

enum hf_status hf__store_begin(struct hf_store *store, struct hf_error *err)
{
    bool closed;

    if (hf__forked(&store->mark))
        return hf__fail_lock(err, HF_INVALID, NULL, store->url,
                             " was opened by process %ld: open it again after fork",
                             (long)store->mark.pid);
    pthread_mutex_lock(&store->lock);
    closed = store->closed;
    if (!closed)
        store->calls++;
    pthread_mutex_unlock(&store->lock);
    if (closed)
        return hf__fail_lock(err, HF_INVALID, NULL, store->url, " is closed");
    return HF_OK;
}

enum hf_status hf__store_begin_use(struct hf_store *store, struct hf_error *err)
{
    if (store->readonly)
        return hf__fail_lock(err, HF_INVALID, NULL, store->url, " was opened read-only");
    return hf__store_begin(store, err);
}

void hf__store_end(struct hf_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->calls--;
    if (store->calls == 0)
        pthread_cond_broadcast(&store->idle);
    pthread_mutex_unlock(&store->lock);
}

const char *hf_store_url(const struct hf_store *store)
{
    return store->url;
}

enum hf_status hf_store_identity(struct hf_store *store, char out[HF_IDENTITY_SIZE],
                                 struct hf_error *err)
{
    const struct hf_store_ops *ops = store->base->ops;
    enum hf_status status;

    out[0] = '\0';
    if (HF__OPERATION(ops, identity) == NULL)
        return hf__fail(err, HF_UNSUPPORTED, "store %.120s cannot identify itself", store->url);
    status = hf__store_begin_use(store, err);
    if (status != HF_OK)
        return status;
    status = ops->identity(store->base, out, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS, err);
    hf__store_end(store);
    return status;
}

unsigned hf_store_features(const struct hf_store *store)
{
    return hf__features(store->base);
}

uint32_t hf_store_max_ttl_ms(const struct hf_store *store)
{
    uint32_t (*max_ttl_ms)(struct hf_store_base *) = HF__OPERATION(store->base->ops, max_ttl_ms);

    return max_ttl_ms != NULL ? max_ttl_ms(store->base) : HF_TTL_MAX_MS;
}

enum hf_status hf__ttl_too_long(const struct hf_store *store, const char *name, uint32_t ttl_ms,
                                struct hf_error *err)
{
    return hf__fail_max_ttl(err, name, store->url, ttl_ms, hf_store_max_ttl_ms(store));
}

enum hf_status hf__bad_name(struct hf_error *err)
{
    return hf__fail(err, HF_INVALID, "a lock name has 1 to %d bytes and no control characters",
                    HF_NAME_MAX);
}

enum hf_status hf__bad_ttl(const struct hf_store *store, const char *name, struct hf_error *err)
{
    return hf__fail_lock(err, HF_INVALID, name, store->url,
                         ": a ttl is at least %dms and at most 1d", HF_TTL_MIN_MS);
}

int hf_store_life_fd(struct hf_store *store)
{
    int (*life_fd)(struct hf_store_base *) = HF__OPERATION(store->base->ops, life_fd);

    if (hf__forked(&store->mark) || store->readonly || life_fd == NULL)
        return -1;
    return life_fd(store->base);
}

/* Whose callback it is. */
struct reader {
    hf_list_fn *fn;
    void *data;
};

/* A member that did not exist when the store was built is not known. */
static bool fit(const struct hf_lock_info *info, void *data)
{
    const struct reader *reader = data;
    struct hf_lock_info whole;

    if (info->size >= sizeof whole)
        return reader->fn(info, reader->data);
    memset(&whole, 0, sizeof whole);
    memcpy(&whole, info, info->size);
    whole.size = sizeof whole;
    return reader->fn(&whole, reader->data);
}

static enum hf_status query(struct hf_store *store, const char *name, bool exact, hf_list_fn *fn,
                            void *data, struct hf_error *err)
{
    struct reader reader = {.fn = fn, .data = data};
    struct hf_query q = {
        .name = name, .exact = exact, .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    enum hf_status status = hf__store_begin(store, err);

    if (status != HF_OK)
        return status;
    status = store->base->ops->list(store->base, &q, fit, &reader, err);
    hf__store_end(store);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf_list(struct hf_store *store, const char *prefix, hf_list_fn *fn, void *data,
                       struct hf_error *err)
{
    return query(store, prefix != NULL ? prefix : "", false, fn, data, err);
}

enum hf_status hf_inspect(struct hf_store *store, const char *name, hf_list_fn *fn, void *data,
                          struct hf_error *err)
{
    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(err);
    return query(store, name, true, fn, data, err);
}

enum hf_status hf_repair(const char *url, uint64_t above, struct hf_error *report)
{
    const struct hf_store_ops *ops;
    enum hf_status status;

    url = hf__url_or_default(url);
    status = hf__registry_find(url, &ops, report);
    if (status != HF_OK)
        return status;
    if (HF__OPERATION(ops, repair) == NULL)
        return hf__fail(report, HF_UNSUPPORTED, "this kind of store has nothing to repair");
    return ops->repair(&hf__host, url, above, report);
}

enum hf_status hf_quarantine(struct hf_store *store, struct hf_error *err)
{
    enum hf_status status = hf__store_begin(store, err);

    if (status != HF_OK)
        return status;
    if (HF__OPERATION(store->base->ops, quarantine) != NULL)
        status = store->base->ops->quarantine(store->base,
                                              hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS, err);
    hf__store_end(store);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf_end_quarantine(struct hf_store *store, const char *reason,
                                 struct hf_error *report)
{
    char said[HF_LABEL_MAX + 1];
    enum hf_status status;

    if (reason == NULL || reason[0] == '\0' || strlen(reason) > HF_LABEL_MAX)
        return hf__fail(report, HF_INVALID, "ending a quarantine needs a reason of 1 to %d bytes",
                        HF_LABEL_MAX);
    if (HF__OPERATION(store->base->ops, end_quarantine) == NULL)
        return hf__fail_lock(report, HF_UNSUPPORTED, NULL, store->url, " has no quarantine");
    if ((status = hf__store_begin_use(store, report)) != HF_OK)
        return status;
    hf__copy_printable(said, sizeof said, reason);
    status = store->base->ops->end_quarantine(
        store->base, store->label, said, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS, report);
    hf__store_end(store);
    return status;
}
