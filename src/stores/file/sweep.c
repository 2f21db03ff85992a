/* sweep.c - removing what the dead left behind. */
#include "stores/file/sweep.h"
#include "stores/file/client.h"
#include "stores/file/dir.h"
#include "stores/file/life.h"
#include "stores/file/queue.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE_IN 64   /* clients that sweep */
#define AGE_S  3600 /* how long what may be about to be opened is left alone */

static bool is_old(struct file_store *store, const char *name)
{
    struct stat st;

    return fstatat(store->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           store->base.host->wall_us() / 1000000 - st.st_mtime > AGE_S;
}

static void sweep_folder(struct file_store *store, const char *folder, bool waiters)
{
    DIR *dir = hf__dir_folder(store, folder);
    struct dirent *entry;

    if (dir == NULL)
        return;
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
                hf__queue_sweep(store, name);
        } else {
            int alive = hf__life_open(store, name);

            if (alive >= 0)
                (void)close(alive);
        }
    }
    (void)closedir(dir);
}

void hf__sweep(struct file_store *store)
{
    hf__client_sweep(store); /* who is dead is told by its FIFO, or by there being none */
    sweep_folder(store, "alive", false);
    sweep_folder(store, "queue", true);
}

void hf__sweep_sometimes(struct file_store *store)
{
    if (store->client % ONE_IN == 0 && !atomic_exchange(&store->swept, true))
        hf__sweep(store);
}
