/* answer.c - what etcd sends, taken apart. */
#include "stores/etcd/answer.h"
#include "base/base.h"
#include "stores/etcd/base64.h"

#include <stdlib.h>
#include <string.h>

#define EXACT_MAX 9007199254740992.0 /* above it a JSON number may stand for several integers */

cJSON *ec_answer_parse(const char *data, size_t len)
{
    cJSON *json = len > 0 ? cJSON_ParseWithLength(data, len) : NULL;

    if (json != NULL && !cJSON_IsObject(json)) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(member(object, name));

    return text != NULL ? text : "";
}

int64_t ec_answer_number(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);
    const char *text = cJSON_GetStringValue(item);
    uint64_t number;
    bool negative;

    if (cJSON_IsNumber(item)) /* its valueint ends at INT_MAX */
        return item->valuedouble >= -EXACT_MAX && item->valuedouble <= EXACT_MAX &&
                       item->valuedouble == (double)(int64_t)item->valuedouble
                   ? (int64_t)item->valuedouble
                   : 0;
    if (text == NULL)
        return 0;
    negative = text[0] == '-';
    if (!hf__parse_u64(text + negative, &number) || number > INT64_MAX)
        return 0;
    return negative ? -(int64_t)number : (int64_t)number;
}

bool ec_answer_is_etcd(const cJSON *answer)
{
    const cJSON *result = member(answer, "result"); /* of a stream */

    return cJSON_IsObject(member(result != NULL ? result : answer, "header"));
}

uint64_t ec_answer_revision(const cJSON *answer)
{
    int64_t revision = ec_answer_number(member(answer, "header"), "revision");

    return revision > 0 ? (uint64_t)revision : 0;
}

const char *ec_answer_cluster(const cJSON *answer)
{
    return text_of(member(answer, "header"), "cluster_id");
}

bool ec_answer_succeeded(const cJSON *txn)
{
    return cJSON_IsTrue(member(txn, "succeeded"));
}

/* A key of ours is never cut. */
_Static_assert(EC_KEY_MAX / 3 * 3 >= EC_PREFIX_MAX - 1 + HF_NAME_MAX + 1 + HF_OWNER_LEN,
               "the longest key of ours does not fit");

static bool read_kv(const cJSON *item, struct ec_kv *out)
{
    char value[EC_VALUE_MAX];
    size_t value_len = 0;

    memset(out, 0, sizeof *out);
    if (!cJSON_IsObject(item) ||
        !ec_base64_decode_start(out->key, sizeof out->key, text_of(item, "key"), &out->key_len,
                                &out->cut))
        return false;
    out->create_revision = (uint64_t)ec_answer_number(item, "create_revision");
    out->mod_revision = (uint64_t)ec_answer_number(item, "mod_revision");
    out->lease = ec_answer_number(item, "lease");
    /* A value that does not fit is not ours. */
    if (ec_base64_decode(value, sizeof value, text_of(item, "value"), &value_len))
        ec_said_parse(&out->said, value, value_len);
    return out->key_len > 0 && out->create_revision > 0 && out->create_revision <= INT64_MAX;
}

size_t ec_answer_kv_count(const cJSON *object)
{
    return (size_t)cJSON_GetArraySize(member(object, "kvs"));
}

bool ec_answer_kv(const cJSON *object, size_t i, struct ec_kv *out)
{
    return read_kv(cJSON_GetArrayItem(member(object, "kvs"), (int)i), out);
}

bool ec_answer_key(const cJSON *object, size_t i, char *out, size_t size, size_t *len, bool *cut)
{
    const cJSON *item = cJSON_GetArrayItem(member(object, "kvs"), (int)i);

    return ec_base64_decode_start(out, size, text_of(item, "key"), len, cut) && *len > 0;
}

bool ec_answer_item(const cJSON *object, size_t i, struct ec_item *out, bool *nomem)
{
    const cJSON *item = cJSON_GetArrayItem(member(object, "kvs"), (int)i);
    size_t key_size = strlen(text_of(item, "key")) / 4 * 3 + 1;
    size_t value_size = strlen(text_of(item, "value")) / 4 * 3 + 1;

    memset(out, 0, sizeof *out);
    out->key = malloc(key_size + value_size);
    *nomem = out->key == NULL;
    if (*nomem)
        return false;
    out->value = out->key + key_size;
    if (!ec_base64_decode(out->key, key_size - 1, text_of(item, "key"), &out->key_len) ||
        !ec_base64_decode(out->value, value_size - 1, text_of(item, "value"), &out->value_len)) {
        ec_item_release(out);
        return false;
    }
    out->key[out->key_len] = '\0';
    out->value[out->value_len] = '\0';
    out->mod_revision = (uint64_t)ec_answer_number(item, "mod_revision");
    return true;
}

void ec_item_release(struct ec_item *item)
{
    free(item->key);
    memset(item, 0, sizeof *item);
}

const cJSON *ec_answer_part(const cJSON *txn, size_t i)
{
    const cJSON *item = cJSON_GetArrayItem(member(txn, "responses"), (int)i);
    static const char *const kinds[] = {"response_range", "response_delete_range", "response_put",
                                        "response_txn"};
    const cJSON *part = NULL;

    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds && part == NULL; kind++)
        part = member(item, kinds[kind]);
    return part;
}

bool ec_answer_deleted(const cJSON *part, struct ec_kv *out)
{
    return read_kv(cJSON_GetArrayItem(member(part, "prev_kvs"), 0), out);
}

/* Says which key it was. */
static void tell(const struct ec_stream *stream, const cJSON *event, bool deleted)
{
    const cJSON *item = member(event, "kv");
    struct ec_kv kv = {0};

    if (!ec_base64_decode_start(kv.key, sizeof kv.key, text_of(item, "key"), &kv.key_len, &kv.cut))
        return;
    kv.mod_revision = (uint64_t)ec_answer_number(item, "mod_revision");
    stream->fn(stream->data, &kv, deleted);
}

/* One message: {"result":{...}} or {"error":{...}}. */
static enum ec_event read_event(struct ec_stream *stream, const char *data, size_t len)
{
    cJSON *message = ec_answer_parse(data, len);
    const cJSON *result = member(message, "result");
    const cJSON *event;
    enum ec_event out = EC_EVENT_NONE;

    if (!cJSON_IsObject(result) || cJSON_IsTrue(member(result, "canceled")) ||
        ec_answer_number(result, "compact_revision") > 0) {
        out = EC_EVENT_BROKEN;
    } else {
        if (cJSON_IsTrue(member(result, "created"))) {
            out = EC_EVENT_CREATED;
            stream->created++;
        }
        cJSON_ArrayForEach(event, member(result, "events"))
        {
            bool deleted = strcmp(text_of(event, "type"), "DELETE") == 0;

            if (!deleted && stream->fn == NULL)
                continue;
            out = EC_EVENT_HEARD;
            if (stream->fn != NULL)
                tell(stream, event, deleted);
        }
    }
    cJSON_Delete(message);
    return out;
}

void ec_stream_feed(struct ec_stream *stream, const char *data, size_t len)
{
    if (stream->text == NULL && (stream->text = malloc(EC_EVENT_MAX)) == NULL) {
        stream->event = EC_EVENT_BROKEN;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        if (data[i] != '\n') {
            if (stream->len == EC_EVENT_MAX) {
                stream->event = EC_EVENT_BROKEN;
                stream->len = 0;
            }
            stream->text[stream->len++] = data[i];
        } else if (stream->len > 0) {
            enum ec_event event = read_event(stream, stream->text, stream->len);

            if (event > stream->event)
                stream->event = event;
            stream->len = 0;
        }
    }
}

void ec_stream_clear(struct ec_stream *stream)
{
    free(stream->text);
    memset(stream, 0, sizeof *stream);
}
