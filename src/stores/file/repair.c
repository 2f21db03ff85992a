/* repair.c - a way out for a damaged store: forget its leases, keep its tokens growing. */
#include "stores/file/internal.h"
#include "core/token.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PATIENCE_NS HF__NS_PER_S /* how long to wait for others to end */

/* True if every page can be read. */
static bool pages_sound(struct file_store *store)
{
    struct page page;
    uint32_t count;

    if (hf__page_count(store, &count, NULL) != HF_OK || count < 1 + ROOTS)
        return false;
    for (uint32_t i = 1; i < count; i++)
        if (hf__page_read(store, i, &page, NULL) != HF_OK)
            return false;
    return true;
}

/* The highest token that the slot file of this boot still tells of. */
static uint64_t highest_token(struct file_store *store)
{
    char name[48];
    struct file_header header;
    struct slot slot;
    uint64_t highest = 0;
    off_t at = 0;
    int fd;

    (void)snprintf(name, sizeof name, "slots-%s", store->boot_id);
    fd = openat(store->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    if (pread(fd, &header, sizeof header, 0) == sizeof header && hf__sum_ok(&header))
        highest = header.promise;
    for (at = PAGE_SIZE; pread(fd, &slot, sizeof slot, at) == sizeof slot; at += SLOT_SIZE)
        if (at % PAGE_SIZE != 0 && slot.sum != 0 && hf__sum_ok(&slot) && slot.token > highest)
            highest = slot.token;
    (void)close(fd);
    return highest <= HF__TOKEN_MAX ? highest : 0;
}

static enum hf_status rebuild(struct file_store *store, uint64_t above, struct hf_error *report)
{
    int64_t wall_us = store->base.host->wall_us();
    uint64_t highest = highest_token(store);
    uint64_t floor;
    enum hf_status status;

    if (hf__floor_read(store, &floor, NULL) == HF_OK && floor > highest)
        highest = floor;
    if (above > highest)
        highest = above;
    if (wall_us > 0 && (uint64_t)wall_us > highest)
        highest = (uint64_t)wall_us;
    status = hf__floor_write(store, highest, report);
    if (status != HF_OK)
        return status;
    hf__dir_discard(store);
    (void)hf__fail(report, HF_OK,
                   "store file:%s was rebuilt: its leases ended, tokens go on above %llu",
                   store->path, (unsigned long long)highest);
    return HF_OK;
}

static enum hf_status repair(struct file_store *store, uint64_t above, struct hf_error *report)
{
    int64_t deadline_ns = store->base.host->now_ns() + PATIENCE_NS;
    enum hf_status status = hf__dir_open(store, report);

    if (status == HF_OK)
        status = hf__dir_lock(store, LOCK_EX, deadline_ns, report);
    if (status != HF_OK)
        return status;
    status = hf__slots_open(store, deadline_ns, report);
    if (status == HF_OK && pages_sound(store)) {
        if (above <= atomic_load(&store->promise))
            return hf__fail(report, HF_OK, "store file:%s is sound: nothing was changed",
                            store->path);
        status = HF_CORRUPT; /* sound, but its tokens are to start higher */
    }
    if (status != HF_OK && status != HF_CORRUPT)
        return status;
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
    status = hf__dir_parse(url, &store->path, &store->shared, report);
    if (status == HF_OK)
        status = repair(store, above, report);
    hf__file_free(store);
    return status;
}
