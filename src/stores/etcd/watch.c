/* watch.c - hears when one key is deleted, through a watch stream on a connection of its own. */
#include "stores/etcd/watch.h"
#include "base/base.h"

#include <inttypes.h>
#include <string.h>

static void sink(void *data, const char *bytes, size_t len)
{
    struct ec_watch *watch = data;

    ec_stream_feed(&watch->stream, bytes, len);
    watch->stop = watch->stream.event >= EC_EVENT_DELETED;
}

bool ec_watch_open(struct ec_store *store, struct ec_watch *watch, const struct ec_kv *kv,
                   uint64_t from_revision)
{
    char start[EC_KEY_MAX + 1];
    char end[EC_KEY_MAX + 1];
    struct ec_range key = {.key = start, .key_len = kv->key_len};
    char auth[EC_AUTH_MAX];
    struct ec_text body;
    bool begun;

    memset(watch, 0, sizeof *watch);
    memcpy(start, kv->key, kv->key_len);
    if (kv->cut) { /* all keys that begin like that: whoever hears of another one looks again */
        key.end = end;
        ec_prefix_range(start, &key.key_len, end, &key.end_len);
    }
    ec_text_clear(&body);
    ec_text_add(&body, "{\"create_request\":{");
    ec_text_range(&body, &key);
    ec_text_add(&body, ",\"filters\":[\"NOPUT\"],\"start_revision\":\"%" PRIu64 "\"}}",
                from_revision);
    watch->line = ec_line_take(store);
    if (watch->line == NULL)
        return false;
    ec_where(store, watch->endpoint, auth);
    (void)curl_easy_setopt(watch->line->easy, CURLOPT_CONNECTTIMEOUT_MS, 2000L);
    begun = ec_line_begin(watch->line, watch->endpoint, "/v3/watch", body.data, body.len, auth,
                          sink, watch);
    explicit_bzero(auth, sizeof auth);
    if (!begun)
        ec_watch_close(store, watch);
    return begun;
}

enum ec_heard ec_watch_listen(struct ec_watch *watch, const struct ec_patience *patience)
{
    bool going = ec_line_work(watch->line, patience, &watch->stop);

    if (watch->stream.event == EC_EVENT_DELETED)
        return EC_HEARD_DELETED;
    return !going || watch->stream.event == EC_EVENT_BROKEN ? EC_HEARD_BROKEN : EC_HEARD_NOTHING;
}

void ec_watch_close(struct ec_store *store, struct ec_watch *watch)
{
    if (watch->line != NULL)
        ec_line_give(store, watch->line);
    watch->line = NULL;
    ec_stream_clear(&watch->stream);
}
