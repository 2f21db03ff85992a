/* layout.c - how a lock looks in etcd. */
#include "stores/etcd/layout.h"
#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void ec_keys_make(struct ec_keys *out, const char *prefix, const char *name, const char *owner)
{
    out->queue_len = (size_t)snprintf(out->own, sizeof out->own, "%.*s%.*s%c", EC_PREFIX_MAX - 1,
                                      prefix, HF_NAME_MAX, name, EC_NAME_END);
    memcpy(out->queue_end, out->own, out->queue_len);
    out->queue_end[out->queue_len - 1] = EC_NAME_END + 1;
    (void)snprintf(out->own + out->queue_len, sizeof out->own - out->queue_len, "%.*s",
                   HF_OWNER_LEN, owner);
    out->own_len = out->queue_len;
}

void ec_keys_use(struct ec_keys *keys, bool waited)
{
    keys->own_len = keys->queue_len + (waited ? strlen(keys->own + keys->queue_len) : 0);
}

bool ec_keys_waited(const struct ec_keys *keys)
{
    return keys->own_len > keys->queue_len;
}

struct ec_range ec_keys_own(const struct ec_keys *keys)
{
    return (struct ec_range){.key = keys->own, .key_len = keys->own_len};
}

struct ec_range ec_keys_queue(const struct ec_keys *keys)
{
    return (struct ec_range){.key = keys->own,
                             .key_len = keys->queue_len,
                             .end = keys->queue_end,
                             .end_len = keys->queue_len};
}

void ec_said_format(char out[EC_VALUE_MAX], const struct ec_said *said)
{
    const struct hf_revocation *revocation = &said->revocation;
    int len = snprintf(out, EC_VALUE_MAX, "%s %c %c %" PRIu32 " %" PRId64 " ", said->owner,
                       said->revoked ? '2' : '1', said->kind, said->ttl_ms, said->since_us);

    if (said->revoked)
        (void)snprintf(out + len, EC_VALUE_MAX - (size_t)len, "%" PRId64 " %s\n%s\n%s",
                       revocation->at_ms, said->label, revocation->by, revocation->reason);
    else
        (void)snprintf(out + len, EC_VALUE_MAX - (size_t)len, "%s", said->label);
}

/* A decimal number and the space behind it. */
static bool take_number(const char **at, uint64_t *out)
{
    char digits[24];
    size_t len = strcspn(*at, " ");

    if (len == 0 || len >= sizeof digits || (*at)[len] != ' ')
        return false;
    memcpy(digits, *at, len);
    digits[len] = '\0';
    *at += len + 1;
    return hf__parse_u64(digits, out);
}

/* Ends text at its first line; the next one, or the end. */
static char *cut_line(char *text)
{
    text += strcspn(text, "\n");
    if (*text != '\0')
        *text++ = '\0';
    return text;
}

/* What comes behind the version. */
static bool parse_rest(struct ec_said *out, const char *at, bool revoked)
{
    uint64_t ttl_ms;
    uint64_t since_us;
    uint64_t revoked_ms = 0;

    if (at[0] == '\0' || strchr("wkpd", at[0]) == NULL || at[1] != ' ')
        return false;
    out->kind = at[0];
    at += 2;
    if (!take_number(&at, &ttl_ms) || ttl_ms > HF_TTL_MAX_MS || !take_number(&at, &since_us) ||
        since_us > INT64_MAX)
        return false;
    if (revoked && (!take_number(&at, &revoked_ms) || revoked_ms > INT64_MAX))
        return false;
    out->ttl_ms = (uint32_t)ttl_ms;
    out->since_us = (int64_t)since_us;
    out->revoked = revoked;
    out->revocation.at_ms = (int64_t)revoked_ms;
    hf__copy_printable(out->label, sizeof out->label, at);
    return true;
}

void ec_said_parse(struct ec_said *out, const char *value, size_t len)
{
    char text[EC_VALUE_MAX];
    char *version = text + HF_OWNER_LEN + 1;
    char *by;
    char *reason;

    memset(out, 0, sizeof *out);
    if (len >= sizeof text || memchr(value, '\0', len) != NULL)
        return;
    memcpy(text, value, len);
    text[len] = '\0';
    by = reason = text + len;
    if (len < HF_OWNER_LEN + 6 || strspn(text, "0123456789abcdef") != HF_OWNER_LEN ||
        version[-1] != ' ' || (version[0] != '1' && version[0] != '2') || version[1] != ' ')
        return;
    if (version[0] == '2') {
        by = cut_line(version);
        reason = cut_line(by);
    }
    if (!parse_rest(out, version + 2, version[0] == '2')) {
        memset(out, 0, sizeof *out);
        return;
    }
    memcpy(out->owner, text, HF_OWNER_LEN);
    hf__copy_printable(out->revocation.by, sizeof out->revocation.by, by);
    hf__copy_printable(out->revocation.reason, sizeof out->revocation.reason, reason);
}

bool ec_key_name(const struct ec_kv *kv, const char *prefix, char name[HF_NAME_MAX + 1])
{
    size_t prefix_len = strlen(prefix);
    const char *end;
    size_t len;

    if (kv->key_len <= prefix_len || memcmp(kv->key, prefix, prefix_len) != 0)
        return false;
    end = memchr(kv->key + prefix_len, EC_NAME_END, kv->key_len - prefix_len);
    if (end == NULL)
        return false;
    len = (size_t)(end - kv->key) - prefix_len;
    if (len == 0 || len > HF_NAME_MAX)
        return false;
    memcpy(name, kv->key + prefix_len, len);
    name[len] = '\0';
    return hf__name_valid(name);
}

void ec_prefix_range(char *start, size_t *start_len, char *end, size_t *end_len)
{
    size_t len = *start_len;

    memcpy(end, start, len);
    while (len > 0 && (unsigned char)end[len - 1] == 0xff)
        len--;
    if (len > 0) {
        end[len - 1] = (char)((unsigned char)end[len - 1] + 1);
    } else {
        end[0] = '\0';
        len = 1;
    }
    *end_len = len;
    if (*start_len == 0) {
        start[0] = '\0';
        *start_len = 1;
    }
}

size_t ec_notice_key(char out[EC_KEY_MAX], const char *prefix, const char *name, uint64_t token)
{
    return (size_t)snprintf(out, EC_KEY_MAX, "%.*s%c%.*s%c%016" PRIx64, EC_PREFIX_MAX - 1, prefix,
                            EC_NOTICES, HF_NAME_MAX, name, EC_NAME_END, token);
}

bool ec_notice_parse(const char *key, size_t len, const char *prefix, char name[HF_NAME_MAX + 1],
                     uint64_t *token)
{
    size_t prefix_len = strlen(prefix);
    unsigned char raw[sizeof *token];
    char hex[2 * sizeof raw + 1];
    size_t name_len;

    if (len < prefix_len + 1 + 1 + 2 * sizeof raw || memcmp(key, prefix, prefix_len) != 0 ||
        key[prefix_len] != EC_NOTICES || key[len - 2 * sizeof raw - 1] != EC_NAME_END)
        return false;
    name_len = len - 2 * sizeof raw - 1 - (prefix_len + 1);
    if (name_len > HF_NAME_MAX)
        return false;
    memcpy(name, key + prefix_len + 1, name_len);
    name[name_len] = '\0';
    memcpy(hex, key + len - 2 * sizeof raw, 2 * sizeof raw);
    hex[2 * sizeof raw] = '\0';
    if (!hf__hex_decode(raw, sizeof raw, hex))
        return false;
    *token = 0;
    for (size_t i = 0; i < sizeof raw; i++)
        *token = *token << 8 | raw[i];
    return true;
}

struct ec_range ec_notices(const char *prefix, char start[EC_PREFIX_MAX + 1],
                           char end[EC_PREFIX_MAX + 1])
{
    size_t len = strlen(prefix);

    memcpy(start, prefix, len);
    memcpy(end, prefix, len);
    start[len] = EC_NOTICES;
    end[len] = EC_NOTICES + 1;
    return (struct ec_range){.key = start, .key_len = len + 1, .end = end, .end_len = len + 1};
}

void ec_notice_format(char out[EC_VALUE_MAX], const struct hf_revocation *revocation)
{
    (void)snprintf(out, EC_VALUE_MAX, "%" PRId64 " %s\n%s", revocation->at_ms, revocation->by,
                   revocation->reason);
}

void ec_notice_read(struct hf_revocation *out, const char *value)
{
    char text[EC_VALUE_MAX];
    const char *at = text;
    const char *reason;
    uint64_t at_ms;

    *out = (struct hf_revocation){0};
    (void)snprintf(text, sizeof text, "%s", value);
    reason = cut_line(text);
    if (!take_number(&at, &at_ms) || at_ms > INT64_MAX)
        return;
    out->at_ms = (int64_t)at_ms;
    hf__copy_printable(out->by, sizeof out->by, at);
    hf__copy_printable(out->reason, sizeof out->reason, reason);
}
