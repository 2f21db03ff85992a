/* file.c - the embedded store's struct: its beginning and its end. */
#include "stores/file/file.h"

#include <stdlib.h>
#include <unistd.h>

struct file_store *hf__file_new(const struct hf__file_sys *sys, const struct hf_host *host)
{
    struct file_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->base.host = host;
    store->sys = sys;
    store->dir_fd = -1;
    store->slots_fd = -1;
    store->root_fd = -1;
    atomic_store(&store->life_fd, -1);
    while (store->client == 0)
        host->random(&store->client, sizeof store->client);
    for (int i = 0; i < 2 * STRIPES + 2; i++)
        pthread_mutex_init(&store->stripes[i], NULL);
    pthread_mutex_init(&store->map_lock, NULL);
    pthread_mutex_init(&store->life_lock, NULL);
    return store;
}

void hf__file_free(struct file_store *store)
{
    if (store->slots_fd >= 0)
        (void)close(store->slots_fd);
    if (store->dir_fd >= 0)
        (void)close(store->dir_fd);
    if (store->root_fd >= 0)
        (void)close(store->root_fd);
    free(store->slots_path);
    free(atomic_load(&store->hints));
    free(store->path);
    free(store->url);
    free(store);
}
