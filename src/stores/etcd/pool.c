/* pool.c - which server the store's libcurl handles are used for. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <string.h>

#define UNHEARD_MS 50 /* what sending a request may take that nobody waits for */

void ec_where(struct ec_store *store, char endpoint[EC_ENDPOINT_MAX], char auth[HF__HTTP_AUTH_MAX])
{
    pthread_mutex_lock(&store->lock);
    memcpy(endpoint, store->url.endpoints[store->at], EC_ENDPOINT_MAX);
    memcpy(auth, store->auth, HF__HTTP_AUTH_MAX);
    pthread_mutex_unlock(&store->lock);
}

void ec_send_unheard(struct ec_store *store, const char *path, const struct ec_text *body)
{
    char endpoint[EC_ENDPOINT_MAX];
    char auth[HF__HTTP_AUTH_MAX];
    struct hf__http_request post = {.endpoint = endpoint,
                                    .path = path,
                                    .json = body->data,
                                    .json_len = body->len,
                                    .auth = auth};
    struct hf__http *http = body->cut ? NULL : hf__http_take(&store->pool);

    if (http == NULL)
        return;
    ec_where(store, endpoint, auth);
    hf__http_send(http, &post, UNHEARD_MS);
    explicit_bzero(auth, sizeof auth);
    hf__http_give(&store->pool, http);
}

void ec_turn_away(struct ec_store *store, const char *endpoint)
{
    pthread_mutex_lock(&store->lock);
    if (strcmp(store->url.endpoints[store->at], endpoint) == 0)
        store->at = (store->at + 1) % store->url.common.host_count;
    pthread_mutex_unlock(&store->lock);
}
