/* repair.c - a way out for a damaged store: forget its leases, keep its tokens growing. */
#include "base/base.h"
#include "core/token.h"
#include "stores/file/details.h"
#include "stores/file/dir.h"
#include "stores/file/errors.h"
#include "stores/file/floor.h"
#include "stores/file/open.h"
#include "stores/file/operations.h"
#include "stores/file/slot.h"
#include "stores/file/url.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PATIENCE_NS HF__NS_PER_S /* how long to wait for others to end */

/* True if a page, and those that were split off it, can be read, know where they came from, and
 * tell of holds that make sense. */
static bool tree_sound(struct file_store *store, uint32_t page_no, const struct page_head *parent,
                       uint32_t split)
{
    struct bucket bucket = {.page_no = page_no};
    const struct page_head *head = &bucket.page.head;
    struct view view;

    if (hf__page_read(store, page_no, &bucket.page, NULL) != HF_OK ||
        (parent != NULL && !hf__child_sound(parent, split, head)))
        return false;
    for (int i = 0; i < SLOTS_PER_PAGE; i++)
        if (bucket.page.slots[i].hash != 0 &&
            hf__page_route(head, page_no, bucket.page.slots[i].hash) == page_no &&
            hf__slot_read(store, &bucket, i, &view, NULL) != HF_OK)
            return false;
    for (uint32_t i = head->born; i < head->depth; i++)
        if (!tree_sound(store, head->next[i], head, i))
            return false;
    return true;
}

static bool clients_sound(struct file_store *store)
{
    struct client_count table;
    uint32_t page_no;

    if (hf__map_read(store, SLOT_SIZE, &table, sizeof table, NULL) != HF_OK ||
        table.count > CLIENTS_MAX)
        return false;
    for (uint32_t i = 0; i < table.count; i++)
        if (hf__client_page(store, i, &page_no, NULL) != HF_OK)
            return false;
    return true;
}

/* True if every lock can be read and found. */
static bool pages_sound(struct file_store *store)
{
    for (uint32_t root = 1; root <= ROOTS; root++)
        if (!tree_sound(store, root, NULL, 0))
            return false;
    return clients_sound(store);
}

/* The token that a block of a slot file tells of: a slot's last, or a bucket's floor. A file of the
 * format before tells by its promise. */
static uint64_t token_in(const char *block, bool head)
{
    struct page_head as_head;
    struct slot as_slot;

    memcpy(&as_head, block, sizeof as_head);
    memcpy(&as_slot, block, sizeof as_slot);
    if (head)
        return hf__sum_ok(block) ? as_head.floor : 0;
    return as_slot.hash != 0 && as_slot.sum == hf__slot_sum(&as_slot) ? as_slot.word.low : 0;
}

/* The highest token that a slot file still tells of. */
static uint64_t highest_in(int fd)
{
    struct file_header header;
    char block[SLOT_SIZE];
    uint64_t highest = 0;

    if (pread(fd, &header, sizeof header, 0) == sizeof header && hf__sum_ok(&header) &&
        header.promise <= HF__TOKEN_MAX)
        highest = header.promise;
    for (off_t at = PAGE_SIZE; pread(fd, block, sizeof block, at) == sizeof block;
         at += SLOT_SIZE) {
        uint64_t token = token_in(block, at % PAGE_SIZE == 0);

        if (token > highest && token <= HF__TOKEN_MAX)
            highest = token;
    }
    return highest;
}

static enum hf_status cannot_read(const struct file_store *store, int error,
                                  struct hf_error *report)
{
    if (error == ENOMEM)
        return hf__nomem(report);
    return hf__fail_lock(report, hf__error_status(error), NULL, store->shown,
                         ": cannot read its slot files: %s", strerror(error));
}

/* The same for all slot files that are there: one of an earlier boot is as good a witness. A
 * witness that cannot be heard is a failure, because it is removed afterwards. */
static enum hf_status highest_token(struct file_store *store, uint64_t *highest,
                                    struct hf_error *report)
{
    DIR *dir = hf__dir_folder(store, ".");
    struct dirent *entry;
    enum hf_status status = HF_OK;

    *highest = 0;
    if (dir == NULL)
        return cannot_read(store, errno, report);
    while (status == HF_OK && (entry = readdir(dir)) != NULL) {
        uint64_t token;
        int fd;

        if (strncmp(entry->d_name, SLOTS_PREFIX, strlen(SLOTS_PREFIX)) != 0)
            continue;
        fd = openat(store->dir_fd, entry->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) {
            /* A link is nothing of ours. */
            if (errno != ELOOP && errno != ENOENT)
                status = cannot_read(store, errno, report);
            continue;
        }
        token = highest_in(fd);
        if (token > *highest)
            *highest = token;
        (void)close(fd);
    }
    (void)closedir(dir);
    return status;
}

static enum hf_status rebuild(struct file_store *store, uint64_t above, struct hf_error *report)
{
    int64_t wall_us = store->base.host->wall_us();
    uint64_t highest;
    uint64_t floor;
    enum hf_status status = highest_token(store, &highest, report);

    if (status != HF_OK)
        return status;
    if (hf__floor_read(store, &floor, NULL) == HF_OK && floor > highest)
        highest = floor;
    if (above > highest)
        highest = above;
    if (wall_us > 0 && (uint64_t)wall_us > highest)
        highest = (uint64_t)wall_us;
    status = hf__floor_write(store, highest, report);
    if (status == HF_OK)
        status = hf__dir_discard(store, report);
    if (status != HF_OK)
        return status;
    (void)hf__fail_lock(report, HF_OK, NULL, store->shown,
                        " was rebuilt: its leases ended, tokens go on above %llu",
                        (unsigned long long)highest);
    return HF_OK;
}

/* A sound store keeps its leases; only its tokens may have to start higher. */
static enum hf_status raise_base(struct file_store *store, uint64_t above, struct hf_error *report)
{
    struct file_header header;

    if (above < store->token_base)
        return hf__fail_lock(report, HF_OK, NULL, store->shown, " is sound: nothing was changed");
    if (pread(store->slots_fd, &header, sizeof header, 0) != sizeof header)
        return HF_CORRUPT;
    header.base = above + 1;
    hf__sum_set(&header);
    if (pwrite(store->slots_fd, &header, sizeof header, 0) != sizeof header)
        return HF_CORRUPT;
    return hf__fail_lock(report, HF_OK, NULL, store->shown,
                         " is sound: its tokens go on above %llu", (unsigned long long)above);
}

static enum hf_status repair(struct file_store *store, uint64_t above, struct hf_error *report)
{
    int64_t deadline_ns = store->base.host->now_ns() + PATIENCE_NS;
    enum hf_status status;

    /* Nothing is known of one that is not there; with a token to begin above it can be made. */
    store->readonly = above == 0;
    status = hf__dir_open(store, report);
    store->readonly = false;
    if (status == HF_OK && store->dir_fd < 0)
        return hf__fail(report, HF_INVALID, "there is no store %s, and nothing to repair",
                        store->shown);
    if (status == HF_OK)
        status = hf__dir_lock(store, LOCK_EX, deadline_ns, report);
    if (status != HF_OK)
        return status;
    store->alone = true;
    status = hf__slots_open(store, deadline_ns, report);
    if (status != HF_OK && status != HF_CORRUPT)
        return status;
    /* A number above the promise takes a new floor, and so a new file. */
    if (status == HF_OK && pages_sound(store) && above <= atomic_load(&store->promise) &&
        raise_base(store, above, report) == HF_OK)
        return HF_OK;
    hf__map_close(store, false);
    if (store->slots_fd >= 0)
        (void)close(store->slots_fd);
    store->slots_fd = -1;
    return rebuild(store, above, report);
}

enum hf_status hf__file_repair(const struct hf_host *host, const char *url, uint64_t above,
                               struct hf_error *report)
{
    struct file_store *store = hf__file_new(&hf__file_sys_real, host);
    enum hf_status status;

    if (store == NULL)
        return hf__nomem(report);
    if (above >= HF__TOKEN_MAX) {
        hf__file_free(store);
        return hf__fail(report, HF_INVALID, "a token is at most 2^63-1");
    }
    status = hf__url_dir(url, &store->path, &store->shared, report);
    if (status == HF_OK)
        status = repair(store, above, report);
    hf__map_close(store, false);
    hf__file_free(store);
    return status;
}
