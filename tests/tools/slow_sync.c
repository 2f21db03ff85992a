/* slow_sync.c - preloaded, makes one sync slow: that of a file takes SLOW_SYNC_MS if there is
 * $SLOW_SYNC.file, that of a folder if there is $SLOW_SYNC.folder, which is removed by that.
 * While there is $SLOW_SYNC.broken, folders cannot be synced. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_slowly(int fd, const char *name)
{
    const char *base = getenv("SLOW_SYNC"), *ms = getenv("SLOW_SYNC_MS");
    void *found = dlsym(RTLD_NEXT, name);
    struct stat info;
    char path[512];
    int (*next)(int);

    if (base != NULL && ms != NULL && fstat(fd, &info) == 0) {
        (void)snprintf(path, sizeof path, "%s.%s", base, S_ISDIR(info.st_mode) ? "folder" : "file");
        if (unlink(path) == 0)
            (void)usleep((useconds_t)atoi(ms) * 1000);
        (void)snprintf(path, sizeof path, "%s.broken", base);
        if (S_ISDIR(info.st_mode) && access(path, F_OK) == 0) {
            errno = EIO;
            return -1;
        }
    }
    memcpy(&next, &found, sizeof next);
    return next(fd);
}

int fsync(int fd)
{
    return sync_slowly(fd, "fsync");
}

int fdatasync(int fd)
{
    return sync_slowly(fd, "fdatasync");
}
