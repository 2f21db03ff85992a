/* guarded.c - a store that opens for those who know the password, guarded://user:Zq7xWv9k@host. */
#include "tiny.h"

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err);

static const char *const schemes[] = {"guarded", NULL};
static const struct hf_store_ops ops = {.size = sizeof ops,
                                        .schemes = schemes,
                                        .features = HF_FEATURE_DETACHED,
                                        .open = open_it,
                                        .close = tiny_close,
                                        .acquire = tiny_acquire,
                                        .renew = tiny_renew,
                                        .release = tiny_release,
                                        .list = tiny_list};

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err)
{
    char shown[128];

    (void)deadline_ns;
    if (strstr(url, ":Zq7xWv9k@") != NULL)
        return tiny_open_with(&ops, host, out);
    host->redact(shown, sizeof shown, url);
    return host->fail(err, HF_DENIED, "store %.100s: wrong password", shown);
}

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}
