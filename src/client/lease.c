/* lease.c - the life of a lease after it was granted. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool forked(const struct hf_lease *lease)
{
    return hf__forked(&lease->mark);
}

/* The child may have closed the store by now: it is not looked at. */
enum hf_status hf__lease_not_for_children(const struct hf_lease *lease, struct hf_error *err)
{
    return hf__fail_lock(err, HF_INVALID, lease->name, NULL,
                         ": a lease cannot be used by a forked child");
}

struct hf_lease *hf__lease_new(struct hf_store *store, const char *name)
{
    struct hf_lease *lease = calloc(1, sizeof *lease);

    if (lease == NULL)
        return NULL;
    lease->store = store;
    lease->mark = store->mark;
    memcpy(lease->name, name, strlen(name));
    lease->heap_at = HF__NOT_KEPT;
    lease->lost_fd = -1;
    return lease;
}

void hf__lease_discard(struct hf_lease *lease)
{
    if (lease->lost_fd >= 0)
        (void)close(lease->lost_fd);
    explicit_bzero(lease->owner, sizeof lease->owner);
    free(lease->revocation);
    free(lease);
}

void hf__lease_publish(struct hf_lease *lease)
{
    struct hf_store *store = lease->store;

    lease->next = store->leases;
    if (lease->next != NULL)
        lease->next->prev = lease;
    store->leases = lease;
    store->refs++;
}

static void unlink_lease(struct hf_lease *lease)
{
    if (lease->prev != NULL)
        lease->prev->next = lease->next;
    else
        lease->store->leases = lease->next;
    if (lease->next != NULL)
        lease->next->prev = lease->prev;
}

struct hf_claim hf__lease_claim(const struct hf_lease *lease, uint32_t ttl_ms, int64_t deadline_ns)
{
    return (struct hf_claim){.name = lease->name,
                             .owner = lease->owner,
                             .token = lease->token,
                             .ttl_ms = ttl_ms,
                             .detached = lease->detached,
                             .kept = lease->detached ? HF_KEPT_NEVER
                                     : lease->heap_at == HF__NOT_KEPT || lease->collecting
                                         ? HF_KEPT_LATER
                                         : HF_KEPT_NOW,
                             .deadline_ns = deadline_ns,
                             .cancel_fd = -1};
}

uint64_t hf_lease_token(const struct hf_lease *lease)
{
    return lease->token;
}

const char *hf_lease_name(const struct hf_lease *lease)
{
    return lease->name;
}

const char *hf_lease_owner(const struct hf_lease *lease)
{
    return lease->owner;
}

uint32_t hf_lease_ttl_ms(const struct hf_lease *lease)
{
    uint32_t ttl_ms;

    if (forked(lease))
        return 0;
    pthread_mutex_lock(&lease->store->lock);
    ttl_ms = lease->core.ttl_ms;
    pthread_mutex_unlock(&lease->store->lock);
    return ttl_ms;
}

int64_t hf_lease_remaining_ms(const struct hf_lease *lease)
{
    int64_t remaining_ms;

    if (forked(lease))
        return 0;
    pthread_mutex_lock(&lease->store->lock);
    remaining_ms = hf__lease_remaining_ms(&lease->core, hf__now_ns());
    pthread_mutex_unlock(&lease->store->lock);
    return remaining_ms;
}

enum hf_loss hf_lease_loss(const struct hf_lease *lease)
{
    struct hf__lease_core core;

    if (forked(lease))
        return HF_LOSS_CLOSED;
    pthread_mutex_lock(&lease->store->lock);
    core = lease->core;
    pthread_mutex_unlock(&lease->store->lock);
    /* Past its deadline it is lost, whether or not the keeper has come by. */
    (void)hf__lease_tick(&core, hf__now_ns());
    return core.loss;
}

int hf_lease_fd(struct hf_lease *lease)
{
    int fd;

    if (forked(lease))
        return -1;
    pthread_mutex_lock(&lease->store->lock);
    if (lease->lost_fd < 0) {
        struct hf__lease_core core = lease->core;
        bool held = hf__lease_tick(&core, hf__now_ns());

        lease->lost_fd = eventfd(held ? 0 : 1, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    fd = lease->lost_fd;
    pthread_mutex_unlock(&lease->store->lock);
    return fd;
}

void hf__lease_signal(struct hf_lease *lease)
{
    if (lease->lost_fd >= 0)
        (void)eventfd_write(lease->lost_fd, 1);
}

void hf__lease_wait_idle(struct hf_lease *lease)
{
    while (lease->busy)
        pthread_cond_wait(&lease->store->idle, &lease->store->lock);
}

bool hf__lease_notify(struct hf_lease *lease)
{
    struct hf_store *store = lease->store;
    bool freed = false;

    if (lease->told || lease->on_lost == NULL)
        return true;
    lease->told = true;
    lease->busy = true;
    lease->freed = &freed;
    lease->notifier = pthread_self();
    pthread_mutex_unlock(&store->lock);
    lease->on_lost(lease, lease->core.loss, lease->data);
    pthread_mutex_lock(&store->lock);
    if (!freed) {
        lease->freed = NULL;
        lease->busy = false;
        pthread_cond_broadcast(&store->idle);
    }
    return !freed;
}

enum hf_status hf__lease_lost(const struct hf_lease *lease, struct hf_error *err)
{
    if (lease->core.loss == HF_LOSS_BROKEN)
        return hf__fail_broken(err, lease->name, lease->store->url, lease->revocation);
    return hf__fail_lock(err, HF_LOST, lease->name, lease->store->url, " was lost: %s",
                         hf_loss_text(lease->core.loss));
}

void hf__lease_answered(struct hf_lease *lease, uint32_t ttl_ms, int64_t before_ns,
                        enum hf_status status, const struct hf_grant *grant)
{
    struct hf__renewal renewal = {.ttl_ms = ttl_ms,
                                  .before_ns = before_ns,
                                  .status = status,
                                  .sent_at_ns = grant->sent_at_ns,
                                  .granted_ms = grant->ttl_ms,
                                  .loss = grant->loss};

    hf__keep_answered(&lease->core, &renewal, hf__now_ns());
    if (status == HF_LOST && grant->loss == HF_LOSS_BROKEN)
        hf__lease_broken(lease, grant->revocation);
}

enum hf_status hf__lease_renew_once(struct hf_lease *lease, uint32_t ttl_ms, int64_t deadline_ns,
                                    struct hf_error *err)
{
    struct hf_store *store = lease->store;
    struct hf_claim claim = hf__lease_claim(lease, ttl_ms, deadline_ns);
    struct hf_revocation revocation; /* too large to be cleared for nothing */
    struct hf_grant grant = {.revocation = hf__revocation_init(&revocation)};
    int64_t before_ns = hf__now_ns();
    enum hf_status status;

    pthread_mutex_unlock(&store->lock);
    status = store->base->ops->renew(store->base, &claim, &grant, err);
    pthread_mutex_lock(&store->lock);
    hf__lease_answered(lease, ttl_ms, before_ns, status, &grant);
    if (lease->core.state == HF__LEASE_LOST) {
        hf__lease_signal(lease);
        status = hf__lease_lost(lease, err);
    }
    return status;
}

/* Locks the store and makes the lease busy, if it is held. One that is lost is not waited for: it
 * may be its own on_lost that asks. A held lease means that the store is not closed. */
static enum hf_status take_lease(struct hf_lease *lease, struct hf_error *err)
{
    struct hf_store *store = lease->store;

    pthread_mutex_lock(&store->lock);
    while (hf__lease_tick(&lease->core, hf__now_ns()) && lease->busy)
        pthread_cond_wait(&store->idle, &store->lock);
    if (lease->core.state != HF__LEASE_HELD) {
        (void)hf__lease_lost(lease, err);
        pthread_mutex_unlock(&store->lock);
        return HF_LOST;
    }
    store->calls++;
    lease->busy = true;
    return HF_OK;
}

/* The end of what take_lease began. */
static void give_lease(struct hf_lease *lease)
{
    struct hf_store *store = lease->store;

    lease->busy = false;
    pthread_cond_broadcast(&store->idle);
    pthread_mutex_unlock(&store->lock);
    hf__store_end(store);
}

enum hf_status hf_renew(struct hf_lease *lease, uint32_t ttl_ms, struct hf_error *err)
{
    enum hf_status status;

    if (forked(lease))
        return hf__lease_not_for_children(lease, err);
    if (ttl_ms != 0 && (ttl_ms < HF_TTL_MIN_MS || ttl_ms > HF_TTL_MAX_MS))
        return hf__bad_ttl(lease->store, lease->name, err);
    if ((status = take_lease(lease, err)) != HF_OK)
        return status;
    status = hf__lease_renew_once(lease, ttl_ms != 0 ? ttl_ms : lease->core.ttl_ms,
                                  lease->core.deadline_ns, err);
    if (lease->heap_at != HF__NOT_KEPT)
        hf__keeper_update(lease);
    give_lease(lease);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf_keep(struct hf_lease *lease, struct hf_error *err)
{
    enum hf_status status;

    if (forked(lease))
        return hf__lease_not_for_children(lease, err);
    if (lease->detached)
        return hf__fail_lock(err, HF_INVALID, lease->name, lease->store->url,
                             ": a detached lease has no keeper");
    if ((status = take_lease(lease, err)) != HF_OK)
        return status;
    if (lease->heap_at == HF__NOT_KEPT) {
        status = hf__keeper_reserve(lease->store, err);
        if (status == HF_OK)
            hf__keeper_add(lease);
    }
    give_lease(lease);
    return status == HF_OK ? hf__ok(err) : status;
}

/* Takes the lease from the keeper and the store's list, lock held; says whether it was held. */
static bool withdraw(struct hf_lease *lease)
{
    bool held;

    if (lease->freed != NULL && pthread_equal(lease->notifier, pthread_self()))
        *lease->freed = true; /* we are inside its own callback */
    else
        hf__lease_wait_idle(lease);
    while (lease->writing)
        pthread_cond_wait(&lease->store->idle, &lease->store->lock);
    if (lease->heap_at != HF__NOT_KEPT)
        hf__keeper_remove(lease);
    unlink_lease(lease);
    held = hf__lease_end(&lease->core, hf__now_ns());
    return held;
}

bool hf__release_begin(struct hf__release *r, struct hf_lease *lease, bool waits)
{
    struct hf_store *store = lease->store;

    *r = (struct hf__release){.lease = lease};
    r->reachable = hf__store_begin(store, NULL) == HF_OK;
    pthread_mutex_lock(&store->lock);
    if (!waits && (!r->reachable || lease->busy || lease->writing)) {
        pthread_mutex_unlock(&store->lock);
        if (r->reachable)
            hf__store_end(store);
        return false;
    }
    r->held = withdraw(lease);
    pthread_mutex_unlock(&store->lock);
    r->claim = hf__lease_claim(lease, 0, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS);
    return true;
}

enum hf_status hf__release_end(struct hf__release *r, struct hf_error *err)
{
    struct hf_store *store = r->lease->store;
    struct hf_store_base *base = store->base;
    enum hf_status status = HF_LOST;

    if (r->reachable) {
        /* Even if it was lost here: the store may not know that yet, and deletes only what is
         * ours. */
        status = r->begun != NULL ? base->ops->end(base, r->begun, NULL, err)
                                  : base->ops->release(base, &r->claim, err);
        hf__store_end(store);
    }
    r->loss = r->lease->core.loss;
    if (!r->held)
        status = hf__lease_lost(r->lease, err);
    hf__lease_discard(r->lease);
    pthread_mutex_lock(&store->lock);
    hf__store_unref(store);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf_release_why(struct hf_lease *lease, enum hf_loss *loss, struct hf_error *err)
{
    struct hf__release r;
    enum hf_status status;

    *loss = HF_LOSS_NONE;
    if (lease == NULL)
        return hf__ok(err);
    if (forked(lease)) {
        hf__lease_discard(lease);
        return hf__fail(err, HF_INVALID, "a lease cannot be released by a forked child");
    }
    (void)hf__release_begin(&r, lease, true);
    status = hf__release_end(&r, err);
    *loss = r.loss;
    return status;
}

enum hf_status hf_release(struct hf_lease *lease, struct hf_error *err)
{
    enum hf_loss loss;

    return hf_release_why(lease, &loss, err);
}

void hf_leave(struct hf_lease *lease)
{
    struct hf_store *store;

    if (lease == NULL)
        return;
    if (forked(lease)) {
        hf__lease_discard(lease);
        return;
    }
    store = lease->store;
    pthread_mutex_lock(&store->lock);
    (void)withdraw(lease);
    hf__lease_discard(lease);
    hf__store_unref(store);
}
