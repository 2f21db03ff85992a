/* queue.h - the children of a lock: the order in which they are served, and what they say. Pure. */
#ifndef HF_ZOOKEEPER_QUEUE_H
#define HF_ZOOKEEPER_QUEUE_H

#include "stores/zookeeper/request.h"
#include <holdfast.h>

/* bytes of what a child says */
#define ZK_DATA_MAX  (2 * HF_LABEL_MAX + HF_REASON_MAX + 80)
#define ZK_CHILD_MAX 256 /* bytes of a child's name; longer ones are no contenders */

struct zk_entry {
    char name[ZK_CHILD_MAX];
    int32_t sequence;
    int64_t czxid; /* 0: not asked for */
    bool foreign;  /* made by another recipe: it counts all the same */
};

struct zk_queue {
    struct zk_entry *at;
    size_t count;
    bool unsure; /* the numbers wrapped around: only the czxids tell the order */
};

/* Takes the contenders out of names and sorts them. False: no memory. */
bool zk_queue_init(struct zk_queue *queue, const struct zk_names *names);
/* A queue of one. False: no memory, or no contender's name. */
bool zk_queue_init_alone(struct zk_queue *queue, const char *name);
void zk_queue_release(struct zk_queue *queue);
/* Sorts again, by czxid; entries whose czxid is 0 are gone and dropped. */
void zk_queue_sort_czxid(struct zk_queue *queue);
bool zk_entry_is(const struct zk_entry *entry, const char *owner);
/* Where the child of that owner stands; queue->count if it is not there. */
size_t zk_queue_find(const struct zk_queue *queue, const char *owner);
/* The number at the end of a child's name: ten digits, or a minus sign and nine or ten. */
bool zk_sequence(const char *name, int32_t *out);

/* What a child says, as "1 TTL WAITED LABEL"; or, once its hold was revoked, as
 * "2 TTL WAITED REVOKED_MS LABEL", and by whom and why in a line each. */
struct zk_said {
    uint32_t ttl_ms;
    int64_t waited_ms; /* from its making until it was the first */
    char label[HF_LABEL_MAX + 1];
    bool revoked;
    struct hf_revocation revocation; /* if it is */
};
void zk_data_make(char out[ZK_DATA_MAX], uint32_t ttl_ms, int64_t waited_ms, const char *label);
/* The same with the mark. */
void zk_data_revoke(char out[ZK_DATA_MAX], const struct zk_said *said);
bool zk_data_parse(const char *data, struct zk_said *out);

#endif /* HF_ZOOKEEPER_QUEUE_H */
