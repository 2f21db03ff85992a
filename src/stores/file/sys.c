/* sys.c - the real system under the embedded store. */
#include "stores/file/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int real_openat(int dir, const char *name, int flags, mode_t mode)
{
    return openat(dir, name, flags, mode);
}

static bool real_boot_id(char out[37])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return false;
    got = read(fd, out, 36);
    (void)close(fd);
    out[36] = '\0';
    return got == 36 && strspn(out, "0123456789abcdef-") == 36;
}

static uint64_t real_time_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/time", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

const struct hf__file_sys hf__file_sys_real = {
    .pread = pread,
    .pwrite = pwrite,
    .openat = real_openat,
    .fsync = fsync,
    .renameat = renameat,
    .linkat = linkat,
    .boot_id = real_boot_id,
    .time_namespace = real_time_namespace,
    .maps = true,
};

bool hf__write_all(const struct hf__file_sys *sys, int fd, const void *data, size_t len, off_t at)
{
    const char *from = data;

    while (len > 0) {
        ssize_t done = sys->pwrite(fd, from, len, at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            errno = done < 0 ? errno : ENOSPC;
            return false;
        }
        from += done;
        at += done;
        len -= (size_t)done;
    }
    return true;
}

ssize_t hf__read_small(const struct hf__file_sys *sys, int dir, const char *name, void *out,
                       size_t len)
{
    int fd = sys->openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0);
    ssize_t got;
    int saved;

    if (fd < 0)
        return -1;
    got = sys->pread(fd, out, len, 0);
    saved = errno;
    (void)close(fd);
    errno = saved;
    return got;
}
