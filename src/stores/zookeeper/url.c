/* url.c - zookeeper://[USER[:PASSWORD]@]HOST[:PORT][,...][/CHROOT][?password_file=...&tick=...] */
#include "stores/zookeeper/url.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define PORT_DEFAULT 2181

static bool set_tls(void *into, const char *value)
{
    struct zk_url *url = into;

    url->tls = url->tls || strcmp(value, "off") != 0;
    return true;
}

static const struct hf__url_option options[] = {
    HF__OPTION_TEXT("password_file", struct zk_url, password_file, 1),
    HF__OPTION_DURATION("tick", struct zk_url, tick_ms, ZK_TICK_MIN_MS, ZK_TICK_MAX_MS),
    HF__OPTION_OWN("tls", set_tls),
    HF__OPTION_OWN("ca", set_tls),
    HF__OPTION_OWN("cert", set_tls),
    HF__OPTION_OWN("key", set_tls),
    {.name = NULL},
};

static const struct hf__url_form form = {
    .usage = "zookeeper://HOST:2181,HOST:2181/CHROOT", .port = PORT_DEFAULT, .options = options};

static bool write_hosts(struct zk_url *url)
{
    size_t used = 0;

    for (unsigned i = 0; i < url->common.host_count; i++) {
        if (used > 0 && used + 1 < sizeof url->hosts)
            url->hosts[used++] = ',';
        if (!hf__address_format(url->hosts + used, sizeof url->hosts - used, &url->common.hosts[i]))
            return false;
        used += strlen(url->hosts + used);
    }
    return used > 0;
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

/* What the form of the URL does not tell. NULL: it is fine. */
static const char *find_fault(struct zk_url *url)
{
    if ((url->common.user[0] == '\0' && url->common.has_password) ||
        strchr(url->common.user, ':') != NULL)
        return "the user is empty or has a colon";
    if (!write_hosts(url) || !parse_chroot(url, url->common.path))
        return "write zookeeper://USER:PASSWORD@HOST:2181,HOST:2181/CHROOT";
    return NULL;
}

enum hf_status zk_url_parse(const char *text, struct zk_url *out, struct hf_error *err)
{
    const char *fault;
    enum hf_status status;

    memset(out, 0, sizeof *out);
    out->tick_ms = ZK_TICK_DEFAULT_MS;
    status = hf__url_parse(text, &form, &out->common, out, err);
    if (status != HF_OK)
        return status;
    if (out->tls)
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, out->common.shown,
                             ": the ZooKeeper client library here is built without TLS; run the "
                             "connection through a tunnel, for example stunnel");
    fault = strstr(text, "://@") != NULL ? "the user is missing" : find_fault(out);
    if (fault == NULL)
        return hf__ok(err);
    hf__url_brief(out->common.shown, sizeof out->common.shown, text);
    return hf__fail_lock(err, HF_INVALID, NULL, out->common.shown, ": %s", fault);
}

void zk_url_hosts(const struct zk_url *url, unsigned first, char out[ZK_HOSTS_MAX])
{
    const char *at = url->hosts;
    size_t front;
    size_t rest;

    for (unsigned i = 0; i < first % url->common.host_count; i++)
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
    if (url->common.user[0] != '\0' && !url->common.has_password) {
        enum hf_status status =
            hf__find_password(url->password_file, ZK_PASSWORD_VARIABLE, url->common.shown,
                              url->common.password, sizeof url->common.password, err);

        if (status != HF_OK)
            return status;
        url->common.has_password = url->common.password[0] != '\0';
    }
    if (url->common.user[0] != '\0' ? !url->common.has_password : url->password_file[0] != '\0')
        return hf__fail_lock(err, HF_INVALID, NULL, url->common.shown,
                             ": a user and a password go together (in the URL, password_file= "
                             "or " ZK_PASSWORD_VARIABLE ")");
    return hf__ok(err);
}
