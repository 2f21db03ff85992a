/* forget.c - giving back the slot of a name that nobody will use again, and what its dead have
 * left. */
#include "base/base.h"
#include "stores/file/dir.h"
#include "stores/file/fifo.h"
#include "stores/file/operations.h"
#include "stores/file/slot.h"
#include "stores/file/sweep.h"
#include "stores/file/ticket.h"

#include <stdio.h>
#include <unistd.h>

/* Waiters that were killed. sweep.c leaves them alone for an hour, because somebody might be about
 * to wait; nobody is, for this name. The page is locked. */
static void remove_fifos(struct file_store *store, uint64_t hash)
{
    DIR *dir = hf__dir_folder(store, "queue");
    char start[FIFO_NAME_SIZE];
    char name[300];
    struct dirent *entry;
    size_t len;

    if (dir == NULL)
        return;
    hf__ticket_name(start, hash, 0);
    len = strlen(start) - 1; /* "queue/HASH." */
    while ((entry = readdir(dir)) != NULL) {
        (void)snprintf(name, sizeof name, "queue/%s", entry->d_name);
        if (strncmp(name, start, len) == 0)
            (void)unlinkat(store->dir_fd, name, 0);
    }
    (void)closedir(dir);
}

enum hf_status hf__file_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                               struct hf_error *report)
{
    struct file_store *store = hf__file_of(base);
    uint64_t hash = hf__name_hash(name);
    struct bucket bucket;
    int index;
    enum hf_status status = hf__page_lock(store, hash, deadline_ns, &bucket, report);

    if (status != HF_OK)
        return hf__page_failed(store, &bucket, status, report);
    index = hf__slot_find(&bucket, hash, name);
    if (index >= 0)
        status = hf__slot_forget(store, &bucket, index, report);
    if (status == HF_OK)
        remove_fifos(store, hash);
    hf__page_unlock(store, &bucket);
    if (status != HF_OK)
        return status;
    hf__sweep(store);
    return hf__fail(report, HF_OK, "the directory of %.150s with its files", store->shown);
}
