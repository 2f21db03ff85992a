/* watch.h - hears when keys are deleted, or put. */
#ifndef HF_STORES_ETCD_WATCH_H
#define HF_STORES_ETCD_WATCH_H

#include "stores/etcd/etcd.h"

enum { EC_COVER_MAX = 16 }; /* ranges of one watch */

struct ec_watch {
    struct hf__http *http; /* NULL: closed */
    struct ec_stream stream;
    bool stop; /* the stream has something to say */
    bool over; /* the server has ended it */
    char endpoint[EC_ENDPOINT_MAX];
};

struct ec_watch_plan {
    struct ec_range ranges[EC_COVER_MAX];
    size_t count;
    struct ec_range puts;   /* here it is what is put that counts */
    uint64_t from_revision; /* 0: from now on */
};

enum ec_heard {
    EC_HEARD_NOTHING, /* until the time was up or the call was cancelled */
    EC_HEARD_CREATED, /* every range is watched from now on; once, and only if it was asked for */
    EC_HEARD_EVENT,
    EC_HEARD_BROKEN /* nothing more will come: read, and open another */
};

/* Keys to be watched from a revision on. */
struct ec_watch_keys {
    const struct ec_kv *at;
    size_t count;
    uint64_t from_revision;
    char *buffer; /* for the request, if there are many; else NULL */
    size_t buffer_size;
    ec_heard_fn *fn; /* hears which of them was deleted; or NULL */
    void *data;
};

/* Watches the keys; of one that is cut, it may be the deletion of a similar one that is heard.
 * False: it cannot be begun. Must be closed before another. */
bool ec_watch_open(struct ec_store *store, struct ec_watch *watch,
                   const struct ec_watch_keys *keys);
/* The same for several ranges at once. Tells when it has begun. fn hears of every deletion there,
 * and of what is put in plan->puts. */
bool ec_watch_open_many(struct ec_store *store, struct ec_watch *watch,
                        const struct ec_watch_plan *plan, ec_heard_fn *fn, void *data);
enum ec_heard ec_watch_listen(struct ec_watch *watch, const struct hf__patience *patience);
void ec_watch_close(struct ec_store *store, struct ec_watch *watch);

#endif /* HF_STORES_ETCD_WATCH_H */
