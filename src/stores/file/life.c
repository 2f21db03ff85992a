/* life.c - FIFOs as signs of life.
 *
 * Every client that takes a lock keeps a FIFO alive/CLIENT open for reading and writing. The kernel
 * closes it with the last process that has it, however that process ends. A process that wants to
 * know opens it for reading and reads once: end of file means nobody is left, EAGAIN means somebody
 * is. (poll alone does not report a writer that left before the reader came.)
 *
 * Who unlinks: a client its own FIFO when it closes; whoever finds a client dead, that client's;
 * and now and then the sweep, all that are dead. */
#include "stores/file/life.h"
#include "stores/file/fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void life_name(char *out, size_t size, uint64_t client)
{
    (void)snprintf(out, size, "alive/%016" PRIx64, client);
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
    int fd = atomic_load_explicit(&store->life_fd, memory_order_acquire);

    if (fd >= 0)
        return fd;
    pthread_mutex_lock(&store->life_lock);
    fd = atomic_load(&store->life_fd);
    if (fd < 0) {
        life_name(name, sizeof name, store->client);
        fd = make_life(store, name);
        atomic_store(&store->life_fd, fd);
    }
    pthread_mutex_unlock(&store->life_lock);
    return fd;
}

int hf__life_open(struct file_store *store, const char *name)
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
    return hf__life_open(store, name);
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
    int fd = atomic_exchange(&store->life_fd, -1);

    if (fd < 0)
        return;
    if (!forked) {
        life_name(name, sizeof name, store->client);
        (void)unlinkat(store->dir_fd, name, 0);
    }
    (void)close(fd);
}
