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
    (void)snprintf(out, EC_VALUE_MAX, "%s 1 %c %" PRIu32 " %" PRId64 " %s", said->owner, said->kind,
                   said->ttl_ms, said->since_us, said->label);
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

void ec_said_parse(struct ec_said *out, const char *value, size_t len)
{
    char text[EC_VALUE_MAX];
    const char *at = text + HF_OWNER_LEN + 1;
    uint64_t ttl_ms;
    uint64_t since_us;
    char kind;

    memset(out, 0, sizeof *out);
    if (len >= sizeof text || memchr(value, '\0', len) != NULL)
        return;
    memcpy(text, value, len);
    text[len] = '\0';
    if (len < HF_OWNER_LEN + 6 || strspn(text, "0123456789abcdef") != HF_OWNER_LEN ||
        at[-1] != ' ' || at[0] != '1' || at[1] != ' ' || at[3] != ' ' || at[2] == '\0' ||
        strchr("wkpd", at[2]) == NULL)
        return;
    kind = at[2];
    at += 4;
    if (!take_number(&at, &ttl_ms) || ttl_ms > HF_TTL_MAX_MS || !take_number(&at, &since_us) ||
        since_us > INT64_MAX)
        return;
    memcpy(out->owner, text, HF_OWNER_LEN);
    out->kind = kind;
    out->ttl_ms = (uint32_t)ttl_ms;
    out->since_us = (int64_t)since_us;
    hf__copy_printable(out->label, sizeof out->label, at);
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
