/* text.c - names, numbers, durations, hex and hashes. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

/* The digit's value plus one, so that everything else is 0. */
static const unsigned char hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

void hf__hex_encode(char *out, const void *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *in = data;

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[in[i] >> 4];
        out[2 * i + 1] = digits[in[i] & 15];
    }
    out[2 * len] = '\0';
}

bool hf__hex_decode(void *out, size_t len, const char *text)
{
    unsigned char *to = out;

    if (strlen(text) != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned high = hex_values[(unsigned char)text[2 * i]];
        unsigned low = hex_values[(unsigned char)text[2 * i + 1]];

        if (high == 0 || low == 0)
            return false;
        to[i] = (unsigned char)((high - 1) << 4 | (low - 1));
    }
    return true;
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

bool hf__text_valid(const char *text, size_t most)
{
    size_t len = 0;

    for (; text[len] != '\0'; len++)
        if (len == most || is_control((unsigned char)text[len]))
            return false;
    return len > 0;
}

bool hf__name_valid(const char *name)
{
    return hf__text_valid(name, HF_NAME_MAX);
}

/* Overlong forms, halves of surrogate pairs and values above U+10FFFF are no characters. */
size_t hf__utf8_read(const char *text, unsigned long *point)
{
    static const struct {
        unsigned char first, last, low, high; /* first byte from..to, second byte low..high */
        size_t len;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    const unsigned char *at = (const unsigned char *)text;

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t len = forms[i].len;

        if (at[0] < forms[i].first || at[0] > forms[i].last)
            continue;
        *point = len == 1 ? at[0] : at[0] & (0xffu >> (len + 1));
        for (size_t k = 1; k < len; k++) {
            if (at[k] < (k == 1 ? forms[i].low : 0x80) || at[k] > (k == 1 ? forms[i].high : 0xbf))
                return 0;
            *point = *point << 6 | (at[k] & 0x3f);
        }
        return len;
    }
    return 0;
}

bool hf__utf8_valid(const char *text)
{
    unsigned long point;
    size_t len;

    for (; *text != '\0'; text += len)
        if ((len = hf__utf8_read(text, &point)) == 0)
            return false;
    return true;
}

/* The C1 controls steer a terminal as the others do. Marks of direction, and the separators of
 * lines among them, show a text in another order than it has. */
bool hf__is_printable(unsigned long point)
{
    bool control = point < 0x20 || (point >= 0x7f && point <= 0x9f);
    bool direction = point == 0x61c || point == 0x200e || point == 0x200f ||
                     (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);

    return !control && !direction;
}

/* The character at *text, or '?' in place of what is none or must not be shown; steps over it. How
 * many bytes it has, 0 if they do not fit. */
static size_t copy_character(char *out, size_t room, const char **text)
{
    unsigned long point = 0;
    size_t len = hf__utf8_read(*text, &point);
    bool shown = len > 0 && hf__is_printable(point);

    if ((shown ? len : 1) > room)
        return 0;
    if (shown)
        memcpy(out, *text, len);
    else
        out[0] = '?';
    *text += len > 0 ? len : 1;
    return shown ? len : 1;
}

void hf__copy_printable(char *out, size_t size, const char *text)
{
    size_t used = 0;

    while (*text != '\0' && used + 1 < size) {
        size_t len = 1;

        if (*text >= ' ' && *text <= '~') /* nearly always */
            out[used] = *text++;
        else
            len = copy_character(out + used, size - 1 - used, &text);
        if (len == 0)
            break;
        used += len;
    }
    out[used] = '\0';
}

bool hf__parse_u64(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

/* Digits with an optional fraction, in thousandths. Returns where it stopped, NULL if nothing
 * fits. */
static const char *parse_thousandths(const char *text, int64_t *out)
{
    int64_t whole = 0;
    int64_t fraction = 0;
    int64_t place = 100;

    if (*text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(whole, (int64_t)10, &whole) ||
            __builtin_add_overflow(whole, (int64_t)(*text - '0'), &whole))
            return NULL;
    if (*text == '.') {
        text++;
        if (*text < '0' || *text > '9')
            return NULL;
        for (; *text >= '0' && *text <= '9'; text++, place /= 10)
            fraction += (*text - '0') * place;
    }
    if (__builtin_mul_overflow(whole, (int64_t)1000, &whole) ||
        __builtin_add_overflow(whole, fraction, out))
        return NULL;
    return text;
}

/* The unit at text, in milliseconds; *end is behind it. 0 if there is none. */
static int64_t parse_unit(const char *text, const char **end)
{
    static const struct {
        const char *suffix;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strncmp(text, units[i].suffix, strlen(units[i].suffix)) == 0) {
            *end = text + strlen(units[i].suffix);
            return units[i].ms;
        }
    return 0;
}

/* The largest unit first, as in "1h30m". */
bool hf__parse_duration_ms(const char *text, int64_t *out_ms)
{
    int64_t sum_ms = 0;
    int64_t last_ms = INT64_MAX;

    do {
        int64_t thousandths, scaled;
        const char *suffix = parse_thousandths(text, &thousandths);
        int64_t unit_ms = suffix != NULL ? parse_unit(suffix, &text) : 0;

        if (suffix != NULL && *suffix == '\0' && last_ms == INT64_MAX) {
            unit_ms = 1000; /* a bare number */
            text = suffix;
        }
        if (unit_ms == 0 || unit_ms >= last_ms ||
            __builtin_mul_overflow(thousandths, unit_ms, &scaled) ||
            __builtin_add_overflow(sum_ms, scaled / 1000, &sum_ms))
            return false;
        last_ms = unit_ms;
    } while (*text != '\0');
    *out_ms = sum_ms;
    return true;
}

/* "3m20s", and "3m" without the rest if that is 0. */
static void format_two(char *out, size_t size, const int64_t parts[2], const char units[2])
{
    int len = snprintf(out, size, "%lld%c", (long long)parts[0], units[0]);

    if (parts[1] != 0 && len > 0 && (size_t)len < size)
        (void)snprintf(out + len, size - (size_t)len, "%02lld%c", (long long)parts[1], units[1]);
}

char *hf__format_duration(char *out, size_t size, int64_t ms)
{
    int64_t s = ms / 1000;

    if (ms < 0)
        (void)snprintf(out, size, "?");
    else if (ms < 1000)
        (void)snprintf(out, size, "%lldms", (long long)ms);
    else if (ms < 10000 && ms % 1000 >= 100)
        (void)snprintf(out, size, "%lld.%llds", (long long)s, (long long)(ms % 1000 / 100));
    else if (s < 60)
        (void)snprintf(out, size, "%llds", (long long)s);
    else if (s < 3600)
        format_two(out, size, (int64_t[]){s / 60, s % 60}, "ms");
    else if (s < 86400)
        format_two(out, size, (int64_t[]){s / 3600, s % 3600 / 60}, "hm");
    else
        format_two(out, size, (int64_t[]){s / 86400, s % 86400 / 3600}, "dh");
    return out;
}

/* A multiply-and-fold step: every input bit reaches every output bit. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t word_at(const unsigned char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

uint64_t hf__hash64(const void *data, size_t len, uint64_t seed)
{
    static const uint64_t odd[4] = {0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u,
                                    0x589965cc75374cc3u};
    const unsigned char *at = data;
    uint64_t hash = mix(seed ^ 0x9e3779b97f4a7c15u, len ^ 0xd6e8feb86659fd93u);

    if (len >= 32) {
        uint64_t a = hash;
        uint64_t b = hash + odd[1];
        uint64_t c = hash + odd[2];
        uint64_t d = hash + odd[3];

        /* Four chains that do not wait for each other. */
        for (; len >= 32; at += 32, len -= 32) {
            a = mix(a ^ word_at(at), odd[0]) + odd[3];
            b = mix(b ^ word_at(at + 8), odd[1]) + odd[2];
            c = mix(c ^ word_at(at + 16), odd[2]) + odd[1];
            d = mix(d ^ word_at(at + 24), odd[3]) + odd[0];
        }
        hash = mix(a ^ odd[1], b | 1) + mix(c ^ odd[3], d | 1);
    }
    for (; len >= 8; at += 8, len -= 8)
        hash = mix(hash ^ word_at(at), odd[0]) + odd[1];
    if (len > 0) {
        uint64_t word = 0;

        memcpy(&word, at, len);
        hash = mix(hash ^ word, odd[2]);
    }
    return mix(hash ^ odd[3], hash | 1);
}

#define EDIT_MAX 32 /* words longer than this are not compared */

size_t hf__edit_distance(const char *a, const char *b)
{
    size_t rows[3][EDIT_MAX + 1];
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *row = rows[2];
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);

    if (a_len > EDIT_MAX || b_len > EDIT_MAX)
        return EDIT_MAX;
    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *spare = before;

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        before = last;
        last = row;
        row = spare;
    }
    return last[b_len];
}
