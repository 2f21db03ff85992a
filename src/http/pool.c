/* pool.c - the libcurl handles of a store. */
#include "base/base.h"
#include "http/http.h"

#include <string.h>

enum { DRAINING_MAX = 2 }; /* idle handles with an answer outstanding, before one waits for it */

/* libcurl's own state is global. */
static void start_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

enum hf_status hf__http_pool_init(struct hf__http_pool *pool, const struct hf_host *host,
                                  const struct hf__http_options *options, struct hf_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    *pool = (struct hf__http_pool){.host = host, .options = *options};
    pthread_once(&once, start_curl);
    return pthread_mutex_init(&pool->lock, NULL) == 0 ? HF_OK : hf__nomem(err);
}

void hf__http_pool_release(struct hf__http_pool *pool, bool forked)
{
    while (pool->first != NULL) {
        struct hf__http *http = pool->first;

        pool->first = http->next;
        hf__http_close(http, forked);
    }
    if (!forked)
        pthread_mutex_destroy(&pool->lock);
}

/* Idle handles that were heard from last before a request that was not answered: their connections
 * may be just as dead. Takes them out. Lock held. */
static struct hf__http *cut_silent(struct hf__http_pool *pool)
{
    struct hf__http **at = &pool->first;
    struct hf__http *silent = NULL;

    while (*at != NULL) {
        struct hf__http *http = *at;

        if (http->busy || http->heard_ns > pool->silent_ns) {
            at = &http->next;
            continue;
        }
        *at = http->next;
        http->next = silent;
        silent = http;
    }
    return silent;
}

void hf__http_silent(struct hf__http_pool *pool, int64_t sent_at_ns)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->silent_ns < sent_at_ns)
        pool->silent_ns = sent_at_ns;
    pthread_mutex_unlock(&pool->lock);
}

/* An idle one, if possible without a request whose answer nobody has read yet: that would have to
 * be waited for. If there are many of those, the one whose answer is the most likely to have come.
 * NULL: open one. Lock held. */
static struct hf__http *choose(const struct hf__http_pool *pool)
{
    struct hf__http *oldest = NULL;
    unsigned draining = 0;

    for (struct hf__http *http = pool->first; http != NULL; http = http->next) {
        if (http->busy)
            continue;
        if (!http->draining)
            return http;
        draining++;
        if (oldest == NULL || http->heard_ns < oldest->heard_ns)
            oldest = http;
    }
    return draining >= DRAINING_MAX ? oldest : NULL;
}

struct hf__http *hf__http_take(struct hf__http_pool *pool)
{
    struct hf__http *silent;
    struct hf__http *http;

    pthread_mutex_lock(&pool->lock);
    silent = cut_silent(pool);
    http = choose(pool);
    if (http != NULL)
        http->busy = true;
    pthread_mutex_unlock(&pool->lock);
    while (silent != NULL) {
        struct hf__http *next = silent->next;

        hf__http_close(silent, false);
        silent = next;
    }
    if (http != NULL || (http = hf__http_open(pool->host, &pool->options)) == NULL)
        return http;
    http->busy = true;
    pthread_mutex_lock(&pool->lock);
    http->next = pool->first;
    pool->first = http;
    pthread_mutex_unlock(&pool->lock);
    return http;
}

/* Takes one out of the list. Lock held. */
static void unlink_http(struct hf__http_pool *pool, const struct hf__http *http)
{
    struct hf__http **at = &pool->first;

    while (*at != http)
        at = &(*at)->next;
    *at = http->next;
}

void hf__http_drop(struct hf__http_pool *pool, struct hf__http *http)
{
    pthread_mutex_lock(&pool->lock);
    unlink_http(pool, http);
    pthread_mutex_unlock(&pool->lock);
    hf__http_close(http, false);
}

void hf__http_give(struct hf__http_pool *pool, struct hf__http *http)
{
    size_t idle = 0;
    bool drop;

    if (!http->draining)
        hf__http_end(http);
    pthread_mutex_lock(&pool->lock);
    for (const struct hf__http *other = pool->first; other != NULL; other = other->next)
        idle += !other->busy;
    drop = idle >= HF__HTTP_IDLE_MAX;
    if (drop)
        unlink_http(pool, http);
    http->busy = false;
    pthread_mutex_unlock(&pool->lock);
    if (drop)
        hf__http_close(http, false);
}
