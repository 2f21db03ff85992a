/* base64.c - RFC 4648, padded. */
#include "stores/etcd/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t ec_base64_encode(char *out, const void *data, size_t len)
{
    const unsigned char *in = data;
    size_t at = 0;

    for (size_t i = 0; i < len; i += 3) {
        unsigned b = i + 1 < len ? in[i + 1] : 0;
        unsigned c = i + 2 < len ? in[i + 2] : 0;
        unsigned group = (unsigned)in[i] << 16 | b << 8 | c;

        out[at++] = digits[group >> 18];
        out[at++] = digits[group >> 12 & 63];
        out[at++] = digits[group >> 6 & 63];
        out[at++] = digits[group & 63];
    }
    if (len % 3 != 0)
        out[at - 1] = '=';
    if (len % 3 == 1)
        out[at - 2] = '=';
    return at;
}

static bool value_of(char digit, unsigned *out)
{
    const char *found = digit != '\0' ? strchr(digits, digit) : NULL;

    if (found == NULL)
        return false;
    *out = (unsigned)(found - digits);
    return true;
}

/* The first len characters of a text. */
static bool decode(void *out, size_t size, const char *text, size_t len, size_t *out_len)
{
    unsigned char *to = out;
    size_t padding = 0;
    size_t bytes;

    if (len % 4 != 0)
        return false;
    while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
        padding++;
    bytes = len / 4 * 3 - padding;
    if (bytes > size)
        return false;
    for (size_t i = 0; i < len; i += 4) {
        unsigned group = 0;

        for (size_t j = i; j < i + 4; j++) {
            unsigned value = 0;

            if (j < len - padding && !value_of(text[j], &value))
                return false;
            group = group << 6 | value;
        }
        for (size_t j = 0; j < 3; j++) {
            size_t at = i / 4 * 3 + j;
            unsigned byte = group >> (16 - 8 * j) & 255;

            if (at < bytes)
                to[at] = (unsigned char)byte;
            else if (byte != 0)
                return false; /* bits that no encoder leaves */
        }
    }
    *out_len = bytes;
    return true;
}

bool ec_base64_decode(void *out, size_t size, const char *text, size_t *out_len)
{
    return decode(out, size, text, strlen(text), out_len);
}

bool ec_base64_decode_start(void *out, size_t size, const char *text, size_t *out_len, bool *cut)
{
    size_t len = strlen(text);

    *cut = len > size / 3 * 4;
    return decode(out, size, text, *cut ? size / 3 * 4 : len, out_len);
}
