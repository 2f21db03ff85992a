/* holds.h - what this client has in etcd on shared leases, by owner.
 *
 * A lease that many keys are on lives as long as anybody keeps it alive. So a key that nobody
 * renews any more must stop the lease from being kept: this table knows. */
#ifndef HF_STORES_ETCD_HOLDS_H
#define HF_STORES_ETCD_HOLDS_H

#include <holdfast.h>

/* What the last answer about it said. */
struct ec_hold_news {
    bool waited;      /* which of the two keys it has */
    int64_t lease;    /* 0: it has expired */
    int64_t until_ns; /* it was promised until then */
    uint64_t token;   /* 0: it only waits */
};

struct ec_hold {
    struct ec_hold *next;
    char owner[HF_OWNER_LEN + 1];
    struct ec_hold_news news;
    bool gone;    /* its key was heard to be deleted */
    bool revoked; /* it was heard to be */
    bool told;    /* and the keeper knows */
    bool watched;
    char name[];
};

struct ec_holds {
    struct ec_hold **buckets;
    size_t size; /* a power of two, or 0 */
    size_t count;
};

/* Not in a table yet. NULL: out of memory. */
struct ec_hold *ec_hold_new(const char *owner, const char *name);
void ec_holds_add(struct ec_holds *holds, struct ec_hold *hold);
struct ec_hold *ec_holds_find(const struct ec_holds *holds, const char *owner);
/* Out of the table; the caller frees it. NULL if it is not there. */
struct ec_hold *ec_holds_remove(struct ec_holds *holds, const char *owner);
/* Whether a key on that lease was not renewed in time. Such holds are expired from now on, and the
 * lease must not be kept any more. Forgets those that are long past. */
bool ec_holds_overdue(struct ec_holds *holds, int64_t lease, int64_t now_ns);
bool ec_holds_use(const struct ec_holds *holds, int64_t lease);
/* Calls fn for each. */
void ec_holds_each(const struct ec_holds *holds, void (*fn)(struct ec_hold *hold, void *data),
                   void *data);
void ec_holds_release(struct ec_holds *holds);

#endif /* HF_STORES_ETCD_HOLDS_H */
