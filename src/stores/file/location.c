/* location.c - is the store still where its URL says?
 *
 * Somebody may move the directory away, remove it, or put another one, or another slot file, in its
 * place. Whoever opens the URL from then on meets another store, and nobody else sees what we read
 * and write in ours. No descriptor tells, so the way from the root is walked again: by one system
 * call, and so seldom that it costs nothing in a busy loop. */
#include "stores/file/location.h"
#include "base/base.h"
#include "stores/file/errors.h"
#include "stores/file/step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define CHECK_NS (10 * HF__NS_PER_MS) /* between two checks */

/* The inode and the size only: asking for the time of the last write makes the next write cost a
 * journal entry. */
static bool identify(int dir, const char *path, struct file_id *out)
{
    struct statx st;

    if (statx(dir, path, path[0] == '\0' ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW,
              STATX_INO | STATX_NLINK | STATX_SIZE, &st) != 0)
        return false;
    *out = (struct file_id){.inode = st.stx_ino,
                            .major = st.stx_dev_major,
                            .minor = st.stx_dev_minor,
                            .links = st.stx_nlink,
                            .pages = st.stx_size / PAGE_SIZE};
    return true;
}

enum hf_status hf__location_note(struct file_store *store, const char *slots_name,
                                 struct hf_error *err)
{
    /* From the root as it is now: a program may lock itself in later. */
    store->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (asprintf(&store->slots_path, "%s/%s", store->path, slots_name) < 0) {
        store->slots_path = NULL;
        return hf__nomem(err);
    }
    (void)identify(store->slots_fd, "", &store->slots_id);
    return HF_OK;
}

/* False only if it is surely gone from there. */
static bool in_place(const struct file_store *store, struct file_id *now)
{
    const char *path = store->slots_path;

    if (store->root_fd >= 0)
        while (*path == '/')
            path++;
    if (identify(store->root_fd >= 0 ? store->root_fd : AT_FDCWD, path, now))
        return now->inode == store->slots_id.inode && now->major == store->slots_id.major &&
               now->minor == store->slots_id.minor;
    if (errno == ENOENT || errno == ENOTDIR)
        return false;
    /* We may not walk there any more, having become another user, say. */
    return !identify(store->slots_fd, "", now) || now->links > 0;
}

enum hf_status hf__location_check(struct file_store *store, struct hf_error *err)
{
    return hf__location_check_at(store, store->base.host->now_ns(), err);
}

enum hf_status hf__location_check_at(struct file_store *store, int64_t now_ns, struct hf_error *err)
{
    struct file_id now = {.pages = UINT64_MAX};
    unsigned known; /* asked for before the size: other threads may see it grow meanwhile */

    if (now_ns < atomic_load_explicit(&store->check_at_ns, memory_order_relaxed))
        return HF_OK;
    atomic_store_explicit(&store->check_at_ns, now_ns + CHECK_NS, memory_order_relaxed);
    known = atomic_load_explicit(&store->page_count, memory_order_acquire);
    if (in_place(store, &now)) {
        HF__STEP(size_seen);
        if (now.pages >= known) /* else mapped pages have no file behind them */
            return HF_OK;
        return hf__error_damaged(store, "the slot file was cut off", false, err);
    }
    atomic_store_explicit(&store->check_at_ns, 0, memory_order_relaxed);
    return hf__fail_lock(err, HF_CORRUPT, NULL, store->shown,
                         " was moved, removed or replaced while in use: open the store "
                         "again");
}
