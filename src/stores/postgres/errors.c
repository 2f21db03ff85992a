/* errors.c - what is said when something went wrong; and what the server's refusals mean. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

/* What an SQLSTATE that starts so means. The first that fits counts. */
static const struct rule {
    const char *state;
    enum hf_status status;
    const char *before;
    bool why; /* the server's own words stand between before and after */
    const char *after;
} rules[] = {
    {"28P01", HF_DENIED,
     "the server refuses the password, or there is none: set PGPASSFILE or PGPASSWORD", false, ""},
    {"28", HF_DENIED, "the server does not let us in: ", true, ""},
    {"42501", HF_DENIED, "", true,
     "; its owner grants it with GRANT USAGE ON SCHEMA holdfast TO the role"},
    {PG_STATE_READ_ONLY, HF_UNREACHABLE,
     "read-only here; name the primary, or all hosts with target_session_attrs=read-write", false,
     ""},
    {"53300", HF_UNREACHABLE,
     "the server has no connection left for us; raise max_connections or use a pooler", false, ""},
    {PG_STATE_ROW_LOCKED, HF_UNREACHABLE,
     "another session keeps its row locked: look for open transactions in pg_stat_activity", false,
     ""},
    {"3D000", HF_INVALID, "", true, ""},
    {"22003", HF_CORRUPT, "the token on record is at the end of what can be counted", false, ""},
    {"3F000", HF_UNSUPPORTED, "the schema holdfast is damaged: ", true, ""},
    {"42883", HF_UNSUPPORTED, "the schema holdfast is damaged: ", true, ""},
    {"42P01", HF_UNSUPPORTED, "the schema holdfast is damaged: ", true, ""},
    {"42703", HF_UNSUPPORTED, "the schema holdfast is damaged: ", true, ""},
    {"0A000", HF_UNSUPPORTED, "the server says: ", true, ""},
    {"42", HF_UNSUPPORTED, "the server says: ", true, ""},
};

static bool is(const char *state, const char *wanted)
{
    return strncmp(state, wanted, strlen(wanted)) == 0;
}

bool pg_error_passes(const char *state)
{
    return is(state, "40001") || is(state, "40P01") || is(state, "26000") || is(state, "42P05");
}

bool pg_error_no_wake(const char *state)
{
    return is(state, "54000");
}

bool pg_error_no_schema(const char *state)
{
    return is(state, "3F000") || is(state, "42883") || is(state, "42P01") || is(state, "42703");
}

/* What libpq itself says, without an SQLSTATE. Of TLS: what time does not mend; a connection that
 * ended in the middle of it is none of that. */
static enum hf_status status_of_libpq(const char *why)
{
    if (is(why, "invalid "))
        return HF_INVALID;
    if (strstr(why, "certificate") != NULL || strstr(why, "does not support SSL") != NULL ||
        (strstr(why, "SSL error: ") != NULL && strstr(why, "eof") == NULL))
        return HF_DENIED;
    return HF_UNREACHABLE;
}

enum hf_status pg_error_fail(const char *state, const char *why, const char *lock,
                             const char *shown, struct hf_error *err)
{
    char about[160];

    if (lock != NULL)
        (void)snprintf(about, sizeof about, "lock \"%.50s\" in store %.70s", lock, shown);
    else
        (void)snprintf(about, sizeof about, "store %.110s", shown);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is(state, rules[i].state))
            return hf__fail(err, rules[i].status, "%s: %s%s%s", about, rules[i].before,
                            rules[i].why ? why : "", rules[i].after);
    return hf__fail(err, state[0] == '\0' ? status_of_libpq(why) : HF_UNREACHABLE, "%s: %s", about,
                    why);
}

enum hf_status pg_no_answer(const struct pg_store *store, const struct pg_call *call,
                            enum hf_status status, const char *why, struct hf_error *err)
{
    if (call->only_reads && status == HF_UNKNOWN)
        status = HF_UNREACHABLE;
    if (call->lock == NULL)
        return hf__fail(err, status, "store %.120s: no answer: %s", store->url.shown, why);
    return hf__fail(err, status, "lock \"%.60s\" in store %.80s: no answer: %s%s", call->lock,
                    store->url.shown, why, call->only_reads ? "" : "; it may have taken effect");
}

enum hf_status pg_nonsense(const struct pg_store *store, const char *lock, struct hf_error *err)
{
    static const char what[] = "an answer that makes no sense; is the schema holdfast ours?";

    if (lock == NULL)
        return hf__fail(err, HF_CORRUPT, "store %.120s: %s", store->url.shown, what);
    return hf__fail(err, HF_CORRUPT, "lock \"%.60s\" in store %.80s: %s", lock, store->url.shown,
                    what);
}

enum hf_status pg_lost(const struct pg_store *store, const char *name, enum hf_loss loss,
                       struct hf_error *err)
{
    return hf__fail(err, HF_LOST, "lock \"%.80s\" in store %.90s is not held any more: %s", name,
                    store->url.shown, hf_loss_text(loss));
}

enum hf_status pg_above_max_ttl(const struct pg_store *store, const struct hf_claim *claim,
                                struct hf_error *err)
{
    char ttl[32];
    char longest[32];

    return hf__fail(err, HF_INVALID,
                    "lock \"%.60s\" in store %.80s: a ttl of %s is above the store's max_ttl of %s",
                    claim->name, store->url.shown,
                    hf__format_duration(ttl, sizeof ttl, claim->ttl_ms),
                    hf__format_duration(longest, sizeof longest, store->url.max_ttl_ms));
}
