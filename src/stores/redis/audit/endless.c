/* endless.c - lock keys without a ttl: somebody's broken locks, which never end. With a prefix,
 * what is below it is a lock; without, what holdfast has a record of. A sample: a few pages of
 * SCAN. */
#include "stores/redis/audit/audit.h"
#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGES_MAX = 10, KEYS_MAX = 512, PATTERN_MAX = 2 * RD_PREFIX_MAX + 64 };

/* The lock's key, if this one tells of one. */
static bool lock_key(const struct rd_url *url, const char *found, char out[RD_KEY_MAX])
{
    char name[HF_NAME_MAX + 1];
    bool is_counter;

    if (url->prefix[0] != '\0') {
        if (strlen(found) >= RD_KEY_MAX)
            return false;
        memcpy(out, found, strlen(found) + 1);
        return true;
    }
    if (!rd_keys_name(name, url->prefix, found, &is_counter) || !is_counter)
        return false;
    (void)snprintf(out, RD_KEY_MAX, "%s", name);
    return true;
}

/* How many of a page's locks have no ttl; -1: that was not answered. */
static int64_t count_endless(const struct rd_audit *audit, struct rd_audited *server,
                             const struct rd_reply *page, const struct hf__patience *patience)
{
    struct rd_reply *replies[2 * KEYS_MAX];
    struct rd_request request = {0};
    char key[RD_KEY_MAX];
    struct hf_error err;
    size_t count = 0;
    int64_t endless = 0;

    for (size_t i = 0; i < page->len && count < KEYS_MAX; i++) {
        if (!lock_key(&audit->store->setup.url, rd_reply_text(rd_reply_at(page, i)), key))
            continue;
        rd_request_command(&request, (const char *const[]){"PTTL", key, NULL});
        rd_request_command(&request, (const char *const[]){"TYPE", key, NULL});
        count++;
    }
    if (count > 0 &&
        rd_pool_ask(&server->node->pool, &request, 2 * count, patience, replies, &err) != HF_OK)
        endless = -1;
    rd_request_release(&request);
    for (size_t i = 0; i < count && endless >= 0; i++) {
        endless += rd_reply_number(replies[2 * i], 0) == -1 &&
                   strcmp(rd_reply_text(replies[2 * i + 1]), "string") == 0;
        rd_reply_free(replies[2 * i]);
        rd_reply_free(replies[2 * i + 1]);
    }
    return endless;
}

void rd_audit_tell_endless(const struct rd_audit *audit, struct rd_audited *server,
                           const struct hf__patience *patience)
{
    struct hf__topic topic = {"redis.locks_without_ttl", NULL, "SCAN, PTTL"};
    const char *prefix = audit->store->setup.url.prefix;
    char pattern[PATTERN_MAX];
    char cursor[RD_CURSOR_MAX] = "0";
    int64_t endless = 0;

    if (prefix[0] != '\0')
        rd_keys_plain_pattern(pattern, sizeof pattern, prefix);
    else
        rd_keys_pattern(pattern, sizeof pattern, prefix, "");
    for (int i = 0; i < PAGES_MAX && (i == 0 || strcmp(cursor, "0") != 0); i++) {
        struct rd_reply *page;
        struct hf_error err;
        int64_t more;

        if (rd_scan(server->node, pattern, cursor, patience, &page, &err) != HF_OK) {
            hf__tell_unknown(audit->teller, topic, err.text);
            return;
        }
        more = count_endless(audit, server, rd_reply_at(page, 1), patience);
        rd_reply_free(page);
        if (more < 0) {
            hf__tell_unknown(audit->teller, topic, "");
            return;
        }
        endless += more;
    }
    if (strcmp(cursor, "0") != 0)
        topic.source = "SCAN of some of the keys, PTTL";
    hf__tell(audit->teller, topic, "%" PRId64, endless);
}
