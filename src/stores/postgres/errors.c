/* errors.c - what is said when something went wrong; and what the server's refusals mean. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

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
    {"22003", HF_CORRUPT, "the token on record is the highest possible", false, ""},
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

bool pg_error_again(const char *state)
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

/* What libpq itself says, without an SQLSTATE. Of TLS: what time does not mend, which a connection
 * that ended in the middle of it is not. */
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
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is(state, rules[i].state))
            return hf__fail_lock(err, rules[i].status, lock, shown, ": %s%s%s", rules[i].before,
                                 rules[i].why ? why : "", rules[i].after);
    return hf__fail_lock(err, state[0] == '\0' ? status_of_libpq(why) : HF_UNREACHABLE, lock, shown,
                         ": %s", why);
}

enum hf_status pg_no_answer(const struct pg_store *store, const struct pg_call *call,
                            enum hf_status status, const char *why, struct hf_error *err)
{
    if (call->only_reads && status == HF_UNKNOWN)
        status = HF_UNREACHABLE;
    return hf__fail_lock(err, status, call->lock, store->url.shown, ": no answer: %s%s", why,
                         call->lock == NULL || call->only_reads ? ""
                                                                : "; it may have taken effect");
}

enum hf_status pg_nonsense(const struct pg_store *store, const char *lock, struct hf_error *err)
{
    return hf__fail_lock(err, HF_CORRUPT, lock, store->url.shown,
                         ": an answer that makes no sense; is the schema holdfast ours?");
}

enum hf_status pg_lost(const struct pg_store *store, const char *name, enum hf_loss loss,
                       struct hf_error *err)
{
    return hf__fail_lock(err, HF_LOST, name, store->url.shown, " is not held any more: %s",
                         hf_loss_text(loss));
}

enum hf_status pg_above_max_ttl(const struct pg_store *store, const struct hf_claim *claim,
                                struct hf_error *err)
{
    return hf__fail_max_ttl(err, claim->name, store->url.shown, claim->ttl_ms,
                            store->url.max_ttl_ms);
}
