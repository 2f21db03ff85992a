/* queue.h - one who waits, as the files that carry it out see it: enter.c, party.c and queue.c.
 *
 * A waiter for one of several locks has a key in each of their queues. They are put, moved to
 * another lease and deleted together, each time by one transaction: so all have the same revisions
 * and the same lease. */
#ifndef HF_STORES_ETCD_QUEUE_H
#define HF_STORES_ETCD_QUEUE_H

#include "core/wait.h"
#include "stores/etcd/etcd.h"
#include "stores/etcd/watch.h"

enum ec_queue_state {
    EC_OUTSIDE,   /* no key of ours is in the queue: enter it */
    EC_UNCERTAIN, /* one may be, or may come, that we do not know of: enter it */
    EC_INSIDE,    /* our key is in the queue, and who is before us has to be read */
    EC_BEHIND,    /* somebody is before us: keep our lease alive, and hear them leave */
    EC_FIRST,     /* nobody is, as far as we know: confirm */
    EC_HOLDING,
    EC_TWICE,  /* another attempt of this owner stands in the queue: its key is not ours */
    EC_ROBBED, /* a key of ours was deleted, and not all: begin anew, with fresh owners */
    EC_STATES
};

struct ec_queue {
    struct ec_attempt *attempt; /* the first of count */
    size_t count;
    size_t which; /* EC_FIRST, EC_HOLDING: in whose queue */
    enum ec_queue_state state;
    struct ec_kv own;     /* revisions and lease, of all keys */
    struct ec_kv *before; /* EC_BEHIND: whom we wait for, in each queue */
    char *buffer;         /* for requests about many keys; NULL: there is one */
    size_t buffer_size;
    int64_t lease;      /* that our key is on, or is to be */
    int64_t doubted;    /* EC_UNCERTAIN: a lease that our key may be on, too */
    int64_t confirming; /* a lease that a confirmation of unknown fate names; or 0 */
    uint64_t seen;      /* the revision at which `before` was there */
    int64_t inspect_ns; /* EC_BEHIND: when to read next */
    bool free;          /* EC_BEHIND: the holder right before us is gone, from queue `which` */
    struct ec_watch watch;
    struct hf_grant *grant;
    struct hf__wait_queue wait_queue;
    int64_t asked_ns;       /* when the last step began */
    enum hf_status trouble; /* of the last step */
};

/* From one state to another, which must be allowed. */
void ec_queue_move(struct ec_queue *q, enum ec_queue_state to);
/* For one request of the many that a wait takes. */
struct ec_request ec_queue_request(const struct ec_queue *q);

/* What the queues are like. */
struct ec_reading {
    size_t own_count;  /* of our keys that are there */
    struct ec_kv own;  /* one of them */
    size_t first;      /* where nobody is before us; count: nowhere */
    bool moved;        /* whom we wait for has changed, in one queue at least */
    uint64_t revision; /* of the store, when it was so */
};

/* party.c */

/* Reads them, and who is before us into q->before. */
enum hf_status ec_party_inspect(struct ec_queue *q, struct ec_reading *out);
/* Puts all our keys on that lease: if none is there yet, or if nothing happened to them since. */
enum hf_status ec_party_put(struct ec_queue *q, const struct ec_request *request, int64_t lease,
                            struct ec_answer *answer, enum ec_verdict *verdict);
/* Hears of a key that was deleted; data is the queue. */
void ec_party_hear(void *data, const struct ec_kv *kv, bool deleted);
/* Deletes them; it may be sent again. */
enum hf_status ec_party_delete(struct ec_queue *q, const struct ec_request *request);

/* enter.c */

/* EC_OUTSIDE, EC_UNCERTAIN: puts our key at the end of the queue. */
enum hf_status ec_queue_enter(struct ec_queue *q);
/* EC_BEHIND: keeps our key alive, on another lease if ours is not the one in use any more. */
enum hf_status ec_queue_keep_alive(struct ec_queue *q);

#endif /* HF_STORES_ETCD_QUEUE_H */
