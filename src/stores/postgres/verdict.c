/* verdict.c - what the server's refusals mean, by their SQLSTATE. */
#include "stores/postgres/postgres.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *state, const char *wanted)
{
    return strncmp(state, wanted, strlen(wanted)) == 0;
}

bool pg_verdict_again(const char *state)
{
    return is(state, "40001") || is(state, "40P01") || is(state, "26000") || is(state, "42P05");
}

bool pg_verdict_no_wake(const char *state)
{
    return is(state, "54000");
}

bool pg_verdict_no_schema(const char *state)
{
    return is(state, "3F000") || is(state, "42883") || is(state, "42P01") || is(state, "42703");
}

/* libpq's own words about TLS, which have no SQLSTATE: what time does not mend. A connection that
 * ended in the middle of it is none of that. */
static bool tls_is_refused(const char *why)
{
    return strstr(why, "certificate") != NULL || strstr(why, "does not support SSL") != NULL ||
           (strstr(why, "SSL error: ") != NULL && strstr(why, "eof") == NULL);
}

static enum hf_status denied(const char *state, const char *why, const char *about,
                             struct hf_error *err)
{
    if (is(state, "28P01"))
        return hf__fail(err, HF_DENIED,
                        "%s: the server refuses the password, or there is none: set PGPASSFILE or "
                        "PGPASSWORD",
                        about);
    if (is(state, "28"))
        return hf__fail(err, HF_DENIED, "%s: the server does not let us in: %s", about, why);
    return hf__fail(err, HF_DENIED,
                    "%s: %s; its owner grants it with GRANT USAGE ON SCHEMA holdfast TO the role",
                    about, why);
}

enum hf_status pg_verdict_fail(const char *state, const char *why, const char *lock,
                               const char *shown, struct hf_error *err)
{
    char about[160];

    if (lock != NULL)
        (void)snprintf(about, sizeof about, "lock \"%.50s\" in store %.70s", lock, shown);
    else
        (void)snprintf(about, sizeof about, "store %.110s", shown);
    if (is(state, "28") || is(state, "42501"))
        return denied(state, why, about, err);
    if (is(state, "25006"))
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: read-only here; name the primary, or all hosts with "
                        "target_session_attrs=read-write",
                        about);
    if (is(state, "53300"))
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: the server has no connection left for us; raise max_connections or "
                        "use a pooler",
                        about);
    if (is(state, PG_STATE_ROW_LOCKED))
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: another session keeps its row locked: look for open transactions in "
                        "pg_stat_activity",
                        about);
    if (is(state, "3D000"))
        return hf__fail(err, HF_INVALID, "%s: %s", about, why);
    if (is(state, "22003"))
        return hf__fail(err, HF_CORRUPT,
                        "%s: the token on record is at the end of what can be counted", about);
    if (pg_verdict_no_schema(state))
        return hf__fail(err, HF_UNSUPPORTED, "%s: the schema holdfast is damaged: %s", about, why);
    if (is(state, "0A000") || is(state, "42"))
        return hf__fail(err, HF_UNSUPPORTED, "%s: the server says: %s", about, why);
    if (state[0] == '\0' && is(why, "invalid "))
        return hf__fail(err, HF_INVALID, "%s: %s", about, why);
    if (state[0] == '\0' && tls_is_refused(why))
        return hf__fail(err, HF_DENIED, "%s: %s", about, why);
    return hf__fail(err, HF_UNREACHABLE, "%s: %s", about, why);
}
