/* all.c - all of several locks, made of the calls that take, keep and give back one.
 *
 * They are taken in the order of their names' bytes. So whoever waits for one holds only smaller
 * ones, and no ring of waiters can close. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Those that are taken so far, and what ends the wait for the next. */
struct collection {
    struct hf_store *store;
    const char *const *names;
    size_t count;
    struct hf_acquire_options options; /* the caller's */
    struct hf_lease **leases;          /* as the names */
    unsigned char order[HF_SEVERAL_MAX];
    size_t taken;     /* how many, in that order */
    size_t watched;   /* how many of these */
    int cancel_fd;    /* epoll: the caller's, or a lease is lost; -1 before the first wait */
    int64_t until_ns; /* the end of the wait */
};

static int by_name(const void *a, const void *b, void *names)
{
    const char *const *all = names;

    return strcmp(all[*(const unsigned char *)a], all[*(const unsigned char *)b]);
}

/* The indices of the names, in the order of their bytes. */
static void sort(const char *const *names, size_t count, unsigned char *order)
{
    for (size_t i = 0; i < count; i++)
        order[i] = (unsigned char)i;
    qsort_r(order, count, 1, by_name, (void *)names);
}

/* Whether a valid name comes after the one before it, a shorter one before a longer one. */
static bool comes_later(const char *name, const char *before)
{
    size_t len = strlen(name);
    size_t len_before = strlen(before);

    return len > len_before || (len == len_before && strcmp(name, before) > 0);
}

/* Are they valid, and in the order of their bytes, so that none is there twice? Numbered ones
 * usually are; and where a name differs from the one before it in the last byte only, that byte
 * alone needs a look. */
static bool rises(const char *const *names, size_t count)
{
    const char *before = "";
    size_t last = 0; /* where the last byte of that is */

    for (size_t i = 0; i < count; before = names[i++]) {
        const char *name = names[i];

        if (name == NULL)
            return false;
        if (i > 0 && strncmp(name, before, last) == 0 &&
            (unsigned char)name[last] > (unsigned char)before[last] && name[last] != 0x7f &&
            name[last + 1] == '\0')
            continue;
        if (!hf__name_valid(name) || !comes_later(name, before))
            return false;
        last = strlen(name) - 1;
    }
    return true;
}

enum hf_status hf__check_names(const struct hf_store *store, const char *const *names, size_t count,
                               size_t *which, struct hf_error *err)
{
    unsigned char order[HF_SEVERAL_MAX];

    if (names == NULL || count == 0 || count > HF_SEVERAL_MAX)
        return hf__fail(err, HF_INVALID, "1 to %d locks can be taken at once", HF_SEVERAL_MAX);
    if (rises(names, count)) /* as numbered ones do */
        return HF_OK;
    for (size_t i = 0; i < count; i++)
        if (names[i] == NULL || !hf__name_valid(names[i])) {
            *which = i;
            return hf__bad_name(err);
        }
    sort(names, count, order);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[order[i - 1]], names[order[i]]) == 0) {
            *which = order[i];
            return hf__fail_lock(err, HF_INVALID, names[order[i]], store->url, " is named twice");
        }
    return HF_OK;
}

/* From now on, the fd ends the wait too. */
static bool watch(const struct collection *c, int fd)
{
    struct epoll_event readable = {.events = EPOLLIN};

    return fd >= 0 && epoll_ctl(c->cancel_fd, EPOLL_CTL_ADD, fd, &readable) == 0;
}

/* The keeper has it while the others are waited for, whoever renews it later. */
static enum hf_status keep_for_now(struct hf_lease *lease, struct hf_error *err)
{
    struct hf_store *store = lease->store;
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&store->lock);
    if (lease->heap_at == HF__NOT_KEPT && (status = hf__keeper_reserve(store, err)) == HF_OK) {
        lease->collecting = true;
        hf__keeper_add(lease);
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

/* Before a wait: what is taken is renewed, and its loss wakes us. */
static enum hf_status prepare_wait(struct collection *c, struct hf_error *err)
{
    enum hf_status status = HF_OK;

    if (c->cancel_fd < 0) {
        c->cancel_fd = epoll_create1(EPOLL_CLOEXEC);
        if (c->cancel_fd < 0 || (c->options.cancel_fd > 0 && !watch(c, c->options.cancel_fd)))
            return hf__fail_lock(err, HF_NOMEM, NULL, c->store->url, ": out of descriptors");
    }
    for (; status == HF_OK && c->watched < c->taken; c->watched++) {
        struct hf_lease *lease = c->leases[c->order[c->watched]];

        if (!watch(c, hf_lease_fd(lease)))
            return hf__fail_lock(err, HF_NOMEM, lease->name, c->store->url, ": out of descriptors");
        status = keep_for_now(lease, err);
    }
    return status;
}

/* Takes the next one, if it is to be had at once; waits for it otherwise. */
static enum hf_status take_next(struct collection *c, struct hf_error *err)
{
    size_t index = c->order[c->taken];
    const char *name = c->names[index];
    struct hf_acquire_options o = c->options;
    bool waits = o.wait_ms != 0 && (o.wait_above == NULL || strcmp(name, o.wait_above) > 0);
    enum hf_status status;

    o.size = sizeof o;
    o.on_lost = NULL; /* the caller hears only of what it has got */
    o.on_renewed = NULL;
    o.wait_ms = 0;
    status = hf_acquire(c->store, name, &o, &c->leases[index], err);
    if (waits && (status == HF_BUSY || hf__wait_may_pass(status))) {
        if ((status = prepare_wait(c, err)) != HF_OK)
            return status;
        o.cancel_fd = c->cancel_fd;
        o.wait_ms = hf__wait_left_ms(c->until_ns);
        status = hf_acquire(c->store, name, &o, &c->leases[index], err);
    }
    if (status == HF_OK)
        c->taken++;
    return status;
}

/* HF_LOST, and which, if one is. Lock held. */
static enum hf_status find_lost(const struct collection *c, struct hf_error *err)
{
    for (size_t i = 0; i < c->taken; i++) {
        struct hf_lease *lease = c->leases[c->order[i]];

        if (!hf__lease_tick(&lease->core, hf__now_ns()))
            return hf__fail_lock(err, HF_LOST, lease->name, c->store->url,
                                 " was lost while others were waited for: %s",
                                 hf_loss_text(lease->core.loss));
    }
    return HF_OK;
}

/* The keeper has done its part. Lock held; dropped in between. */
static void stop_keeping(const struct collection *c)
{
    for (size_t i = 0; i < c->taken; i++) {
        struct hf_lease *lease = c->leases[c->order[i]];

        if (!lease->collecting)
            continue;
        hf__lease_wait_idle(lease);
        if (lease->heap_at != HF__NOT_KEPT)
            hf__keeper_remove(lease);
        lease->collecting = false;
    }
}

static enum hf_status collect(struct collection *c, struct hf_error *err)
{
    enum hf_status status = HF_OK, lost = HF_OK;

    while (status == HF_OK && c->taken < c->count)
        status = take_next(c, err);
    pthread_mutex_lock(&c->store->lock);
    stop_keeping(c);
    /* Even if the wait was cancelled: a loss may have done that. */
    if (status == HF_OK || status == HF_CANCELLED)
        lost = find_lost(c, err);
    /* From here on they are the caller's. */
    for (size_t i = 0; status == HF_OK && lost == HF_OK && i < c->count; i++) {
        c->leases[i]->on_lost = c->options.on_lost;
        c->leases[i]->on_renewed = c->options.on_renewed;
    }
    pthread_mutex_unlock(&c->store->lock);
    return lost != HF_OK ? lost : status;
}

enum hf_status hf_acquire_all(struct hf_store *store, const char *const *names, size_t count,
                              const struct hf_acquire_options *options, struct hf_lease **leases,
                              struct hf_error *err)
{
    struct collection c = {
        .store = store, .names = names, .count = count, .leases = leases, .cancel_fd = -1};
    struct hf_error own;
    enum hf_status status;
    size_t which;

    if (err == NULL)
        err = &own;
    for (size_t i = 0; i < count; i++)
        leases[i] = NULL;
    if ((status = hf__check_names(store, names, count, &which, err)) != HF_OK ||
        (status = hf__check_options(options, &c.options, err)) != HF_OK)
        return status;
    sort(names, count, c.order);
    c.until_ns = hf__wait_begin(c.options.wait_ms).until_ns;
    status = collect(&c, err);
    if (c.cancel_fd >= 0)
        (void)close(c.cancel_fd);
    if (status == HF_OK)
        return hf__ok(err);
    /* Only those that were taken are there. */
    (void)!hf_release_all(leases, count, NULL);
    return status;
}

int64_t hf_all_remaining_ms(struct hf_lease *const *leases, size_t count)
{
    int64_t least_ms = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        int64_t remaining_ms = hf_lease_remaining_ms(leases[i]);

        if (remaining_ms < least_ms)
            least_ms = remaining_ms;
    }
    return least_ms;
}

enum hf_status hf_release_all(struct hf_lease **leases, size_t count, struct hf_error *err)
{
    enum hf_status worst = HF_OK;

    (void)hf__ok(err);
    for (size_t left = count; left > 0; left--) {
        struct hf_error one;
        enum hf_status status;
        size_t last = count;

        for (size_t i = 0; i < count; i++)
            if (leases[i] != NULL &&
                (last == count || strcmp(leases[i]->name, leases[last]->name) > 0))
                last = i;
        if (last == count)
            break;
        status = hf_release(leases[last], &one);
        leases[last] = NULL;
        if (worst == HF_OK || (status == HF_LOST && worst != HF_LOST)) {
            worst = status;
            if (err != NULL)
                *err = one;
        }
    }
    return worst;
}
