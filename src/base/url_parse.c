/* url_parse.c - the whole URL of a store. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

bool hf__address_parse(const char *text, size_t len, unsigned default_port, struct hf__address *out)
{
    out->port = default_port;
    return hf__url_host(text, len, out->host, sizeof out->host, &out->port);
}

bool hf__address_is_local(const struct hf__address *address)
{
    const char *host = address->host;

    return host[0] == '/' || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

bool hf__address_equal(const struct hf__address *a, const struct hf__address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool hf__address_format(char *out, size_t size, const struct hf__address *address)
{
    bool brackets = strchr(address->host, ':') != NULL;

    return snprintf(out, size, "%s%s%s:%u", brackets ? "[" : "", address->host, brackets ? "]" : "",
                    address->port) < (int)size;
}

static bool parse_hosts(const char *text, unsigned port, struct hf__url *out)
{
    if (text[0] == '\0')
        return true;
    for (;;) {
        size_t len = strcspn(text, ",");

        if (out->host_count == HF__HOSTS_MAX || memchr(text, '@', len) != NULL ||
            !hf__address_parse(text, len, port, &out->hosts[out->host_count]))
            return false;
        out->host_count++;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

/* Cuts rest at its '?', its first '/' and its last '@' before that. */
static enum hf_status parse_rest(char *rest, const struct hf__url_form *form, struct hf__url *out,
                                 void *into, struct hf_error *err)
{
    char *query = strchr(rest, '?');
    char *path, *at;
    char why[192];

    if (query != NULL)
        *query++ = '\0';
    path = strchr(rest, '/');
    if (path != NULL && strlen(path) >= sizeof out->path)
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown, ": the URL is too long");
    if (path != NULL) {
        memcpy(out->path, path, strlen(path) + 1);
        *path = '\0';
    }
    at = strrchr(rest, '@');
    if (at != NULL && !hf__url_user(rest, (size_t)(at - rest), out->user, out->password,
                                    sizeof out->user, &out->has_password))
        return hf__fail_lock(
            err, HF_INVALID, NULL, out->shown,
            ": the user or the password is too long, or a %% does not start an escape");
    if (!parse_hosts(at != NULL ? at + 1 : rest, form->port, out))
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown, ": write %s, with at most %d hosts",
                             form->usage, HF__HOSTS_MAX);
    if (query != NULL && !hf__url_options(query, form->options, into, why, sizeof why))
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown, ": %s", why);
    return hf__ok(err);
}

enum hf_status hf__url_parse(const char *text, const struct hf__url_form *form, struct hf__url *out,
                             void *into, struct hf_error *err)
{
    const char *rest = text + hf__url_scheme_len(text);
    char copy[HF__URL_MAX];
    enum hf_status status;

    memset(out, 0, sizeof *out);
    hf__url_brief(out->shown, sizeof out->shown, text);
    if (strncmp(rest, "://", 3) != 0)
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown, ": write %s", form->usage);
    if (strlen(rest) >= sizeof copy)
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown, ": the URL is too long");
    memcpy(copy, rest + 3, strlen(rest + 3) + 1);
    status = parse_rest(copy, form, out, into, err);
    explicit_bzero(copy, sizeof copy);
    if (status == HF_OK)
        hf__url_redact(out->shown, sizeof out->shown, text);
    return status;
}
