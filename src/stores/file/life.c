/* life.c - FIFOs as signs of life.
 *
 * Every client that takes a lock keeps a FIFO alive/CLIENT open for reading and writing. The kernel
 * closes it with the last process that has it, however that process ends. Who wants to know opens
 * it for reading and reads once: end of file means nobody is left, EAGAIN means somebody is. (poll
 * alone does not report a writer that left before the reader came.)
 *
 * Who unlinks: a client its own FIFO when it closes; whoever finds a client dead, that client's;
 * and now and then somebody who opens the store, all that are dead.
 */
#include "stores/file/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SWEEP_ONE_IN 64   /* clients that sweep */
#define SWEEP_AGE_S  3600 /* what may be about to be opened is left alone for so long */

static void life_name(char *out, size_t size, uint64_t client)
{
    (void)snprintf(out, size, "alive/%016" PRIx64, client);
}

static int open_both(const struct file_store *store, const char *name)
{
    return openat(store->dir_fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

int hf__fifo_make(struct file_store *store, const char *name)
{
    char folder[16];
    int fd;

    if (mkfifoat(store->dir_fd, name, hf__dir_mode(store)) != 0) {
        if (errno == ENOENT) {
            (void)snprintf(folder, sizeof folder, "%.*s", (int)strcspn(name, "/"), name);
            hf__dir_make_folder(store, folder);
        } else if (errno == EEXIST) {
            (void)unlinkat(store->dir_fd, name, 0); /* left by the dead */
        }
        if (mkfifoat(store->dir_fd, name, hf__dir_mode(store)) != 0)
            return -1;
    }
    fd = open_both(store, name);
    if (fd < 0 && errno == EACCES && /* our own rights are gone too */
        fchmodat(store->dir_fd, name, hf__dir_mode(store), 0) == 0)
        fd = open_both(store, name);
    if (fd >= 0 && store->shared)
        (void)fchmod(fd, hf__dir_mode(store));
    if (fd < 0)
        (void)unlinkat(store->dir_fd, name, 0);
    return fd;
}

/* A sign of life must never be seen without its bearer: it gets its name when it is open. */
static int make_life(struct file_store *store, const char *name)
{
    char draft[FIFO_NAME_SIZE];
    int fd;

    (void)snprintf(draft, sizeof draft, "alive/.%016" PRIx64, store->client);
    fd = hf__fifo_make(store, draft);
    if (fd >= 0 && renameat(store->dir_fd, draft, store->dir_fd, name) != 0) {
        (void)unlinkat(store->dir_fd, draft, 0);
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

int hf__life_fd(struct file_store *store)
{
    char name[FIFO_NAME_SIZE];
    bool fresh = false;
    int fd;

    pthread_mutex_lock(&store->life_lock);
    if (store->life_fd < 0) {
        life_name(name, sizeof name, store->client);
        store->life_fd = make_life(store, name);
        fresh = store->life_fd >= 0;
    }
    fd = store->life_fd;
    pthread_mutex_unlock(&store->life_lock);
    if (fresh && store->client % SWEEP_ONE_IN == 0)
        hf__life_sweep(store);
    return fd;
}

/* Opens a FIFO of alive/ and asks it. -1: dead, and unlinked; -2: cannot tell. */
static int open_if_alive(struct file_store *store, const char *name)
{
    int fd = openat(store->dir_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    char byte;

    if (fd < 0)
        return errno == ENOENT ? -1 : -2;
    if (read(fd, &byte, 1) != 0)
        return fd;
    (void)close(fd);
    if (!store->readonly)
        (void)unlinkat(store->dir_fd, name, 0);
    return -1;
}

int hf__life_watch(struct file_store *store, uint64_t client)
{
    char name[FIFO_NAME_SIZE];

    life_name(name, sizeof name, client);
    return open_if_alive(store, name);
}

bool hf__life_check(struct file_store *store, uint64_t client)
{
    int fd;

    if (client == store->client)
        return true;
    fd = hf__life_watch(store, client);
    if (fd >= 0)
        (void)close(fd);
    return fd != -1;
}

void hf__life_close(struct file_store *store, bool forked)
{
    char name[FIFO_NAME_SIZE];

    if (store->life_fd < 0)
        return;
    if (!forked) {
        life_name(name, sizeof name, store->client);
        (void)unlinkat(store->dir_fd, name, 0);
    }
    (void)close(store->life_fd);
    store->life_fd = -1;
}

static bool is_old(struct file_store *store, const char *name)
{
    struct stat st;

    return fstatat(store->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           store->base.host->wall_us() / 1000000 - st.st_mtime > SWEEP_AGE_S;
}

static void sweep_folder(struct file_store *store, const char *folder, bool waiters)
{
    int fd = openat(store->dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (dir == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        char name[300];

        (void)snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        if (entry->d_type != DT_FIFO)
            continue;
        if (entry->d_name[0] == '.') {
            if (is_old(store, name))
                (void)unlinkat(store->dir_fd, name, 0);
        } else if (waiters) {
            if (is_old(store, name))
                hf__ticket_sweep(store, name);
        } else {
            int alive = open_if_alive(store, name);

            if (alive >= 0)
                (void)close(alive);
        }
    }
    (void)closedir(dir);
}

void hf__life_sweep(struct file_store *store)
{
    sweep_folder(store, "alive", false);
    sweep_folder(store, "queue", true);
}
