/* layout.h - how a lock looks in etcd.
 *
 * A client that takes a free lock puts the key PREFIX NAME 0x1f; one that has to wait for it,
 * PREFIX NAME 0x1f OWNER. All are attached to leases. The keys of one lock are its queue: the one
 * with the lowest create revision holds it or is about to. 0x1f is below every byte of a name, so a
 * queue is one stretch of keys that no other lock's keys are in. (Until its history is compacted,
 * etcd walks over deleted keys too. So the key of the common case is always the same one.) The
 * value says who it is:
 *
 *   OWNER 1 KIND TTL_MS WALL_US LABEL
 *
 * KIND is w (waits), k (held, on a lease of its ttl class), p (held, on a lease of its own) or d
 * (the same, and detached); WALL_US is since when, for display. A hold that was revoked says so,
 * and when, by whom and why; a client that does not know of that takes it for somebody else's:
 *
 *   OWNER 2 KIND TTL_MS WALL_US REVOKED_MS LABEL LF BY LF REASON
 *
 * A break also leaves a notice, for those who watch, and for a holder whose key was deleted: the
 * key PREFIX 0x1c NAME 0x1f TOKEN, with TOKEN in 16 hex digits and the value REVOKED_MS SPACE BY LF
 * REASON. It is on the lease that the hold was on, and ends with it. No lock's name begins with a
 * control character: it is in nobody's queue. */
#ifndef HF_STORES_ETCD_LAYOUT_H
#define HF_STORES_ETCD_LAYOUT_H

#include "stores/etcd/text.h"
#include "stores/etcd/url.h"

enum {
    EC_KEY_MAX = EC_PREFIX_MAX + HF_NAME_MAX + 1 + HF_OWNER_LEN + 1,
    EC_VALUE_MAX = HF_OWNER_LEN + 2 * HF_LABEL_MAX + HF_REASON_MAX + 96
};

#define EC_NAME_END      0x1f
#define EC_NOTICES       0x1c
#define EC_KIND_WAITING  'w'
#define EC_KIND_KEPT     'k'
#define EC_KIND_PRIVATE  'p'
#define EC_KIND_DETACHED 'd'

/* The keys of one attempt. */
struct ec_keys {
    char own[EC_KEY_MAX]; /* PREFIX NAME 0x1f OWNER */
    size_t own_len;       /* how much of it is our key: up to 0x1f, or all */
    size_t queue_len;     /* up to 0x1f */
    char queue_end[EC_KEY_MAX];
};

/* Our key is the one for a free lock. owner may be "": for the queue alone. */
void ec_keys_make(struct ec_keys *out, const char *prefix, const char *name, const char *owner);
/* Our key is, from now on, that of one who waited; or not. */
void ec_keys_use(struct ec_keys *keys, bool waited);
bool ec_keys_waited(const struct ec_keys *keys);
struct ec_range ec_keys_own(const struct ec_keys *keys);
struct ec_range ec_keys_queue(const struct ec_keys *keys);

struct ec_said {
    char owner[HF_OWNER_LEN + 1];
    char kind; /* 0: not written by holdfast */
    uint32_t ttl_ms;
    int64_t since_us;
    char label[HF_LABEL_MAX + 1];
    bool revoked;
    struct hf_revocation revocation; /* if it is */
};

/* The key of the notice about a hold; returns its length. */
size_t ec_notice_key(char out[EC_KEY_MAX], const char *prefix, const char *name, uint64_t token);
/* The hold that a notice is about; false: it is none. */
bool ec_notice_parse(const char *key, size_t len, const char *prefix, char name[HF_NAME_MAX + 1],
                     uint64_t *token);
/* All notices; both keys have room for a prefix and a byte more. */
struct ec_range ec_notices(const char *prefix, char start[EC_PREFIX_MAX + 1],
                           char end[EC_PREFIX_MAX + 1]);
void ec_notice_format(char out[EC_VALUE_MAX], const struct hf_revocation *revocation);
/* Whatever cannot be read stays empty. */
void ec_notice_read(struct hf_revocation *out, const char *value);

void ec_said_format(char out[EC_VALUE_MAX], const struct ec_said *said);
/* What holdfast does not write gets kind 0 and an empty label. */
void ec_said_parse(struct ec_said *out, const char *value, size_t len);

/* A key and its value as etcd tells them. */
struct ec_kv {
    char key[EC_KEY_MAX];
    size_t key_len;
    bool cut; /* a stranger's: it is longer than any of ours, and this is its start */
    uint64_t create_revision;
    uint64_t mod_revision;
    int64_t lease; /* 0: none */
    struct ec_said said;
};

/* The range of all keys that begin with start: end gets start with the last byte that can be
 * counted up. A single zero byte is etcd's word for the very first key, and for the very end; both
 * buffers must have room for it. */
void ec_prefix_range(char *start, size_t *start_len, char *end, size_t *end_len);

/* Splits a key into the name of its lock (at most HF_NAME_MAX bytes) and what follows 0x1f. False
 * for a key that is no lock's. */
bool ec_key_name(const struct ec_kv *kv, const char *prefix, char name[HF_NAME_MAX + 1]);

#endif /* HF_STORES_ETCD_LAYOUT_H */
