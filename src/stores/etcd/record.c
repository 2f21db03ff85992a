/* record.c - how the records of a lock look in etcd. */
#include "stores/etcd/record.h"
#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void ec_record_key(struct ec_record_key *out, const char *prefix, const char *name, const char *key)
{
    out->len =
        (size_t)snprintf(out->text, sizeof out->text, "%.*s%c%.*s%c%.*s", EC_PREFIX_MAX - 1, prefix,
                         EC_RECORDS, HF_NAME_MAX, name, EC_NAME_END, HF_RECORD_KEY_MAX, key);
}

void ec_expiry_key(struct ec_record_key *out, const char *prefix, const char *name,
                   int64_t until_ms, const char *key)
{
    out->len = (size_t)snprintf(out->text, sizeof out->text, "%.*s%c%.*s%c%016" PRIx64,
                                EC_PREFIX_MAX - 1, prefix, EC_EXPIRIES, HF_NAME_MAX, name,
                                EC_NAME_END, (uint64_t)(until_ms > 0 ? until_ms : 0));
    if (key[0] != '\0')
        out->len += (size_t)snprintf(out->text + out->len, sizeof out->text - out->len, "%c%.*s",
                                     EC_NAME_END, HF_RECORD_KEY_MAX, key);
}

struct ec_range ec_key_range(const struct ec_record_key *key)
{
    return (struct ec_range){.key = key->text, .key_len = key->len};
}

bool ec_expiry_parse(const char *text, size_t len, const char *prefix, const char *name,
                     const char **key)
{
    struct ec_record_key first;
    size_t start_len;

    ec_expiry_key(&first, prefix, name, 0, "");
    start_len = first.len - EC_HEX_LEN;
    if (len <= first.len + 1 || strlen(text) != len || text[first.len] != EC_NAME_END ||
        len - first.len - 1 > HF_RECORD_KEY_MAX || memcmp(text, first.text, start_len) != 0)
        return false;
    *key = text + first.len + 1;
    return true;
}

size_t ec_record_head(char out[EC_HEAD_SIZE], const struct hf_record *record)
{
    return (size_t)snprintf(out, EC_HEAD_SIZE,
                            "%016" PRIx64 " %016" PRIx64 " 1 %" PRId64 " %" PRId64 "\n",
                            record->token, record->number, record->written_ms, record->until_ms);
}

/* 16 hex digits and what ends them. */
static bool take_hex(const char **at, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";

    *out = 0;
    for (int i = 0; i < EC_HEX_LEN; i++) {
        const char *digit = **at != '\0' ? strchr(digits, **at) : NULL;

        if (digit == NULL)
            return false;
        *out = *out << 4 | (uint64_t)(digit - digits);
        ++*at;
    }
    return *(*at)++ == ' ';
}

/* Decimal digits and what ends them. */
static bool take_ms(const char **at, char end, int64_t *out)
{
    char text[24];
    size_t len = strspn(*at, "0123456789");
    uint64_t number;

    if (len == 0 || len >= sizeof text || (*at)[len] != end)
        return false;
    memcpy(text, *at, len);
    text[len] = '\0';
    *at += len + 1;
    if (!hf__parse_u64(text, &number) || number > INT64_MAX)
        return false;
    *out = (int64_t)number;
    return true;
}

bool ec_record_parse(const char *text, size_t len, struct hf_record *out)
{
    const char *end = memchr(text, '\n', len);
    const char *at = text;

    if (end == NULL || end - text >= EC_HEAD_SIZE || !take_hex(&at, &out->token) ||
        !take_hex(&at, &out->number) || strncmp(at, "1 ", 2) != 0)
        return false;
    at += 2;
    if (!take_ms(&at, ' ', &out->written_ms) || !take_ms(&at, '\n', &out->until_ms))
        return false;
    out->size = sizeof *out;
    out->value = at;
    out->value_len = len - (size_t)(at - text);
    return out->token != 0 && out->value_len <= HF_RECORD_VALUE_MAX;
}

bool ec_record_expired(const struct hf_record *record, int64_t now_ms)
{
    return record->until_ms != 0 && now_ms >= record->until_ms &&
           now_ms - record->until_ms >= EC_GRACE_MS;
}
