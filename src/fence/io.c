/* io.c - the file fence's system calls. */
#include "fence/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int result(int rc)
{
    return rc < 0 ? -errno : rc;
}

static ssize_t size_result(ssize_t rc)
{
    return rc < 0 ? -errno : rc;
}

static int system_open_dir(const struct hf__fence_io *io, const char *path)
{
    (void)io;
    return result(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int system_open(const struct hf__fence_io *io, int dir, const char *name, int flags,
                       mode_t mode)
{
    (void)io;
    return result(openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode));
}

static int system_close(const struct hf__fence_io *io, int fd)
{
    (void)io;
    return result(close(fd));
}

static int system_stat(const struct hf__fence_io *io, int dir, const char *name, struct stat *out)
{
    (void)io;
    return result(fstatat(dir, name, out, AT_SYMLINK_NOFOLLOW));
}

static int system_stat_fd(const struct hf__fence_io *io, int fd, struct stat *out)
{
    (void)io;
    return result(fstat(fd, out));
}

static ssize_t system_read_link(const struct hf__fence_io *io, int dir, const char *name, char *out,
                                size_t size)
{
    (void)io;
    return size_result(readlinkat(dir, name, out, size));
}

static ssize_t system_pread(const struct hf__fence_io *io, int fd, void *buf, size_t len, off_t at)
{
    ssize_t rc;

    (void)io;
    do
        rc = pread(fd, buf, len, at);
    while (rc < 0 && errno == EINTR);
    return size_result(rc);
}

static ssize_t system_pwrite(const struct hf__fence_io *io, int fd, const void *buf, size_t len,
                             off_t at)
{
    ssize_t rc;

    (void)io;
    do
        rc = pwrite(fd, buf, len, at);
    while (rc < 0 && errno == EINTR);
    return size_result(rc);
}

static int system_truncate(const struct hf__fence_io *io, int fd, off_t size)
{
    (void)io;
    return result(ftruncate(fd, size));
}

static int system_set_attributes(const struct hf__fence_io *io, int fd, const struct stat *like)
{
    struct stat own;

    (void)io;
    if (fstat(fd, &own) < 0)
        return -errno;
    if ((own.st_uid != like->st_uid || own.st_gid != like->st_gid) &&
        fchown(fd, like->st_uid, like->st_gid) < 0 && fchown(fd, (uid_t)-1, like->st_gid) < 0) {
        /* Not allowed to give files away: the writer's own file then, as with any editor. The
         * set-id bits must not move to another owner. */
        return result(fchmod(fd, like->st_mode & 0777));
    }
    return result(fchmod(fd, like->st_mode & 07777));
}

static int system_sync(const struct hf__fence_io *io, int fd, bool data_only)
{
    (void)io;
    return result(data_only ? fdatasync(fd) : fsync(fd));
}

static int system_link(const struct hf__fence_io *io, int dir, int fd, const char *from,
                       const char *to)
{
    char path[64];

    (void)io;
    if (from != NULL)
        return result(linkat(dir, from, dir, to, 0));
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return result(linkat(AT_FDCWD, path, dir, to, AT_SYMLINK_FOLLOW));
}

static int system_rename(const struct hf__fence_io *io, int dir, const char *from, const char *to)
{
    (void)io;
    return result(renameat(dir, from, dir, to));
}

static int system_unlink(const struct hf__fence_io *io, int dir, const char *name)
{
    (void)io;
    return result(unlinkat(dir, name, 0));
}

/* An open-file-description lock: the kernel frees it with the process, threads exclude each other
 * too, and no other descriptor of this process can drop it by being closed. */
static int system_try_lock(const struct hf__fence_io *io, int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    (void)io;
    return result(fcntl(fd, F_OFD_SETLK, &whole));
}

static void system_sleep_ns(const struct hf__fence_io *io, int64_t ns)
{
    (void)io;
    hf__sleep_ns(ns);
}

const struct hf__fence_io hf__fence_system_io = {
    .open_dir = system_open_dir,
    .open = system_open,
    .close = system_close,
    .stat = system_stat,
    .stat_fd = system_stat_fd,
    .read_link = system_read_link,
    .pread = system_pread,
    .pwrite = system_pwrite,
    .truncate = system_truncate,
    .set_attributes = system_set_attributes,
    .sync = system_sync,
    .link = system_link,
    .rename = system_rename,
    .unlink = system_unlink,
    .try_lock = system_try_lock,
    .sleep_ns = system_sleep_ns,
};
