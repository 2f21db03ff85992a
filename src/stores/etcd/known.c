/* known.c - the table of holds, as the threads of a client use it. */
#include "base/base.h"
#include "stores/etcd/etcd.h"
#include "stores/etcd/listener.h"

#include <stdlib.h>

void ec_hold_note(struct ec_store *store, struct ec_hold **spare, const char *owner,
                  const struct ec_hold_news *news)
{
    struct ec_hold *hold;
    bool unheard = false;

    pthread_mutex_lock(&store->lock);
    hold = ec_holds_find(&store->holds, owner);
    if (hold != NULL) {
        hold->news = *news;
    } else if (*spare != NULL) {
        hold = *spare;
        *spare = NULL;
        hold->news = *news;
        ec_holds_add(&store->holds, hold);
        hold = ec_holds_find(&store->holds, owner);
    }
    if (hold != NULL && news->token != 0)
        unheard = ec_listener_misses(store, hold);
    pthread_mutex_unlock(&store->lock);
    if (unheard)
        ec_listener_alert(store);
}

int64_t ec_hold_forget(struct ec_store *store, const char *owner)
{
    struct ec_hold *hold;
    int64_t lease;

    pthread_mutex_lock(&store->lock);
    hold = ec_holds_remove(&store->holds, owner);
    pthread_mutex_unlock(&store->lock);
    lease = hold != NULL ? hold->news.lease : 0;
    free(hold);
    return lease;
}

bool ec_hold_known(struct ec_store *store, const char *owner, struct ec_known *out)
{
    const struct ec_hold *hold;

    *out = (struct ec_known){0};
    pthread_mutex_lock(&store->lock);
    hold = ec_holds_find(&store->holds, owner);
    if (hold != NULL) {
        out->waited = hold->news.waited;
        out->expired = hold->news.until_ns <= store->base.host->now_ns();
        out->gone = hold->gone;
        out->lease = hold->news.lease;
        out->token = hold->news.token;
    }
    pthread_mutex_unlock(&store->lock);
    return hold != NULL;
}
