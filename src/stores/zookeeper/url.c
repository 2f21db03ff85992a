/* url.c - zookeeper://[USER[:PASSWORD]@]HOST[:PORT][,...][/CHROOT][?password_file=...&tick=...] */
#include "stores/zookeeper/url.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define HOSTS_MAX    16
#define PORT_DEFAULT 2181

static enum hf_status parse_rest(char *rest, struct zk_url *url, struct hf_error *err);

enum hf_status zk_url_parse(const char *text, struct zk_url *out, struct hf_error *err)
{
    const char *rest = hf__url_rest(text, "zookeeper");
    char copy[ZK_TEXT_MAX];
    enum hf_status status;

    memset(out, 0, sizeof *out);
    out->tick_ms = ZK_TICK_DEFAULT_MS;
    hf__url_brief(out->shown, sizeof out->shown, text);
    if (rest == NULL || strncmp(rest, "//", 2) != 0)
        return hf__fail(err, HF_INVALID,
                        "store %.150s: write zookeeper://HOST:2181,HOST:2181/CHROOT", out->shown);
    if (strlen(rest) >= sizeof copy)
        return hf__fail(err, HF_INVALID, "store %.150s: the URL is too long", out->shown);
    memcpy(copy, rest, strlen(rest) + 1);
    status = parse_rest(copy + 2, out, err);
    explicit_bzero(copy, sizeof copy);
    if (status == HF_OK)
        hf__url_redact(out->shown, sizeof out->shown, text);
    return status;
}

static bool add_host(struct zk_url *url, const char *text, size_t len)
{
    size_t used = strlen(url->hosts);
    size_t room = sizeof url->hosts - used;
    unsigned port = PORT_DEFAULT;
    char host[ZK_TEXT_MAX];
    bool brackets;

    if (!hf__url_host(text, len, host, sizeof host, &port) || strchr(host, '@') != NULL)
        return false;
    brackets = strchr(host, ':') != NULL;
    return snprintf(url->hosts + used, room, "%s%s%s%s:%u", used > 0 ? "," : "",
                    brackets ? "[" : "", host, brackets ? "]" : "", port) < (int)room;
}

static bool parse_hosts(struct zk_url *url, const char *text)
{
    for (int count = 0; count < HOSTS_MAX; count++) {
        size_t len = strcspn(text, ",");

        if (!add_host(url, text, len))
            return false;
        url->host_count++;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
    return false;
}

/* "/a/b" without empty, "." or ".." parts; "" and "/" are the top. */
static bool parse_chroot(struct zk_url *url, char *path)
{
    size_t len = strlen(path);

    if (len > 0 && path[len - 1] == '/')
        path[--len] = '\0';
    if (!hf__url_decode(path))
        return false;
    for (const char *part = path; *part != '\0';) {
        size_t part_len = strcspn(++part, "/");

        if (part_len == 0 || (part_len == 1 && part[0] == '.') ||
            (part_len == 2 && strncmp(part, "..", 2) == 0))
            return false;
        part += part_len;
    }
    for (const char *at = path; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    return snprintf(url->root, sizeof url->root, "%s/holdfast", path) < (int)sizeof url->root;
}

struct options {
    struct zk_url *url;
    bool tls;
};

static bool set_tick(struct zk_url *url, const char *value)
{
    int64_t ms;

    if (!hf__parse_duration_ms(value, &ms) || ms < ZK_TICK_MIN_MS || ms > ZK_TICK_MAX_MS)
        return false;
    url->tick_ms = (uint32_t)ms;
    return true;
}

static bool set_option(const char *key, const char *value, void *data)
{
    struct options *options = data;
    size_t len = strlen(value);

    if (strcmp(key, "tls") == 0 || strcmp(key, "ca") == 0 || strcmp(key, "cert") == 0 ||
        strcmp(key, "key") == 0) {
        options->tls = options->tls || strcmp(value, "off") != 0;
        return true;
    }
    if (strcmp(key, "tick") == 0)
        return set_tick(options->url, value);
    if (strcmp(key, "password_file") != 0 || len == 0 || len >= sizeof options->url->password_file)
        return false;
    memcpy(options->url->password_file, value, len + 1);
    return true;
}

static enum hf_status parse_rest(char *rest, struct zk_url *url, struct hf_error *err)
{
    static const char *const known[] = {"password_file", "tick", NULL};
    char *query = strchr(rest, '?');
    char why[192];
    char *path;
    char *at;
    struct options options = {.url = url};
    bool placed;

    if (query != NULL)
        *query++ = '\0';
    path = rest + strcspn(rest, "/");
    placed = parse_chroot(url, path);
    *path = '\0'; /* what is left are the user and the hosts */
    at = strrchr(rest, '@');
    if (at != NULL && (!hf__url_user(rest, (size_t)(at - rest), url->user, url->password,
                                     sizeof url->user, &url->has_password) ||
                       url->user[0] == '\0' || strchr(url->user, ':') != NULL))
        return hf__fail(
            err, HF_INVALID,
            "store %.150s: the user is empty, has a colon or is too long, or a %% starts "
            "no escape",
            url->shown);
    if (!placed || !parse_hosts(url, at != NULL ? at + 1 : rest))
        return hf__fail(
            err, HF_INVALID,
            "store %.100s: write zookeeper://USER:PASSWORD@HOST:2181,HOST:2181/CHROOT, with "
            "%d hosts at most",
            url->shown, HOSTS_MAX);
    if (query != NULL && !hf__url_params(query, set_option, &options)) {
        hf__url_blame(why, sizeof why, query, known, set_option, &options);
        return hf__fail(err, HF_INVALID, "store %.80s: %s", url->shown, why);
    }
    if (options.tls)
        return hf__fail(
            err, HF_UNSUPPORTED,
            "store %.120s: the ZooKeeper client library here is built without TLS; lead the "
            "connection through a tunnel, for example stunnel",
            url->shown);
    return hf__ok(err);
}

void zk_url_hosts(const struct zk_url *url, unsigned first, char out[ZK_TEXT_MAX])
{
    const char *at = url->hosts;
    size_t front;
    size_t rest;

    for (unsigned i = 0; i < first % url->host_count; i++)
        at = strchr(at, ',') + 1;
    front = (size_t)(at - url->hosts); /* with the comma behind it, if there is any */
    rest = strlen(at);
    memcpy(out, at, rest + 1);
    if (front == 0)
        return;
    out[rest] = ',';
    memcpy(out + rest + 1, url->hosts, front - 1);
    out[rest + front] = '\0';
}

enum hf_status zk_url_find_password(struct zk_url *url, struct hf_error *err)
{
    if (url->user[0] != '\0' && !url->has_password) {
        enum hf_status status =
            hf__find_password(url->password_file, ZK_PASSWORD_VARIABLE, url->shown, url->password,
                              sizeof url->password, err);

        if (status != HF_OK)
            return status;
        url->has_password = url->password[0] != '\0';
    }
    if (url->user[0] != '\0' ? !url->has_password : url->password_file[0] != '\0')
        return hf__fail(
            err, HF_INVALID,
            "store %.100s: a user and a password go together (in the URL, password_file= "
            "or %s)",
            url->shown, ZK_PASSWORD_VARIABLE);
    return hf__ok(err);
}
