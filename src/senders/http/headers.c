/* headers.c - reads a JSON object of texts, and checks that they can be headers. */
#include "senders/http/headers.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static void skip_space(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool read_hex(const char **at, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        char c = **at >= 'A' && **at <= 'F' ? (char)(**at + 'a' - 'A') : **at;
        const char *digit = c != '\0' ? strchr(digits, c) : NULL;

        if (digit == NULL)
            return false;
        *out = *out * 16 + (unsigned)(digit - digits);
        (*at)++;
    }
    return true;
}

static size_t put_utf8(char *out, unsigned point)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* What stands behind a backslash. */
static bool read_escape(const char **at, char *out, size_t *len)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = **at != '\0' ? strchr(letters, **at) : NULL;
    unsigned point, low;

    if (letter != NULL) {
        out[(*len)++] = meant[letter - letters];
        (*at)++;
        return true;
    }
    if (**at != 'u')
        return false;
    (*at)++;
    if (!read_hex(at, &point) || (point >= 0xdc00 && point <= 0xdfff))
        return false;
    if (point >= 0xd800 && point <= 0xdbff) {
        if ((*at)[0] != '\\' || (*at)[1] != 'u')
            return false;
        *at += 2;
        if (!read_hex(at, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    *len += put_utf8(out + *len, point);
    return true;
}

/* A JSON string, of less than size bytes. */
static bool read_string(const char **at, char *out, size_t size)
{
    size_t len = 0;

    if (**at != '"')
        return false;
    for ((*at)++; **at != '"';) {
        if (**at == '\0' || len + 5 > size)
            return false;
        if (**at != '\\') {
            out[len++] = *(*at)++;
            continue;
        }
        (*at)++;
        if (!read_escape(at, out, &len))
            return false;
    }
    (*at)++;
    out[len] = '\0';
    return strlen(out) == len;
}

static bool is_name(const char *name)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return name[0] != '\0' && name[strspn(name, token)] == '\0';
}

static bool is_ours(const char *name)
{
    static const char *const ours[] = {
        "idempotency-key", "fencing-token", "host", "content-length", "transfer-encoding",
        "connection",      "expect",        "te",   "trailer",        "upgrade"};

    if (strncasecmp(name, "holdfast-", 9) == 0)
        return true;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strcasecmp(name, ours[i]) == 0)
            return true;
    return false;
}

static bool is_value(const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++)
        if (*c < ' ' || *c == 0x7f)
            return false;
    return true;
}

static bool check(const char *name, const char *value, char *why, size_t size)
{
    if (!is_name(name))
        (void)snprintf(why, size, "a header cannot be called so");
    else if (is_ours(name))
        (void)snprintf(why, size, "the header %s is not the message's to set", name);
    else if (!is_value(value))
        (void)snprintf(why, size, "the header %s has a control character in it", name);
    else
        return true;
    return false;
}

bool headers_read(const char *object, headers_fn *fn, void *data, char *why, size_t size)
{
    char name[HEADERS_NAME_MAX];
    char value[HEADERS_VALUE_MAX];
    const char *at = object;

    (void)snprintf(why, size, "headers have to be an object of texts, of at most %d bytes each",
                   HEADERS_VALUE_MAX - 5);
    skip_space(&at);
    if (*at++ != '{')
        return false;
    skip_space(&at);
    while (*at != '}') {
        if (!read_string(&at, name, sizeof name))
            return false;
        skip_space(&at);
        if (*at++ != ':')
            return false;
        skip_space(&at);
        if (!read_string(&at, value, sizeof value))
            return false;
        if (!check(name, value, why, size) || !fn(name, value, data))
            return false;
        skip_space(&at);
        if (*at != ',' && *at != '}')
            return false;
        at += *at == ',';
        skip_space(&at);
    }
    return true;
}

void headers_encode(char *out, size_t size, const char *text)
{
    size_t used = 0;

    for (const unsigned char *c = (const unsigned char *)text; *c != '\0' && used + 4 < size; c++) {
        if (*c > ' ' && *c < 0x7f && *c != '%')
            out[used++] = (char)*c;
        else
            used += (size_t)snprintf(out + used, size - used, "%%%02X", *c);
    }
    out[used] = '\0';
}
