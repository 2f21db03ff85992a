/* admit.c - the rule applied: to a caller's own storage, and as a sentence for people. */
#include "fence/fence.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

enum hf_status hf_fence_admit(const struct hf_fence_storage *storage,
                              const struct hf_fence_pass *pass, struct hf_error *err)
{
    struct hf_fence_mark mark = {.token = 0};
    char issuer[HF_FENCE_ISSUER_MAX + 1];
    enum hf_fence_verdict verdict;
    enum hf_status status;

    status = storage->load(storage->data, &mark, err);
    if (status != HF_OK)
        return status;
    hf__fence_settle(&mark, pass->issuer, hf__fence_url(pass), issuer);
    verdict = hf_fence_decide(&mark, pass->token, issuer, hf__wall_us());
    status = hf_fence_refuse(verdict, &mark, pass, storage->resource, err);
    if (status == HF_OK && verdict == HF_FENCE_RAISE)
        status = storage->save(storage->data, &mark, err);
    return status == HF_OK ? hf__ok(err) : status;
}

const char *hf__fence_url(const struct hf_fence_pass *pass)
{
    return pass->size > offsetof(struct hf_fence_pass, issuer_url) ? pass->issuer_url : NULL;
}

enum hf_status hf_fence_refuse(enum hf_fence_verdict verdict, const struct hf_fence_mark *mark,
                               const struct hf_fence_pass *pass, const char *resource,
                               struct hf_error *err)
{
    char when[32];
    char issuer[HF_FENCE_ISSUER_MAX + 1];

    switch (verdict) {
    case HF_FENCE_ADMIT:
    case HF_FENCE_RAISE:
        return hf__ok(err);
    case HF_FENCE_STALE:
        hf__fence_time(when, sizeof when, mark->admitted_us);
        return hf__fail(err, HF_STALE,
                        "token %" PRIu64 " is stale: %" PRIu64 " was admitted at %s to %s",
                        pass->token, mark->token, when, resource);
    case HF_FENCE_FOREIGN:
        hf__fence_issuer(issuer, pass->issuer);
        if (issuer[0] == '\0')
            hf__fence_issuer(issuer, hf__fence_url(pass));
        return hf__fail(err, HF_INVALID,
                        "token %" PRIu64 " is of %.50s, but %.40s follows %.50s: run \"holdfast "
                        "fence reset --token %" PRIu64 "\" if that is the same store, without "
                        "--token after a change of stores",
                        pass->token, issuer, resource, mark->issuer, mark->token);
    case HF_FENCE_BAD:
        break;
    }
    return hf__fail(err, HF_INVALID, "%" PRIu64 " is not a token: tokens are 1 to %" PRIu64,
                    pass->token, HF_FENCE_TOKEN_MAX);
}

void hf__fence_time(char *out, size_t size, int64_t wall_us)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm parts;

    if (wall_us == 0 || gmtime_r(&seconds, &parts) == NULL ||
        strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        (void)snprintf(out, size, "an unknown time");
}
