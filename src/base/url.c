/* url.c - the pieces of URLs. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

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
