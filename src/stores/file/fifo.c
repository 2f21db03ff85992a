/* fifo.c - FIFOs: made, kept while their owner holds the lock, used again.
 *
 * File systems are slow at making and removing many files (ext4 looks through all that were removed
 * lately before it makes one), so a client that waited once keeps its FIFO and renames it to its
 * next ticket. Only after a release, though: a client that leaves the queue early closes its FIFO,
 * because the next in the queue watches it. */
#include "stores/file/fifo.h"
#include "base/base.h"
#include "stores/file/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPARES_MAX 8 /* FIFOs kept for later */

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
            (void)hf__dir_make_folder(store, folder);
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

static void end(struct file_store *store, struct fifo *fifo, bool unlink_too)
{
    if (fifo->fd >= 0) {
        if (unlink_too)
            (void)unlinkat(store->dir_fd, fifo->name, 0);
        (void)close(fifo->fd);
    }
    free(fifo);
}

struct fifo *hf__fifo_new(struct file_store *store)
{
    struct fifo *fifo;

    pthread_mutex_lock(&store->life_lock);
    fifo = store->spares;
    if (fifo != NULL) {
        store->spares = fifo->next;
        store->spare_count--;
    }
    pthread_mutex_unlock(&store->life_lock);
    if (fifo == NULL && (fifo = calloc(1, sizeof *fifo)) != NULL)
        fifo->fd = -1;
    return fifo;
}

bool hf__fifo_place(struct file_store *store, struct fifo *fifo, const char *name)
{
    char bytes[64];

    if (fifo->fd >= 0 && renameat(store->dir_fd, fifo->name, store->dir_fd, name) == 0) {
        while (read(fifo->fd, bytes, sizeof bytes) > 0) /* of an earlier wait */
            continue;
    } else {
        if (fifo->fd >= 0)
            (void)close(fifo->fd);
        fifo->fd = hf__fifo_make(store, name);
    }
    (void)snprintf(fifo->name, sizeof fifo->name, "%s", name);
    return fifo->fd >= 0;
}

void hf__fifo_wake(int fd)
{
    const struct timespec at_once = {0};
    sigset_t pipe_set;
    sigset_t before;
    sigset_t pending;
    bool ours = true; /* a SIGPIPE that is pending afterwards */

    (void)sigemptyset(&pipe_set);
    (void)sigaddset(&pipe_set, SIGPIPE);
    if (pthread_sigmask(SIG_BLOCK, &pipe_set, &before) != 0)
        return; /* those behind it watch it */
    if (sigismember(&before, SIGPIPE) == 1) {
        (void)sigpending(&pending);
        ours = sigismember(&pending, SIGPIPE) != 1;
    }
    if (write(fd, "!", 1) < 0 && errno == EPIPE && ours)
        (void)sigtimedwait(&pipe_set, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hf__fifo_drop(struct file_store *store, struct fifo *fifo)
{
    end(store, fifo, true);
}

void hf__fifo_keep(struct file_store *store, struct fifo *fifo, const char *owner)
{
    (void)hf__hex_decode(fifo->owner, sizeof fifo->owner, owner);
    pthread_mutex_lock(&store->life_lock);
    fifo->next = store->kept;
    store->kept = fifo;
    atomic_fetch_add(&store->kept_count, 1);
    pthread_mutex_unlock(&store->life_lock);
}

void hf__fifo_release(struct file_store *store, const unsigned char *owner)
{
    struct fifo **at;
    struct fifo *fifo;
    bool spare = false;

    /* Nearly always, because nobody waited; if this owner has one, it was counted. */
    if (atomic_load_explicit(&store->kept_count, memory_order_acquire) == 0)
        return;
    pthread_mutex_lock(&store->life_lock);
    for (at = &store->kept; *at != NULL; at = &(*at)->next)
        if (memcmp((*at)->owner, owner, sizeof(*at)->owner) == 0)
            break;
    fifo = *at;
    if (fifo != NULL) {
        *at = fifo->next;
        atomic_fetch_sub(&store->kept_count, 1);
        memset(fifo->owner, 0, sizeof fifo->owner);
        spare = store->spare_count < SPARES_MAX;
        if (spare) {
            fifo->next = store->spares;
            store->spares = fifo;
            store->spare_count++;
        }
    }
    pthread_mutex_unlock(&store->life_lock);
    if (fifo != NULL && !spare)
        end(store, fifo, true);
}

void hf__fifo_close_all(struct file_store *store, bool forked)
{
    struct fifo **lists[] = {&store->kept, &store->spares};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        while (*lists[i] != NULL) {
            struct fifo *fifo = *lists[i];

            *lists[i] = fifo->next;
            end(store, fifo, !forked);
        }
}
