/* file.c - entering and replacing a fenced file. */
#include "fence/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COPY_CHUNK = 64 * 1024,
    EARLY_SYNC = 1024 * 1024 /* more than this is synced before anybody has to wait for us */
};

/* The new content, complete in a file that has no name yet (or a temporary one). */
struct spool {
    int fd;
    char name[HF__FENCE_NAME_SIZE];
};

static enum hf_status fill(struct hf__fence_file *file, struct spool *spool,
                           const struct hf__fence_source *source, struct hf_error *err);
static enum hf_status publish(struct hf__fence_file *file, struct spool *spool,
                              struct hf_error *err);
static void drop(struct hf__fence_file *file, struct spool *spool);

enum hf_status hf__fence_enter(const struct hf__fence_io *io, const char *path,
                               const struct hf_fence_pass *pass, struct hf_error *err)
{
    struct hf__fence_file file;
    enum hf_status status = hf__fence_open(&file, io, path, err);

    if (status != HF_OK)
        return status;
    status = hf__fence_pass(&file, pass, err);
    hf__fence_close(&file);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf__fence_write(const struct hf__fence_io *io, const char *path,
                               const struct hf_fence_pass *pass,
                               const struct hf__fence_source *source, struct hf_error *err)
{
    struct hf__fence_file file;
    struct spool spool = {.fd = -1};
    enum hf_status status = hf__fence_open(&file, io, path, err);

    if (status != HF_OK)
        return status;
    status = fill(&file, &spool, source, err);
    if (status == HF_OK)
        status = hf__fence_pass(&file, pass, err);
    if (status == HF_OK)
        status = publish(&file, &spool, err);
    drop(&file, &spool);
    hf__fence_close(&file);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf__fence_spool_open(struct hf__fence_file *file, int *out,
                                    char name[HF__FENCE_NAME_SIZE], mode_t mode,
                                    struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    uint64_t random;
    int fd;

    *out = -1;
    name[0] = '\0';
    /* A file without a name leaves nothing behind when we are killed. */
    fd = io->open(io, file->dir, ".", O_TMPFILE | O_RDWR, mode);
    if (fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL || fd == -ENOENT) {
        hf__random(&random, sizeof random);
        (void)snprintf(name, HF__FENCE_NAME_SIZE, ".%.*s.fence-%016" PRIx64, HF__FENCE_BASE_MAX,
                       file->name, random);
        fd = io->open(io, file->dir, name, O_RDWR | O_CREAT | O_EXCL, mode);
    }
    if (fd < 0)
        return hf__fence_io_fail(err, fd, "write beside", file->path);
    *out = fd;
    return HF_OK;
}

/* The source is the caller's, not the fence's: read with the plain call. */
static ssize_t read_source(int fd, char *buf, size_t size)
{
    ssize_t rc;

    do
        rc = read(fd, buf, size);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : rc;
}

static enum hf_status copy_from(struct hf__fence_file *file, struct spool *spool, int fd,
                                off_t *size, struct hf_error *err)
{
    char *buf = malloc(COPY_CHUNK);
    ssize_t got = 0;
    ssize_t put = 0;

    if (buf == NULL)
        return hf__nomem(err);
    while (put >= 0 && (got = read_source(fd, buf, COPY_CHUNK)) > 0) {
        put = hf__fence_write_all(file->io, spool->fd, buf, (size_t)got, *size);
        *size += got;
    }
    free(buf);
    if (put < 0)
        return hf__fence_io_fail(err, put, "write beside", file->path);
    if (got < 0)
        return hf__fence_io_fail(err, got, "read the new content of", file->path);
    return HF_OK;
}

static enum hf_status fill(struct hf__fence_file *file, struct spool *spool,
                           const struct hf__fence_source *source, struct hf_error *err)
{
    off_t size = (off_t)source->len;
    enum hf_status status;
    ssize_t rc = 0;

    status = hf__fence_spool_open(file, &spool->fd, spool->name, 0666, err);
    if (status == HF_OK && source->fd >= 0)
        status = copy_from(file, spool, source->fd, &size, err);
    if (status != HF_OK)
        return status;
    if (source->fd < 0)
        rc = hf__fence_write_all(file->io, spool->fd, source->data, source->len, 0);
    if (rc >= 0 && size > EARLY_SYNC)
        rc = file->io->sync(file->io, spool->fd, true);
    return rc < 0 ? hf__fence_io_fail(err, rc, "write beside", file->path) : HF_OK;
}

/* The mark is durable and the sidecar locked: nobody with a lower token gets in any more. */
static enum hf_status publish(struct hf__fence_file *file, struct spool *spool,
                              struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    char temp[HF__FENCE_NAME_SIZE];
    struct stat old;
    ssize_t rc = 0;

    if (io->stat(io, file->dir, file->name, &old) == 0)
        rc = io->set_attributes(io, spool->fd, &old);
    if (rc >= 0 && spool->name[0] == '\0') {
        (void)snprintf(temp, sizeof temp, ".%.*s.fence-new", HF__FENCE_BASE_MAX, file->name);
        rc = io->link(io, file->dir, spool->fd, NULL, temp);
        if (rc == -EEXIST) {
            /* Left by a writer that was killed here. The lock says it is not in use. */
            rc = io->unlink(io, file->dir, temp);
            if (rc >= 0)
                rc = io->link(io, file->dir, spool->fd, NULL, temp);
        }
        if (rc >= 0)
            (void)snprintf(spool->name, sizeof spool->name, "%s", temp);
    }
    if (rc >= 0)
        rc = io->sync(io, spool->fd, false);
    if (rc >= 0)
        rc = io->rename(io, file->dir, spool->name, file->name);
    if (rc >= 0) {
        spool->name[0] = '\0';
        rc = io->sync(io, file->dir, false);
    }
    return rc < 0 ? hf__fence_io_fail(err, rc, "replace", file->path) : HF_OK;
}

static void drop(struct hf__fence_file *file, struct spool *spool)
{
    if (spool->fd < 0)
        return;
    if (spool->name[0] != '\0')
        (void)file->io->unlink(file->io, file->dir, spool->name);
    (void)file->io->close(file->io, spool->fd);
}

enum hf_status hf_fence_enter(const char *path, const struct hf_fence_pass *pass,
                              struct hf_error *err)
{
    return hf__fence_enter(&hf__fence_system_io, path, pass, err);
}

enum hf_status hf_fence_write(const char *path, const struct hf_fence_pass *pass, const void *data,
                              size_t len, struct hf_error *err)
{
    return hf__fence_write(&hf__fence_system_io, path, pass,
                           &(struct hf__fence_source){.data = data, .len = len, .fd = -1}, err);
}

enum hf_status hf_fence_write_fd(const char *path, const struct hf_fence_pass *pass, int fd,
                                 struct hf_error *err)
{
    if (fd < 0)
        return hf__fail(err, HF_INVALID, "%s: no descriptor to read from", path);
    return hf__fence_write(&hf__fence_system_io, path, pass, &(struct hf__fence_source){.fd = fd},
                           err);
}

enum hf_status hf_fence_read_mark(const char *path, struct hf_fence_mark *mark,
                                  struct hf_error *err)
{
    const struct hf__fence_io *io = &hf__fence_system_io;
    struct hf__fence_file file;
    enum hf_status status = hf__fence_open(&file, io, path, err);

    memset(mark, 0, sizeof *mark);
    if (status != HF_OK)
        return status;
    file.sidecar = io->open(io, file.dir, file.sidecar_name, O_RDONLY, 0);
    if (file.sidecar >= 0) {
        status = hf__fence_load(&file, err);
        if (status == HF_OK)
            *mark = file.record.mark;
    } else if (file.sidecar != -ENOENT) {
        status = hf__fence_io_fail(err, file.sidecar, "open the fence of", path);
    }
    hf__fence_close(&file);
    return status == HF_OK ? hf__ok(err) : status;
}
