/* listing.c - listings of the store, shared by all who look. */
#include "serve/listing.h"

#include "serve/metrics.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEEP_MAX = 1000 * 1000, /* locks of one listing */
    PAUSE_PART = 10         /* the next one starts no sooner than this many times what one took */
};
#define GOOD_NS HF__NS_PER_S /* how long an answer is good */

struct listing {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool under_way;
    struct listing_view *last; /* the present one; NULL: there is none, or it failed */
    struct hf_error error;     /* why there is none */
    int64_t next_ns;           /* the next one starts no sooner */
};

/* What a listing collects. */
struct collection {
    struct listing_view *view;
    struct cli_lock *locks;
    size_t capacity;
};

struct listing *listing_open(void)
{
    struct listing *listing = calloc(1, sizeof *listing);

    if (listing == NULL)
        return NULL;
    pthread_mutex_init(&listing->lock, NULL);
    pthread_cond_init(&listing->done, NULL);
    return listing;
}

/* With the mutex held, or when nobody else is left. */
static void unuse(struct listing_view *view)
{
    struct cli_lock *locks;

    if (view == NULL || --view->users > 0)
        return;
    locks = (struct cli_lock *)view->locks;
    for (size_t i = 0; i < view->count; i++)
        cli_lock_clear(&locks[i]);
    free(locks);
    free(view);
}

void listing_close(struct listing *listing)
{
    if (listing == NULL)
        return;
    unuse(listing->last);
    pthread_cond_destroy(&listing->done);
    pthread_mutex_destroy(&listing->lock);
    free(listing);
}

static bool collect(const struct hf_lock_info *info, void *data)
{
    struct collection *all = data;
    size_t *count = &all->view->count;

    if (*count == all->capacity) {
        size_t capacity = all->capacity != 0 ? 2 * all->capacity : 64;
        struct cli_lock *more = NULL;

        if (*count < KEEP_MAX)
            more = realloc(all->locks, capacity * sizeof *more);
        if (more == NULL) {
            all->view->full = true;
            return false;
        }
        all->locks = more;
        all->capacity = capacity;
    }
    if (!cli_lock_copy(&all->locks[*count], info)) {
        all->view->full = true;
        return false;
    }
    ++*count;
    return true;
}

/* Waited-for first, most waiters first, then the oldest. */
static int by_interest(const void *a, const void *b)
{
    const struct hf_lock_info *left = &((const struct cli_lock *)a)->info;
    const struct hf_lock_info *right = &((const struct cli_lock *)b)->info;

    if (left->waiters != right->waiters)
        return left->waiters > right->waiters ? -1 : 1;
    if (left->age_ms != right->age_ms)
        return left->age_ms > right->age_ms ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Lists the store; NULL and *err. */
static struct listing_view *make(struct serve *serve, struct hf_error *err)
{
    struct listing_view *view = calloc(1, sizeof *view);
    struct collection all = {.view = view};
    int64_t from_ns = hf__now_ns();
    enum hf_status status;

    if (view == NULL) {
        (void)hf__nomem(err);
        return NULL;
    }
    view->as_of_ms = hf__wall_us() / 1000;
    view->users = 1;
    status = hf_list(serve->store, "", collect, &all, err);
    view->took_ms = (hf__now_ns() - from_ns) / HF__NS_PER_MS;
    metrics_store(serve->metrics, OP_LOCKS, status, hf__now_ns() - from_ns);
    if (view->count > 1)
        qsort(all.locks, view->count, sizeof *all.locks, by_interest);
    view->locks = all.locks;
    if (status == HF_OK)
        return view;
    unuse(view);
    return NULL;
}

/* Makes one while the others wait. A store that did not answer had no work with it either: it is
 * asked again after as long as it was silent. */
static void renew(struct serve *serve, struct listing *listing)
{
    int64_t from_ns = hf__now_ns(), took_ns;
    struct listing_view *view;
    struct hf_error err;

    listing->under_way = true;
    pthread_mutex_unlock(&listing->lock);
    view = make(serve, &err);
    took_ns = hf__now_ns() - from_ns;
    pthread_mutex_lock(&listing->lock);
    listing->under_way = false;
    unuse(listing->last);
    listing->last = view;
    listing->error = err;
    if (view != NULL)
        took_ns *= PAUSE_PART;
    listing->next_ns = hf__now_ns() + (took_ns > GOOD_NS ? took_ns : GOOD_NS);
    pthread_cond_broadcast(&listing->done);
}

enum hf_status serve_listing(struct serve *serve, struct listing_view **out, struct hf_error *err)
{
    struct listing *listing = serve->listing;
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&listing->lock);
    if (!listing->under_way && hf__now_ns() >= listing->next_ns)
        renew(serve, listing);
    while (listing->under_way)
        pthread_cond_wait(&listing->done, &listing->lock);
    *out = listing->last;
    if (listing->last != NULL)
        listing->last->users++;
    else
        status = (*err = listing->error).code;
    pthread_mutex_unlock(&listing->lock);
    return status;
}

void serve_listing_done(struct serve *serve, struct listing_view *view)
{
    pthread_mutex_lock(&serve->listing->lock);
    unuse(view);
    pthread_mutex_unlock(&serve->listing->lock);
}
