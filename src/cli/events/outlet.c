/* outlet.c - the file of --events, to which many processes append.
 *
 * It may be a pipe that somebody reads, or a file that somebody moves away once a day. */
#include "cli/events/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITE_MAX = 4096, /* PIPE_BUF: in one piece, or not at all */
    READER_MS = 100   /* for a reader that is slow */
};

static bool open_outlet(struct outlet *outlet);
static bool moved_away(const struct outlet *outlet);
static ssize_t write_patiently(int fd, const char *text, size_t len);

bool outlet_write(struct outlet *outlet, const char *line, size_t len)
{
    char repaired[WRITE_MAX];
    ssize_t written;

    if (outlet->fd >= 0 && moved_away(outlet))
        outlet_close(outlet);
    if (outlet->fd < 0 && !open_outlet(outlet))
        return false;
    /* The half of a line that a full disk left behind must not swallow this one. */
    if (outlet->torn && len < sizeof repaired) {
        repaired[0] = '\n';
        memcpy(repaired + 1, line, len);
        line = repaired;
        len++;
    }
    written = write_patiently(outlet->fd, line, len);
    if (written >= 0)
        outlet->torn = (size_t)written < len;
    if (written >= 0 && outlet->torn)
        errno = ENOSPC;
    return written >= 0 && !outlet->torn;
}

void outlet_close(struct outlet *outlet)
{
    if (outlet->fd > STDOUT_FILENO)
        (void)close(outlet->fd);
    outlet->fd = -1;
}

/* Without waiting for the reader of a pipe: if there is none, the next event tries again. */
static bool open_outlet(struct outlet *outlet)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

    outlet->torn = false;
    if (strcmp(outlet->path, "-") == 0)
        outlet->fd = STDOUT_FILENO;
    else
        outlet->fd = open(outlet->path, flags, 0644);
    return outlet->fd >= 0;
}

static bool moved_away(const struct outlet *outlet)
{
    struct stat open_one, there;

    if (outlet->fd == STDOUT_FILENO || fstat(outlet->fd, &open_one) < 0)
        return false;
    if (stat(outlet->path, &there) < 0)
        return errno == ENOENT;
    return there.st_ino != open_one.st_ino || there.st_dev != open_one.st_dev;
}

/* Standard output may block, and is not ours to change: so it is asked first. */
static ssize_t write_patiently(int fd, const char *text, size_t len)
{
    struct pollfd out = {.fd = fd, .events = POLLOUT};
    ssize_t written;

    if (poll(&out, 1, READER_MS) == 0) {
        errno = EAGAIN;
        return -1;
    }
    while ((written = write(fd, text, len)) < 0 && errno == EINTR)
        continue;
    return written;
}
