/* wary.c - a store that opens, but not without a word: wary://hint. wary://leftover forgets to
 * clear what an earlier try of its own said. */
#include "tiny.h"

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err);

static const char *const schemes[] = {"wary", NULL};
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
    (void)deadline_ns;
    if (strstr(url, "leftover") != NULL)
        (void)host->fail(err, HF_UNREACHABLE, "the first try failed");
    else
        (void)host->fail(err, HF_OK, "store wary: mind the \033[2J gap");
    return tiny_open_with(&ops, host, out);
}

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}
