/* errors.c - what to say when too few nodes are of use. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <string.h>

/* What somebody has to mend comes before what may pass. */
static unsigned weight(enum hf_status status)
{
    switch ((int)status) {
    case HF_OK:
        return 0;
    case HF_INVALID:
        return 4;
    case HF_DENIED:
        return 3;
    case HF_CORRUPT:
    case HF_UNSUPPORTED:
        return 2;
    default:
        return 1;
    }
}

void rl_trouble_add(struct rl_troubles *troubles, const struct hf_error *err)
{
    troubles->to_mend += weight(err->code) > weight(HF_UNREACHABLE);
    if (weight(err->code) > weight(troubles->worst.code))
        troubles->worst = *err;
}

const char *rl_without_store(const struct rl_store *store, const char *text)
{
    static const char start[] = "store ";
    const char *shown = store->setup.url.parts.shown;
    size_t len = strlen(shown);

    if (strncmp(text, start, sizeof start - 1) == 0 &&
        strncmp(text + sizeof start - 1, shown, len) == 0 &&
        strncmp(text + sizeof start - 1 + len, ": ", 2) == 0)
        text += sizeof start - 1 + len + 2;
    return text;
}

const char *rl_trouble_text(const struct rl_store *store, const struct rl_troubles *troubles)
{
    if (troubles->worst.code == HF_OK)
        return "they did not answer in time";
    return rl_without_store(store, troubles->worst.text);
}

enum hf_status rl_too_few(const struct rl_store *store, const char *lock,
                          const struct rl_troubles *troubles, struct hf_error *err)
{
    unsigned majority = hf__quorum_majority(store->count);
    const char *shown = store->setup.url.parts.shown;

    if (troubles->to_mend > store->count - majority)
        return rd_pass(err, &troubles->worst);
    return hf__fail_lock(err, HF_UNREACHABLE, lock, shown,
                         ": fewer than %u of %u nodes answered: %.80s", majority, store->count,
                         rl_trouble_text(store, troubles));
}
