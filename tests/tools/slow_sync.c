/* slow_sync.c - preloaded, makes one sync slow: that of a file takes SLOW_SYNC_MS if there is
 * $SLOW_SYNC.file, that of a folder if there is $SLOW_SYNC.folder, which is removed by that. */
#include <dlfcn.h>
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
