/* url.c - what an etcd URL says. */
#include "stores/etcd/url.h"
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
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

/* Letters, digits and what names and addresses are made of: nothing that libcurl reads otherwise.
 */
static bool host_is_plain(const char *host)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";

    return host[strspn(host, plain)] == '\0';
}

static bool add_endpoint(struct ec_url *url, const char *text, size_t len)
{
    char host[EC_ENDPOINT_MAX];
    unsigned port = EC_PORT_DEFAULT;
    bool brackets;
    int written;

    if (url->endpoint_count == EC_ENDPOINTS_MAX ||
        !hf__url_host(text, len, host, sizeof host, &port) || !host_is_plain(host))
        return false;
    brackets = strchr(host, ':') != NULL;
    written = snprintf(url->endpoints[url->endpoint_count++], EC_ENDPOINT_MAX, "%s%s%s:%u",
                       brackets ? "[" : "", host, brackets ? "]" : "", port);
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
    if (at != NULL && (!hf__url_user(rest, (size_t)(at - rest), url->user, url->password,
                                     sizeof url->user, &url->has_password) ||
                       url->user[0] == '\0'))
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
    if (url->plain && url->tls)
        return hf__fail(err, HF_INVALID,
                        "store %.160s: tls=off does not go with ca=, cert= and key=", url->shown);
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
    if (strcmp(key, "tls") == 0) {
        url->plain = strcmp(value, "off") == 0;
        url->tls = url->tls || !url->plain;
        return url->plain || strcmp(value, "on") == 0;
    }
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

static enum hf_status find_password(struct ec_url *url, struct hf_error *err)
{
    enum hf_status status;

    if (url->user[0] == '\0' || url->has_password)
        return hf__ok(err);
    status = hf__find_password(url->password_file, EC_PASSWORD_VARIABLE, url->shown, url->password,
                               sizeof url->password, err);
    url->has_password = url->password[0] != '\0';
    if (status == HF_OK && !url->has_password)
        return hf__fail(
            err, HF_DENIED,
            "store %.100s: the user has no password; set it in the URL, in " EC_PASSWORD_VARIABLE
            " or with password_file=",
            url->shown);
    return status;
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
