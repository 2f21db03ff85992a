/* append.c - adding to a fenced file, and taking back what a crash left half added.
 *
 * An append is announced in the sidecar (where it starts, how long it is, its hash) before the
 * first byte is written. Whoever comes next and finds the announcement either sees all of the
 * bytes, or cuts the file back to where it was. */
#include "fence/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum { HASH_SEED = 0x61707064 /* "appd" */ };

static int open_data(struct hf__fence_file *file, int flags, struct stat *st);
static enum hf_status add(struct hf__fence_file *file, const void *data, size_t len,
                          struct hf_error *err);

enum hf_status hf__fence_append(const struct hf__fence_io *io, const char *path,
                                const struct hf_fence_pass *pass, const void *data, size_t len,
                                struct hf_error *err)
{
    struct hf__fence_file file;
    enum hf_status status;

    if (len > HF_FENCE_APPEND_MAX)
        return hf__fail(err, HF_INVALID, "%s: one append has at most %d MiB", path,
                        HF_FENCE_APPEND_MAX / (1024 * 1024));
    status = hf__fence_open(&file, io, path, err);
    if (status != HF_OK)
        return status;
    status = hf__fence_pass(&file, pass, err);
    if (status == HF_OK && len > 0)
        status = add(&file, data, len, err);
    hf__fence_close(&file);
    return status == HF_OK ? hf__ok(err) : status;
}

static enum hf_status add(struct hf__fence_file *file, const void *data, size_t len,
                          struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    struct stat st;
    int fd = open_data(file, O_RDWR | O_CREAT, &st);
    enum hf_status status;
    ssize_t rc;

    if (fd < 0)
        return hf__fence_io_fail(err, fd, "open", file->path);
    file->record.pending = (struct hf__fence_pending){
        .offset = (uint64_t)st.st_size, .len = len, .hash = hf__hash64(data, len, HASH_SEED)};
    status = hf__fence_save(file, true, err);
    if (status != HF_OK) {
        (void)io->close(io, fd);
        return status;
    }
    rc = hf__fence_write_all(io, fd, data, len, st.st_size);
    if (rc >= 0)
        rc = io->sync(io, fd, false);
    if (rc >= 0 && st.st_size == 0)
        rc = io->sync(io, file->dir, false);
    if (rc < 0) /* best effort: the announcement stays, and the next call repairs */
        (void)io->truncate(io, fd, st.st_size);
    (void)io->close(io, fd);
    if (rc < 0)
        return hf__fence_io_fail(err, rc, "append to", file->path);
    /* Not synced: should the power fail now, the next call finds the bytes complete. */
    file->record.pending = (struct hf__fence_pending){.len = 0};
    return hf__fence_save(file, false, err);
}

/* Is the announced append there, whole? */
static int look(struct hf__fence_file *file, int fd, bool *whole)
{
    const struct hf__fence_pending *pending = &file->record.pending;
    char *bytes = malloc(pending->len);
    size_t done = 0;
    ssize_t rc = 1;

    if (bytes == NULL)
        return -ENOMEM;
    while (done < pending->len && rc > 0) {
        rc = file->io->pread(file->io, fd, bytes + done, pending->len - done,
                             (off_t)(pending->offset + done));
        if (rc > 0)
            done += (size_t)rc;
    }
    *whole = done == pending->len && hf__hash64(bytes, done, HASH_SEED) == pending->hash;
    free(bytes);
    return rc < 0 ? (int)rc : 0;
}

enum hf_status hf__fence_recover(struct hf__fence_file *file, struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    struct hf__fence_pending pending = file->record.pending;
    uint64_t end = pending.offset + pending.len;
    bool whole = false;
    struct stat st;
    int fd = open_data(file, O_RDWR, &st);
    int rc = 0;

    if (fd < 0 && fd != -ENOENT)
        return hf__fence_io_fail(err, fd, "open", file->path);
    /* Only a file that ends inside the announced bytes can be a half-done append. */
    if (fd >= 0 && (uint64_t)st.st_size > pending.offset && (uint64_t)st.st_size <= end) {
        rc = look(file, fd, &whole);
        if (rc >= 0 && !whole)
            rc = io->truncate(io, fd, (off_t)pending.offset);
        if (rc >= 0)
            rc = io->sync(io, fd, false);
    }
    if (fd >= 0)
        (void)io->close(io, fd);
    if (rc < 0)
        return hf__fence_io_fail(err, rc, "take back a half-done append to", file->path);
    file->record.pending = (struct hf__fence_pending){.len = 0};
    return HF_OK;
}

static int open_data(struct hf__fence_file *file, int flags, struct stat *st)
{
    const struct hf__fence_io *io = file->io;
    int fd = io->open(io, file->dir, file->name, flags, 0666);
    int rc;

    if (fd < 0)
        return fd;
    rc = io->stat_fd(io, fd, st);
    if (rc < 0 || !S_ISREG(st->st_mode)) {
        (void)io->close(io, fd);
        return rc < 0 ? rc : -EINVAL;
    }
    return fd;
}

enum hf_status hf_fence_append(const char *path, const struct hf_fence_pass *pass, const void *data,
                               size_t len, struct hf_error *err)
{
    return hf__fence_append(&hf__fence_system_io, path, pass, data, len, err);
}
