/* watch.h - hears when one key is deleted. */
#ifndef HF_STORES_ETCD_WATCH_H
#define HF_STORES_ETCD_WATCH_H

#include "stores/etcd/etcd.h"

struct ec_watch {
    struct ec_line *line; /* NULL: closed */
    struct ec_stream stream;
    bool stop; /* the stream has something to say */
    char endpoint[EC_ENDPOINT_MAX];
};

enum ec_heard {
    EC_HEARD_NOTHING, /* until the time was up or the call was cancelled */
    EC_HEARD_DELETED,
    EC_HEARD_BROKEN /* nothing more will come: read, and open another */
};

/* Watches a key from a revision on; if it is cut, it may be the deletion of a similar one that is
 * heard. False: it cannot be begun. Must be closed before another. */
bool ec_watch_open(struct ec_store *store, struct ec_watch *watch, const struct ec_kv *kv,
                   uint64_t from_revision);
enum ec_heard ec_watch_listen(struct ec_watch *watch, const struct ec_patience *patience);
void ec_watch_close(struct ec_store *store, struct ec_watch *watch);

#endif /* HF_STORES_ETCD_WATCH_H */
