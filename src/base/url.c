/* url.c - taking URLs apart. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define OPTION_SHOWN_MAX 24   /* bytes of an unknown option's name that may be shown */
#define SLIP_EDITS       2    /* a name further away than this is another name         */
#define PARAM_MAX        1024 /* bytes of a key or a value */

size_t hf__url_scheme_len(const char *url)
{
    size_t len = 0;

    if (url[0] < 'a' || url[0] > 'z')
        return 0;
    while ((url[len] >= 'a' && url[len] <= 'z') || (url[len] >= '0' && url[len] <= '9') ||
           url[len] == '+' || url[len] == '.' || url[len] == '-')
        len++;
    return url[len] == ':' ? len : 0;
}

const char *hf__url_rest(const char *url, const char *scheme)
{
    size_t len = hf__url_scheme_len(url);

    if (len == 0 || strlen(scheme) != len || memcmp(url, scheme, len) != 0)
        return NULL;
    return url + len + 1;
}

bool hf__url_decode(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++, to++) {
        *to = *text;
        if (*text == '%') {
            char digits[3] = {text[1], text[1] != '\0' ? text[2] : '\0', '\0'};

            if (!hf__hex_decode(to, 1, digits) || *to == '\0')
                return false;
            text += 2;
        }
    }
    *to = '\0';
    return true;
}

bool hf__url_copy(char *out, size_t size, const char *text, size_t len)
{
    if (len >= size)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return hf__url_decode(out);
}

bool hf__url_host(const char *text, size_t len, char *host, size_t size, unsigned *port)
{
    const char *end = text + len;
    const char *name = text;
    const char *name_end = memchr(text, ':', len);
    const char *digits = name_end;
    char number_text[8];
    uint64_t number;

    if (len > 0 && text[0] == '[') {
        name = text + 1;
        name_end = memchr(text, ']', len);
        if (name_end == NULL)
            return false;
        digits = name_end + 1 < end ? name_end + 1 : NULL;
    } else if (name_end == NULL) {
        name_end = end;
    }
    if (name_end == name || (size_t)(name_end - name) >= size)
        return false;
    memcpy(host, name, (size_t)(name_end - name));
    host[name_end - name] = '\0';
    if (digits == NULL)
        return true;
    len = (size_t)(end - digits) - 1;
    if (digits[0] != ':' || len >= sizeof number_text)
        return false;
    memcpy(number_text, digits + 1, len);
    number_text[len] = '\0';
    if (!hf__parse_u64(number_text, &number) || number == 0 || number > 65535)
        return false;
    *port = (unsigned)number;
    return true;
}

bool hf__url_user(const char *text, size_t len, char *user, char *password, size_t size,
                  bool *has_password)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon != NULL ? (size_t)(colon - text) : len;

    *has_password = colon != NULL;
    return hf__url_copy(user, size, text, user_len) &&
           (colon == NULL || hf__url_copy(password, size, colon + 1, len - user_len - 1));
}

bool hf__url_encode(char *out, size_t size, const char *text)
{
    size_t used = 0;

    for (; *text != '\0'; text++) {
        char c = *text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~';

        if (used + (plain ? 1 : 3) >= size)
            return false;
        if (plain)
            out[used++] = c;
        else
            used += (size_t)snprintf(out + used, size - used, "%%%02X", (unsigned)(unsigned char)c);
    }
    if (used >= size)
        return false;
    out[used] = '\0';
    return true;
}

bool hf__url_params(const char *query, hf__url_param_fn *fn, void *data)
{
    while (*query != '\0') {
        size_t len = strcspn(query, "&");
        size_t key_len = strcspn(query, "=&");
        size_t value_len = key_len < len ? len - key_len - 1 : 0;
        char key[PARAM_MAX];
        char value[PARAM_MAX];

        if (key_len >= sizeof key || value_len >= sizeof value)
            return false;
        memcpy(key, query, key_len);
        key[key_len] = '\0';
        memcpy(value, query + len - value_len, value_len);
        value[value_len] = '\0';
        if (len > 0 && (!hf__url_decode(key) || !hf__url_decode(value) || !fn(key, value, data)))
            return false;
        query += len + (query[len] == '&');
    }
    return true;
}

struct blame {
    hf__url_param_fn *fn;
    void *data;
    const char *const *known;
    bool refused;
    const char *wrong; /* refused, and one of the known */
    char key[OPTION_SHOWN_MAX + 1];
};

/* Only what looks like an option: who knows what was put there by mistake. */
static void note_key(struct blame *blame, const char *key)
{
    size_t len = strlen(key);

    if (len <= OPTION_SHOWN_MAX && strspn(key, "abcdefghijklmnopqrstuvwxyz_") == len)
        (void)snprintf(blame->key, sizeof blame->key, "%s", key);
}

static bool look_for_blame(const char *key, const char *value, void *data)
{
    struct blame *blame = data;

    blame->refused = !blame->fn(key, value, blame->data);
    for (size_t i = 0; blame->refused && blame->known[i] != NULL; i++)
        if (strcmp(key, blame->known[i]) == 0)
            blame->wrong = blame->known[i];
    if (blame->refused && blame->wrong == NULL)
        note_key(blame, key);
    return !blame->refused;
}

/* The known option that key is a slip of, or NULL. */
static const char *nearest(const char *key, const char *const *known)
{
    for (size_t i = 0; key[0] != '\0' && known[i] != NULL; i++)
        if (hf__edit_distance(key, known[i]) <= SLIP_EDITS && strlen(known[i]) > SLIP_EDITS + 1)
            return known[i];
    return NULL;
}

static void blame_unknown(char *out, size_t size, const char *key, const char *const *known)
{
    const char *meant = nearest(key, known);
    size_t used;

    if (key[0] != '\0')
        used = (size_t)snprintf(out, size, "the option \"%s\" is unknown", key);
    else
        used = (size_t)snprintf(out, size, "an option is unknown");
    if (meant != NULL && used < size)
        used += (size_t)snprintf(out + used, size - used, "; did you mean %s?", meant);
    for (size_t i = 0; meant == NULL && known[i] != NULL && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s %s", i > 0 ? "," : "; known are",
                                 known[i]);
}

void hf__url_blame(char *out, size_t size, const char *query, const char *const *known,
                   hf__url_param_fn *fn, void *data)
{
    struct blame blame = {.fn = fn, .data = data, .known = known};

    if (hf__url_params(query, look_for_blame, &blame) || !blame.refused)
        (void)snprintf(out, size, "an option is too long, or a %% starts no escape");
    else if (blame.wrong != NULL)
        (void)snprintf(out, size, "the option %s has a wrong value, or no place in this URL",
                       blame.wrong);
    else
        blame_unknown(out, size, blame.key, known);
}
