/* url.c - what an etcd URL says. */
#include "stores/etcd/url.h"
#include "base/base.h"
#include "stores/etcd/errors.h"

#include <string.h>

static bool set_prefix(void *into, const char *value)
{
    struct ec_url *url = into;

    /* The byte that ends a name must not be in front of it. */
    for (const char *c = value; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    if (strlen(value) >= sizeof url->prefix)
        return false;
    memcpy(url->prefix, value, strlen(value) + 1);
    return true;
}

static bool set_tls(void *into, const char *value)
{
    struct ec_url *url = into;

    url->plain = strcmp(value, "off") == 0;
    url->tls = strcmp(value, "on") == 0;
    return url->plain || url->tls;
}

static const struct hf__url_option options[] = {
    HF__OPTION_OWN("prefix", set_prefix),
    HF__OPTION_OWN("tls", set_tls),
    HF__OPTION_TEXT("ca", struct ec_url, ca, 1),
    HF__OPTION_TEXT("cert", struct ec_url, cert, 1),
    HF__OPTION_TEXT("key", struct ec_url, key, 1),
    HF__OPTION_SWITCH("verify", struct ec_url, verify),
    HF__OPTION_TEXT("password_file", struct ec_url, password_file, 1),
    {.name = NULL},
};

static const struct hf__url_form form = {
    .usage = "etcd://HOST:PORT,HOST:PORT", .port = EC_PORT_DEFAULT, .options = options};

static bool make_endpoints(struct ec_url *url)
{
    for (unsigned i = 0; i < url->common.host_count; i++)
        if (!hf__http_endpoint(url->endpoints[i], EC_ENDPOINT_MAX, url->tls, &url->common.hosts[i]))
            return false;
    return url->common.host_count > 0 &&
           (url->common.path[0] == '\0' || strcmp(url->common.path, "/") == 0);
}

enum hf_status ec_url_parse(const char *text, struct ec_url *out, struct hf_error *err)
{
    const char *shown = out->common.shown;
    bool files;
    enum hf_status status;

    memset(out, 0, sizeof *out);
    out->verify = true;
    memcpy(out->prefix, EC_PREFIX_DEFAULT, sizeof EC_PREFIX_DEFAULT);
    status = hf__url_parse(text, &form, &out->common, out, err);
    if (status != HF_OK)
        return status;
    files = out->ca[0] != '\0' || out->cert[0] != '\0' || out->key[0] != '\0';
    if (out->common.user[0] == '\0' && (out->common.has_password || strstr(text, "://@") != NULL))
        return ec_fail(NULL, shown, HF_INVALID, "the user is missing", err);
    if ((out->cert[0] == '\0') != (out->key[0] == '\0'))
        return ec_fail(NULL, shown, HF_INVALID, "cert= and key= go together", err);
    if (out->plain && files)
        return ec_fail(NULL, shown, HF_INVALID,
                       "tls=off cannot be used with ca=, cert= or key=", err);
    out->tls = out->tls || files;
    if (make_endpoints(out))
        return hf__ok(err);
    hf__url_brief(out->common.shown, sizeof out->common.shown, text);
    return ec_fail(NULL, shown, HF_INVALID, "write etcd://HOST:PORT,HOST:PORT", err);
}

static enum hf_status find_password(struct ec_url *url, struct hf_error *err)
{
    enum hf_status status;

    if (url->common.user[0] == '\0' || url->common.has_password)
        return hf__ok(err);
    status = hf__find_password(url->password_file, EC_PASSWORD_VARIABLE, url->common.shown,
                               url->common.password, sizeof url->common.password, err);
    url->common.has_password = url->common.password[0] != '\0';
    if (status == HF_OK && !url->common.has_password)
        return ec_fail(NULL, url->common.shown, HF_DENIED,
                       "the user has no password; set it in the URL, in " EC_PASSWORD_VARIABLE
                       " or with password_file=",
                       err);
    return status;
}

enum hf_status ec_url_find_secrets(struct ec_url *url, struct hf_error *err)
{
    struct hf__http_options how;
    enum hf_status status;

    ec_url_options(url, &how);
    status = hf__http_check_files(&how, url->common.shown, err);
    if (status != HF_OK)
        return status;
    return find_password(url, err);
}

void ec_url_options(const struct ec_url *url, struct hf__http_options *out)
{
    *out = (struct hf__http_options){
        .trusting = url->tls && !url->verify, .ca = url->ca, .cert = url->cert, .key = url->key};
}
