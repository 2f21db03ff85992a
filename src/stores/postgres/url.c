/* url.c - taking a postgres:// URL apart. */
#include "stores/postgres/url.h"
#include "base/base.h"

#include <postgresql/libpq-fe.h>
#include <string.h>

/* "off", or another way to the same server. */
static bool set_listen(void *into, const char *value)
{
    struct pg_url *out = into;

    if (strcmp(value, "off") == 0) {
        out->listen = PG_LISTEN_OFF;
        return true;
    }
    if (hf__url_rest(value, "postgres") == NULL && hf__url_rest(value, "postgresql") == NULL)
        return false;
    out->listen = PG_LISTEN_URL;
    (void)snprintf(out->listen_uri, sizeof out->listen_uri, "%s", value);
    return true;
}

/* Ours; the others are libpq's. */
static const struct hf__url_option own_options[] = {
    HF__OPTION_DURATION("max_ttl", struct pg_url, max_ttl_ms, HF_TTL_MIN_MS, HF_TTL_MAX_MS),
    HF__OPTION_OWN("listen", set_listen),
    {.name = NULL}};

static bool is_ours(const char *param, size_t len)
{
    size_t key_len = strcspn(param, "=");

    if (key_len >= len)
        return false;
    for (const struct hf__url_option *at = own_options; at->name != NULL; at++)
        if (strlen(at->name) == key_len && strncmp(at->name, param, key_len) == 0)
            return true;
    return false;
}

/* A query that is put together. */
struct query {
    char *text; /* as long as the URL */
    size_t len;
    char mark; /* before the next parameter; 0: nothing */
};

static void query_add(struct query *query, const char *param, size_t len)
{
    if (query->mark != '\0')
        query->text[query->len++] = query->mark;
    memcpy(query->text + query->len, param, len);
    query->len += len;
    query->text[query->len] = '\0';
    query->mark = '&';
}

bool pg_password_at_risk(const char *address, const char *sslmode, const char *channel_binding)
{
    if (address[0] == '\0' || strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0)
        return false;
    return (sslmode == NULL || strcmp(sslmode, "verify-full") != 0) &&
           (channel_binding == NULL || strcmp(channel_binding, "require") != 0);
}

static bool is_option(const PQconninfoOption *options, const char *name, size_t len)
{
    for (; options != NULL && options->keyword != NULL; options++)
        if (strncmp(options->keyword, name, len) == 0 && options->keyword[len] == '\0')
            return true;
    return len == 3 && strncmp(name, "ssl", len) == 0; /* as JDBC has it */
}

/* The name of an option that libpq does not know, if it looks like one: anything else may be part
 * of a password. */
static bool find_unknown(const char *uri, char *name, size_t size)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    PQconninfoOption *options = PQconndefaults();
    const char *at = strchr(uri, '?');
    bool found = false;

    while (options != NULL && at != NULL && *at != '\0' && !found) {
        size_t len = strspn(at + 1, letters);

        if (len > 0 && len < size && at[1 + len] == '=' && !is_option(options, at + 1, len)) {
            memcpy(name, at + 1, len);
            name[len] = '\0';
            found = true;
        }
        at += 1 + strcspn(at + 1, "&");
    }
    PQconninfoFree(options);
    return found;
}

/* False for what is not a port: libpq accepts it until it connects, and quotes it then. */
static bool ports_are_good(const PQconninfoOption *options)
{
    for (; options->keyword != NULL; options++)
        if (strcmp(options->keyword, "port") == 0 && options->val != NULL &&
            options->val[strspn(options->val, "0123456789,")] != '\0')
            return false;
    return true;
}

/* libpq takes the first '@' for the end of the password. */
static bool has_one_at(const char *uri)
{
    const char *authority = strstr(uri, "://");
    size_t len;

    if (authority == NULL)
        return true;
    authority += 3;
    len = strcspn(authority, "/?#");
    return memchr(authority, '@', len) == memrchr(authority, '@', len);
}

/* What libpq says of a malformed URI quotes it, password and all: so it is not passed on. */
static enum hf_status check_uri(const char *uri, const char *shown, struct hf_error *err)
{
    char *why = NULL;
    PQconninfoOption *options = NULL;
    char name[40];
    bool good = false;

    if (!hf__url_is_clear(uri) || !has_one_at(uri))
        return hf__fail_lock(err, HF_INVALID, NULL, shown,
                             ": in a user or password write @ as %%40, / as %%2F, ? as %%3F "
                             "and # as %%23");
    options = PQconninfoParse(uri, &why);
    PQfreemem(why);
    good = options != NULL && ports_are_good(options);
    PQconninfoFree(options);
    if (!good && find_unknown(uri, name, sizeof name))
        return hf__fail_lock(err, HF_INVALID, NULL, shown,
                             ": the option \"%s\" is unknown: ours are max_ttl and listen, "
                             "the others libpq's",
                             name);
    if (!good)
        return hf__fail_lock(err, HF_INVALID, NULL, shown,
                             ": not a URI that libpq understands: write "
                             "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full");
    return HF_OK;
}

enum hf_status pg_url_parse(const char *url, struct pg_url *out, struct hf_error *err)
{
    const char *at = url + strcspn(url, "?");
    char text[PG_URL_MAX] = "";
    struct query ours = {.text = text};
    struct query libpqs = {.text = out->uri, .mark = '?'};
    char why[120];
    enum hf_status status;

    *out = (struct pg_url){.max_ttl_ms = PG_MAX_TTL_DEFAULT_MS};
    hf__url_brief(out->shown, sizeof out->shown, url);
    if (strlen(url) >= PG_URL_MAX)
        return hf__fail(err, HF_INVALID, "a store URL has at most %d bytes", PG_URL_MAX - 1);
    libpqs.len = (size_t)(at - url);
    memcpy(out->uri, url, libpqs.len);
    while (*at != '\0') {
        const char *param = at + 1;
        size_t len = strcspn(param, "&");

        if (len > 0)
            query_add(is_ours(param, len) ? &ours : &libpqs, param, len);
        at = param + len;
    }
    if (!hf__url_options(text, own_options, out, why, sizeof why))
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown,
                             ": %s; such as max_ttl=60s, and listen=off or the escaped "
                             "postgres:// URL of a direct connection",
                             why);
    status = check_uri(out->uri, out->shown, err);
    if (status == HF_OK && out->listen == PG_LISTEN_URL)
        status = check_uri(out->listen_uri, out->shown, err);
    if (status == HF_OK)
        hf__url_redact(out->shown, sizeof out->shown, url);
    return status;
}
