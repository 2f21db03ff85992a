/* text.c - the JSON that is sent to etcd. 64-bit numbers are strings in it. */
#include "stores/etcd/text.h"
#include "stores/etcd/base64.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void use(struct ec_text *text, char *buffer, size_t size)
{
    text->data = buffer;
    text->size = size;
    text->len = 0;
    text->data[0] = '\0';
    text->cut = false;
}

void ec_text_clear(struct ec_text *text)
{
    use(text, text->room, sizeof text->room);
}

void ec_text_clear_in(struct ec_text *text, char *buffer, size_t size)
{
    if (buffer != NULL)
        use(text, buffer, size);
    else
        ec_text_clear(text);
}

void ec_text_add(struct ec_text *text, const char *format, ...)
{
    size_t room = text->size - text->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text->data + text->len, room, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= room)
        text->cut = true;
    else
        text->len += (size_t)len;
}

void ec_text_base64(struct ec_text *text, const void *data, size_t len)
{
    if (EC_BASE64_LEN(len) + 3 > text->size - text->len) {
        text->cut = true;
        return;
    }
    text->data[text->len++] = '"';
    text->len += ec_base64_encode(text->data + text->len, data, len);
    text->data[text->len++] = '"';
    text->data[text->len] = '\0';
}

void ec_text_string(struct ec_text *text, const char *string)
{
    ec_text_add(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            ec_text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            ec_text_add(text, "\\u%04x", (unsigned)*c);
        else
            ec_text_add(text, "%c", *c);
    }
    ec_text_add(text, "\"");
}

void ec_text_range(struct ec_text *text, const struct ec_range *range)
{
    ec_text_add(text, "\"key\":");
    ec_text_base64(text, range->key, range->key_len);
    if (range->end == NULL)
        return;
    ec_text_add(text, ",\"range_end\":");
    ec_text_base64(text, range->end, range->end_len);
}

/* The comma between the items of a list, which the first does without. */
static void next_item(struct ec_text *text)
{
    if (text->len > 0 && text->data[text->len - 1] != '[')
        ec_text_add(text, ",");
}

static const char opening[] = "{\"compare\":[";

void ec_txn_begin(struct ec_text *text)
{
    ec_text_clear(text);
    ec_text_add(text, "%s", opening);
}

void ec_txn_begin_in(struct ec_text *text, char *buffer, size_t size)
{
    ec_text_clear_in(text, buffer, size);
    ec_text_add(text, "%s", opening);
}

void ec_txn_nest(struct ec_text *text)
{
    next_item(text);
    ec_text_add(text, "{\"request_txn\":%s", opening);
}

void ec_txn_unnest(struct ec_text *text)
{
    ec_text_add(text, "]}}");
}

void ec_txn_compare(struct ec_text *text, const struct ec_range *range, const char *target,
                    const char *result, uint64_t number)
{
    const char *what = strcmp(target, "MOD") == 0     ? "mod_revision"
                       : strcmp(target, "LEASE") == 0 ? "lease"
                                                      : "create_revision";

    next_item(text);
    ec_text_add(text, "{");
    ec_text_range(text, range);
    ec_text_add(text, ",\"target\":\"%s\",\"result\":\"%s\",\"%s\":\"%" PRIu64 "\"}", target,
                result, what, number);
}

void ec_txn_compare_value(struct ec_text *text, const struct ec_range *key, const char *result,
                          const char *value, size_t len)
{
    next_item(text);
    ec_text_add(text, "{");
    ec_text_range(text, key);
    ec_text_add(text, ",\"target\":\"VALUE\",\"result\":\"%s\",\"value\":", result);
    ec_text_base64(text, value, len);
    ec_text_add(text, "}");
}

void ec_txn_compare_word(struct ec_text *text, const struct ec_range *key, const char *word)
{
    static const struct {
        const char *result;
        char end; /* "word!" is above every "word ..." and nothing else is in between */
    } sides[] = {{"GREATER", ' '}, {"LESS", ' ' + 1}};
    char edge[64];

    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        int len = snprintf(edge, sizeof edge, "%.60s%c", word, sides[i].end);

        ec_txn_compare_value(text, key, sides[i].result, edge, (size_t)len);
    }
}

void ec_txn_then(struct ec_text *text)
{
    ec_text_add(text, "],\"success\":[");
}

void ec_txn_otherwise(struct ec_text *text)
{
    ec_text_add(text, "],\"failure\":[");
}

void ec_txn_end(struct ec_text *text)
{
    ec_text_add(text, "]}");
}

void ec_txn_put(struct ec_text *text, const struct ec_range *key, const char *value, int64_t lease)
{
    ec_txn_put_bytes(text, key, value, strlen(value), lease);
}

void ec_txn_put_bytes(struct ec_text *text, const struct ec_range *key, const void *value,
                      size_t len, int64_t lease)
{
    next_item(text);
    ec_text_add(text, "{\"request_put\":{\"key\":");
    ec_text_base64(text, key->key, key->key_len);
    ec_text_add(text, ",\"value\":");
    ec_text_base64(text, value, len);
    if (lease != 0)
        ec_text_add(text, ",\"lease\":\"%" PRId64 "\"", lease);
    ec_text_add(text, "}}");
}

void ec_txn_range(struct ec_text *text, const struct ec_range *range, enum ec_order order,
                  unsigned limit, uint64_t before)
{
    next_item(text);
    ec_text_add(text, "{\"request_range\":{");
    ec_text_range(text, range);
    if (limit > 0)
        ec_text_add(text, ",\"limit\":\"%u\"", limit);
    if (order != EC_BY_KEY)
        ec_text_add(text, ",\"sort_target\":\"CREATE\",\"sort_order\":\"%s\"",
                    order == EC_OLDEST_FIRST ? "ASCEND" : "DESCEND");
    if (before > 0)
        ec_text_add(text, ",\"max_create_revision\":\"%" PRIu64 "\"", before - 1);
    ec_text_add(text, "}}");
}

void ec_txn_delete(struct ec_text *text, const struct ec_range *key, bool tell_old)
{
    next_item(text);
    ec_text_add(text, "{\"request_delete_range\":{\"key\":");
    ec_text_base64(text, key->key, key->key_len);
    ec_text_add(text, tell_old ? ",\"prev_kv\":true}}" : "}}");
}
