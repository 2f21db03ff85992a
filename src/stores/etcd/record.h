/* record.h - how the records of a lock look in etcd. Pure.
 *
 * A record is the key PREFIX 0x1e NAME 0x1f KEY, on no lease, with the value
 *
 *   TOKEN SPACE NUMBER SPACE 1 SPACE WRITTEN_MS SPACE UNTIL_MS NEWLINE VALUE
 *
 * TOKEN and NUMBER are 16 hex digits each: the order of the values is that of the pairs, and etcd
 * can compare it. One that is not kept for ever has an entry in a list of those that will expire,
 * PREFIX 0x1d NAME 0x1f UNTIL_MS 0x1f KEY with UNTIL_MS in 16 hex digits: what has expired comes
 * first there. Both are put in one transaction, so an entry is the record's own if they have one
 * mod revision; a record that is written again leaves an entry behind that is not.
 *
 * No lock's name begins with a control character: neither is in the queue of a lock or in a
 * listing. */
#ifndef HF_STORES_ETCD_RECORD_H
#define HF_STORES_ETCD_RECORD_H

#include "stores/etcd/layout.h"
#include <holdfast/record.h>

enum {
    EC_HEX_LEN = 16,
    EC_PAIR_LEN = EC_HEX_LEN + 1 + EC_HEX_LEN,
    EC_RECORD_KEY_SIZE =
        EC_PREFIX_MAX + 1 + HF_NAME_MAX + 1 + EC_HEX_LEN + 1 + HF_RECORD_KEY_MAX + 1,
    EC_HEAD_SIZE = EC_PAIR_LEN + 3 + 2 * 21 + 1, /* of all that is before VALUE, and a NUL */
    EC_GRACE_MS = 1000 /* the clock counts in seconds: nothing is gone before its time */
};

#define EC_RECORDS  0x1e
#define EC_EXPIRIES 0x1d

struct ec_record_key {
    char text[EC_RECORD_KEY_SIZE];
    size_t len;
};

/* key may be the start of keys, or "". */
void ec_record_key(struct ec_record_key *out, const char *prefix, const char *name,
                   const char *key);
/* The entry of that record; with key "" what is before every entry of that time or later. */
void ec_expiry_key(struct ec_record_key *out, const char *prefix, const char *name,
                   int64_t until_ms, const char *key);
struct ec_range ec_key_range(const struct ec_record_key *key);
/* The key of the record that an entry is about; false: it is none. Points into text. */
bool ec_expiry_parse(const char *text, size_t len, const char *prefix, const char *name,
                     const char **key);

/* What comes before VALUE; its first EC_PAIR_LEN bytes are below any value of that pair, and above
 * any of a lower one. Returns its length. */
size_t ec_record_head(char out[EC_HEAD_SIZE], const struct hf_record *record);
/* The reverse: everything but the key is filled in, and points into text (a NUL follows that).
 * False: it was not written by us. */
bool ec_record_parse(const char *text, size_t len, struct hf_record *out);
bool ec_record_expired(const struct hf_record *record, int64_t now_ms);

#endif /* HF_STORES_ETCD_RECORD_H */
