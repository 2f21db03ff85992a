/* issuer.c - who issued a token: the store of the locks, as a holdfast above or the store itself
 * says it. */
#include "cli/fence/fence.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { HELD_ENTRY_MAX = 8192 };

/* `holdfast run` says in HOLDFAST_ISSUER who the store of its lock is. Somebody may have set
 * HOLDFAST_STORE to another one since: the last entry of HOLDFAST_HELD, which starts with the
 * store's url, tells. */
static bool handed_down(char out[HF_IDENTITY_SIZE])
{
    const char *issuer = secure_getenv("HOLDFAST_ISSUER");
    const char *held = secure_getenv("HOLDFAST_HELD");
    const char *store = secure_getenv("HOLDFAST_STORE");
    char entry[HELD_ENTRY_MAX];
    const char *last;
    size_t len;

    if (issuer == NULL || held == NULL || store == NULL || strncmp(issuer, "id:", 3) != 0 ||
        strlen(issuer) >= HF_IDENTITY_SIZE)
        return false;
    last = strrchr(held, ' ');
    last = last != NULL ? last + 1 : held;
    len = strcspn(last, ",");
    if (len >= sizeof entry)
        return false;
    memcpy(entry, last, len);
    entry[len] = '\0';
    if (!hf__url_decode(entry) || strcmp(entry, store) != 0)
        return false;
    memcpy(out, issuer, strlen(issuer) + 1);
    return true;
}

enum hf_status fence_find_issuer(const struct cli_context *context, struct fence_words *words,
                                 struct hf_error *err)
{
    struct hf_store *store;
    enum hf_status status;

    hf__url_redact(words->issuer_url, sizeof words->issuer_url, context->store_url);
    if (!context->store_given && handed_down(words->identity)) {
        words->issuer = words->identity;
        return hf__ok(err);
    }
    status = hf_open(context->store_url, &store, err);
    if (status != HF_OK)
        return status;
    status = hf_store_identity(store, words->identity, err);
    hf_close(store);
    if (status != HF_OK && status != HF_UNSUPPORTED)
        return status;
    words->issuer = status == HF_OK ? words->identity : words->issuer_url;
    return HF_OK;
}
