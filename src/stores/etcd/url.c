/* url.c - what an etcd URL says. */
#include "stores/etcd/url.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum hf_status parse_rest(char *rest, struct ec_url *url, struct hf_error *err);
static bool set_option(const char *key, const char *value, void *data);

enum hf_status ec_url_parse(const char *text, struct ec_url *out, struct hf_error *err)
{
    const char *rest = hf__url_rest(text, "etcd");
    char copy[2 * EC_TEXT_MAX];
    enum hf_status status;

    memset(out, 0, sizeof *out);
    out->verify = true;
    memcpy(out->prefix, EC_PREFIX_DEFAULT, sizeof EC_PREFIX_DEFAULT);
    hf__url_redact(out->shown, sizeof out->shown, text);
    if (rest == NULL || strncmp(rest, "//", 2) != 0)
        return hf__fail(err, HF_INVALID, "store %.180s: write etcd://HOST:PORT", out->shown);
    if (strlen(rest) >= sizeof copy)
        return hf__fail(err, HF_INVALID, "store %.180s: the URL is too long", out->shown);
    memcpy(copy, rest, strlen(rest) + 1);
    status = parse_rest(copy + 2, out, err);
    explicit_bzero(copy, sizeof copy);
    return status;
}

static bool copy_text(char *out, size_t size, const char *text, size_t len)
{
    if (len >= size)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

static bool copy_decoded(char *out, size_t size, const char *text, size_t len)
{
    return copy_text(out, size, text, len) && hf__url_decode(out);
}

/* Letters, digits and what names and addresses are made of: nothing that libcurl reads otherwise.
 */
static bool host_is_plain(const char *host, size_t len)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";

    for (size_t i = 0; i < len; i++)
        if (host[i] == '\0' || strchr(plain, host[i]) == NULL)
            return false;
    return len > 0;
}

/* "host", "host:port", "[::1]:port" */
static bool add_endpoint(struct ec_url *url, const char *text, size_t len)
{
    const char *end = text + len;
    const char *port = NULL;
    const char *host = text;
    size_t host_len;
    bool brackets = len > 0 && text[0] == '[';
    char number_text[8] = "2379";
    uint64_t number;
    int written;

    if (url->endpoint_count == EC_ENDPOINTS_MAX)
        return false;
    if (brackets) {
        const char *close = memchr(text, ']', len);

        if (close == NULL || (close + 1 < end && close[1] != ':'))
            return false;
        host = text + 1;
        host_len = (size_t)(close - host);
        port = close + 1 < end ? close + 2 : NULL;
    } else {
        const char *colon = memchr(text, ':', len);

        host_len = colon != NULL ? (size_t)(colon - text) : len;
        port = colon != NULL ? colon + 1 : NULL;
    }
    if (!host_is_plain(host, host_len) ||
        (port != NULL && !copy_text(number_text, sizeof number_text, port, (size_t)(end - port))) ||
        !hf__parse_u64(number_text, &number) || number == 0 || number > 65535)
        return false;
    written = snprintf(url->endpoints[url->endpoint_count++], EC_ENDPOINT_MAX, "%s%.*s%s:%s",
                       brackets ? "[" : "", (int)host_len, host, brackets ? "]" : "", number_text);
    return written > 0 && written < EC_ENDPOINT_MAX - 8; /* room for the scheme */
}

static bool add_endpoints(struct ec_url *url, const char *text)
{
    for (;;) {
        size_t len = strcspn(text, ",");

        if (!add_endpoint(url, text, len))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

/* The scheme is known when the options are. */
static void finish_endpoints(struct ec_url *url)
{
    for (size_t i = 0; i < url->endpoint_count; i++) {
        char host[EC_ENDPOINT_MAX];

        memcpy(host, url->endpoints[i], sizeof host);
        (void)snprintf(url->endpoints[i], EC_ENDPOINT_MAX, "%s://%.*s", url->tls ? "https" : "http",
                       EC_ENDPOINT_MAX - 9, host);
    }
}

static bool parse_user(struct ec_url *url, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon != NULL ? (size_t)(colon - text) : len;

    if (!copy_decoded(url->user, sizeof url->user, text, user_len) || url->user[0] == '\0')
        return false;
    if (colon == NULL)
        return true;
    url->has_password = true;
    return copy_decoded(url->password, sizeof url->password, colon + 1, len - user_len - 1);
}

static enum hf_status parse_rest(char *rest, struct ec_url *url, struct hf_error *err)
{
    char *query = strchr(rest, '?');
    char *at;
    size_t len;

    if (query != NULL)
        *query++ = '\0';
    len = strlen(rest);
    if (len > 0 && rest[len - 1] == '/')
        rest[len - 1] = '\0';
    at = strrchr(rest, '@');
    if (at != NULL && !parse_user(url, rest, (size_t)(at - rest)))
        return hf__fail(err, HF_INVALID,
                        "store %.120s: the user is missing or too long, or a %% starts no escape",
                        url->shown);
    if (!add_endpoints(url, at != NULL ? at + 1 : rest))
        return hf__fail(err, HF_INVALID,
                        "store %.160s: write etcd://HOST:PORT,HOST:PORT (up to %d)", url->shown,
                        EC_ENDPOINTS_MAX);
    if (query != NULL && !hf__url_params(query, set_option, url))
        return hf__fail(err, HF_INVALID,
                        "store %.100s: an option is unknown or its value is wrong; known are "
                        "prefix, tls, ca, cert, key, verify, password_file",
                        url->shown);
    if ((url->cert[0] == '\0') != (url->key[0] == '\0'))
        return hf__fail(err, HF_INVALID, "store %.160s: cert= and key= go together", url->shown);
    finish_endpoints(url);
    return hf__ok(err);
}

static bool set_switch(bool *out, const char *value)
{
    *out = strcmp(value, "on") == 0;
    return *out || strcmp(value, "off") == 0;
}

static bool set_file(struct ec_url *url, char *out, const char *value)
{
    url->tls = true;
    return value[0] != '\0' && copy_text(out, EC_TEXT_MAX, value, strlen(value));
}

static bool set_option(const char *key, const char *value, void *data)
{
    struct ec_url *url = data;

    if (strcmp(key, "prefix") == 0) {
        /* The byte that ends a name must not be in front of it. */
        for (const char *c = value; *c != '\0'; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f)
                return false;
        return copy_text(url->prefix, sizeof url->prefix, value, strlen(value));
    }
    if (strcmp(key, "tls") == 0)
        return set_switch(&url->tls, value);
    if (strcmp(key, "verify") == 0)
        return set_switch(&url->verify, value);
    if (strcmp(key, "ca") == 0)
        return set_file(url, url->ca, value);
    if (strcmp(key, "cert") == 0)
        return set_file(url, url->cert, value);
    if (strcmp(key, "key") == 0)
        return set_file(url, url->key, value);
    if (strcmp(key, "password_file") == 0)
        return value[0] != '\0' &&
               copy_text(url->password_file, sizeof url->password_file, value, strlen(value));
    return false;
}

static enum hf_status cannot_read(const struct ec_url *url, const char *what, const char *path,
                                  struct hf_error *err)
{
    return hf__fail(err, errno == EACCES || errno == EPERM ? HF_DENIED : HF_INVALID,
                    "store %.100s: cannot read the %s from %.60s: %s", url->shown, what, path,
                    strerror(errno));
}

/* The first line of the file. */
static enum hf_status read_password(struct ec_url *url, struct hf_error *err)
{
    int fd = open(url->password_file, O_RDONLY | O_CLOEXEC);
    ssize_t len = -1;

    if (fd >= 0) {
        len = read(fd, url->password, sizeof url->password);
        (void)close(fd);
    }
    if (len < 0)
        return cannot_read(url, "password", url->password_file, err);
    if (len == (ssize_t)sizeof url->password)
        return hf__fail(err, HF_INVALID, "store %.120s: the password in %.80s is too long",
                        url->shown, url->password_file);
    url->password[len] = '\0';
    url->password[strcspn(url->password, "\r\n")] = '\0';
    if (url->password[0] == '\0')
        return hf__fail(err, HF_INVALID,
                        "store %.120s: %.60s is empty; its first line is the password", url->shown,
                        url->password_file);
    url->has_password = true;
    return hf__ok(err);
}

static enum hf_status find_password(struct ec_url *url, struct hf_error *err)
{
    const char *value;

    if (url->user[0] == '\0' || url->has_password)
        return hf__ok(err);
    if (url->password_file[0] != '\0')
        return read_password(url, err);
    value = secure_getenv(EC_PASSWORD_VARIABLE);
    if (value == NULL || value[0] == '\0')
        return hf__fail(
            err, HF_DENIED,
            "store %.100s: the user has no password; set it in the URL, in " EC_PASSWORD_VARIABLE
            " or with password_file=",
            url->shown);
    if (!copy_text(url->password, sizeof url->password, value, strlen(value)))
        return hf__fail(err, HF_INVALID, "store %.120s: the password in %s is too long", url->shown,
                        EC_PASSWORD_VARIABLE);
    url->has_password = true;
    return hf__ok(err);
}

enum hf_status ec_url_find_secrets(struct ec_url *url, struct hf_error *err)
{
    if (url->ca[0] != '\0' && access(url->ca, R_OK) != 0)
        return cannot_read(url, "authority", url->ca, err);
    if (url->cert[0] != '\0' && access(url->cert, R_OK) != 0)
        return cannot_read(url, "certificate", url->cert, err);
    if (url->key[0] != '\0' && access(url->key, R_OK) != 0)
        return cannot_read(url, "key", url->key, err);
    return find_password(url, err);
}
