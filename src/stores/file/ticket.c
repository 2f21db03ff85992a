/* ticket.c - the tickets of a queue: whose FIFO has a reader, and who is next.
 *
 * queue.c tells how a waiter uses them. */
#include "stores/file/ticket.h"
#include "stores/file/fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void hf__ticket_name(char *out, uint64_t hash, uint64_t ticket)
{
    (void)snprintf(out, FIFO_NAME_SIZE, "queue/%016" PRIx64 ".%" PRIu64, hash, ticket);
}

int hf__ticket_open(struct file_store *store, uint64_t hash, uint64_t ticket, bool locked)
{
    char name[FIFO_NAME_SIZE];
    int fd;

    hf__ticket_name(name, hash, ticket);
    fd = openat(store->dir_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        return fd;
    if (errno != ENXIO && errno != ENOENT)
        return -2;
    if (errno == ENXIO && locked)
        (void)unlinkat(store->dir_fd, name, 0);
    return -1;
}

uint64_t hf__ticket_first_live(struct file_store *store, const struct view *view, int *fd_out)
{
    if (fd_out != NULL)
        *fd_out = -1;
    for (uint64_t ticket = view->head; ticket < view->tail; ticket++) {
        int fd = hf__ticket_open(store, view->hash, ticket, true);

        if (fd == -1)
            continue;
        if (fd_out != NULL)
            *fd_out = fd >= 0 ? fd : -1;
        else if (fd >= 0)
            (void)close(fd);
        return ticket;
    }
    return view->tail;
}

uint64_t hf__ticket_count(struct file_store *store, const struct view *view)
{
    uint64_t counted = view->tail - view->head;
    uint64_t count = 0;

    if (counted > WAITERS_COUNTED) {
        count = counted - WAITERS_COUNTED;
        counted = WAITERS_COUNTED;
    }
    for (uint64_t ticket = view->head; ticket < view->head + counted; ticket++) {
        int fd = hf__ticket_open(store, view->hash, ticket, false);

        if (fd >= 0)
            (void)close(fd);
        if (fd != -1)
            count++;
    }
    return count;
}

uint64_t hf__ticket_trim(struct file_store *store, const struct view *view)
{
    uint64_t tail = view->tail;

    while (tail > view->head) {
        int fd = hf__ticket_open(store, view->hash, tail - 1, true);

        if (fd >= 0)
            (void)close(fd);
        if (fd != -1)
            break;
        tail--;
    }
    return tail;
}
