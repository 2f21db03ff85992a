/* body.c - the JSON of a request. cJSON reads it; what cJSON takes and we do not is refused before:
 * nesting (it would cost stack), control characters, what is not UTF-8, \u0000, and afterwards keys
 * that come twice. */
#include "serve/body.h"

#include "base/base.h"

#include <cjson/cJSON.h>
#include <string.h>

#define EXACT_MAX 9007199254740992.0 /* 2^53: up to here a double is a whole number exactly */

/* The bytes of the character or escape at at, inside a string; 0: none that may stand there. */
static size_t string_char(const char *at, const char *end)
{
    char some[5] = {0};
    unsigned long point;

    if (*at == '\\') {
        if (end - at >= 6 && at[1] == 'u')
            return memcmp(at + 2, "0000", 4) != 0 ? 6 : 0;
        return end - at >= 2 && at[1] != 'u' && at[1] >= ' ' ? 2 : 0;
    }
    memcpy(some, at, (size_t)(end - at < 4 ? end - at : 4));
    return (unsigned char)*at < ' ' ? 0 : hf__utf8_read(some, &point);
}

/* The byte behind the string that begins at at, NULL if it is none. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"';) {
        size_t len = string_char(at, end);

        if (len == 0)
            return NULL;
        at += len;
    }
    return at < end ? at + 1 : NULL;
}

/* One object with nothing nested in it, and only what may stand outside of strings. */
static bool is_flat(const char *data, size_t len)
{
    const char *end = data + len;
    unsigned opened = 0;

    for (const char *at = data; at < end;) {
        if (*at == '"') {
            at = skip_string(at, end);
            if (at == NULL)
                return false;
            continue;
        }
        if (memchr("{}:,+-. \t\r\n", *at, 11) == NULL && (*at < '0' || *at > '9') &&
            (*at < 'A' || *at > 'Z') && (*at < 'a' || *at > 'z'))
            return false;
        opened += *at == '{';
        at++;
    }
    return opened == 1;
}

static bool keys_differ(const cJSON *object, const char **why)
{
    const char *keys[BODY_FIELDS_MAX];
    size_t count = 0;

    for (const cJSON *item = object->child; item != NULL; item = item->next) {
        *why = "an object has at most 32 fields";
        if (count == BODY_FIELDS_MAX)
            return false;
        *why = "a key comes twice";
        for (size_t i = 0; i < count; i++)
            if (strcmp(keys[i], item->string) == 0)
                return false;
        keys[count++] = item->string;
    }
    return true;
}

/* A string of at most most bytes. */
static bool take_text(const cJSON *item, char *out, size_t most)
{
    if (!cJSON_IsString(item) || strlen(item->valuestring) > most)
        return false;
    (void)stpcpy(out, item->valuestring);
    return true;
}

static bool take_number(const cJSON *item, double most, int64_t *out)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= most))
        return false;
    *out = (int64_t)item->valuedouble;
    return (double)*out == item->valuedouble;
}

static bool is_owner(const char *text)
{
    return strspn(text, "0123456789abcdef") == HF_OWNER_LEN && text[HF_OWNER_LEN] == '\0';
}

static bool take_token(const cJSON *item, uint64_t *out)
{
    return cJSON_IsString(item) && hf__parse_u64(item->valuestring, out) && *out <= INT64_MAX;
}

static bool take_label(const cJSON *item, char out[HF_LABEL_MAX + 1])
{
    if (!cJSON_IsString(item))
        return false;
    hf__copy_printable(out, HF_LABEL_MAX + 1, item->valuestring);
    return true;
}

/* One field; those that are not known are fine. */
static bool take_field(const cJSON *item, struct body *out, const char **why)
{
    const char *key = item->string;
    int64_t number = 0;

    if (strcmp(key, "name") == 0) {
        *why = "name: a string of 1 to 200 bytes without control characters";
        out->given |= BODY_NAME;
        return take_text(item, out->name, HF_NAME_MAX) && hf__name_valid(out->name);
    }
    if (strcmp(key, "owner") == 0) {
        *why = "owner: a string of 32 lower-case hex digits";
        out->given |= BODY_OWNER;
        return take_text(item, out->owner, HF_OWNER_LEN) && is_owner(out->owner);
    }
    if (strcmp(key, "token") == 0) {
        *why = "token: a string of digits";
        out->given |= BODY_TOKEN;
        return take_token(item, &out->token);
    }
    if (strcmp(key, "ttl_ms") == 0) {
        *why = "ttl_ms: a whole number of milliseconds, a day at the most";
        out->given |= BODY_TTL_MS;
        if (!take_number(item, HF_TTL_MAX_MS, &number))
            return false;
        out->ttl_ms = (uint32_t)number;
        return true;
    }
    if (strcmp(key, "wait_ms") == 0) {
        *why = "wait_ms: a whole number of milliseconds";
        out->given |= BODY_WAIT_MS;
        return take_number(item, EXACT_MAX, &out->wait_ms);
    }
    if (strcmp(key, "label") == 0) {
        *why = "label: a string";
        out->given |= BODY_LABEL;
        return take_label(item, out->label);
    }
    return true;
}

bool body_parse(const char *data, size_t len, struct body *out, const char **why)
{
    const char *end = NULL;
    cJSON *object;
    bool good = false;

    *out = (struct body){0};
    *why = "the body is not a flat JSON object in UTF-8";
    if (!is_flat(data, len))
        return false;
    object = cJSON_ParseWithLengthOpts(data, len, &end, false);
    while (end != NULL && end < data + len && memchr(" \t\r\n", *end, 4) != NULL)
        end++;
    if (object != NULL && cJSON_IsObject(object) && end == data + len) {
        good = keys_differ(object, why);
        for (const cJSON *item = object->child; good && item != NULL; item = item->next)
            good = take_field(item, out, why);
    }
    cJSON_Delete(object);
    return good;
}
