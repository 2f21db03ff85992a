/* record.h - how the records of a lock look in ZooKeeper. Pure.
 *
 * A record is the node ROOT/%records/NAME/KEY, both percent-encoded. No lock's node is called
 * "%records": a percent sign in a name becomes "%25". ROOT/%records/NAME is a container. The data
 * is
 *
 *   1 SPACE TOKEN SPACE NUMBER SPACE KEEP_MS NEWLINE VALUE
 *
 * and the rest is in the node's Stat: it was written at mtime, by the clock of the leader, and is
 * kept until KEEP_MS later. */
#ifndef HF_ZOOKEEPER_RECORD_H
#define HF_ZOOKEEPER_RECORD_H

#include "stores/zookeeper/url.h"
#include <holdfast/record.h>
#include <zookeeper/zookeeper.h>

enum {
    ZK_HEAD_SIZE = 2 + 3 * 21 + 1,      /* of all that is before VALUE, and a NUL */
    ZK_KEY_MAX = 3 * HF_RECORD_KEY_MAX, /* bytes of an encoded key */
    ZK_RECORD_PATH_MAX = ZK_ROOT_MAX + 3 * HF_NAME_MAX + ZK_KEY_MAX + 16
};

/* The path of a record; of the container, if key is NULL. False: it does not fit. */
bool zk_record_path(const char *root, const char *name, const char *key,
                    char out[ZK_RECORD_PATH_MAX]);

/* What comes before VALUE. Returns its length. */
size_t zk_record_head(char out[ZK_HEAD_SIZE], uint64_t token, uint64_t number, int64_t keep_ms);
/* Everything but the key is filled in, and points into text (a NUL follows that). False: it was not
 * written by us. */
bool zk_record_parse(const char *text, size_t len, const struct Stat *stat, struct hf_record *out);
static inline bool zk_record_expired(const struct hf_record *record, int64_t now_ms)
{
    return record->until_ms != 0 && now_ms >= record->until_ms;
}

#endif /* HF_ZOOKEEPER_RECORD_H */
