/* acquire.c - taking a lock, or one of several, and taking over a detached one. */
#include "client/acquisition.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAKE_BACK_MS 1000 /* what ending holds that may be ours is given, before we ask again */

static void draw_owner(struct hf__acquisition *a);
static enum hf_status grant_lease(struct hf__acquisition *a, const struct hf_grant *grant,
                                  struct hf_error *err);

static bool is_kept(const struct hf__acquisition *a)
{
    return !a->options.no_keeper && !a->options.detached;
}

/* The next attempt begins now: until when its requests, and its wait, may last. */
static void set_times(struct hf__acquisition *a)
{
    a->asked_ns = hf__now_ns();
    a->claims->deadline_ns = a->asked_ns + HF__REQUEST_MS * HF__NS_PER_MS;
    a->claims->wait_until_ns = a->asked_ns < a->wait.until_ns ? a->wait.until_ns : 0;
}

/* Makes the other claims, with owners that differ from that of the first in their last byte. */
static void make_others(struct hf__acquisition *a)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char last;
    bool known = hf__hex_decode(&last, 1, a->owners[0] + HF_OWNER_LEN - 2);

    assert(known);
    for (size_t i = 1; i < a->count; i++) {
        size_t at = a->first + i;

        a->claims[i] = a->claims[0];
        a->claims[i].name = a->names[at < a->count ? at : at - a->count];
        a->claims[i].owner = memcpy(a->owners[i], a->owners[0], sizeof a->owners[i]);
        last++;
        a->owners[i][HF_OWNER_LEN - 2] = digits[last >> 4];
        a->owners[i][HF_OWNER_LEN - 1] = digits[last & 15];
    }
    a->made = a->count;
}

/* The first is often free, and a store that sees that at a glance needs no claims of the others. */
static enum hf_status ask_for_any(struct hf__acquisition *a, struct hf_grant *grant,
                                  struct hf_error *err)
{
    struct hf_store_base *base = a->store->base;
    enum hf_status status = HF_UNSUPPORTED;

    if (HF__OPERATION(base->ops, acquire_free) != NULL)
        status = base->ops->acquire_free(base, a->claims, grant, err);
    if (status != HF_UNSUPPORTED)
        return status;
    make_others(a);
    return hf__any_ask(a->store, a->claims, a->count, &a->which, grant, err);
}

/* Asks the store once; the lease gets its name, token and core if it is granted. */
static enum hf_status ask(struct hf__acquisition *a, struct hf_error *err)
{
    struct hf_store_base *base = a->store->base;
    struct hf_begun *begun = a->begun;
    struct hf_grant grant = {0};
    enum hf_status status;

    a->which = 0;
    a->begun = NULL;
    if (begun != NULL)
        status = base->ops->end(base, begun, &grant, err);
    else if (a->count == 1)
        status = base->ops->acquire(base, a->claims, &grant, err);
    else
        status = ask_for_any(a, &grant, err);
    return status == HF_OK ? grant_lease(a, &grant, err) : status;
}

/* Makes the lease a new attempt's. Of the old one nothing is left: what it may hold is ended as
 * well as can be, and lasts its ttl otherwise. */
static void begin_anew(struct hf__acquisition *a, bool take_back)
{
    struct hf_store *store = a->store;
    int64_t until_ns = hf__now_ns() + TAKE_BACK_MS * HF__NS_PER_MS;

    for (size_t i = 0; take_back && i < a->made && hf__now_ns() < until_ns; i++) {
        struct hf_claim undo = a->claims[i]; /* token 0: whatever that owner holds */

        undo.ttl_ms = 0;
        undo.deadline_ns = until_ns;
        (void)store->base->ops->release(store->base, &undo, NULL);
    }
    pthread_mutex_lock(&store->lock);
    draw_owner(a);
    pthread_mutex_unlock(&store->lock);
    a->made = 1;
    a->lease->token = 0;
    a->lease->core = (struct hf__lease_core){0};
}

/* Asks until there is an answer, or the wait is over. */
static enum hf_status ask_patiently(struct hf__acquisition *a, struct hf_error *err)
{
    const struct hf_open_options waiting = {.cancel_fd = a->options.cancel_fd,
                                            .on_trouble = a->options.on_trouble,
                                            .data = a->options.data};

    for (;; set_times(a)) {
        enum hf_status status, answer;
        const char *name;

        (void)hf__ok(err);
        status = ask(a, err);
        if (status == HF_OK)
            return HF_OK;
        name = a->claims[a->which].name;
        if (err->code != status) /* a store that found no words */
            (void)hf__fail_lock(err, status, name, a->store->url, ": %s", hf_status_text(status));
        answer = status;
        if (!hf__wait_go_on(&a->wait, &waiting, a->asked_ns, &status, err))
            return status == answer ? status
                                    : hf__fail_lock(err, status, name, a->store->url,
                                                    ": %s while waiting", hf_status_text(status));
        begin_anew(a, answer == HF_UNKNOWN);
    }
}

/* The first claim, all but its owner's digits, for an attempt that begins now. */
static void make_first(struct hf__acquisition *a)
{
    const struct hf_acquire_options *o = &a->options;

    *a->claims = (struct hf_claim){.name = a->claims->name,
                                   .owner = a->owners[0],
                                   .label = a->label,
                                   .ttl_ms = o->ttl_ms,
                                   .detached = o->detached,
                                   .kept = o->detached    ? HF_KEPT_NEVER
                                           : o->no_keeper ? HF_KEPT_LATER
                                                          : HF_KEPT_NOW,
                                   .cancel_fd = o->cancel_fd > 0 ? o->cancel_fd : -1};
    a->made = 1;
    set_times(a);
}

enum hf_status hf__acquisition_prepare(struct hf__acquisition *a, struct hf_error *err)
{
    struct hf_store *store = a->store;
    const struct hf_acquire_options *o = &a->options;
    struct hf_lease *lease = hf__lease_new(store, a->claims[0].name);
    enum hf_status status = HF_OK;

    if (lease == NULL)
        return hf__nomem(err);
    a->lease = lease;
    lease->detached = o->detached;
    lease->on_lost = o->on_lost;
    lease->on_renewed = o->on_renewed;
    lease->data = o->data;
    hf__copy_printable(a->label, sizeof a->label, o->label != NULL ? o->label : store->label);
    a->wait = hf__wait_begin(o->wait_ms);
    make_first(a);
    pthread_mutex_lock(&store->lock);
    draw_owner(a);
    if (is_kept(a))
        status = hf__keeper_reserve(store, err);
    pthread_mutex_unlock(&store->lock);
    if (status != HF_OK)
        hf__lease_discard(lease);
    return status;
}

enum hf_status hf__acquisition_carry_out(struct hf__acquisition *a, struct hf_lease **out,
                                         struct hf_error *err)
{
    struct hf_store *store = a->store;
    struct hf_lease *lease = a->lease;
    enum hf_status status = ask_patiently(a, err);

    pthread_mutex_lock(&store->lock);
    if (status == HF_OK)
        hf__lease_publish(lease);
    if (is_kept(a) && status == HF_OK)
        hf__keeper_add(lease);
    else if (is_kept(a))
        hf__keeper_unreserve(store);
    pthread_mutex_unlock(&store->lock);
    if (status != HF_OK) {
        hf__lease_discard(lease);
        return status;
    }
    *out = lease;
    return hf__ok(err);
}

static enum hf_status acquire(struct hf__acquisition *a, struct hf_lease **out,
                              struct hf_error *err)
{
    enum hf_status status = hf__acquisition_prepare(a, err);

    return status == HF_OK ? hf__acquisition_carry_out(a, out, err) : status;
}

enum hf_status hf__acquisition_enter(struct hf__acquisition *a, const char *name,
                                     const struct hf_acquire_options *options, struct hf_error *err)
{
    enum hf_status status = hf__check_options(options, &a->options, err);

    if (status == HF_OK && (name == NULL || !hf__name_valid(name)))
        status = hf__bad_name(err);
    if (status == HF_OK)
        status = hf__check_lease(a->store, name, &a->options, err);
    return status == HF_OK ? hf__store_begin_use(a->store, err) : status;
}

enum hf_status hf_acquire(struct hf_store *store, const char *name,
                          const struct hf_acquire_options *options, struct hf_lease **out,
                          struct hf_error *err)
{
    struct hf_claim claim = {.name = name};
    char owner[1][HF_OWNER_LEN + 1];
    struct hf__acquisition a = {.store = store, .claims = &claim, .owners = owner, .count = 1};
    struct hf_error own;
    enum hf_status status;

    *out = NULL;
    if (err == NULL)
        err = &own;
    status = hf__acquisition_enter(&a, name, options, err);
    if (status != HF_OK)
        return status;
    status = acquire(&a, out, err);
    hf__store_end(store);
    explicit_bzero(owner, sizeof owner);
    return status;
}

/* Which of the names is tried first. */
static size_t first_of(const struct hf__acquisition *a)
{
    uint32_t dice;

    if (!a->options.spread)
        return 0;
    hf__random(&dice, sizeof dice);
    return dice % a->count;
}

enum hf_status hf_acquire_any(struct hf_store *store, const char *const *names, size_t count,
                              const struct hf_acquire_options *options, struct hf_lease **out,
                              size_t *which, struct hf_error *err)
{
    struct hf_claim claims[HF_SEVERAL_MAX];
    char owners[HF_SEVERAL_MAX][HF_OWNER_LEN + 1];
    struct hf__acquisition a = {
        .store = store, .claims = claims, .owners = owners, .count = count, .names = names};
    struct hf_error own;
    enum hf_status status;

    *out = NULL;
    *which = 0;
    if (err == NULL)
        err = &own;
    if ((status = hf__check_names(store, names, count, which, err)) != HF_OK ||
        (status = hf__check_options(options, &a.options, err)) != HF_OK ||
        (status = hf__check_lease(store, names[0], &a.options, err)) != HF_OK ||
        (status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    assert(count > 0 && count <= HF_SEVERAL_MAX); /* the names were checked */
    a.first = first_of(&a);
    claims[0].name = names[a.first];
    status = acquire(&a, out, err);
    *which = (a.first + a.which) % count;
    hf__store_end(store);
    explicit_bzero(owners, a.made * sizeof owners[0]);
    return status;
}

enum hf_status hf__check_options(const struct hf_acquire_options *given,
                                 struct hf_acquire_options *out, struct hf_error *err)
{
    memset(out, 0, sizeof *out);
    if (given != NULL) {
        /* A caller built against an older header knows fewer options. */
        size_t known = given->size < sizeof *out ? given->size : sizeof *out;

        if (given->size == 0)
            return hf__fail(err, HF_INVALID,
                            "options.size must be sizeof(struct hf_acquire_options)");
        memcpy(out, given, known);
    }
    return HF_OK;
}

enum hf_status hf__check_lease(struct hf_store *store, const char *name,
                               struct hf_acquire_options *options, struct hf_error *err)
{
    if (options->ttl_ms == 0) {
        options->ttl_ms = hf_store_max_ttl_ms(store);
        if (options->ttl_ms > HF_TTL_DEFAULT_MS)
            options->ttl_ms = HF_TTL_DEFAULT_MS;
    }
    if (options->ttl_ms < HF_TTL_MIN_MS || options->ttl_ms > HF_TTL_MAX_MS)
        return hf__bad_ttl(store, name, err);
    if (options->ttl_ms > hf_store_max_ttl_ms(store))
        return hf__ttl_too_long(store, name, options->ttl_ms, err);
    if (options->detached && (hf__features(store->base) & HF_FEATURE_DETACHED) == 0)
        return hf__fail_lock(err, HF_UNSUPPORTED, name, store->url,
                             ": this store has no detached leases");
    return HF_OK;
}

/* A fresh owner for every attempt: a late answer to an earlier one can never be taken for this
 * one. Lock held. */
static void draw_owner(struct hf__acquisition *a)
{
    struct hf_store *store = a->store;
    unsigned char *owner;

    if (store->owners_left == 0) {
        hf__random(store->owners, sizeof store->owners);
        store->owners_left = HF__OWNER_BATCH;
    }
    owner = store->owners[--store->owners_left];
    hf__hex_encode(a->owners[0], owner, sizeof store->owners[0]);
    explicit_bzero(owner, sizeof store->owners[0]);
}

static enum hf_status grant_lease(struct hf__acquisition *a, const struct hf_grant *grant,
                                  struct hf_error *err)
{
    const struct hf_claim *claim = &a->claims[a->which];
    struct hf_store *store = a->store;
    struct hf_lease *lease = a->lease;
    uint32_t ttl_ms = claim->ttl_ms;
    struct hf_claim undo;

    if (grant->ttl_ms != 0 && grant->ttl_ms < ttl_ms)
        ttl_ms = grant->ttl_ms;
    if (a->count > 1)
        (void)stpcpy(lease->name, claim->name); /* a checked one */
    memcpy(lease->owner, grant->owner[0] != '\0' ? grant->owner : claim->owner,
           sizeof lease->owner);
    lease->token = grant->token;
    hf__lease_granted(&lease->core, grant->sent_at_ns, ttl_ms);
    if (grant->token != 0 && grant->token <= INT64_MAX &&
        hf__lease_tick(&lease->core, hf__now_ns()))
        return HF_OK;

    undo = hf__lease_claim(lease, 0, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS);
    (void)store->base->ops->release(store->base, &undo, NULL);
    if (lease->core.state == HF__LEASE_HELD)
        return hf__fail_lock(err, HF_CORRUPT, lease->name, store->url,
                             " was granted with a token out of range");
    return hf__fail_lock(err, HF_UNKNOWN, lease->name, store->url,
                         " was granted, but the answer came after the deadline");
}

enum hf_status hf_adopt(struct hf_store *store, const char *name, const char *owner, uint64_t token,
                        struct hf_lease **out, struct hf_error *err)
{
    unsigned char raw[HF_OWNER_LEN / 2];
    struct hf_grant grant = {0};
    struct hf_claim claim;
    struct hf_lease *lease;
    enum hf_status status;

    *out = NULL;
    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(err);
    if (owner == NULL || !hf__hex_decode(raw, sizeof raw, owner) || token == 0 || token > INT64_MAX)
        return hf__fail_lock(err, HF_INVALID, name, store->url,
                             ": an owner is %d hex digits, a token is not 0", HF_OWNER_LEN);
    if ((status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    lease = hf__lease_new(store, name);
    if (lease == NULL) {
        status = hf__nomem(err);
        goto out;
    }
    lease->token = token;
    lease->detached = true;
    lease->adopted = true;
    hf__hex_encode(lease->owner, raw, sizeof raw);
    claim = hf__lease_claim(lease, 0, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS);
    status = store->base->ops->renew(store->base, &claim, &grant, err);
    if (status == HF_OK) {
        /* A store may not know the ttl on record; what is left it must know. */
        if (grant.ttl_ms == 0 && grant.remaining_ms > 0)
            grant.ttl_ms =
                grant.remaining_ms < HF_TTL_MAX_MS ? (uint32_t)grant.remaining_ms : HF_TTL_MAX_MS;
        if (grant.ttl_ms == 0)
            grant.ttl_ms = HF_TTL_MIN_MS;
        hf__lease_adopted(&lease->core, grant.sent_at_ns, grant.ttl_ms, grant.remaining_ms);
        if (!hf__lease_tick(&lease->core, hf__now_ns()))
            status = hf__fail_lock(err, HF_LOST, name, store->url, ": the lease has expired");
    }
    if (status != HF_OK) {
        hf__lease_discard(lease);
        goto out;
    }
    pthread_mutex_lock(&store->lock);
    hf__lease_publish(lease);
    pthread_mutex_unlock(&store->lock);
    *out = lease;
    (void)hf__ok(err);
out:
    hf__store_end(store);
    return status;
}
