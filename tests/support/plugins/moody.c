/* moody.c - a store that answers as a file says: moody:FILE. Each line of the file has a call
 * (open, acquire, look, or half: a listing that breaks off after two locks), the answer (ok,
 * unreachable, unknown, quarantine, busy, denied, or hang), and in quarantine for how many
 * milliseconds more. Read anew at every call; what is not in it is well. */
#include "tiny.h"

#include <stdio.h>
#include <unistd.h>

struct moody {
    struct hf_store_base base;
    char path[512];
    uint32_t max_ttl_ms;
};

static enum hf_status named(const char *word)
{
    static const struct {
        const char *word;
        enum hf_status status;
    } known[] = {{"ok", HF_OK},
                 {"busy", HF_BUSY},
                 {"lost", HF_LOST},
                 {"unknown", HF_UNKNOWN},
                 {"unreachable", HF_UNREACHABLE},
                 {"denied", HF_DENIED},
                 {"quarantine", HF_QUARANTINE}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].word, word) == 0)
            return known[i].status;
    abort();
}

static enum hf_status mood(const char *path, const char *call, long long *number,
                           struct hf_error *err)
{
    FILE *file = fopen(path, "re");
    char line[128], which[32], answer[32] = "ok";
    long long said = 0;

    *number = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char word[32];

        said = 0;
        if (sscanf(line, "%31s %31s %lld", which, word, &said) >= 2 && strcmp(which, call) == 0) {
            (void)snprintf(answer, sizeof answer, "%s", word);
            *number = said;
        }
    }
    if (file != NULL)
        (void)fclose(file);
    while (strcmp(answer, "hang") == 0)
        (void)pause();
    if (strcmp(answer, "is") == 0 || named(answer) == HF_OK)
        return HF_OK;
    if (err != NULL) {
        err->code = named(answer);
        err->retry_after_ms = *number;
        (void)snprintf(err->text, sizeof err->text, "store moody: its %s is %s today", call,
                       answer);
    }
    return named(answer);
}

static enum hf_status moody_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                    struct hf_grant *grant, struct hf_error *err)
{
    struct moody *store = (struct moody *)base;
    long long number;
    enum hf_status status = mood(store->path, "acquire", &number, err);

    return status == HF_OK ? tiny_acquire(base, claim, grant, err) : status;
}

static enum hf_status moody_renew(struct hf_store_base *base, const struct hf_claim *claim,
                                  struct hf_grant *grant, struct hf_error *err)
{
    struct moody *store = (struct moody *)base;
    long long number;
    enum hf_status status = mood(store->path, "renew", &number, err);

    grant->loss = HF_LOSS_TAKEN;
    return status == HF_OK ? tiny_renew(base, claim, grant, err) : status;
}

static enum hf_status moody_list(struct hf_store_base *base, const struct hf_query *query,
                                 hf_list_fn *fn, void *data, struct hf_error *err)
{
    struct moody *store = (struct moody *)base;
    struct hf_lock_info info = {.size = sizeof info, .label = "of a moody store", .held = true};
    long long number;
    enum hf_status status = mood(store->path, "look", &number, err);

    if (status == HF_OK)
        status = mood(store->path, "half", &number, err);
    else
        return status;
    if (status == HF_OK)
        return tiny_list(base, query, fn, data, err);
    info.name = "second";
    if (fn(&info, data)) {
        info.name = "first";
        (void)fn(&info, data);
    }
    return status;
}

static uint32_t moody_max_ttl_ms(struct hf_store_base *base)
{
    return ((struct moody *)base)->max_ttl_ms;
}

static enum hf_status moody_end_quarantine(struct hf_store_base *base, const char *label,
                                           const char *reason, int64_t deadline_ns,
                                           struct hf_error *report)
{
    struct moody *store = (struct moody *)base;
    struct hf_error ignored;
    long long number;
    FILE *file;

    (void)deadline_ns;
    if (mood(store->path, "acquire", &number, &ignored) != HF_QUARANTINE) {
        report->code = HF_INVALID;
        (void)snprintf(report->text, sizeof report->text, "store moody: is not in quarantine");
        return HF_INVALID;
    }
    file = fopen(store->path, "we");
    if (file == NULL)
        abort();
    fprintf(file, "acquire ok\nended is 1 by %s because %s\n", label, reason);
    (void)fclose(file);
    report->code = HF_OK;
    (void)snprintf(report->text, sizeof report->text, "store moody: the quarantine is over");
    return HF_OK;
}

static enum hf_status moody_quarantine(struct hf_store_base *base, int64_t deadline_ns,
                                       struct hf_error *err)
{
    struct moody *store = (struct moody *)base;
    long long number;

    (void)deadline_ns;
    return mood(store->path, "acquire", &number, err);
}

static enum hf_status moody_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err);

static const char *const schemes[] = {"moody", NULL};
static const struct hf_store_ops ops = {.size = sizeof ops,
                                        .schemes = schemes,
                                        .features = HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL,
                                        .open = moody_open,
                                        .close = tiny_close,
                                        .acquire = moody_acquire,
                                        .renew = moody_renew,
                                        .release = tiny_release,
                                        .list = moody_list,
                                        .max_ttl_ms = moody_max_ttl_ms,
                                        .end_quarantine = moody_end_quarantine,
                                        .quarantine = moody_quarantine};

static enum hf_status moody_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    const char *path = strchr(url, ':') + 1;
    long long number;
    enum hf_status status = mood(path, "open", &number, err);
    struct moody *store;

    (void)deadline_ns;
    if (status != HF_OK)
        return status;
    store = calloc(1, sizeof *store);
    if (store == NULL)
        return HF_NOMEM;
    store->base = (struct hf_store_base){.ops = &ops, .host = host};
    (void)snprintf(store->path, sizeof store->path, "%s", path);
    (void)mood(path, "max_ttl", &number, NULL);
    store->max_ttl_ms = number > 0 ? (uint32_t)number : HF_TTL_MAX_MS;
    *out = &store->base;
    return HF_OK;
}

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}
