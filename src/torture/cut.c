/* cut.c - a worker that is cut off: it shuts its own connections, again and again, for as long as
 * it is told. A request may have been executed whose answer never comes, and no new connection
 * lives long. Nobody else's sockets are touched: what was open before the worker is closed when it
 * starts (driver.c), except for the three descriptors that everybody has. */
#include "torture/torture.h"

#include "base/base.h"

#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PERIOD_MS = 5 };

/* Connected to somebody else: a pair of sockets, which libraries wake themselves with, is not. */
static bool is_connection(int fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;

    memset(&peer, 0, sizeof peer);
    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
        return false;
    if (peer.ss_family == AF_UNIX)
        return len > offsetof(struct sockaddr_un, sun_path);
    return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

static unsigned long cut_all(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned long count = 0;
    struct dirent *entry;

    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL) {
        int fd = (int)strtol(entry->d_name, NULL, 10);

        if (fd > TORTURE_OVER_FD && is_connection(fd) && shutdown(fd, SHUT_RDWR) == 0)
            count++;
    }
    (void)closedir(dir);
    return count;
}

static void *cutter(void *data)
{
    struct torture_worker *me = data;

    for (;;) {
        if (atomic_load(&me->cut_ns) > hf__now_ns())
            atomic_fetch_add(&me->cut_count, cut_all());
        hf__sleep_ns(PERIOD_MS * HF__NS_PER_MS);
    }
    return NULL;
}

void torture_cut_start(struct torture_worker *me)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, cutter, me) == 0)
        pthread_detach(thread);
}
