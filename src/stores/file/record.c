/* record.c - what a holder leaves behind.
 *
 * A new record is first written and synced beside its place. Then, with the page locked: does this
 * owner hold the lock, and is this newer than what is there? The rename is all that happens in that
 * time, so a slow disk holds up nobody who wants the lock. The folder is synced after that, or with
 * the next record of the lock, if this one may be forgotten.
 */
#include "base/base.h"
#include "stores/file/dir.h"
#include "stores/file/errors.h"
#include "stores/file/location.h"
#include "stores/file/operations.h"
#include "stores/file/record_file.h"
#include "stores/file/record_sweep.h"
#include "stores/file/slot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int64_t now_ms_of(const struct file_store *store)
{
    return store->base.host->wall_us() / 1000;
}

/* With the page locked. */
static enum hf_status check_holder(struct file_store *store, struct bucket *bucket,
                                   const struct hf_record_write *write, struct hf_error *err)
{
    const struct hf_claim claim = {.name = write->name};
    unsigned char owner[HF_OWNER_LEN / 2];
    struct view seen;
    struct view *view;
    enum hf_loss loss;
    enum hf_status status;

    if (!hf__hex_decode(owner, sizeof owner, write->owner))
        return hf__error_owner(store, &claim, err);
    status = hf__slot_see(store, bucket, write->name, &seen, &view, err);
    if (status != HF_OK)
        return status;
    loss = hf__slot_why_lost(view, owner, write->token, store->base.host->now_ns());
    return loss == HF_LOSS_NONE ? HF_OK : hf__error_lost(store, &claim, loss, NULL, err);
}

static enum hf_status check_order(struct file_store *store, const char *path,
                                  const struct hf_record_write *write, struct hf_error *err)
{
    struct record_copy there;
    enum hf_status status = hf__record_read(store, path, write->name, &there, err);

    if (status == HF_OK && there.found &&
        (there.head.token > write->token ||
         (there.head.token == write->token && there.head.number >= write->number)))
        status = hf__fail_old_record(err, write->name, store->shown, write->key);
    hf__record_copy_release(&there);
    return status;
}

/* What readers see is what counts, whatever was said about the rename. */
static enum hf_status put_in_place(struct file_store *store, const char *draft, const char *path,
                                   struct hf_error *err)
{
    int error;

    if (store->sys->renameat(store->dir_fd, draft, store->dir_fd, path) == 0)
        return HF_OK;
    error = errno;
    if (faccessat(store->dir_fd, draft, F_OK, 0) != 0 && errno == ENOENT)
        return HF_OK;
    return hf__error_fail(store, "put a record in its place", error, err);
}

/* The draft has both records: it gets a second name, which takes the place of the first one. The
 * other one comes after that, so whoever sees it sees this one as well. */
static enum hf_status place_first(struct file_store *store, const struct hf_record_write *first,
                                  const char *draft, struct hf_error *err)
{
    char path[RECORD_PATH_SIZE], twin[RECORD_PATH_SIZE + 1];
    enum hf_status status;

    hf__record_path(path, first->name, first->key);
    status = check_order(store, path, first, err);
    if (status != HF_OK)
        return status == HF_STALE ? HF_OK : status;
    (void)snprintf(twin, sizeof twin, "%s+", draft);
    if (store->sys->linkat(store->dir_fd, draft, store->dir_fd, twin, 0) != 0)
        status = hf__error_fail(store, "give a record a second name", errno, err);
    else
        status = put_in_place(store, twin, path, err);
    if (status != HF_OK)
        (void)unlinkat(store->dir_fd, twin, 0);
    return status;
}

static enum hf_status replace(struct file_store *store, const struct hf_record_write *first,
                              const struct hf_record_write *write, const char *draft,
                              struct hf_error *err)
{
    char path[RECORD_PATH_SIZE];
    struct bucket bucket;
    enum hf_status status =
        hf__page_lock(store, hf__name_hash(write->name), write->deadline_ns, &bucket, err);

    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, err);
    hf__record_path(path, write->name, write->key);
    status = check_holder(store, &bucket, write, err);
    if (status == HF_OK)
        status = check_order(store, path, write, err);
    if (status == HF_OK && first != NULL)
        status = place_first(store, first, draft, err);
    if (status == HF_OK)
        status = put_in_place(store, draft, path, err);
    hf__page_unlock(store, &bucket);
    return status;
}

/* All but the sync of the folder: it is there for everybody, and whole whatever happens. */
static enum hf_status put(struct file_store *store, const struct hf_record_write *first,
                          const struct hf_record_write *write, struct hf_error *err)
{
    const struct hf_claim claim = {.name = write->name};
    char draft[RECORD_PATH_SIZE];
    enum hf_status status;

    if (hf__location_check(store, NULL) != HF_OK)
        return hf__error_lost(store, &claim, HF_LOSS_FORGOTTEN, NULL, err);
    status = hf__record_prepare(store, err);
    if (status == HF_OK)
        status = hf__record_draft(store, first, write, draft, err);
    if (status != HF_OK)
        return status;
    status = replace(store, first, write, draft, err);
    if (status != HF_OK)
        (void)unlinkat(store->dir_fd, draft, 0);
    return status;
}

enum hf_status hf__file_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                                   struct hf_error *err)
{
    return hf__file_record_put_both(base, NULL, write, err);
}

enum hf_status hf__file_record_put_both(struct hf_store_base *base,
                                        const struct hf_record_write *first,
                                        const struct hf_record_write *write, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    enum hf_status status = put(store, first, write, err);

    /* What is newer may be of a try whose last sync failed: whoever finds it builds on it. */
    if ((status == HF_OK || status == HF_STALE) &&
        hf__record_sync(store, write->name, NULL) != HF_OK)
        return hf__fail_lock(err, HF_UNKNOWN, write->name, store->shown,
                             ": the record \"%s\" is written, but may be lost with the power",
                             write->key);
    if (status == HF_OK)
        hf__record_sweep_sometimes(store, write->name, write->keep_ms > 0);
    return status;
}

/* The folder is synced with the next record of the lock. */
enum hf_status hf__file_put_forgettable(struct hf_store_base *base,
                                        const struct hf_record_write *first,
                                        const struct hf_record_write *write, struct hf_error *err)
{
    return put(hf__file_of(base), first, write, err);
}

/* False if fn has seen enough. */
static bool show(const struct record_copy *copy, hf_record_fn *fn, void *data)
{
    struct hf_record record = {.size = sizeof record,
                               .key = copy->key,
                               .value = copy->value,
                               .value_len = copy->head.value_len,
                               .token = copy->head.token,
                               .number = copy->head.number,
                               .written_ms = copy->head.written_ms,
                               .until_ms = copy->head.until_ms};

    return fn(&record, data);
}

static enum hf_status check_place(struct file_store *store, struct hf_error *err)
{
    /* A reader may come before the first lock of this boot is taken. */
    return store->slots_fd >= 0 ? hf__location_check(store, err) : HF_OK;
}

enum hf_status hf__file_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                                   hf_record_fn *fn, void *data, int64_t *now_ms,
                                   struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    int64_t clock_ms = now_ms_of(store);
    struct record_copy copy;
    char path[RECORD_PATH_SIZE];
    enum hf_status status = check_place(store, err);

    if (now_ms != NULL)
        *now_ms = clock_ms;
    if (status != HF_OK || store->dir_fd < 0)
        return status;
    hf__record_path(path, query->name, query->key);
    status = hf__record_read(store, path, query->name, &copy, err);
    if (status == HF_OK && copy.found && !hf__record_expired(copy.head.until_ms, clock_ms))
        (void)show(&copy, fn, data);
    hf__record_copy_release(&copy);
    return status;
}

struct listing {
    struct file_store *store;
    const struct hf_record_query *query;
    hf_record_fn *fn;
    void *data;
};

/* False if fn has seen enough. */
static bool list_file(const struct listing *listing, const char *path, enum hf_status *status,
                      struct hf_error *err)
{
    const char *prefix = listing->query->key;
    struct record_copy copy;
    bool more = true;

    *status = hf__record_read(listing->store, path, listing->query->name, &copy, err);
    if (*status == HF_OK && copy.found && strncmp(copy.key, prefix, strlen(prefix)) == 0 &&
        !hf__record_expired(copy.head.until_ms, now_ms_of(listing->store)))
        more = show(&copy, listing->fn, listing->data);
    hf__record_copy_release(&copy);
    return more;
}

/* One that is damaged keeps nobody from seeing the others; it is told at the end. */
enum hf_status hf__file_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                                    hf_record_fn *fn, void *data, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    const struct listing listing = {.store = store, .query = query, .fn = fn, .data = data};
    enum hf_status worst = check_place(store, err);
    char folder[RECORD_PATH_SIZE], prefix[RECORD_PATH_SIZE], path[2 * RECORD_PATH_SIZE];
    struct dirent *entry;
    bool more = true;
    DIR *dir;

    if (worst != HF_OK || store->dir_fd < 0)
        return worst;
    hf__record_shard(folder, query->name);
    hf__record_prefix(prefix, query->name);
    dir = hf__dir_folder(store, folder);
    if (dir == NULL)
        return hf__dir_no_folder(store, errno, err);
    while (more && (entry = readdir(dir)) != NULL) {
        enum hf_status status;

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%.95s", folder, entry->d_name);
        more = list_file(&listing, path, &status, worst == HF_OK ? err : NULL);
        if (worst == HF_OK)
            worst = status;
    }
    (void)closedir(dir);
    return worst;
}
