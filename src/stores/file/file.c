/* file.c - the embedded store: its table of operations. */
#include "stores/file/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static enum hf_status file_release(struct hf_store_base *base, const struct hf_claim *claim,
                                   struct hf_error *err);

struct file_store *hf__file_new(const struct hf__file_sys *sys, const struct hf_host *host)
{
    struct file_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->base.ops = &hf__file_ops;
    store->base.host = host;
    store->sys = sys;
    store->dir_fd = -1;
    store->slots_fd = -1;
    store->root_fd = -1;
    store->life_fd = -1;
    while (store->client == 0)
        host->random(&store->client, sizeof store->client);
    for (int i = 0; i <= STRIPES; i++)
        pthread_mutex_init(&store->stripes[i], NULL);
    pthread_mutex_init(&store->life_lock, NULL);
    return store;
}

void hf__file_free(struct file_store *store)
{
    if (store->slots_fd >= 0)
        (void)close(store->slots_fd);
    if (store->dir_fd >= 0)
        (void)close(store->dir_fd);
    if (store->root_fd >= 0)
        (void)close(store->root_fd);
    free(store->slots_path);
    free(atomic_load(&store->hints));
    free(store->path);
    free(store->url);
    free(store);
}

static enum hf_status open_store(struct file_store *store, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    enum hf_status status;

    if (store == NULL)
        return hf__nomem(err);
    status = hf__dir_parse(url, &store->path, &store->shared, err);
    if (status == HF_OK)
        status = hf__dir_open(store, err);
    /* Who looks keeps nobody from repairing the store, or from discarding what is of another boot.
     */
    if (status == HF_OK && !store->readonly)
        status = hf__dir_lock(store, LOCK_SH, deadline_ns, err);
    if (status == HF_OK && store->dir_fd >= 0)
        status = hf__slots_open(store, deadline_ns, err);
    if (status != HF_OK) {
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

    hf__turn_close_all(store, forked);
    hf__life_close(store, forked);
    hf__file_free(store);
}

static enum hf_status file_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                   struct hf_grant *grant, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    int64_t patience_ns = claim->deadline_ns - base->host->now_ns();
    struct bucket bucket;
    struct slot *slot;
    enum look seen;
    enum hf_status status;

    if (!claim->detached && hf__life_fd(store) < 0)
        return hf__fail(err, HF_UNREACHABLE, "store file:%s: cannot create a FIFO: %s",
                        store->shown, strerror(errno));
    status = hf__take_slot(store, claim, &bucket, &slot, err);
    if (status != HF_OK)
        return hf__bucket_failed(store, &bucket, status, err);
    status = hf__take_look(store, &bucket, slot, claim, 0, &seen, grant, err);
    if (status == HF_OK && seen != LOOK_TAKEN)
        status = hf__busy(store, slot, claim->name, base->host->now_ns(), err);
    hf__bucket_unlock(store, &bucket);
    if (status == HF_BUSY && claim->wait_until_ns != 0)
        status = hf__queue_wait(store, claim, grant, err);
    if (status == HF_UNKNOWN) {
        struct hf_claim undo = *claim;

        /* It may be ours all the same, and nobody would ever give it back. */
        undo.deadline_ns = hf__time_add(base->host->now_ns(), patience_ns);
        (void)file_release(base, &undo, NULL);
    }
    return status;
}

static enum hf_status bad_owner(const struct hf_claim *claim, struct hf_error *err)
{
    return hf__fail(err, HF_INVALID, "lock \"%.60s\": malformed owner", claim->name);
}

static enum hf_status lost(struct file_store *store, const struct hf_claim *claim,
                           struct hf_grant *grant, enum hf_loss loss, struct hf_error *err)
{
    if (grant != NULL)
        grant->loss = loss;
    return hf__fail(err, HF_LOST, "lock \"%.60s\" in file:%s: %s", claim->name, store->shown,
                    hf_loss_text(loss));
}

/* Does the slot (which may be NULL) tell of the hold of this owner with this token? */
static bool is_hold(const struct slot *slot, const unsigned char *owner, uint64_t token)
{
    return slot != NULL && slot->token == token &&
           memcmp(owner, slot->owner, sizeof slot->owner) == 0;
}

/* Why the slot (which may be NULL) is not held by this owner with this token; HF_LOSS_NONE if it
 * is.
 */
static enum hf_loss why_lost(const struct slot *slot, const unsigned char *owner, uint64_t token,
                             int64_t now_ns)
{
    if (slot == NULL)
        return HF_LOSS_FORGOTTEN;
    if (slot->expires_ns <= now_ns)
        return HF_LOSS_EXPIRED;
    return is_hold(slot, owner, token) ? HF_LOSS_NONE : HF_LOSS_TAKEN;
}

static enum hf_status file_renew(struct hf_store_base *base, const struct hf_claim *claim,
                                 struct hf_grant *grant, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    uint64_t hash = hf__name_hash(claim->name);
    unsigned char owner[HF_OWNER_LEN / 2];
    struct bucket bucket;
    struct slot *slot;
    enum hf_loss loss;
    int64_t now_ns;
    enum hf_status status;

    if (!hf__hex_decode(owner, sizeof owner, claim->owner))
        return bad_owner(claim, err);
    if (hf__place_check(store, NULL) != HF_OK)
        return lost(store, claim, grant, HF_LOSS_FORGOTTEN, err);
    status = hf__bucket_lock(store, hash, claim->deadline_ns, &bucket, err);
    if (status != HF_OK)
        return hf__bucket_failed(store, &bucket, status, err);
    now_ns = base->host->now_ns();
    slot = hf__bucket_find(&bucket, hash, claim->name);
    loss = why_lost(slot, owner, claim->token, now_ns);
    if (loss != HF_LOSS_NONE) {
        status = lost(store, claim, grant, loss, err);
    } else {
        grant->sent_at_ns = now_ns;
        grant->ttl_ms = slot->ttl_ms;
        grant->remaining_ms = (slot->expires_ns - now_ns) / HF__NS_PER_MS;
        if (claim->ttl_ms != 0) {
            slot->ttl_ms = claim->ttl_ms;
            slot->expires_ns = hf__time_add(now_ns, (int64_t)claim->ttl_ms * HF__NS_PER_MS);
            status = hf__bucket_write(store, &bucket, slot, err);
            grant->ttl_ms = claim->ttl_ms;
        }
    }
    hf__bucket_unlock(store, &bucket);
    return status;
}

static enum hf_status file_release(struct hf_store_base *base, const struct hf_claim *claim,
                                   struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    uint64_t hash = hf__name_hash(claim->name);
    unsigned char owner[HF_OWNER_LEN / 2];
    struct bucket bucket;
    struct slot *slot;
    enum hf_loss loss;
    uint64_t token;
    int64_t now_ns;
    enum hf_status status;

    if (!hf__hex_decode(owner, sizeof owner, claim->owner))
        return bad_owner(claim, err);
    status = hf__bucket_lock(store, hash, claim->deadline_ns, &bucket, err);
    if (status != HF_OK)
        return hf__bucket_failed(store, &bucket, status, err);
    now_ns = base->host->now_ns();
    slot = hf__bucket_find(&bucket, hash, claim->name);
    /* Who never heard its token gives back whatever it holds. */
    token = claim->token != 0 || slot == NULL ? claim->token : slot->token;
    loss = why_lost(slot, owner, token, now_ns);
    if (is_hold(slot, owner, token)) {
        memset(slot->owner, 0, sizeof slot->owner);
        memset(slot->label, 0, sizeof slot->label);
        slot->expires_ns = 0;
        slot->client = 0;
        status = hf__ticket_pass(store, &bucket, slot, now_ns, err);
    }
    hf__bucket_unlock(store, &bucket);
    if (slot == NULL || !is_hold(slot, owner, slot->token)) /* it may hold on by another token */
        hf__turn_release(store, owner);
    if (status == HF_OK && loss == HF_LOSS_NONE)
        hf__floor_refill(store, token);
    if (loss == HF_LOSS_NONE && hf__place_check(store, NULL) != HF_OK)
        loss = HF_LOSS_FORGOTTEN;
    if (status == HF_OK && loss != HF_LOSS_NONE)
        status = lost(store, claim, NULL, loss, err);
    return status;
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
                HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL,
    .open = file_open,
    .close = file_close,
    .acquire = file_acquire,
    .renew = file_renew,
    .release = file_release,
    .list = hf__file_list,
    .life_fd = file_life_fd,
    .url = file_url,
    .repair = hf__file_repair,
    .open_readonly = file_open_readonly,
    .identity = hf__file_identity,
};
