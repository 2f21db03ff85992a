/* registry.c - from a URL's scheme to a store's table of operations. */
#include "client/client.h"
#include "stores/file/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEME_MAX 32 /* bytes of a scheme */

#define SCHEMES_MAX 6 /* of one plugin, a NULL included */

/* The plugins of this tree: a folder of src/stores and the schemes it serves. A scheme that is not
 * here is looked for under its own name, so that anyone can have a store of their own elsewhere. */
static const struct {
    const char *plugin;
    const char *schemes[SCHEMES_MAX];
    const char *also; /* another spelling, not among those that are shown as known */
} known[] = {
    {"redis", {"redis", "rediss", "redis+unix", "redis+sentinel", "redlock"}, NULL},
    {"etcd", {"etcd"}, NULL},
    {"zookeeper", {"zookeeper"}, NULL},
    {"postgres", {"postgres"}, "postgresql"},
    {"http", {"http", "https", "http+unix"}, NULL},
};

static void host_vlog(const char *format, va_list args)
{
    char line[512];

    if (secure_getenv("HOLDFAST_TRACE") == NULL)
        return;
    (void)vsnprintf(line, sizeof line, format, args);
    /* One write, so that lines of several threads do not mix. */
    dprintf(STDERR_FILENO, "holdfast: %s\n", line);
}

static void host_log(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    host_vlog(format, args);
    va_end(args);
}

const struct hf_host hf__host = {.size = sizeof hf__host,
                                 .now_ns = hf__now_ns,
                                 .wall_us = hf__wall_us,
                                 .random = hf__random,
                                 .log = host_log,
                                 .vlog = host_vlog,
                                 .fail = hf__fail,
                                 .redact = hf__url_redact};

/* NULL for a scheme that is not in the table. */
static const char *known_plugin(const char *scheme)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].also != NULL && strcmp(known[i].also, scheme) == 0)
            return known[i].plugin;
        for (const char *const *at = known[i].schemes; *at != NULL; at++)
            if (strcmp(*at, scheme) == 0)
                return known[i].plugin;
    }
    return NULL;
}

static const char *plugin_of(const char *scheme)
{
    const char *plugin = known_plugin(scheme);

    return plugin != NULL ? plugin : scheme;
}

/* "file, redis, ..." */
static void list_schemes(char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "file");

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (const char *const *at = known[i].schemes; *at != NULL && used < size; at++)
            used += (size_t)snprintf(out + used, size - used, ", %s", *at);
}

static enum hf_status no_plugin(const char *scheme, const char *plugin, const char *broken,
                                struct hf_error *err)
{
    char schemes[160];
    char remedy[HF__REMEDY_SIZE];

    if (broken[0] != '\0')
        return hf__fail(err, HF_UNSUPPORTED, "the plugin for %s: cannot be loaded: %s", scheme,
                        broken);
    hf__plugin_remedy(plugin, remedy, sizeof remedy);
    if (known_plugin(scheme) != NULL)
        return hf__fail(err, HF_UNSUPPORTED, "stores of kind %s: need the plugin %s.so: %s", scheme,
                        plugin, remedy);
    list_schemes(schemes, sizeof schemes);
    return hf__fail(err, HF_UNSUPPORTED, "unknown store scheme \"%s\" (%s): known are %s", scheme,
                    hf__plugin_where(), schemes);
}

static enum hf_status find_plugin(const char *scheme, const struct hf_store_ops **out,
                                  struct hf_error *err)
{
    const struct hf_store_plugin *(*entry)(void);
    const struct hf_store_plugin *plugin;
    char broken[160] = "";
    void *symbol = hf__plugin_symbol(plugin_of(scheme), "hf_store_plugin", broken, sizeof broken);

    if (symbol == NULL)
        return no_plugin(scheme, plugin_of(scheme), broken, err);
    memcpy(&entry, &symbol, sizeof entry);
    plugin = entry();
    if (plugin == NULL)
        return no_plugin(scheme, plugin_of(scheme), "it offers no store", err);
    if (plugin->abi != HF_STORE_ABI || plugin->ops->size < offsetof(struct hf_store_ops, life_fd))
        return hf__fail(err, HF_UNSUPPORTED,
                        "the plugin for %s: was built for store ABI %u, this library has %u",
                        scheme, plugin->abi, HF_STORE_ABI);
    for (const char *const *served = plugin->ops->schemes; *served != NULL; served++)
        if (strcmp(*served, scheme) == 0) {
            *out = plugin->ops;
            return HF_OK;
        }
    return hf__fail(err, HF_UNSUPPORTED,
                    "the plugin %s.so does not know the scheme %s:", plugin_of(scheme), scheme);
}

enum hf_status hf__registry_find(const char *url, const struct hf_store_ops **out,
                                 struct hf_error *err)
{
    char scheme[SCHEME_MAX + 1];
    size_t len = hf__url_scheme_len(url);

    if (strlen(url) >= HF__URL_MAX)
        return hf__fail(err, HF_INVALID, "a store URL has at most %d bytes", HF__URL_MAX - 1);
    if (len == 0 || len > SCHEME_MAX)
        return hf__fail(err, HF_INVALID,
                        "not a store URL (no scheme): write file:DIR or redis://HOST:PORT");
    memcpy(scheme, url, len);
    scheme[len] = '\0';
    if (!hf__url_is_clear(url))
        return hf__fail(err, HF_INVALID,
                        "a %s: URL of which it is not clear where the password ends: in a user "
                        "name or password write / as %%2F, ? as %%3F, # as %%23 and @ as %%40; "
                        "behind the hosts, @ too",
                        scheme);
    if (strcmp(scheme, "file") == 0) {
        *out = &hf__file_ops;
        return HF_OK;
    }
    return find_plugin(scheme, out, err);
}

enum hf_status hf__registry_open(const char *url, struct hf_store_base **out, struct hf_error *err)
{
    const struct hf_store_ops *ops;
    enum hf_status status = hf__registry_find(url, &ops, err);

    if (status != HF_OK)
        return status;
    return ops->open(&hf__host, url, hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS, out, err);
}
