/* ticket.c - the tickets of a waiting line: whose FIFO has a reader, and who is next.
 *
 * queue.c tells how a waiter uses them. */
#include "stores/file/internal.h"

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

uint64_t hf__ticket_first_live(struct file_store *store, const struct slot *slot, int *fd_out)
{
    if (fd_out != NULL)
        *fd_out = -1;
    for (uint64_t ticket = slot->head; ticket < slot->tail; ticket++) {
        int fd = hf__ticket_open(store, slot->hash, ticket, true);

        if (fd == -1)
            continue;
        if (fd_out != NULL)
            *fd_out = fd >= 0 ? fd : -1;
        else if (fd >= 0)
            (void)close(fd);
        return ticket;
    }
    return slot->tail;
}

uint64_t hf__ticket_count(struct file_store *store, const struct slot *slot)
{
    uint64_t counted = slot->tail - slot->head;
    uint64_t count = 0;

    if (counted > WAITERS_COUNTED) {
        count = counted - WAITERS_COUNTED;
        counted = WAITERS_COUNTED;
    }
    for (uint64_t ticket = slot->head; ticket < slot->head + counted; ticket++) {
        int fd = hf__ticket_open(store, slot->hash, ticket, false);

        if (fd >= 0)
            (void)close(fd);
        if (fd != -1)
            count++;
    }
    return count;
}

void hf__ticket_sweep(struct file_store *store, const char *name)
{
    struct bucket bucket;
    uint64_t hash;
    uint64_t ticket;
    int fd;

    if (sscanf(name, "queue/%16" SCNx64 ".%" SCNu64, &hash, &ticket) != 2 ||
        hf__bucket_lock(store, hash, 0, &bucket, NULL) != HF_OK)
        return;
    fd = hf__ticket_open(store, hash, ticket, true);
    if (fd >= 0)
        (void)close(fd);
    hf__bucket_unlock(store, &bucket);
}

enum hf_status hf__ticket_pass(struct file_store *store, struct bucket *bucket, struct slot *slot,
                               int64_t now_ns, struct hf_error *err)
{
    enum hf_status status;
    int fd = -1;

    slot->claim_ns = 0;
    if (slot->head != slot->tail) {
        slot->head = hf__ticket_first_live(store, slot, &fd);
        if (slot->head != slot->tail)
            slot->claim_ns = hf__time_add(now_ns, CLAIM_NS);
    }
    status = hf__bucket_write(store, bucket, slot, err);
    if (fd >= 0) {
        if (status == HF_OK)
            hf__turn_wake(fd);
        (void)close(fd);
    }
    return status;
}

bool hf__ticket_trim(struct file_store *store, struct slot *slot)
{
    uint64_t tail = slot->tail;

    while (slot->tail > slot->head) {
        int fd = hf__ticket_open(store, slot->hash, slot->tail - 1, true);

        if (fd >= 0)
            (void)close(fd);
        if (fd != -1)
            break;
        slot->tail--;
    }
    return slot->tail != tail;
}
