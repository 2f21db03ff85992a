/* url.c - taking a postgres:// URL apart. */
#include "stores/postgres/url.h"
#include "base/base.h"

#include <postgresql/libpq-fe.h>
#include <string.h>

static enum hf_status set_max_ttl(struct pg_url *out, const char *value, struct hf_error *err)
{
    int64_t ms;

    if (!hf__parse_duration_ms(value, &ms) || ms < HF_TTL_MIN_MS || ms > HF_TTL_MAX_MS)
        return hf__fail(err, HF_INVALID,
                        "store %.150s: max_ttl is a duration of 100ms to 1d, such as max_ttl=60s",
                        out->shown);
    out->max_ttl_ms = ms;
    return HF_OK;
}

static enum hf_status set_listen(struct pg_url *out, const char *value, struct hf_error *err)
{
    if (strcmp(value, "off") == 0) {
        out->listen = PG_LISTEN_OFF;
        return HF_OK;
    }
    if (hf__url_rest(value, "postgres") == NULL && hf__url_rest(value, "postgresql") == NULL)
        return hf__fail(err, HF_INVALID,
                        "store %.130s: listen is off, or the escaped postgres:// URL of a direct "
                        "connection",
                        out->shown);
    out->listen = PG_LISTEN_URL;
    (void)snprintf(out->listen_uri, sizeof out->listen_uri, "%s", value);
    return HF_OK;
}

/* Deals with one "key=value" of the query. *ours tells whether libpq must not see it. */
static enum hf_status take_param(struct pg_url *out, const char *param, size_t len, bool *ours,
                                 struct hf_error *err)
{
    char text[PG_URL_MAX];
    char *value;

    *ours = true;
    memcpy(text, param, len);
    text[len] = '\0';
    value = strchr(text, '=');
    if (value != NULL) {
        *value++ = '\0';
        if (strcmp(text, "max_ttl") == 0 || strcmp(text, "listen") == 0) {
            if (!hf__url_decode(value))
                return hf__fail(err, HF_INVALID, "store %.150s: a malformed %% escape", out->shown);
            return text[0] == 'm' ? set_max_ttl(out, value, err) : set_listen(out, value, err);
        }
    }
    *ours = false;
    return HF_OK;
}

/* False for a port that is none: libpq takes it up to the moment it connects, and quotes it then.
 */
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

static bool is_libpqs(const char *key, const char *value, void *data)
{
    (void)value;
    for (const PQconninfoOption *option = data; option->keyword != NULL; option++)
        if (strcmp(option->keyword, key) == 0)
            return true;
    return strcmp(key, "ssl") == 0;
}

/* True if an option of the query is neither ours nor libpq's; *why names it. */
static bool has_unknown_option(const char *uri, char *why, size_t size)
{
    static const char *const known[] = {"max_ttl",
                                        "listen",
                                        "sslmode",
                                        "sslrootcert",
                                        "connect_timeout",
                                        "application_name",
                                        "target_session_attrs",
                                        NULL};
    const char *query = strchr(uri, '?');
    PQconninfoOption *libpqs = PQconndefaults();
    bool unknown = query != NULL && libpqs != NULL && !hf__url_params(query + 1, is_libpqs, libpqs);

    if (unknown)
        hf__url_blame(why, size, query + 1, known, is_libpqs, libpqs);
    PQconninfoFree(libpqs);
    return unknown;
}

/* What libpq says of a malformed URI quotes it, password and all: so it is not passed on. */
static enum hf_status check_uri(const char *uri, const char *shown, struct hf_error *err)
{
    char *why = NULL;
    PQconninfoOption *options = NULL;
    bool good = false;
    char which[160];

    if (!hf__url_is_clear(uri) || !has_one_at(uri))
        return hf__fail(err, HF_INVALID,
                        "store %.100s: in a user or password write @ as %%40, / as %%2F, ? as %%3F "
                        "and # as %%23",
                        shown);
    options = PQconninfoParse(uri, &why);
    PQfreemem(why);
    good = options != NULL && ports_are_good(options);
    PQconninfoFree(options);
    if (!good && has_unknown_option(uri, which, sizeof which))
        return hf__fail(err, HF_INVALID, "store %.80s: %s", shown, which);
    if (!good)
        return hf__fail(err, HF_INVALID,
                        "store %.120s: not a URI that libpq understands: write "
                        "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full",
                        shown);
    return HF_OK;
}

enum hf_status pg_url_parse(const char *url, struct pg_url *out, struct hf_error *err)
{
    const char *query = strchr(url, '?');
    size_t used = query != NULL ? (size_t)(query - url) : strlen(url);
    char mark = '?';
    enum hf_status status;

    *out = (struct pg_url){.max_ttl_ms = PG_MAX_TTL_DEFAULT_MS};
    hf__url_brief(out->shown, sizeof out->shown, url);
    if (strlen(url) >= PG_URL_MAX)
        return hf__fail(err, HF_INVALID, "a store URL has at most %d bytes", PG_URL_MAX - 1);
    memcpy(out->uri, url, used);
    while (query != NULL && *query != '\0') {
        const char *param = query + 1;
        size_t len = strcspn(param, "&");
        bool ours;

        status = take_param(out, param, len, &ours, err);
        if (status != HF_OK)
            return status;
        if (!ours && len > 0) {
            out->uri[used++] = mark;
            memcpy(out->uri + used, param, len);
            used += len;
            mark = '&';
        }
        query = param + len;
    }
    out->uri[used] = '\0';
    status = check_uri(out->uri, out->shown, err);
    if (status == HF_OK && out->listen == PG_LISTEN_URL)
        status = check_uri(out->listen_uri, out->shown, err);
    if (status == HF_OK)
        hf__url_redact(out->shown, sizeof out->shown, url);
    return status;
}
