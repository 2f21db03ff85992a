/* url.c - what the URL of a server says. */
#include "stores/http/url.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_S 5 /* proxies end idle connections soon, and must not do so under a request */

static bool has_tls(const void *into)
{
    return ((const struct ht_url *)into)->tls;
}

#define TLS_TEXT(text, member)                                                                     \
    {                                                                                              \
        .name = (text), .type = HF__URL_TEXT, .offset = offsetof(struct ht_url, member), .min = 1, \
        .max = HF__URL_TEXT_MAX - 1, .fits = has_tls                                               \
    }

static const struct hf__url_option options[] = {
    TLS_TEXT("ca", ca),
    TLS_TEXT("cert", cert),
    TLS_TEXT("key", key),
    {.name = "verify",
     .type = HF__URL_SWITCH,
     .offset = offsetof(struct ht_url, verify),
     .fits = has_tls},
    {.name = NULL},
};

static const struct scheme {
    const char *name;
    const char *usage;
    unsigned port;
    bool tls;
    bool local;
} schemes[] = {
    {"http", "http://HOST:PORT", 80, false, false},
    {"https", "https://HOST:PORT", 443, true, false},
    {"http+unix", "http+unix:///PATH/OF/SOCKET", 0, false, true},
};

static const struct scheme *scheme_of(const char *text)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (hf__url_rest(text, schemes[i].name) != NULL)
            return &schemes[i];
    return NULL;
}

/* A path that is put before another one: what is in it reaches the server as it is. */
static bool path_is_plain(const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_~%/";

    return path[strspn(path, plain)] == '\0' && strstr(path, "/.") == NULL;
}

static bool make_endpoint(struct ht_url *url, bool local)
{
    const struct hf__url *common = &url->common;
    size_t len = strlen(common->path);

    if (local) {
        (void)stpcpy(url->endpoint, "http://localhost");
        return common->host_count == 0 && len > 1 &&
               hf__url_copy(url->socket, sizeof url->socket, common->path, len);
    }
    if (common->host_count != 1 || !path_is_plain(common->path) ||
        !hf__http_endpoint(url->endpoint, HF__HOST_MAX + 24, url->tls, &common->hosts[0]))
        return false;
    while (len > 0 && common->path[len - 1] == '/')
        len--;
    (void)snprintf(url->endpoint + strlen(url->endpoint), HF__URL_TEXT_MAX, "%.*s", (int)len,
                   common->path);
    return true;
}

enum hf_status ht_url_parse(const char *text, struct ht_url *out, struct hf_error *err)
{
    const struct scheme *scheme = scheme_of(text);
    struct hf__url_form form = {.options = options};
    enum hf_status status;

    memset(out, 0, sizeof *out);
    if (scheme == NULL)
        return hf__fail(err, HF_INVALID, "this is not an HTTP URL; write %s", schemes[0].usage);
    form.usage = scheme->usage;
    form.port = scheme->port;
    out->tls = scheme->tls;
    out->verify = true;
    status = hf__url_parse(text, &form, &out->common, out, err);
    if (status != HF_OK)
        return status;
    if (out->common.user[0] != '\0' || out->common.has_password)
        return hf__fail_lock(
            err, HF_INVALID, NULL, out->common.shown,
            ": a URL of this kind takes no user: put the secret into a file, and its "
            "path into " HT_TOKEN_VARIABLE);
    if (!make_endpoint(out, scheme->local))
        return hf__fail_lock(err, HF_INVALID, NULL, out->common.shown, ": write %s", scheme->usage);
    if ((out->cert[0] == '\0') != (out->key[0] == '\0'))
        return hf__fail_lock(err, HF_INVALID, NULL, out->common.shown,
                             ": cert= and key= go together");
    return hf__ok(err);
}

/* It becomes a header: a line break in it would begin another one. */
static enum hf_status take_secret(struct ht_url *url, const char *secret, struct hf_error *err)
{
    for (const char *c = secret; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return hf__fail_lock(err, HF_INVALID, NULL, url->common.shown,
                                 ": the secret of " HT_TOKEN_VARIABLE
                                 " contains a character that none can have");
    if (snprintf(url->auth, sizeof url->auth, "Bearer %s", secret) >= (int)sizeof url->auth)
        return hf__fail_lock(err, HF_INVALID, NULL, url->common.shown,
                             ": the secret of " HT_TOKEN_VARIABLE " is too long");
    if (!url->tls && url->socket[0] == '\0' && !hf__address_is_local(&url->common.hosts[0]))
        return hf__fail(err, HF_OK,
                        "store %.120s: the secret is sent without TLS, and anybody on the way can "
                        "read it; use https://",
                        url->common.shown);
    return hf__ok(err);
}

enum hf_status ht_url_find_secrets(struct ht_url *url, struct hf_error *err)
{
    const char *file = secure_getenv(HT_TOKEN_VARIABLE);
    char secret[HF__URL_TEXT_MAX];
    struct hf__http_options how;
    enum hf_status status;

    ht_url_options(url, &how);
    status = hf__http_check_files(&how, url->common.shown, err);
    if (status != HF_OK || file == NULL || file[0] == '\0')
        return status == HF_OK ? hf__ok(err) : status;
    status = hf__find_password(file, "", url->common.shown, secret, sizeof secret, err);
    if (status == HF_OK)
        status = take_secret(url, secret, err);
    explicit_bzero(secret, sizeof secret);
    return status;
}

void ht_url_options(const struct ht_url *url, struct hf__http_options *out)
{
    *out = (struct hf__http_options){.trusting = url->tls && !url->verify,
                                     .ca = url->ca,
                                     .cert = url->cert,
                                     .key = url->key,
                                     .socket = url->socket,
                                     .idle_s = IDLE_S};
}
