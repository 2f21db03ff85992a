/* store.c - the embedded store: its table of operations, opening and closing. */
#include "base/base.h"
#include "stores/file/client.h"
#include "stores/file/dir.h"
#include "stores/file/fifo.h"
#include "stores/file/file.h"
#include "stores/file/life.h"
#include "stores/file/map.h"
#include "stores/file/open.h"
#include "stores/file/operations.h"
#include "stores/file/url.h"

#include <sys/file.h>

static enum hf_status open_store(struct file_store *store, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    enum hf_status status;

    if (store == NULL)
        return hf__nomem(err);
    store->base.ops = &hf__file_ops;
    status = hf__url_dir(url, &store->path, &store->shared, err);
    if (status == HF_OK)
        status = hf__dir_open(store, err);
    /* A client that only reads keeps nobody from repairing the store, or from discarding what is of
     * another boot. */
    if (status == HF_OK && !store->readonly)
        status = hf__dir_lock(store, LOCK_SH, deadline_ns, err);
    if (status == HF_OK && store->dir_fd >= 0)
        status = hf__slots_open(store, deadline_ns, err);
    if (status != HF_OK) {
        hf__map_close(store, false);
        hf__file_free(store);
        return status;
    }
    *out = &store->base;
    return HF_OK;
}

enum hf_status hf__file_open_on(const struct hf__file_sys *sys, const struct hf_host *host,
                                const char *url, int64_t deadline_ns, struct hf_store_base **out,
                                struct hf_error *err)
{
    return open_store(hf__file_new(sys, host), url, deadline_ns, out, err);
}

static enum hf_status file_open_readonly(const struct hf_host *host, const char *url,
                                         int64_t deadline_ns, struct hf_store_base **out,
                                         struct hf_error *err)
{
    struct file_store *store = hf__file_new(&hf__file_sys_real, host);

    if (store != NULL)
        store->readonly = true;
    return open_store(store, url, deadline_ns, out, err);
}

static enum hf_status file_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                struct hf_store_base **out, struct hf_error *err)
{
    return hf__file_open_on(&hf__file_sys_real, host, url, deadline_ns, out, err);
}

static void file_close(struct hf_store_base *base, bool forked)
{
    struct file_store *store = hf__file_of(base);

    if (!forked)
        hf__client_close(store);
    hf__map_close(store, forked);
    hf__fifo_close_all(store, forked);
    hf__life_close(store, forked);
    hf__file_free(store);
}

static int file_life_fd(struct hf_store_base *base)
{
    return hf__life_fd(hf__file_of(base));
}

static const char *file_url(struct hf_store_base *base)
{
    return hf__file_of(base)->url;
}

static const char *const schemes[] = {"file", NULL};

const struct hf_store_ops hf__file_ops = {
    .size = sizeof hf__file_ops,
    .schemes = schemes,
    .features = HF_FEATURE_FAIR | HF_FEATURE_CRASH_RELEASE | HF_FEATURE_DURABLE_TOKENS |
                HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL | HF_FEATURE_RECORDS | HF_FEATURE_BREAK,
    .open = file_open,
    .close = file_close,
    .acquire = hf__file_acquire,
    .renew = hf__file_renew,
    .release = hf__file_release,
    .list = hf__file_list,
    .life_fd = file_life_fd,
    .url = file_url,
    .repair = hf__file_repair,
    .identity = hf__file_identity,
    .forget = hf__file_forget,
    .open_readonly = file_open_readonly,
    .record_put = hf__file_record_put,
    .record_put_both = hf__file_record_put_both,
    .put_forgettable = hf__file_put_forgettable,
    .record_get = hf__file_record_get,
    .record_list = hf__file_record_list,
    .revoke = hf__file_revoke,
    .audit = hf__file_audit,
    .acquire_any = hf__file_acquire_any,
    .acquire_free = hf__file_acquire_free,
    .last_break = hf__file_last_break,
    .begin = hf__file_begin,
    .answered = hf__file_answered,
    .end = hf__file_end,
};
