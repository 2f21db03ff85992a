/* listener.h - hears when a key of ours is deleted, whoever does it, and when a hold is revoked.
 *
 * One watch for all holds of a client that are kept. Up to EC_COVER_MAX of them are watched key by
 * key; of more than that, the stretch from the first to the last, and what others do there is heard
 * and passed over. Holds that end at once are not worth a watch, so a new one is covered a moment
 * later. A watch that breaks is opened anew, and then every hold is in doubt once, because nothing
 * is known of the time between. */
#ifndef HF_STORES_ETCD_LISTENER_H
#define HF_STORES_ETCD_LISTENER_H

#include "stores/etcd/watch.h"

/* The keys that are watched. */
struct ec_cover {
    struct ec_cover_key {
        char key[EC_KEY_MAX];
        size_t len;
    } keys[EC_COVER_MAX];
    size_t count;
    bool stretch; /* from keys[0] to keys[1], both included */
};

bool ec_cover_has(const struct ec_cover *cover, const char *key, size_t len);
/* Takes in one key more; a list that is full becomes a stretch. */
void ec_cover_add(struct ec_cover *cover, const char *key, size_t len);

/* Frees it, if there is one: the first ec_listen makes it. */
void ec_listener_close(struct ec_store *store);
/* Whether a hold is not watched, and the listener does not know it yet. Lock held. */
bool ec_listener_misses(struct ec_store *store, const struct ec_hold *hold);
void ec_listener_alert(struct ec_store *store);

/* See struct hf_store_ops. */
void ec_listen(struct hf_store_base *base, int wake_fd, hf_doubt_fn *doubt, void *data);

#endif /* HF_STORES_ETCD_LISTENER_H */
