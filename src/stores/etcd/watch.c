/* watch.c - hears when keys are deleted or put, through a watch stream on a connection of its
 * own. */
#include "stores/etcd/watch.h"
#include "base/base.h"

#include <inttypes.h>
#include <string.h>

static void sink(void *data, const char *bytes, size_t len)
{
    struct ec_watch *watch = data;

    ec_stream_feed(&watch->stream, bytes, len);
    watch->stop = watch->stream.event >= EC_EVENT_HEARD ||
                  (watch->stream.wanted > 0 && watch->stream.created >= watch->stream.wanted);
}

static void add_range(struct ec_text *body, const struct ec_range *range, const char *filter,
                      uint64_t from_revision)
{
    ec_text_add(body, "{\"create_request\":{");
    ec_text_range(body, range);
    ec_text_add(body, ",\"filters\":[\"%s\"]", filter);
    if (from_revision > 0)
        ec_text_add(body, ",\"start_revision\":\"%" PRIu64 "\"", from_revision);
    ec_text_add(body, "}}\n");
}

static bool begin(struct ec_store *store, struct ec_watch *watch, const struct ec_text *body)
{
    char auth[HF__HTTP_AUTH_MAX];
    struct hf__http_request post = {.endpoint = watch->endpoint,
                                    .path = "/v3/watch",
                                    .json = body->data,
                                    .json_len = body->len,
                                    .auth = auth};
    bool begun;

    watch->http = body->cut ? NULL : hf__http_take(&store->pool);
    if (watch->http == NULL)
        return false;
    ec_where(store, watch->endpoint, auth);
    (void)curl_easy_setopt(watch->http->easy, CURLOPT_CONNECTTIMEOUT_MS, 2000L);
    begun = hf__http_begin(watch->http, &post, sink, watch);
    explicit_bzero(auth, sizeof auth);
    if (!begun)
        ec_watch_close(store, watch);
    return begun;
}

bool ec_watch_open(struct ec_store *store, struct ec_watch *watch, const struct ec_watch_keys *keys)
{
    struct ec_text body;

    memset(watch, 0, sizeof *watch);
    watch->stream.fn = keys->fn;
    watch->stream.data = keys->data;
    ec_text_clear_in(&body, keys->buffer, keys->buffer_size);
    for (size_t i = 0; i < keys->count; i++) {
        const struct ec_kv *kv = &keys->at[i];
        char start[EC_KEY_MAX + 1];
        char end[EC_KEY_MAX + 1];
        struct ec_range key = {.key = start, .key_len = kv->key_len};

        memcpy(start, kv->key, kv->key_len);
        if (kv->cut) { /* all keys that begin like that: whoever hears of another one looks again */
            key.end = end;
            ec_prefix_range(start, &key.key_len, end, &key.end_len);
        }
        add_range(&body, &key, "NOPUT", keys->from_revision);
    }
    return begin(store, watch, &body);
}

bool ec_watch_open_many(struct ec_store *store, struct ec_watch *watch,
                        const struct ec_watch_plan *plan, ec_heard_fn *fn, void *data)
{
    struct ec_text body;

    memset(watch, 0, sizeof *watch);
    watch->stream.fn = fn;
    watch->stream.data = data;
    watch->stream.wanted = (unsigned)plan->count + 1;
    ec_text_clear(&body);
    for (size_t i = 0; i < plan->count; i++)
        add_range(&body, &plan->ranges[i], "NOPUT", plan->from_revision);
    add_range(&body, &plan->puts, "NODELETE", plan->from_revision);
    return begin(store, watch, &body);
}

enum ec_heard ec_watch_listen(struct ec_watch *watch, const struct hf__patience *patience)
{
    struct ec_stream *stream = &watch->stream;

    if (!watch->over)
        watch->over = !hf__http_work(watch->http, patience, &watch->stop);
    if (stream->event == EC_EVENT_BROKEN || (watch->over && stream->event != EC_EVENT_HEARD))
        return EC_HEARD_BROKEN;
    watch->stop = false;
    if (stream->event == EC_EVENT_HEARD) {
        stream->event = EC_EVENT_NONE;
        return EC_HEARD_EVENT;
    }
    if (stream->wanted == 0 || stream->created < stream->wanted)
        return EC_HEARD_NOTHING;
    stream->wanted = 0;
    return EC_HEARD_CREATED;
}

void ec_watch_close(struct ec_store *store, struct ec_watch *watch)
{
    if (watch->http != NULL)
        hf__http_give(&store->pool, watch->http);
    watch->http = NULL;
    ec_stream_clear(&watch->stream);
}
