/* url.c - what a redis URL says. */
#include "stores/redis/url.h"
#include "base/base.h"

#include <string.h>

#define REDIS_PORT    6379
#define SENTINEL_PORT 26379
#define DB_MAX        65535

static const struct scheme {
    const char *name;
    enum rd_kind kind;
    bool tls;
    const char *usage;
    unsigned port;
} schemes[] = {
    {"redis", RD_DIRECT, false, "redis://HOST:PORT/DB", REDIS_PORT},
    {"rediss", RD_DIRECT, true, "rediss://HOST:PORT/DB", REDIS_PORT},
    {"redis+unix", RD_DIRECT, false, "redis+unix:///PATH/OF/SOCKET", REDIS_PORT},
    {"redis+sentinel", RD_SENTINEL, false, "redis+sentinel://HOST:PORT,HOST:PORT/MASTER/DB",
     SENTINEL_PORT},
    {"redlock", RD_REDLOCK, false, "redlock://HOST:PORT,HOST:PORT,HOST:PORT/DB", REDIS_PORT},
};

static bool parse_db(struct rd_url *url, const char *text)
{
    uint64_t db;

    if (*text == '\0')
        return true;
    if (!hf__parse_u64(text, &db) || db > DB_MAX)
        return false;
    url->db = (unsigned)db;
    return true;
}

static bool set_db(void *into, const char *value)
{
    return parse_db(into, value);
}

static bool is_redlock(const void *into)
{
    return ((const struct rd_url *)into)->kind == RD_REDLOCK;
}

static bool has_sentinels(const void *into)
{
    return ((const struct rd_url *)into)->kind == RD_SENTINEL;
}

static const struct hf__url_option options[] = {
    HF__OPTION_TEXT("prefix", struct rd_url, prefix, 0),
    HF__OPTION_DURATION("max_ttl", struct rd_url, max_ttl_ms, HF_TTL_MIN_MS, HF_TTL_MAX_MS),
    HF__OPTION_OWN("db", set_db),
    HF__OPTION_SWITCH("tls", struct rd_url, tls),
    HF__OPTION_TEXT("ca", struct rd_url, ca, 0),
    HF__OPTION_TEXT("cert", struct rd_url, cert, 0),
    HF__OPTION_TEXT("key", struct rd_url, key, 0),
    HF__OPTION_SWITCH("verify", struct rd_url, verify),
    HF__OPTION_TEXT("password_file", struct rd_url, password_file, 1),
    {.name = "node_timeout",
     .type = HF__URL_DURATION,
     .offset = offsetof(struct rd_url, node_timeout_ms),
     .min = 1,
     .max = RD_NODE_TIMEOUT_MAX_MS,
     .fits = is_redlock},
    {.name = "sentinel_user",
     .type = HF__URL_TEXT,
     .offset = offsetof(struct rd_url, sentinel_user),
     .max = RD_TEXT_MAX - 1,
     .fits = has_sentinels},
    {.name = "sentinel_password_file",
     .type = HF__URL_TEXT,
     .offset = offsetof(struct rd_url, sentinel_password_file),
     .min = 1,
     .max = RD_TEXT_MAX - 1,
     .fits = has_sentinels},
    {.name = NULL},
};

/* What follows the hosts: "/db", "/master/db", or all of it the path of a socket. */
static bool parse_path(struct rd_url *url)
{
    struct hf__url *parts = &url->parts;
    const char *path = parts->path;
    const char *slash;

    if (parts->host_count == 0) {
        parts->host_count = 1;
        return url->kind == RD_DIRECT && path[0] == '/' && path[1] != '\0' &&
               hf__url_copy(parts->hosts[0].host, sizeof parts->hosts[0].host, path, strlen(path));
    }
    if (url->kind == RD_DIRECT && parts->host_count != 1)
        return false;
    if (url->kind != RD_SENTINEL)
        return parse_db(url, path + (*path == '/'));
    if (path[0] != '/' || path[1] == '\0')
        return false;
    slash = path + 1 + strcspn(path + 1, "/");
    return hf__url_copy(url->master, sizeof url->master, path + 1, (size_t)(slash - path - 1)) &&
           url->master[0] != '\0' && parse_db(url, slash + (*slash == '/'));
}

static const struct scheme *scheme_of(const char *text)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (hf__url_rest(text, schemes[i].name) != NULL)
            return &schemes[i];
    return NULL;
}

enum hf_status rd_url_parse(const char *text, struct rd_url *out, struct hf_error *err)
{
    const struct scheme *scheme = scheme_of(text);
    struct hf__url_form form = {.options = options};
    enum hf_status status;

    memset(out, 0, sizeof *out);
    if (scheme == NULL)
        return hf__fail(err, HF_INVALID, "this is not a Redis URL; write %s", schemes[0].usage);
    form.usage = scheme->usage;
    form.port = scheme->port;
    out->kind = scheme->kind;
    out->tls = scheme->tls;
    out->verify = true;
    out->max_ttl_ms = RD_MAX_TTL_DEFAULT_MS;
    out->node_timeout_ms = RD_NODE_TIMEOUT_DEFAULT_MS;
    status = hf__url_parse(text, &form, &out->parts, out, err);
    if (status != HF_OK)
        return status;
    if (!parse_path(out) ||
        (strcmp(scheme->name, "redis+unix") == 0 && out->parts.hosts[0].host[0] != '/'))
        return hf__fail_lock(err, HF_INVALID, NULL, out->parts.shown, ": write %s", scheme->usage);
    if ((out->cert[0] == '\0') != (out->key[0] == '\0'))
        return hf__fail_lock(err, HF_INVALID, NULL, out->parts.shown,
                             ": cert= and key= go together");
    return HF_OK;
}

enum hf_status rd_url_find_password(struct rd_url *url, struct hf_error *err)
{
    enum hf_status status = HF_OK;

    if (!url->parts.has_password)
        status = hf__find_password(url->password_file, RD_PASSWORD_VARIABLE, url->parts.shown,
                                   url->parts.password, sizeof url->parts.password, err);
    url->parts.has_password = url->parts.has_password || url->parts.password[0] != '\0';
    if (status == HF_OK && url->kind == RD_SENTINEL)
        status = hf__find_password(url->sentinel_password_file, RD_SENTINEL_PASSWORD_VARIABLE,
                                   url->parts.shown, url->sentinel_password,
                                   sizeof url->sentinel_password, err);
    return status == HF_OK ? hf__ok(err) : status;
}
