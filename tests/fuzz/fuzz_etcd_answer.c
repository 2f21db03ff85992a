/* fuzz_etcd_answer.c - whatever a server or a user may send: answers, the lines of a watch,
 * values, base64, URLs, error messages. Built by fuzz.sh. */
#include "stores/etcd/answer.h"
#include "stores/etcd/base64.h"
#include "stores/etcd/errors.h"
#include "stores/etcd/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A record that is understood is one that could have been written. */
static void read_record(const char *text, size_t size)
{
    struct hf_record record;

    if (ec_record_parse(text, size, &record) &&
        (record.token == 0 || record.value_len > HF_RECORD_VALUE_MAX ||
         (const char *)record.value < text ||
         (const char *)record.value + record.value_len != text + size))
        abort();
}

static void read_item(const cJSON *object, size_t i)
{
    struct ec_item item;
    const char *key;
    bool nomem;

    if (!ec_answer_item(object, i, &item, &nomem))
        return;
    read_record(item.value, item.value_len);
    (void)ec_expiry_parse(item.key, item.key_len, "holdfast/", "n", &key);
    ec_item_release(&item);
}

static void read_answer(const char *text, size_t size)
{
    cJSON *json = ec_answer_parse(text, size);
    char name[HF_NAME_MAX + 1];
    struct ec_kv kv;
    char key[64];
    size_t len;
    bool cut;

    if (json == NULL)
        return;
    (void)ec_answer_is_etcd(json);
    (void)ec_answer_revision(json);
    (void)strlen(ec_answer_cluster(json));
    (void)ec_answer_succeeded(json);
    (void)ec_answer_number(json, "TTL");
    for (size_t i = 0; i < 4; i++) {
        const cJSON *part = ec_answer_part(json, i);

        read_item(part, 0);
        if (ec_answer_kv(part, 0, &kv) || ec_answer_deleted(part, &kv))
            (void)ec_key_name(&kv, "holdfast/", name);
    }
    for (size_t i = 0; i < ec_answer_kv_count(json) && i < 8; i++) {
        read_item(json, i);
        if (ec_answer_kv(json, i, &kv)) {
            (void)ec_key_name(&kv, "", name);
            if (!ec_answer_key(json, i, key, sizeof key, &len, &cut) || len > sizeof key ||
                memcmp(key, kv.key, len) != 0)
                abort();
        }
    }
    cJSON_Delete(json);
}

/* In two pieces, cut where the first byte says: the result must not depend on it. */
static void read_stream(const char *text, size_t size)
{
    struct ec_stream whole = {0};
    struct ec_stream cut = {0};
    size_t at = size > 0 ? (unsigned char)text[0] % (size + 1) : 0;

    ec_stream_feed(&whole, text, size);
    ec_stream_feed(&cut, text, at);
    ec_stream_feed(&cut, text + at, size - at);
    if (whole.event != cut.event)
        abort();
    ec_stream_clear(&whole);
    ec_stream_clear(&cut);
}

static void read_words(const char *text, size_t size)
{
    struct ec_said said;
    struct ec_said again;
    struct hf_error err;
    struct ec_url url;
    char value[EC_VALUE_MAX];
    unsigned char bytes[512];
    size_t len;

    ec_said_parse(&said, text, size);
    if (said.kind != 0) {
        ec_said_format(value, &said);
        ec_said_parse(&again, value, strlen(value));
        if (again.kind != said.kind || again.ttl_ms != said.ttl_ms ||
            again.since_us != said.since_us || strcmp(again.label, said.label) != 0 ||
            again.revoked != said.revoked || strcmp(again.revocation.by, said.revocation.by) != 0 ||
            strcmp(again.revocation.reason, said.revocation.reason) != 0)
            abort();
    }
    if (ec_base64_decode(bytes, sizeof bytes, text, &len)) {
        char back[EC_BASE64_LEN(sizeof bytes) + 1];

        back[ec_base64_encode(back, bytes, len)] = '\0';
        if (strcmp(back, text) != 0)
            abort();
    }
    (void)ec_url_parse(text, &url, &err);
    (void)ec_verdict_fail(ec_verdict(size % 600, (int64_t)(size % 20), text), text, "x", "y", &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    read_answer(text, size);
    read_stream(text, size);
    read_words(text, size);
    read_record(text, size);
    free(text);
    return 0;
}
