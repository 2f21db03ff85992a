/* record.c - records: from the public calls to the store that keeps them.
 *
 * The store writes only what is above what it has, in the order (token, number). So a put that got
 * no answer is sent again with the same number: if the first one arrived after all, the second is
 * refused as stale, and reading tells whose record that is. The keeper renews the lease meanwhile:
 * a lease in the middle of a put is not busy, it is only being written for.
 */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

static bool key_valid(const char *key)
{
    return strlen(key) <= HF_RECORD_KEY_MAX && hf__name_valid(key);
}

static enum hf_status bad_key(const char *name, const char *url, struct hf_error *err)
{
    return hf__fail_lock(err, HF_INVALID, name, url,
                         ": the key of a record has 1 to %d bytes and no control characters",
                         HF_RECORD_KEY_MAX);
}

static enum hf_status no_records(const struct hf_store *store, const char *name,
                                 struct hf_error *err)
{
    return hf__fail_lock(err, HF_UNSUPPORTED, name, store->url,
                         ": this kind of store keeps no records, see \"holdfast help stores\"");
}

static enum hf_status check_put(const struct hf_lease *lease, const struct hf_record_write *write,
                                struct hf_error *err)
{
    const char *url = lease->store->url;

    if (write->key == NULL || !key_valid(write->key))
        return bad_key(lease->name, url, err);
    if (write->value_len > HF_RECORD_VALUE_MAX)
        return hf__fail_lock(err, HF_INVALID, lease->name, url,
                             ": the value of a record has at most %d KiB",
                             HF_RECORD_VALUE_MAX / 1024);
    if (write->keep_ms < 0 || write->keep_ms > HF_RECORD_KEEP_MAX_MS)
        return hf__fail_lock(err, HF_INVALID, lease->name, url,
                             ": a record is kept for 0 (for ever) to a hundred years");
    return HF_OK;
}

/* One put, from the first try to the last. */
struct put {
    struct hf_lease *lease;
    struct hf_record_write first; /* goes with it; without a key: nothing does */
    struct hf_record_write write;
    bool forgettable; /* a crash of the machine may bring back what was there */
    bool unanswered;  /* a try got no answer: it may be on record */
};

/* Whether it may write: it is held, or was broken and is still there; and the store is open. Lock
 * held. */
static bool may_write(struct hf_lease *lease)
{
    (void)hf__lease_tick(&lease->core, hf__now_ns());
    return !lease->closed && hf__lease_excludes(&lease->core, hf__now_ns());
}

/* Until when the lease may write; 0 if it may not, and *err says why. */
static int64_t held_until_ns(struct hf_lease *lease, struct hf_error *err)
{
    int64_t until_ns = 0;

    pthread_mutex_lock(&lease->store->lock);
    if (may_write(lease))
        until_ns = lease->core.deadline_ns;
    else
        (void)hf__lease_lost(lease, err);
    pthread_mutex_unlock(&lease->store->lock);
    return until_ns;
}

/* What is on record under the key of a put. */
struct on_record {
    const struct hf_record_write *write;
    bool ours;
    uint64_t token, number; /* 0: nothing is */
};

static bool compare(const struct hf_record *record, void *data)
{
    struct on_record *found = data;
    const struct hf_record_write *write = found->write;

    found->token = record->token;
    found->number = record->number;
    found->ours = record->token == write->token && record->number == write->number &&
                  record->value_len == write->value_len &&
                  memcmp(record->value, write->value, write->value_len) == 0;
    return false;
}

static enum hf_status read_back(struct put *put, struct on_record *found, struct hf_error *err)
{
    struct hf_store_base *base = put->lease->store->base;
    struct hf_record_query query = {.name = put->write.name,
                                    .key = put->write.key,
                                    .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};

    *found = (struct on_record){.write = &put->write};
    return base->ops->record_get(base, &query, compare, found, NULL, err);
}

/* The next number of the lease: above every one that it used, and above seen, which another process
 * of the same hold may have used. A process that took the hold over, or cannot see what it has to
 * outrank, goes on at the clock, as tokens do: nobody counts that far. */
static uint64_t next_number(struct hf_lease *lease, uint64_t seen, bool by_clock)
{
    uint64_t floor = by_clock ? (uint64_t)hf__wall_us() : 0;

    pthread_mutex_lock(&lease->store->lock);
    if (lease->last_number < seen)
        lease->last_number = seen;
    if (lease->last_number < floor)
        lease->last_number = floor;
    seen = ++lease->last_number;
    pthread_mutex_unlock(&lease->store->lock);
    return seen;
}

/* The store has a record that is not below ours. It is ours, if a try without an answer arrived
 * after all; or it is of another process of the same hold, and is to be outranked: HF_STALE. */
static enum hf_status settle_stale(struct put *put, struct hf_error *err)
{
    struct on_record found;
    enum hf_status status = read_back(put, &found, err);

    if (status != HF_OK)
        return status;
    if (found.ours && put->unanswered)
        return hf__ok(err);
    if (found.token > put->write.token)
        return hf__fail_lock(err, HF_LOST, put->write.name, put->lease->store->url,
                             " was lost: a later holder has written its record");
    put->write.number = next_number(put->lease, found.number, found.token == 0);
    return hf__fail_lock(err, HF_STALE, put->write.name, put->lease->store->url,
                         ": another process writes the same record");
}

/* The store says that the lock is not ours: ask why, and believe it. */
static void note_loss(struct hf_lease *lease)
{
    struct hf_store *store = lease->store;
    struct hf_grant grant = {0};
    struct hf_claim look;

    pthread_mutex_lock(&store->lock);
    look = hf__lease_claim(lease, 0, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS);
    pthread_mutex_unlock(&store->lock);
    if (store->base->ops->renew(store->base, &look, &grant, NULL) != HF_LOST)
        return;
    pthread_mutex_lock(&store->lock);
    while (lease->busy && hf__lease_tick(&lease->core, hf__now_ns()))
        pthread_cond_wait(&store->idle, &store->lock);
    if (lease->core.state == HF__LEASE_HELD) {
        hf__lease_refused(&lease->core, grant.loss);
        hf__lease_signal(lease);
        if (lease->heap_at != HF__NOT_KEPT)
            hf__keeper_update(lease);
    }
    pthread_mutex_unlock(&store->lock);
}

static enum hf_status ask_to_put(const struct put *put, struct hf_error *err)
{
    struct hf_store_base *base = put->lease->store->base;
    const struct hf_record_write *first = put->first.key != NULL ? &put->first : NULL;

    if (put->forgettable && HF__OPERATION(base->ops, put_forgettable) != NULL)
        return base->ops->put_forgettable(base, first, &put->write, err);
    return first != NULL ? base->ops->record_put_both(base, first, &put->write, err)
                         : base->ops->record_put(base, &put->write, err);
}

static enum hf_status try_put(struct put *put, int64_t until_ns, struct hf_error *err)
{
    enum hf_status status;

    put->write.deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    if (put->write.deadline_ns > until_ns)
        put->write.deadline_ns = until_ns;
    (void)hf__ok(err); /* what the store says with HF_OK is a warning */
    put->first.deadline_ns = put->write.deadline_ns;
    status = ask_to_put(put, err);
    if (status == HF_UNKNOWN)
        put->unanswered = true;
    if (status == HF_STALE)
        status = settle_stale(put, err);
    return status;
}

/* What the caller hears after the last try was answered so. The store refused it, or there was no
 * time for another; a try before it may have been written all the same. */
static enum hf_status conclude(struct put *put, enum hf_status status, struct hf_error *err)
{
    struct hf_lease *lease = put->lease;
    struct on_record found;

    if (status == HF_LOST)
        note_loss(lease);
    if (status == HF_OK || (!put->unanswered && status != HF_STALE))
        return status;
    if (!hf__wait_may_pass(status) && read_back(put, &found, NULL) == HF_OK) {
        if (found.ours)
            return hf__ok(err);
        if (status == HF_LOST && found.token <= put->write.token)
            return HF_LOST; /* where it is not held, no late copy is written either */
    }
    return hf__fail_lock(err, HF_UNKNOWN, lease->name, lease->store->url,
                         ": no answer to the writing of record \"%s\": it may be there",
                         put->write.key);
}

/* As long as the lease lasts, but no longer than its ttl: it may be that renewals pass and a large
 * value does not. */
static enum hf_status put_patiently(struct put *put, struct hf_error *err)
{
    const struct hf_open_options no_options = {0};
    int64_t end_ns = hf__now_ns() + hf_lease_ttl_ms(put->lease) * HF__NS_PER_MS;
    enum hf_status status = HF_LOST;
    struct hf__wait wait;

    hf__wait_init(&wait, 0);
    for (;;) {
        int64_t asked_ns = hf__now_ns();

        wait.until_ns = held_until_ns(put->lease, err);
        if (wait.until_ns == 0)
            return put->unanswered ? conclude(put, HF_UNKNOWN, err) : HF_LOST;
        if (wait.until_ns > end_ns)
            wait.until_ns = end_ns;
        if (asked_ns >= wait.until_ns)
            return conclude(put, status, err);
        status = try_put(put, wait.until_ns, err);
        if (status != HF_STALE && !hf__wait_go_on(&wait, &no_options, asked_ns, &status, err))
            return conclude(put, status, err);
    }
}

/* Locks the lease for one put at a time; hf_release waits for its end. */
static enum hf_status begin(struct hf_lease *lease, struct hf_error *err)
{
    struct hf_store *store = lease->store;
    bool may;

    pthread_mutex_lock(&store->lock);
    while ((may = may_write(lease)) && lease->writing)
        pthread_cond_wait(&store->idle, &store->lock);
    if (may) {
        lease->writing = true;
        store->calls++;
    } else {
        (void)hf__lease_lost(lease, err);
    }
    pthread_mutex_unlock(&store->lock);
    return may ? HF_OK : HF_LOST;
}

static void end(struct hf_lease *lease)
{
    struct hf_store *store = lease->store;

    /* One step, because after it the lease may be released and the store closed. */
    pthread_mutex_lock(&store->lock);
    lease->writing = false;
    store->calls--;
    pthread_cond_broadcast(&store->idle);
    pthread_mutex_unlock(&store->lock);
}

/* What of a write is the lease's. */
static enum hf_status fill_in(struct hf_lease *lease, struct hf_record_write *write,
                              struct hf_error *err)
{
    write->name = lease->name;
    write->owner = lease->owner;
    write->token = lease->token;
    return check_put(lease, write, err);
}

static enum hf_status write_in_turn(struct put *put, struct hf_error *err)
{
    struct hf_lease *lease = put->lease;
    enum hf_status status = begin(lease, err);

    if (status != HF_OK)
        return status;
    if (HF__OPERATION(lease->store->base->ops, record_put) == NULL) {
        status = no_records(lease->store, lease->name, err);
    } else {
        if (put->first.key != NULL)
            put->first.number = next_number(lease, 0, lease->adopted);
        put->write.number = next_number(lease, 0, lease->adopted);
        status = put_patiently(put, err);
    }
    end(lease);
    return status;
}

static enum hf_status write_checked(struct put *put, struct hf_error *err)
{
    struct hf_lease *lease = put->lease;
    struct hf_error own;
    enum hf_status status = HF_OK;

    if (err == NULL)
        err = &own;
    if (hf__forked(&lease->mark))
        return hf__lease_not_for_children(lease, err);
    if (put->first.key != NULL)
        status = fill_in(lease, &put->first, err);
    if (status == HF_OK)
        status = fill_in(lease, &put->write, err);
    return status == HF_OK ? write_in_turn(put, err) : status;
}

enum hf_status hf__record_write(struct hf_lease *lease, const struct hf__record_task *task,
                                struct hf_error *err)
{
    struct put put = {.lease = lease, .write = task->write, .forgettable = task->forgettable};
    struct put alone = {.lease = lease, .forgettable = task->forgettable};
    enum hf_status status;

    if (task->first == NULL)
        return write_checked(&put, err);
    if (HF__OPERATION(lease->store->base->ops, record_put_both) == NULL) {
        alone.write = *task->first;
        status = write_checked(&alone, err);
        return status == HF_OK ? write_checked(&put, err) : status;
    }
    put.first = *task->first;
    return write_checked(&put, err);
}

enum hf_status hf_record_put(struct hf_lease *lease, const char *key, const void *value,
                             size_t value_len, int64_t keep_ms, struct hf_error *err)
{
    struct put put = {.lease = lease,
                      .write = {.key = key,
                                .value = value_len > 0 ? value : "",
                                .value_len = value_len,
                                .keep_ms = keep_ms}};

    return write_checked(&put, err);
}

static enum hf_status check_read(const struct hf_store *store, const char *name,
                                 struct hf_error *err)
{
    if (name == NULL || !hf__name_valid(name))
        return hf__bad_name(err);
    if (HF__OPERATION(store->base->ops, record_list) == NULL)
        return no_records(store, name, err);
    return HF_OK;
}

struct copying {
    struct hf_record *copy;
    bool there;
};

/* A copy in one piece: the struct, the key, the value and the NUL behind it. */
static bool copy_found(const struct hf_record *record, void *data)
{
    struct copying *copying = data;
    size_t key_size = strlen(record->key) + 1;
    struct hf_record *copy = malloc(sizeof *copy + key_size + record->value_len + 1);
    char *bytes;

    copying->there = true;
    copying->copy = copy;
    if (copy == NULL)
        return false;
    bytes = (char *)(copy + 1);
    *copy = *record;
    copy->key = memcpy(bytes, record->key, key_size);
    copy->value = memcpy(bytes + key_size, record->value, record->value_len);
    bytes[key_size + record->value_len] = '\0';
    return false;
}

enum hf_status hf_record_get(struct hf_store *store, const char *name, const char *key,
                             struct hf_record **out, int64_t *now_ms, struct hf_error *err)
{
    struct hf_record_query query = {
        .name = name, .key = key, .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    struct copying copying = {.there = false};
    enum hf_status status = hf__store_begin(store, err);

    *out = NULL;
    if (status != HF_OK)
        return status;
    status = check_read(store, name, err);
    if (status == HF_OK && (key == NULL || !key_valid(key)))
        status = bad_key(name, store->url, err);
    if (status == HF_OK)
        status =
            store->base->ops->record_get(store->base, &query, copy_found, &copying, now_ms, err);
    hf__store_end(store);
    if (status == HF_OK && copying.there && copying.copy == NULL)
        return hf__nomem(err);
    if (status != HF_OK) {
        free(copying.copy);
        return status;
    }
    *out = copying.copy;
    return hf__ok(err);
}

void hf_record_free(struct hf_record *record)
{
    free(record);
}

enum hf_status hf_record_list(struct hf_store *store, const char *name, const char *prefix,
                              hf_record_fn *fn, void *data, struct hf_error *err)
{
    struct hf_record_query query = {.name = name,
                                    .key = prefix != NULL ? prefix : "",
                                    .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    enum hf_status status = hf__store_begin(store, err);

    if (status != HF_OK)
        return status;
    status = check_read(store, name, err);
    if (status == HF_OK && query.key[0] != '\0' && !key_valid(query.key))
        status = bad_key(name, store->url, err);
    if (status == HF_OK)
        status = store->base->ops->record_list(store->base, &query, fn, data, err);
    hf__store_end(store);
    return status == HF_OK ? hf__ok(err) : status;
}
