/* cloexec.c - close-on-exec for the library's descriptors. */
#include "stores/zookeeper/cloexec.h"
#include "base/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

void zk_fds_note(struct zk_fds *out)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    uint64_t fd;

    memset(out, 0, sizeof *out);
    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL)
        if (hf__parse_u64(entry->d_name, &fd) && fd < ZK_FDS_MAX && (int)fd != dirfd(dir))
            out->bits[fd / 64] |= 1ull << fd % 64;
    (void)closedir(dir);
}

bool zk_fds_has(const struct zk_fds *fds, int fd)
{
    return (fds->bits[fd / 64] >> fd % 64 & 1) != 0;
}

static void set_cloexec(int fd)
{
    int flags = fcntl(fd, F_GETFD);

    if (flags >= 0 && (flags & FD_CLOEXEC) == 0)
        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* A pipe that was not open before; its inode, or 0. */
static ino_t new_pipe(const struct zk_fds *before, const struct zk_fds *now, int fd)
{
    struct stat st;

    if (!zk_fds_has(now, fd) || zk_fds_has(before, fd) || fstat(fd, &st) != 0 ||
        !S_ISFIFO(st.st_mode))
        return 0;
    return st.st_ino;
}

void zk_cloexec_pipes(const struct zk_fds *before)
{
    struct zk_fds now;

    zk_fds_note(&now);
    for (int fd = 0; fd < ZK_FDS_MAX; fd++) {
        ino_t pipe = new_pipe(before, &now, fd);

        if (pipe == 0 || (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0)
            continue;
        for (int end = 0; end < ZK_FDS_MAX; end++)
            if (new_pipe(before, &now, end) == pipe)
                set_cloexec(end);
    }
}

void zk_cloexec_socket(zhandle_t *handle)
{
    struct sockaddr_storage peer = {0};
    struct sockaddr_storage other;
    socklen_t peer_len = sizeof peer;
    struct zk_fds now;

    if (zookeeper_get_connected_host(handle, (struct sockaddr *)&peer, &peer_len) == NULL)
        return;
    zk_fds_note(&now);
    for (int fd = 0; fd < ZK_FDS_MAX; fd++) {
        socklen_t len = sizeof other;

        if (zk_fds_has(&now, fd) && getpeername(fd, (struct sockaddr *)&other, &len) == 0 &&
            len == peer_len && memcmp(&other, &peer, len) == 0)
            set_cloexec(fd);
    }
}
