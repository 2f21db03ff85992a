/* pool.c - the store's libcurl handles, and which server they are used for. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <string.h>

#define UNHEARD_MS 50 /* what sending a request may take that nobody waits for */

/* Idle handles that were heard from last before a request that was not answered: their connections
 * may be just as dead. Takes them out. Lock held. */
static struct ec_http *cut_silent(struct ec_store *store)
{
    struct ec_http **at = &store->http;
    struct ec_http *silent = NULL;

    while (*at != NULL) {
        struct ec_http *http = *at;

        if (http->busy || http->heard_ns > store->silent_ns) {
            at = &http->next;
            continue;
        }
        *at = http->next;
        http->next = silent;
        silent = http;
    }
    return silent;
}

void ec_http_silent(struct ec_store *store, int64_t sent_at_ns)
{
    pthread_mutex_lock(&store->lock);
    if (store->silent_ns < sent_at_ns)
        store->silent_ns = sent_at_ns;
    pthread_mutex_unlock(&store->lock);
}

struct ec_http *ec_http_take(struct ec_store *store)
{
    struct ec_http *silent;
    struct ec_http *http;

    pthread_mutex_lock(&store->lock);
    silent = cut_silent(store);
    for (http = store->http; http != NULL && http->busy;)
        http = http->next;
    if (http != NULL)
        http->busy = true;
    pthread_mutex_unlock(&store->lock);
    while (silent != NULL) {
        struct ec_http *next = silent->next;

        ec_http_close(silent, false);
        silent = next;
    }
    if (http != NULL || (http = ec_http_open(store->base.host, &store->url)) == NULL)
        return http;
    http->busy = true;
    pthread_mutex_lock(&store->lock);
    http->next = store->http;
    store->http = http;
    pthread_mutex_unlock(&store->lock);
    return http;
}

/* Takes one out of the list. Lock held. */
static void unlink_http(struct ec_store *store, const struct ec_http *http)
{
    struct ec_http **at = &store->http;

    while (*at != http)
        at = &(*at)->next;
    *at = http->next;
}

void ec_http_drop(struct ec_store *store, struct ec_http *http)
{
    pthread_mutex_lock(&store->lock);
    unlink_http(store, http);
    pthread_mutex_unlock(&store->lock);
    ec_http_close(http, false);
}

void ec_http_give(struct ec_store *store, struct ec_http *http)
{
    size_t idle = 0;
    bool drop;

    if (!http->draining)
        ec_http_end(http);
    pthread_mutex_lock(&store->lock);
    for (const struct ec_http *other = store->http; other != NULL; other = other->next)
        idle += !other->busy;
    drop = idle >= EC_IDLE_HTTP_MAX;
    if (drop)
        unlink_http(store, http);
    http->busy = false;
    pthread_mutex_unlock(&store->lock);
    if (drop)
        ec_http_close(http, false);
}

void ec_where(struct ec_store *store, char endpoint[EC_ENDPOINT_MAX], char auth[EC_AUTH_MAX])
{
    pthread_mutex_lock(&store->lock);
    memcpy(endpoint, store->url.endpoints[store->at], EC_ENDPOINT_MAX);
    memcpy(auth, store->auth, EC_AUTH_MAX);
    pthread_mutex_unlock(&store->lock);
}

void ec_send_unheard(struct ec_store *store, const char *path, const struct ec_text *body)
{
    char endpoint[EC_ENDPOINT_MAX];
    char auth[EC_AUTH_MAX];
    struct ec_post post = {.endpoint = endpoint,
                           .path = path,
                           .json = body->data,
                           .json_len = body->len,
                           .auth = auth};
    struct ec_http *http = body->cut ? NULL : ec_http_take(store);

    if (http == NULL)
        return;
    ec_where(store, endpoint, auth);
    ec_http_send(http, &post, UNHEARD_MS);
    explicit_bzero(auth, sizeof auth);
    ec_http_give(store, http);
}

void ec_turn_away(struct ec_store *store, const char *endpoint)
{
    pthread_mutex_lock(&store->lock);
    if (strcmp(store->url.endpoints[store->at], endpoint) == 0)
        store->at = (store->at + 1) % store->url.common.host_count;
    pthread_mutex_unlock(&store->lock);
}
