/* blocker.c - who sits on a byte lock?
 *
 * The kernel does not tell the owner of an open file description's lock to fcntl(F_OFD_GETLK), but
 * /proc/PID/fdinfo lists each lock under the descriptors that share it. Only read to explain a
 * failure, and given up after a bounded amount of work: where thousands wait, all may want to
 * explain the same. */
#include "stores/file/blocker.h"
#include "base/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of the processor, however long that takes on a busy machine. */
#define WORK_NS (HF__NS_PER_S / 4)

/* Reads a small file of /proc into text; false if it cannot be read. */
static bool read_text(int dir, const char *name, char *text, size_t size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return false;
    got = read(fd, text, size - 1);
    (void)close(fd);
    if (got < 0)
        return false;
    text[got] = '\0';
    return true;
}

/* Does an fdinfo text tell of a lock on this byte of this file? */
static bool tells_lock(const char *text, uint64_t inode, uint64_t byte)
{
    for (const char *at = strstr(text, "lock:"); at != NULL; at = strstr(at + 1, "lock:")) {
        uint64_t ino;
        uint64_t first;
        uint64_t last;

        if (sscanf(at, "lock: %*d: OFDLCK %*s WRITE %*d %*x:%*x:%" SCNu64 " %" SCNu64 " %" SCNu64,
                   &ino, &first, &last) == 3 &&
            ino == inode && first <= byte && byte <= last)
            return true;
    }
    return false;
}

static bool process_has_lock(int proc, const char *pid, uint64_t inode, uint64_t byte)
{
    char folder[300];
    char text[2048];
    struct dirent *entry;
    bool found = false;
    DIR *dir;
    int fd;

    (void)snprintf(folder, sizeof folder, "%s/fdinfo", pid);
    fd = openat(proc, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    while (!found && (entry = readdir(dir)) != NULL)
        found = entry->d_name[0] != '.' &&
                read_text(dirfd(dir), entry->d_name, text, sizeof text) &&
                tells_lock(text, inode, byte);
    (void)closedir(dir);
    return found;
}

static void describe(int proc, const char *pid, char *out, size_t size)
{
    char name[300];
    char stat[512];
    const char *open_at;
    const char *close_at;

    (void)snprintf(name, sizeof name, "%s/stat", pid);
    if (read_text(proc, name, stat, sizeof stat) && (open_at = strchr(stat, '(')) != NULL &&
        (close_at = strrchr(stat, ')')) != NULL && close_at[1] == ' ')
        (void)snprintf(out, size, "process %s (%.*s%s)", pid, (int)(close_at - open_at - 1),
                       open_at + 1, close_at[2] == 'T' || close_at[2] == 't' ? ", stopped" : "");
    else
        (void)snprintf(out, size, "process %s", pid);
}

static int64_t work_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * HF__NS_PER_S + t.tv_nsec;
}

bool hf__blocker_name(int fd, off_t byte, char *out, size_t size)
{
    struct dirent *entry;
    struct stat st;
    int64_t until_ns = work_ns() + WORK_NS;
    bool found = false;
    DIR *proc;

    if (fstat(fd, &st) != 0 || (proc = opendir("/proc")) == NULL)
        return false;
    while (!found && (entry = readdir(proc)) != NULL && work_ns() < until_ns) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            strtol(entry->d_name, NULL, 10) == (long)getpid())
            continue;
        found = process_has_lock(dirfd(proc), entry->d_name, (uint64_t)st.st_ino, (uint64_t)byte);
        if (found)
            describe(dirfd(proc), entry->d_name, out, size);
    }
    (void)closedir(proc);
    return found;
}
