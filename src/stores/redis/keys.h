/* keys.h - which keys belong to a lock, and where a cluster keeps them. Pure.
 *
 * The lock is the string key KEY = prefix + name, as every SET NX PX client would write it. What
 * else we know of it lives under "holdfast:{KEY}:", in the same slot of a cluster. A KEY with a
 * hash tag of its own keeps it: "holdfast:{tag}:KEY:". */
#ifndef HF_STORES_REDIS_KEYS_H
#define HF_STORES_REDIS_KEYS_H

#include "stores/redis/url.h"

enum {
    RD_PARTY_LEN = HF_OWNER_LEN - 2,          /* what the owners of a party share */
    RD_KEY_MAX = RD_PREFIX_MAX + HF_NAME_MAX, /* bytes of KEY, NUL included */
    RD_SIDE_MAX = 2 * RD_KEY_MAX + 64,        /* bytes of the other keys, NUL included */
    RD_SLOTS = 16384,                         /* of a cluster */
    RD_TAG_MAX = 8                            /* bytes of rd_slot_tag's answer */
};

struct rd_keys {
    char lock[RD_KEY_MAX];
    char counter[RD_SIDE_MAX]; /* of tokens: "token ttl flags owner label"; stays */
    char queue[RD_SIDE_MAX];   /* waiters in order */
    char leases[RD_SIDE_MAX];  /* until when each waiter lives; LEASES:OWNER wakes one */
};

/* False if the name cannot be a lock here; *why says so as the end of a sentence. */
bool rd_keys_make(struct rd_keys *out, const char *prefix, const char *name, const char **why);
/* The keys of a lock in the store of that URL, or HF_INVALID with a text. */
enum hf_status rd_claim_keys(const struct rd_url *url, const char *name, struct rd_keys *out,
                             struct hf_error *err);
/* The list on which a waiter sleeps. */
void rd_keys_wake(char out[RD_SIDE_MAX], const struct rd_keys *keys, const char *owner);
/* The list on which one sleeps who waits for one of several locks, by any of its owners: they
 * differ in the last two digits. */
void rd_keys_wake_party(char out[RD_SIDE_MAX], const char *owner);
/* From a counter or queue key back to the lock's name; false if it is neither, or of another
 * prefix. *is_counter tells which. */
bool rd_keys_name(char out[HF_NAME_MAX + 1], const char *prefix, const char *side_key,
                  bool *is_counter);
/* A pattern for SCAN that finds all counters and queues of locks whose names start so. */
void rd_keys_pattern(char *out, size_t size, const char *prefix, const char *start);
/* One that finds every key that starts with prefix. */
void rd_keys_plain_pattern(char *out, size_t size, const char *prefix);

unsigned rd_slot(const char *key);
/* A short text in that slot. */
void rd_slot_tag(char out[RD_TAG_MAX], unsigned slot);

#endif /* HF_STORES_REDIS_KEYS_H */
