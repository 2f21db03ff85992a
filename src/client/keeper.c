/* keeper.c - the background renewer.
 *
 * One thread per store, started with the first lease it keeps. A heap orders the leases by the time
 * at which each needs a look: its next renewal (core/lease.h) or its deadline. A renewal
 * that gets no answer is tried again until the deadline. No single renewal may take so long that
 * another lease's deadline passes unnoticed, and a slow one does not starve the others. What is to
 * be done about a lease is decided in src/core/keep.c. */
#include "client/client.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOOK_AHEAD 64  /* leases whose deadlines a renewal respects */
#define BATCH_MAX  128 /* leases renewed with one call, where the store can */

static void *keeper_main(void *data);

static void wake(struct hf__keeper *keeper)
{
    (void)eventfd_write(keeper->wake_fd, 1);
}

static void place(struct hf__keeper *keeper, struct hf_lease *lease, size_t at)
{
    keeper->heap[at] = lease;
    lease->heap_at = at;
}

/* Moves the lease at `at` to where its due time belongs. */
static void sift(struct hf__keeper *keeper, size_t at)
{
    struct hf_lease *lease = keeper->heap[at];

    while (at > 0 && keeper->heap[(at - 1) / 2]->due_ns > lease->due_ns) {
        place(keeper, keeper->heap[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < keeper->count &&
            keeper->heap[child + 1]->due_ns < keeper->heap[child]->due_ns)
            child++;
        if (child >= keeper->count || keeper->heap[child]->due_ns >= lease->due_ns)
            break;
        place(keeper, keeper->heap[child], at);
        at = child;
    }
    place(keeper, lease, at);
}

static enum hf_status start(struct hf_store *store, struct hf_error *err)
{
    struct hf__keeper *keeper = &store->keeper;
    struct epoll_event readable = {.events = EPOLLIN};
    sigset_t all;
    sigset_t old;
    int failed;

    keeper->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    keeper->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    keeper->either_fd = epoll_create1(EPOLL_CLOEXEC);
    if (keeper->wake_fd < 0 || keeper->timer_fd < 0 || keeper->either_fd < 0 ||
        epoll_ctl(keeper->either_fd, EPOLL_CTL_ADD, keeper->wake_fd, &readable) != 0 ||
        epoll_ctl(keeper->either_fd, EPOLL_CTL_ADD, keeper->timer_fd, &readable) != 0)
        goto fail;
    keeper->armed_ns = HF_NEVER;
    /* Signals are the program's business, not the keeper's. */
    (void)sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&keeper->thread, NULL, keeper_main, store);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed != 0)
        goto fail;
    keeper->running = true;
    return HF_OK;
fail:
    hf__keeper_close_fds(keeper);
    return hf__fail_lock(err, HF_NOMEM, NULL, store->url,
                         ": cannot start the keeper: out of threads or descriptors");
}

enum hf_status hf__keeper_reserve(struct hf_store *store, struct hf_error *err)
{
    struct hf__keeper *keeper = &store->keeper;
    enum hf_status status;

    if (keeper->stop)
        return hf__fail_lock(err, HF_LOST, NULL, store->url, " is being closed");
    if (keeper->count + keeper->reserved == keeper->capacity) {
        size_t capacity = keeper->capacity > 0 ? 2 * keeper->capacity : 8;
        struct hf_lease **heap = realloc(keeper->heap, capacity * sizeof *heap);

        if (heap == NULL)
            return hf__nomem(err);
        keeper->heap = heap;
        keeper->capacity = capacity;
    }
    if (!keeper->running && (status = start(store, err)) != HF_OK)
        return status;
    keeper->reserved++;
    return HF_OK;
}

void hf__keeper_unreserve(struct hf_store *store)
{
    store->keeper.reserved--;
}

/* The thread sleeps until armed_ns: it needs to hear of anything earlier. */
static void wake_if_sooner(struct hf__keeper *keeper)
{
    if (keeper->count > 0 && keeper->heap[0]->due_ns < keeper->armed_ns)
        wake(keeper);
}

void hf__keeper_add(struct hf_lease *lease)
{
    struct hf__keeper *keeper = &lease->store->keeper;

    keeper->reserved--;
    lease->due_ns = hf__keep_due_ns(&lease->core);
    place(keeper, lease, keeper->count++);
    sift(keeper, lease->heap_at);
    wake_if_sooner(keeper);
}

void hf__keeper_update(struct hf_lease *lease)
{
    struct hf__keeper *keeper = &lease->store->keeper;

    /* A lease that was lost in a call of its owner's is still announced by the keeper. */
    lease->due_ns = hf__keep_due_ns(&lease->core);
    sift(keeper, lease->heap_at);
    wake_if_sooner(keeper);
}

void hf__keeper_remove(struct hf_lease *lease)
{
    struct hf__keeper *keeper = &lease->store->keeper;
    size_t at = lease->heap_at;

    lease->heap_at = HF__NOT_KEPT;
    keeper->count--;
    if (at < keeper->count) {
        place(keeper, keeper->heap[keeper->count], at);
        sift(keeper, at);
    }
}

void hf__keeper_close_fds(struct hf__keeper *keeper)
{
    int *fds[] = {&keeper->wake_fd, &keeper->timer_fd, &keeper->either_fd};

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0)
            (void)close(*fds[i]);
        *fds[i] = -1;
    }
}

void hf__keeper_stop(struct hf_store *store)
{
    struct hf__keeper *keeper = &store->keeper;

    keeper->stop = true; /* nobody starts it again */
    if (!keeper->running)
        return;
    wake(keeper);
    pthread_mutex_unlock(&store->lock);
    pthread_join(keeper->thread, NULL);
    pthread_mutex_lock(&store->lock);
    keeper->running = false;
    hf__keeper_close_fds(keeper);
    while (keeper->count > 0)
        hf__keeper_remove(keeper->heap[0]);
}

/* The store heard something: these leases are due at once. */
static void doubt(const char *owner, void *data)
{
    struct hf_store *store = data;
    int64_t now_ns = hf__now_ns();

    pthread_mutex_lock(&store->lock);
    for (struct hf_lease *lease = store->leases; lease != NULL; lease = lease->next) {
        if (lease->heap_at == HF__NOT_KEPT || (owner != NULL && strcmp(lease->owner, owner) != 0))
            continue;
        if (lease->due_ns > now_ns) {
            lease->due_ns = now_ns;
            sift(&store->keeper, lease->heap_at);
        }
        if (owner != NULL)
            break;
    }
    pthread_mutex_unlock(&store->lock);
}

/* Sleeps until the earliest lease is due, somebody wakes us or the store has heard something. Lock
 * held on entry and exit. */
static void sleep_until_due(struct hf_store *store)
{
    struct hf__keeper *keeper = &store->keeper;
    struct hf_store_base *base = store->base;
    struct pollfd either = {.fd = keeper->either_fd, .events = POLLIN};
    struct itimerspec timer = {0};
    eventfd_t ignored;
    uint64_t expirations;

    keeper->armed_ns = keeper->count > 0 ? keeper->heap[0]->due_ns : HF_NEVER;
    if (keeper->armed_ns != HF_NEVER) {
        int64_t at_ns = keeper->armed_ns > 0 ? keeper->armed_ns : 1; /* 0 would disarm */

        timer.it_value.tv_sec = at_ns / HF__NS_PER_S;
        timer.it_value.tv_nsec = at_ns % HF__NS_PER_S;
    }
    (void)timerfd_settime(keeper->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
    pthread_mutex_unlock(&store->lock);
    /* cppcheck-suppress arithOperationsOnVoidPointer ; it returns void, and is no void pointer */
    if (HF__OPERATION(base->ops, listen) != NULL)
        base->ops->listen(base, keeper->either_fd, doubt, store);
    else
        (void)poll(&either, 1, -1);
    (void)eventfd_read(keeper->wake_fd, &ignored);
    (void)!read(keeper->timer_fd, &expirations, sizeof expirations);
    pthread_mutex_lock(&store->lock);
    keeper->armed_ns = INT64_MIN; /* awake: no need to wake us */
}

/* Until when a renewal may take: not past the deadline of any lease that is about to be lost. Such
 * leases are due often and so stand near the top of the heap. */
static int64_t limit_ns_of(const struct hf_lease *lease, int64_t now_ns)
{
    const struct hf__keeper *keeper = &lease->store->keeper;
    int64_t limit_ns = hf__keep_limit_ns(&lease->core, now_ns);

    for (size_t i = 0; i < keeper->count && i < LOOK_AHEAD; i++)
        if (keeper->heap[i]->core.deadline_ns < limit_ns)
            limit_ns = keeper->heap[i]->core.deadline_ns;
    return limit_ns;
}

/* Renews the lease and tells its owner. Returns false if the lease is gone or lost. */
static bool renew(struct hf_lease *lease, int64_t now_ns)
{
    struct hf_store *store = lease->store;
    struct hf__keeper *keeper = &store->keeper;
    enum hf_status status;

    lease->busy = true;
    status = hf__lease_renew_once(lease, lease->core.ttl_ms, limit_ns_of(lease, now_ns), NULL);
    if (status == HF_OK && lease->on_renewed != NULL) {
        int64_t remaining_ms = hf__lease_remaining_ms(&lease->core, hf__now_ns());

        pthread_mutex_unlock(&store->lock);
        lease->on_renewed(lease, remaining_ms, lease->data);
        pthread_mutex_lock(&store->lock);
    }
    lease->busy = false;
    pthread_cond_broadcast(&store->idle);
    if (lease->core.state != HF__LEASE_HELD)
        return false;
    lease->due_ns = hf__keep_next_ns(&lease->core, status, hf__now_ns());
    sift(keeper, lease->heap_at);
    return true;
}

/* Takes the leases that are due soon (hf__keep_along), and marks them busy. One with a
 * callback for renewals is left out, because callbacks may want other leases of the batch. */
static size_t gather(struct hf_store *store, struct hf_lease **out, int64_t now_ns,
                     int64_t *limit_ns)
{
    struct hf__keeper *keeper = &store->keeper;
    size_t count = 0;

    *limit_ns = HF_NEVER;
    while (count < BATCH_MAX && keeper->count > 0) {
        struct hf_lease *lease = keeper->heap[0];
        int64_t own_limit_ns = limit_ns_of(lease, now_ns);

        if (!hf__keep_along(&lease->core, lease->due_ns, now_ns) || lease->busy ||
            lease->on_renewed != NULL || !hf__lease_tick(&lease->core, now_ns))
            break;
        if (own_limit_ns < *limit_ns)
            *limit_ns = own_limit_ns;
        lease->busy = true;
        lease->due_ns = HF_NEVER; /* until the answer is there */
        sift(keeper, 0);
        out[count++] = lease;
    }
    return count;
}

/* Renews what is due with one call, where the store can. False if there is nothing for it. One that
 * is lost is due at once, and announced when it is looked at. */
static bool renew_batch(struct hf_store *store, int64_t now_ns)
{
    const struct hf_store_ops *ops = store->base->ops;
    struct hf_lease *leases[BATCH_MAX];
    struct hf_claim claims[BATCH_MAX];
    struct hf_grant grants[BATCH_MAX] = {0};
    struct hf_revocation revocations[BATCH_MAX];
    enum hf_status results[BATCH_MAX];
    int64_t limit_ns;
    size_t count;

    if (HF__OPERATION(ops, renew_many) == NULL)
        return false;
    count = gather(store, leases, now_ns, &limit_ns);
    if (count == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        claims[i] = hf__lease_claim(leases[i], leases[i]->core.ttl_ms, limit_ns);
        grants[i].revocation = hf__revocation_init(&revocations[i]);
    }
    pthread_mutex_unlock(&store->lock);
    (void)ops->renew_many(store->base, claims, grants, results, count, NULL);
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < count; i++) {
        struct hf_lease *lease = leases[i];

        hf__lease_answered(lease, claims[i].ttl_ms, now_ns, results[i], &grants[i]);
        lease->busy = false;
        lease->due_ns = hf__keep_next_ns(&lease->core, results[i], hf__now_ns());
        sift(&store->keeper, lease->heap_at);
    }
    pthread_cond_broadcast(&store->idle);
    return true;
}

static void look_at(struct hf_lease *lease, int64_t now_ns)
{
    struct hf__keeper *keeper = &lease->store->keeper;

    switch (hf__keep_decide(&lease->core, lease->busy, now_ns, &lease->due_ns)) {
    case HF__KEEP_WAIT:
        /* Its owner will call keeper_update. */
        if (lease->core.state != HF__LEASE_HELD)
            hf__lease_signal(lease);
        sift(keeper, lease->heap_at);
        return;
    case HF__KEEP_RENEW:
        if (renew(lease, now_ns))
            return;
        break;
    case HF__KEEP_ANNOUNCE:
        break;
    }
    if (lease->heap_at != HF__NOT_KEPT)
        hf__keeper_remove(lease);
    hf__lease_signal(lease);
    (void)hf__lease_notify(lease);
}

static void *keeper_main(void *data)
{
    struct hf_store *store = data;
    struct hf__keeper *keeper = &store->keeper;

    pthread_mutex_lock(&store->lock);
    while (!keeper->stop) {
        int64_t now_ns = hf__now_ns();

        if (keeper->count == 0 || keeper->heap[0]->due_ns > now_ns)
            sleep_until_due(store);
        else if (!renew_batch(store, now_ns))
            look_at(keeper->heap[0], now_ns);
    }
    pthread_mutex_unlock(&store->lock);
    return NULL;
}
