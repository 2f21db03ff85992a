/* keys.c - which keys belong to a lock. */
#include "stores/redis/keys.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define SPACE "holdfast:"

/* Redis' own rule: between the first '{' and the first '}' behind it, unless that is empty. */
static bool find_tag(const char *key, const char **tag, size_t *len)
{
    const char *open = strchr(key, '{');
    const char *close = open != NULL ? strchr(open + 1, '}') : NULL;

    if (close == NULL || close == open + 1)
        return false;
    *tag = open + 1;
    *len = (size_t)(close - open - 1);
    return true;
}

static bool refuse(const char **why, const char *text)
{
    *why = text;
    return false;
}

/* "holdfast:{LOCK}:x" or "holdfast:{TAG}:LOCK:x". There is room: both are limited. */
static void make_side(char *out, const char *tag, size_t tag_len, const char *lock, char kind)
{
    char *at = out;

    at = mempcpy(at, SPACE "{", sizeof SPACE);
    at = mempcpy(at, tag, tag_len);
    at = mempcpy(at, "}:", 2);
    if (tag != lock) {
        at = mempcpy(at, lock, strlen(lock));
        *at++ = ':';
    }
    *at++ = kind;
    *at = '\0';
}

bool rd_keys_make(struct rd_keys *out, const char *prefix, const char *name, const char **why)
{
    size_t prefix_len = strlen(prefix);
    size_t name_len = strlen(name);
    const char *tag = out->lock;
    size_t tag_len = prefix_len + name_len;

    if (tag_len >= sizeof out->lock)
        return refuse(why, "prefix and name are too long");
    memcpy(out->lock, prefix, prefix_len);
    memcpy(out->lock + prefix_len, name, name_len + 1);
    if (strncmp(out->lock, SPACE "{", sizeof SPACE) == 0 ||
        strncmp(out->lock, SPACE "inc", sizeof SPACE + 2) == 0)
        return refuse(why, "a key that starts with \"" SPACE "{\" or \"" SPACE
                           "inc\" is holdfast's own");
    if (!find_tag(out->lock, &tag, &tag_len) && strchr(out->lock, '}') != NULL)
        return refuse(why, "a '}' without a hash tag would separate the lock from its queue in a "
                           "cluster");
    make_side(out->counter, tag, tag_len, out->lock, 't');
    make_side(out->queue, tag, tag_len, out->lock, 'q');
    make_side(out->leases, tag, tag_len, out->lock, 'w');
    return true;
}

void rd_keys_wake(char out[RD_SIDE_MAX], const struct rd_keys *keys, const char *owner)
{
    (void)snprintf(out, RD_SIDE_MAX, "%.*s:%.*s", RD_SIDE_MAX - HF_OWNER_LEN - 2, keys->leases,
                   HF_OWNER_LEN, owner);
}

void rd_keys_wake_party(char out[RD_SIDE_MAX], const char *owner)
{
    (void)snprintf(out, RD_SIDE_MAX, SPACE "{%.*s}:w", RD_PARTY_LEN, owner);
}

bool rd_keys_name(char out[HF_NAME_MAX + 1], const char *prefix, const char *side_key,
                  bool *is_counter)
{
    size_t len = strlen(side_key);
    size_t prefix_len = strlen(prefix);
    const char *key = side_key + sizeof SPACE; /* behind the '{' */
    const char *close;

    if (len < sizeof SPACE + 3 || strncmp(side_key, SPACE "{", sizeof SPACE) != 0 ||
        (strcmp(side_key + len - 2, ":t") != 0 && strcmp(side_key + len - 2, ":q") != 0))
        return false;
    *is_counter = side_key[len - 1] == 't';
    close = strchr(key, '}');
    if (close == NULL || close[1] != ':')
        return false;
    if (close + 3 == side_key + len) { /* "}:t": the tag is the key */
        len = (size_t)(close - key);
    } else {
        key = close + 2;
        len = (size_t)(side_key + len - 2 - key);
    }
    if (len < prefix_len || strncmp(key, prefix, prefix_len) != 0)
        return false;
    key += prefix_len;
    len -= prefix_len;
    if (len == 0 || len > HF_NAME_MAX)
        return false;
    memcpy(out, key, len);
    out[len] = '\0';
    return hf__name_valid(out);
}

/* Appends text with the characters that mean something to SCAN's MATCH escaped. */
static void append_escaped(char *out, size_t size, size_t *used, const char *text)
{
    for (; *text != '\0' && *used + 3 < size; text++) {
        if (strchr("*?[]^\\-", *text) != NULL)
            out[(*used)++] = '\\';
        out[(*used)++] = *text;
    }
    out[*used] = '\0';
}

void rd_keys_pattern(char *out, size_t size, const char *prefix, const char *start)
{
    size_t used = sizeof SPACE;

    (void)snprintf(out, size, SPACE "{");
    /* A tag may begin anywhere in the name, so only what comes before can narrow the search. */
    if (strchr(prefix, '{') == NULL && strchr(start, '{') == NULL && used + 3 < size) {
        (void)snprintf(out + used, size - used, "*");
        used++;
        append_escaped(out, size, &used, prefix);
        append_escaped(out, size, &used, start);
    }
    (void)snprintf(out + used, size - used, "*");
}

void rd_keys_plain_pattern(char *out, size_t size, const char *prefix)
{
    size_t used = 0;

    append_escaped(out, size - 1, &used, prefix);
    (void)snprintf(out + used, size - used, "*");
}

/* CRC-16/XMODEM, as the cluster specification says. */
static unsigned crc16(const char *data, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)data[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
        crc &= 0xffff;
    }
    return crc;
}

unsigned rd_slot(const char *key)
{
    const char *tag = key;
    size_t len = strlen(key);

    (void)find_tag(key, &tag, &len);
    return crc16(tag, len) % RD_SLOTS;
}

void rd_slot_tag(char out[RD_TAG_MAX], unsigned slot)
{
    /* The first number in that slot: some 16,000 tries, once per server. */
    for (unsigned number = 0; number < 1000000; number++) {
        int len = snprintf(out, RD_TAG_MAX, "%u", number);

        if (crc16(out, (size_t)len) % RD_SLOTS == slot)
            return;
    }
}

enum hf_status rd_claim_keys(const struct rd_url *url, const char *name, struct rd_keys *out,
                             struct hf_error *err)
{
    const char *why;

    if (!rd_keys_make(out, url->prefix, name, &why))
        return hf__fail_lock(err, HF_INVALID, name, url->parts.shown, ": %s", why);
    return HF_OK;
}
