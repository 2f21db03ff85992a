/* error.c - filling the caller's error. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum hf_status hf__vfail(struct hf_error *err, enum hf_status code, const char *format,
                         va_list args)
{
    if (err != NULL) {
        err->code = code;
        err->retry_after_ms = 0;
        (void)vsnprintf(err->text, sizeof err->text, format, args);
    }
    return code;
}

enum hf_status hf__fail(struct hf_error *err, enum hf_status code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)hf__vfail(err, code, format, args);
    va_end(args);
    return code;
}

/* The room that a lock's name and a store's URL share: each has a half, and what the other leaves
 * of its own. */
static void share(size_t room, size_t *a, size_t *b)
{
    size_t half = room / 2;

    if (*a + *b <= room)
        return;
    if (*a < half)
        *b = room - *a;
    else if (*b < half)
        *a = room - *b;
    else
        *a = *b = half;
}

enum hf_status hf__fail_lock(struct hf_error *err, enum hf_status code, const char *lock,
                             const char *shown, const char *format, ...)
{
    char what[HF_ERROR_TEXT_SIZE];
    char name[HF_ERROR_TEXT_SIZE];
    char store[HF_ERROR_TEXT_SIZE];
    bool named = lock != NULL && lock[0] != '\0';
    size_t name_len = named ? strlen(lock) : 0;
    size_t store_len = shown != NULL ? strlen(shown) : 0;
    size_t taken;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    taken = strlen(what) + strlen(named ? "lock \"\" in store " : "store ");
    share(taken < sizeof what ? sizeof what - 1 - taken : 0, &name_len, &store_len);
    hf__copy_printable(name, name_len + 1, named ? lock : "");
    if (shown == NULL)
        return hf__fail(err, code, "lock \"%s\"%s", name, what);
    hf__copy_printable(store, store_len + 1, shown);
    if (named)
        return hf__fail(err, code, "lock \"%s\" in store %s%s", name, store, what);
    return hf__fail(err, code, "store %s%s", store, what);
}

enum hf_status hf__fail_max_ttl(struct hf_error *err, const char *lock, const char *shown,
                                int64_t ttl_ms, int64_t max_ttl_ms)
{
    char asked[32];
    char most[32];

    return hf__fail_lock(err, HF_INVALID, lock, shown,
                         ": a ttl of %s is above the store's max_ttl of %s",
                         hf__format_duration(asked, sizeof asked, ttl_ms),
                         hf__format_duration(most, sizeof most, max_ttl_ms));
}

enum hf_status hf__fail_broken(struct hf_error *err, const char *lock, const char *shown,
                               const struct hf_revocation *revocation)
{
    bool known = revocation != NULL && revocation->by[0] != '\0';
    bool reasoned = revocation != NULL && revocation->reason[0] != '\0';

    return hf__fail_lock(err, HF_LOST, lock, shown, " was broken%s%.60s%s%.80s",
                         known ? " by " : "", known ? revocation->by : "", reasoned ? ": " : "",
                         reasoned ? revocation->reason : "");
}

enum hf_status hf__fail_not_broken(struct hf_error *err, const char *lock, const char *shown,
                                   uint64_t token, enum hf__not_broken why)
{
    static const char *const sentences[] = {
        [HF__NOT_HELD] = "is not held",
        [HF__NOT_HELD_ANY_MORE] = "is not held any more",
        [HF__NOT_HELD_BY_MAJORITY] = "is not held by a majority of the nodes",
        [HF__HANDED_OVER] = "is just being handed to the next in the queue",
        [HF__HELD_BY_FOREIGN] = "is held by a client that is not holdfast",
        [HF__HELD_WITH_OTHER_TOKEN] = "is held with another token",
    };
    const char *sentence = sentences[why];

    if (token == 0 && why == HF__HELD_WITH_OTHER_TOKEN)
        sentence = "is held by holdfast, with a token";
    return hf__fail_lock(err, HF_LOST, lock, shown, " %s: nothing was broken", sentence);
}

enum hf_status hf__fail_old_record(struct hf_error *err, const char *lock, const char *shown,
                                   const char *key)
{
    return hf__fail_lock(err, HF_STALE, lock, shown,
                         ": its record \"%s\" is as new as this one, or newer", key);
}

enum hf_status hf__nomem(struct hf_error *err)
{
    return hf__fail(err, HF_NOMEM, "out of memory");
}

enum hf_status hf__ok(struct hf_error *err)
{
    if (err != NULL) {
        err->code = HF_OK;
        err->retry_after_ms = 0;
        err->text[0] = '\0';
    }
    return HF_OK;
}

const char *hf_status_text(enum hf_status status)
{
    switch (status) {
#define X(symbol, value, text)                                                                     \
    case symbol:                                                                                   \
        return text;
        HF_STATUS_MAP(X)
#undef X
    }
    return "no such status";
}

const char *hf_status_name(enum hf_status status)
{
    switch (status) {
#define X(symbol, value, text)                                                                     \
    case symbol:                                                                                   \
        return #symbol;
        HF_STATUS_MAP(X)
#undef X
    }
    return "HF_?";
}

const char *hf_loss_text(enum hf_loss loss)
{
    switch (loss) {
#define X(symbol, value, text)                                                                     \
    case symbol:                                                                                   \
        return text;
        HF_LOSS_MAP(X)
#undef X
    }
    return "no such reason";
}
