/* fence.c - the rule of the fence: admit iff the token is not below the highest admitted. Pure. */
#include "core/fence.h"
#include "base/base.h"

#include <string.h>

enum {
    HASH_SEED = 0x69737375, /* "issu" */
    HASH_LEN = 17,          /* "#" and 16 digits */
    ISSUER_TEXT_MAX = 4096  /* bytes of an issuer as it is given; the rest is cut */
};

static bool said(const char *issuer)
{
    return issuer != NULL && issuer[0] != '\0';
}

static bool is_identity(const char *issuer)
{
    return strncmp(issuer, "id:", 3) == 0;
}

enum hf_fence_verdict hf_fence_decide(struct hf_fence_mark *mark, uint64_t token,
                                      const char *issuer, int64_t now_us)
{
    bool names_issuer = said(issuer) && !said(mark->issuer);

    if (token == 0 || token > HF_FENCE_TOKEN_MAX)
        return HF_FENCE_BAD;
    if (said(issuer) && strlen(issuer) > HF_FENCE_ISSUER_MAX)
        return HF_FENCE_BAD;
    /* Before the token: tokens of two stores have no order, so "stale" would mean nothing. */
    if (said(issuer) && said(mark->issuer) && strcmp(issuer, mark->issuer) != 0)
        return HF_FENCE_FOREIGN;
    if (token < mark->token)
        return HF_FENCE_STALE;
    if (token == mark->token && !names_issuer)
        return HF_FENCE_ADMIT;
    if (token > mark->token) {
        mark->token = token;
        mark->admitted_us = now_us;
    }
    if (names_issuer)
        memcpy(mark->issuer, issuer, strlen(issuer) + 1);
    return HF_FENCE_RAISE;
}

void hf__fence_issuer(char out[HF_FENCE_ISSUER_MAX + 1], const char *issuer)
{
    char text[ISSUER_TEXT_MAX];
    size_t len;
    size_t keep;

    /* It is kept beside the data for everybody to read, so a password has no place in it. An
     * identity has none, and is no URL. */
    if (issuer != NULL && is_identity(issuer))
        hf__copy_printable(text, sizeof text, issuer);
    else
        hf__url_redact(text, sizeof text, issuer != NULL ? issuer : "");
    len = strlen(text);
    keep = len <= HF_FENCE_ISSUER_MAX ? len : HF_FENCE_ISSUER_MAX - HASH_LEN;
    memcpy(out, text, keep);
    out[keep] = '\0';
    if (keep < len) {
        uint64_t hash = hf__hash64(text, len, HASH_SEED);

        out[keep] = '#';
        hf__hex_encode(out + keep + 1, &hash, sizeof hash);
    }
}

void hf__fence_settle(struct hf_fence_mark *mark, const char *issuer, const char *url,
                      char out[HF_FENCE_ISSUER_MAX + 1])
{
    char named[HF_FENCE_ISSUER_MAX + 1];

    hf__fence_issuer(out, issuer);
    hf__fence_issuer(named, url);
    if (!said(named) || !said(mark->issuer) || is_identity(mark->issuer))
        return;
    if (!said(out))
        memcpy(out, named, sizeof named);
    else if (is_identity(out) && strcmp(named, mark->issuer) == 0)
        mark->issuer[0] = '\0';
}
