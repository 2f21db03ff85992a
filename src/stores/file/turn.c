/* turn.c - the FIFOs of waiters: made, kept while their owner holds the lock, used again.
 *
 * File systems are slow at making and removing many files (ext4 looks through all that were removed
 * lately before it makes one), so a client that waited once keeps its FIFO and renames it to its
 * next ticket. Only after a release, though: who leaves the line early closes its FIFO, because
 * the next in line watches it.
 */
#include "stores/file/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPARES_MAX 8 /* FIFOs kept for later */

static void end(struct file_store *store, struct turn *turn, bool unlink_too)
{
    if (turn->fd >= 0) {
        if (unlink_too)
            (void)unlinkat(store->dir_fd, turn->name, 0);
        (void)close(turn->fd);
    }
    free(turn);
}

struct turn *hf__turn_new(struct file_store *store)
{
    struct turn *turn;

    pthread_mutex_lock(&store->life_lock);
    turn = store->spares;
    if (turn != NULL) {
        store->spares = turn->next;
        store->spare_count--;
    }
    pthread_mutex_unlock(&store->life_lock);
    if (turn == NULL && (turn = calloc(1, sizeof *turn)) != NULL)
        turn->fd = -1;
    return turn;
}

bool hf__turn_place(struct file_store *store, struct turn *turn, const char *name)
{
    char bytes[64];

    if (turn->fd >= 0 && renameat(store->dir_fd, turn->name, store->dir_fd, name) == 0) {
        while (read(turn->fd, bytes, sizeof bytes) > 0) /* of an earlier turn */
            continue;
    } else {
        if (turn->fd >= 0)
            (void)close(turn->fd);
        turn->fd = hf__fifo_make(store, name);
    }
    (void)snprintf(turn->name, sizeof turn->name, "%s", name);
    return turn->fd >= 0;
}

void hf__turn_wake(int fd)
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
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hf__turn_drop(struct file_store *store, struct turn *turn)
{
    end(store, turn, true);
}

void hf__turn_keep(struct file_store *store, struct turn *turn, const char *owner)
{
    (void)hf__hex_decode(turn->owner, sizeof turn->owner, owner);
    pthread_mutex_lock(&store->life_lock);
    turn->next = store->turns;
    store->turns = turn;
    pthread_mutex_unlock(&store->life_lock);
}

void hf__turn_release(struct file_store *store, const unsigned char *owner)
{
    struct turn **at;
    struct turn *turn;
    bool spare = false;

    pthread_mutex_lock(&store->life_lock);
    for (at = &store->turns; *at != NULL; at = &(*at)->next)
        if (memcmp((*at)->owner, owner, sizeof(*at)->owner) == 0)
            break;
    turn = *at;
    if (turn != NULL) {
        *at = turn->next;
        memset(turn->owner, 0, sizeof turn->owner);
        spare = store->spare_count < SPARES_MAX;
        if (spare) {
            turn->next = store->spares;
            store->spares = turn;
            store->spare_count++;
        }
    }
    pthread_mutex_unlock(&store->life_lock);
    if (turn != NULL && !spare)
        end(store, turn, true);
}

void hf__turn_close_all(struct file_store *store, bool forked)
{
    struct turn **lists[] = {&store->turns, &store->spares};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        while (*lists[i] != NULL) {
            struct turn *turn = *lists[i];

            *lists[i] = turn->next;
            end(store, turn, !forked);
        }
}
