/* url.c - what a redis URL says. */
#include "stores/redis/url.h"
#include "base/base.h"

#include <string.h>

#define REDIS_PORT    6379
#define SENTINEL_PORT 26379
#define DB_MAX        65535

/* node_timeout is for redlock, what begins with sentinel is for redis+sentinel. */
static const char *const options[] = {"prefix",
                                      "max_ttl",
                                      "db",
                                      "tls",
                                      "ca",
                                      "cert",
                                      "key",
                                      "verify",
                                      "password_file",
                                      "node_timeout",
                                      "sentinel_user",
                                      "sentinel_password_file",
                                      NULL};

static enum hf_status parse_rest(char *rest, struct rd_url *url, struct hf_error *err);
static bool set_option(const char *key, const char *value, void *data);

enum hf_status rd_url_parse(const char *text, struct rd_url *out, struct hf_error *err)
{
    char copy[2 * RD_TEXT_MAX];
    const char *rest;
    enum hf_status status;

    memset(out, 0, sizeof *out);
    out->verify = true;
    out->max_ttl_ms = RD_MAX_TTL_DEFAULT_MS;
    out->node_timeout_ms = RD_NODE_TIMEOUT_DEFAULT_MS;
    hf__url_brief(out->shown, sizeof out->shown, text);
    if ((rest = hf__url_rest(text, "rediss")) != NULL)
        out->tls = true;
    else if ((rest = hf__url_rest(text, "redis+sentinel")) != NULL)
        out->kind = RD_SENTINEL;
    else if ((rest = hf__url_rest(text, "redlock")) != NULL)
        out->kind = RD_REDLOCK;
    else if ((rest = hf__url_rest(text, "redis+unix")) == NULL)
        rest = hf__url_rest(text, "redis");
    if (rest == NULL || strncmp(rest, "//", 2) != 0)
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown, ": write redis://HOST:PORT");
    if (strlen(rest) >= sizeof copy)
        return hf__fail_lock(err, HF_INVALID, NULL, out->shown, ": the URL is too long");
    memcpy(copy, rest, strlen(rest) + 1);
    status = parse_rest(copy + 2, out, err);
    if (status == HF_OK && out->address_count == 1 && out->addresses[0].host[0] != '/' &&
        hf__url_rest(text, "redis+unix") != NULL)
        status = hf__fail_lock(err, HF_INVALID, NULL, out->shown,
                               ": write redis+unix:///PATH/OF/SOCKET");
    explicit_bzero(copy, sizeof copy);
    if (status == HF_OK)
        hf__url_redact(out->shown, sizeof out->shown, text);
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

bool rd_address_parse(const char *text, size_t len, unsigned default_port, struct rd_address *out)
{
    out->port = default_port;
    return hf__url_host(text, len, out->host, sizeof out->host, &out->port);
}

bool rd_address_equal(const struct rd_address *a, const struct rd_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static bool parse_hosts(struct rd_url *url, const char *text)
{
    unsigned port = url->kind == RD_SENTINEL ? SENTINEL_PORT : REDIS_PORT;

    for (;;) {
        size_t len = strcspn(text, ",");

        if (url->address_count == RD_ADDRESSES_MAX ||
            !rd_address_parse(text, len, port, &url->addresses[url->address_count++]))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

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

/* What follows the hosts: "/db", "/master/db", or all of it the path of a socket. */
static bool parse_path(struct rd_url *url, const char *hosts, char *path)
{
    char *slash;

    if (hosts[0] == '\0' && url->kind == RD_DIRECT && path[0] == '/' && path[1] != '\0') {
        url->address_count = 1;
        return hf__url_copy(url->addresses[0].host, RD_HOST_MAX, path, strlen(path));
    }
    if (!parse_hosts(url, hosts))
        return false;
    if (url->kind == RD_REDLOCK)
        return parse_db(url, path + (*path == '/'));
    if (url->kind == RD_DIRECT)
        return url->address_count == 1 && parse_db(url, path + (*path == '/'));
    if (path[0] != '/' || path[1] == '\0')
        return false;
    slash = strchr(path + 1, '/');
    if (slash == NULL)
        slash = path + strlen(path);
    return hf__url_copy(url->master, sizeof url->master, path + 1, (size_t)(slash - path - 1)) &&
           url->master[0] != '\0' && parse_db(url, slash + (*slash == '/'));
}

static enum hf_status parse_rest(char *rest, struct rd_url *url, struct hf_error *err)
{
    char *query = strchr(rest, '?');
    char *path;
    char *at;
    char hosts[2 * RD_TEXT_MAX];
    char why[192];

    if (query != NULL)
        *query++ = '\0';
    path = rest + strcspn(rest, "/");
    if (!copy_text(hosts, sizeof hosts, rest, (size_t)(path - rest)))
        return hf__fail_lock(err, HF_INVALID, NULL, url->shown, ": too many hosts");
    at = strrchr(hosts, '@');
    if (at != NULL && !hf__url_user(hosts, (size_t)(at - hosts), url->user, url->password,
                                    sizeof url->user, &url->has_password))
        return hf__fail_lock(err, HF_INVALID, NULL, url->shown,
                             ": user or password too long, or a %% that starts no escape");
    if (!parse_path(url, at != NULL ? at + 1 : hosts, path))
        return hf__fail_lock(err, HF_INVALID, NULL, url->shown,
                             ": write redis://HOST:PORT/DB, redis+unix:///PATH or "
                             "redis+sentinel://HOST:PORT,HOST:PORT/MASTER, "
                             "redlock://HOST:PORT,HOST:PORT,HOST:PORT");
    if (query != NULL && !hf__url_params(query, set_option, url)) {
        hf__url_blame(why, sizeof why, query, options, set_option, url);
        return hf__fail_lock(err, HF_INVALID, NULL, url->shown, ": %s", why);
    }
    if ((url->cert[0] == '\0') != (url->key[0] == '\0'))
        return hf__fail_lock(err, HF_INVALID, NULL, url->shown, ": cert= and key= go together");
    explicit_bzero(hosts, sizeof hosts);
    return hf__ok(err);
}

static bool set_switch(bool *out, const char *value)
{
    *out = strcmp(value, "on") == 0;
    return *out || strcmp(value, "off") == 0;
}

static bool set_option(const char *key, const char *value, void *data)
{
    struct rd_url *url = data;
    size_t len = strlen(value);

    if (strcmp(key, "prefix") == 0)
        return copy_text(url->prefix, sizeof url->prefix, value, len);
    if (strcmp(key, "max_ttl") == 0)
        return hf__parse_duration_ms(value, &url->max_ttl_ms) && url->max_ttl_ms >= HF_TTL_MIN_MS &&
               url->max_ttl_ms <= HF_TTL_MAX_MS;
    if (strcmp(key, "node_timeout") == 0)
        return url->kind == RD_REDLOCK && hf__parse_duration_ms(value, &url->node_timeout_ms) &&
               url->node_timeout_ms > 0 && url->node_timeout_ms <= RD_NODE_TIMEOUT_MAX_MS;
    if (strcmp(key, "db") == 0)
        return parse_db(url, value);
    if (strcmp(key, "tls") == 0)
        return set_switch(&url->tls, value);
    if (strcmp(key, "verify") == 0)
        return set_switch(&url->verify, value);
    if (strcmp(key, "ca") == 0)
        return copy_text(url->ca, sizeof url->ca, value, len);
    if (strcmp(key, "cert") == 0)
        return copy_text(url->cert, sizeof url->cert, value, len);
    if (strcmp(key, "key") == 0)
        return copy_text(url->key, sizeof url->key, value, len);
    if (strcmp(key, "password_file") == 0)
        return len > 0 && copy_text(url->password_file, sizeof url->password_file, value, len);
    if (url->kind != RD_SENTINEL)
        return false;
    if (strcmp(key, "sentinel_user") == 0)
        return copy_text(url->sentinel_user, sizeof url->sentinel_user, value, len);
    if (strcmp(key, "sentinel_password_file") == 0)
        return len > 0 && copy_text(url->sentinel_password_file, sizeof url->sentinel_password_file,
                                    value, len);
    return false;
}

enum hf_status rd_url_find_password(struct rd_url *url, struct hf_error *err)
{
    enum hf_status status = HF_OK;

    if (!url->has_password)
        status = hf__find_password(url->password_file, RD_PASSWORD_VARIABLE, url->shown,
                                   url->password, sizeof url->password, err);
    url->has_password = url->has_password || url->password[0] != '\0';
    if (status == HF_OK && url->kind == RD_SENTINEL)
        status = hf__find_password(url->sentinel_password_file, RD_SENTINEL_PASSWORD_VARIABLE,
                                   url->shown, url->sentinel_password,
                                   sizeof url->sentinel_password, err);
    return status == HF_OK ? hf__ok(err) : status;
}
