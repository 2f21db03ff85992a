/* redact.c - showing a URL without what is secret in it, however carelessly it was written. */
#include "base/base.h"

#include <string.h>
#include <strings.h>

#define VALUE_MAX       1024 /* bytes of a parameter's value; a longer one is hidden */
#define PORT_DIGITS_MAX 5

/* Copies up to len bytes behind *used, as far as there is room. */
static void append(char *out, size_t size, size_t *used, const char *text, size_t len)
{
    if (len > size - 1 - *used)
        len = size - 1 - *used;
    memcpy(out + *used, text, len);
    *used += len;
    out[*used] = '\0';
}

/* True if word is in text, in capitals or not. */
static bool has_word(const char *text, size_t len, const char *word)
{
    for (size_t i = 0; i + strlen(word) <= len; i++)
        if (strncasecmp(text + i, word, strlen(word)) == 0)
            return true;
    return false;
}

static bool key_is_secret(const char *key, size_t len)
{
    static const char *const words[] = {"pass", "pwd", "secret", "token"};

    /* ?password_file= names a file, which is no secret. */
    if (len >= 4 && strncasecmp(key + len - 4, "file", 4) == 0)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(key, len, words[i]))
            return true;
    return false;
}

/* True for "host", "host:6379", "[::1]:6379" and lists of them: no colon has anything but a port
 * behind it. */
static bool hosts_are_plain(const char *hosts, const char *end)
{
    while (hosts < end) {
        const char *comma = memchr(hosts, ',', (size_t)(end - hosts));
        const char *part_end = comma != NULL ? comma : end;
        const char *bracket =
            hosts[0] == '[' ? memchr(hosts, ']', (size_t)(part_end - hosts)) : NULL;
        const char *name = bracket != NULL ? bracket : hosts;
        const char *colon = memchr(name, ':', (size_t)(part_end - name));

        if (colon != NULL && (part_end - colon == 1 || part_end - colon > PORT_DIGITS_MAX + 1 ||
                              strspn(colon + 1, "0123456789") < (size_t)(part_end - colon - 1)))
            return false;
        hosts = part_end + 1;
    }
    return true;
}

/* The length of what looks like a scheme, in capitals too: that opens no store, but a password
 * behind it is still one. 0: there is none. */
static size_t scheme_len(const char *url)
{
    size_t len = hf__url_scheme_len(url);
    const char *mark = strstr(url, "://");

    if (len == 0 && mark != NULL && strcspn(url, "/?#@") > (size_t)(mark - url))
        len = (size_t)(mark - url);
    return len;
}

/* The first colon of an authority that is not inside of an address in brackets. */
static const char *first_colon(const char *authority, const char *end)
{
    size_t len = (size_t)(end - authority);
    const char *bracket = NULL;

    if (authority[0] == '[' && memchr(authority, '@', len) == NULL)
        bracket = memchr(authority, ']', len);
    if (bracket != NULL)
        authority = bracket;
    return memchr(authority, ':', (size_t)(end - authority));
}

/* What has to be hidden of the part before the query. */
struct secret {
    const char *from; /* NULL: nothing */
    const char *to;
    bool clear; /* where it ends is beyond doubt */
};

/* From the colon to the last '@'. Behind a '?' the '@' may itself stand in the middle of a
 * password: then to the end. */
static struct secret doubtful(const char *colon, const char *at)
{
    const char *query = memchr(colon, '?', (size_t)(at - colon));

    return (struct secret){.from = colon, .to = query != NULL ? at + strlen(at) : at};
}

/* User names and passwords may hold an unescaped '/', '?' or '#', and then the '@' stands behind
 * what looks like the end of the hosts. So whatever has a colon and an '@' behind it is hidden,
 * wherever that is: prefer hiding too much. What stands in the place of a port and is not one may
 * be a password without its host. */
static struct secret find_in_authority(const char *authority)
{
    const char *end = authority + strcspn(authority, "/?#");
    const char *at = strrchr(authority, '@');
    bool late = at != NULL && at > end;
    const char *colon =
        late ? memchr(authority, ':', (size_t)(at - authority)) : first_colon(authority, end);

    if (colon == NULL)
        return (struct secret){.clear = true};
    if (late)
        return doubtful(colon, at);
    if (!hosts_are_plain(at != NULL ? at + 1 : authority, end))
        return (struct secret){.from = colon, .to = colon + strlen(colon), .clear = true};
    if (at != NULL && colon < at)
        return (struct secret){.from = colon, .to = at, .clear = true};
    return (struct secret){.clear = true};
}

/* If the slashes or the whole scheme were forgotten, what looks like a scheme may be the user. */
static struct secret find_secret(const char *url)
{
    size_t scheme = scheme_len(url);
    const char *rest = scheme > 0 ? url + scheme + 1 : url;
    const char *at = strrchr(rest, '@');
    const char *colon = scheme > 0 ? url + scheme : strchr(url, ':');

    if (scheme > 0 && strncmp(rest, "//", 2) == 0)
        return find_in_authority(rest + 2);
    if (scheme == 4 && strncmp(url, "file", scheme) == 0) {
        if (rest[0] == '/') /* a path, whatever is in it */
            return (struct secret){.clear = true};
        colon = strchr(rest, ':');
    }
    if (at == NULL && scheme > 0)
        return find_in_authority(rest);
    if (at == NULL || colon == NULL || colon > at)
        return (struct secret){.clear = true};
    return doubtful(colon, at);
}

bool hf__url_is_clear(const char *url)
{
    return find_secret(url).clear;
}

/* A value may be an escaped URL, with a password of its own. What cannot be read is hidden. */
static bool value_is_secret(const char *value, size_t len)
{
    char url[VALUE_MAX];

    if (len >= sizeof url)
        return true;
    memcpy(url, value, len);
    url[len] = '\0';
    if (!hf__url_decode(url))
        return true;
    return strstr(url, "://") != NULL &&
           (find_secret(url).from != NULL || strcasestr(url, "password=") != NULL);
}

static void redact_query(char *out, size_t size, size_t *used, const char *query)
{
    bool secret = false;

    while (*query != '\0') {
        size_t param = strcspn(query, "&");
        size_t key = strcspn(query, "=&");

        if (key < param &&
            (key_is_secret(query, key) || value_is_secret(query + key + 1, param - key - 1))) {
            append(out, size, used, query, key + 1);
            append(out, size, used, "***", 3);
            secret = true;
        } else if (key == param && param > 0 && secret) {
            append(out, size, used, "***", 3); /* the rest of one with an '&' in it */
        } else {
            append(out, size, used, query, param);
        }
        query += param;
        if (*query == '&') {
            append(out, size, used, query, 1);
            query++;
        }
    }
}

void hf__url_redact(char *out, size_t size, const char *url)
{
    struct secret secret = find_secret(url);
    const char *rest = url;
    const char *query;
    size_t used = 0;

    out[0] = '\0';
    if (secret.from != NULL) {
        append(out, size, &used, url, (size_t)(secret.from - url));
        rest = secret.to;
    }
    query = rest + strcspn(rest, "?");
    append(out, size, &used, rest, (size_t)(query - rest));
    if (*query == '?') {
        append(out, size, &used, query, 1);
        redact_query(out, size, &used, query + 1);
    }
}

void hf__url_brief(char *out, size_t size, const char *url)
{
    size_t scheme = hf__url_scheme_len(url);
    size_t used = 0;

    hf__url_redact(out, size, url);
    if (scheme > 0 && strncmp(url + scheme, "://", 3) == 0 && scheme + 3 < size) {
        out[scheme + 3 + strcspn(out + scheme + 3, "/?#")] = '\0';
    } else {
        out[0] = '\0';
        append(out, size, &used, url, scheme > 0 ? scheme + 1 : 0);
    }
}
