/* plain.h - a whole plugin. PLUGIN_SCHEME and PLUGIN_ABI say what it claims to be. */
#include "tiny.h"

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err);

static const char *const schemes[] = {PLUGIN_SCHEME, NULL};
static const struct hf_store_ops ops = {.size = sizeof ops,
                                        .schemes = schemes,
                                        .open = open_it,
                                        .close = tiny_close,
                                        .acquire = tiny_acquire,
                                        .renew = tiny_renew,
                                        .release = tiny_release,
                                        .list = tiny_list};

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err)
{
    (void)url;
    (void)deadline_ns;
    (void)err;
    return tiny_open_with(&ops, host, out);
}

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = PLUGIN_ABI, .ops = &ops};

    return &plugin;
}
