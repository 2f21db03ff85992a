/* record.c - how the records of a lock look in ZooKeeper. */
#include "stores/zookeeper/record.h"
#include "base/base.h"
#include "stores/zookeeper/name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool zk_record_path(const char *root, const char *name, const char *key,
                    char out[ZK_RECORD_PATH_MAX])
{
    size_t used = (size_t)snprintf(out, ZK_RECORD_PATH_MAX, "%s/%%records/", root);

    if (!zk_node_name(out + used, ZK_NAME_MAX + 1, name))
        return false;
    if (key == NULL)
        return true;
    used += strlen(out + used);
    out[used++] = '/';
    return zk_node_name(out + used, ZK_KEY_MAX + 1, key);
}

size_t zk_record_head(char out[ZK_HEAD_SIZE], uint64_t token, uint64_t number, int64_t keep_ms)
{
    return (size_t)snprintf(out, ZK_HEAD_SIZE, "1 %" PRIu64 " %" PRIu64 " %" PRId64 "\n", token,
                            number, keep_ms);
}

/* Decimal digits and what ends them. */
static bool take_number(const char **at, char end, uint64_t *out)
{
    char text[24];
    size_t len = strspn(*at, "0123456789");

    if (len == 0 || len >= sizeof text || (*at)[len] != end)
        return false;
    memcpy(text, *at, len);
    text[len] = '\0';
    *at += len + 1;
    return hf__parse_u64(text, out);
}

bool zk_record_parse(const char *text, size_t len, const struct Stat *stat, struct hf_record *out)
{
    const char *at = text + 2;
    uint64_t keep_ms;

    if (len < 2 || memcmp(text, "1 ", 2) != 0 || memchr(text, '\n', len) == NULL ||
        !take_number(&at, ' ', &out->token) || !take_number(&at, ' ', &out->number) ||
        !take_number(&at, '\n', &keep_ms) || stat->mtime < 0)
        return false;
    out->size = sizeof *out;
    out->written_ms = stat->mtime;
    out->until_ms = 0;
    if (keep_ms > (uint64_t)(INT64_MAX - stat->mtime))
        out->until_ms = INT64_MAX;
    else if (keep_ms > 0)
        out->until_ms = stat->mtime + (int64_t)keep_ms;
    out->value = at;
    out->value_len = len - (size_t)(at - text);
    return out->token != 0 && out->value_len <= HF_RECORD_VALUE_MAX;
}
