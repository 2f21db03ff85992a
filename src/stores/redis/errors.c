/* errors.c - what an error reply means. */
#include "stores/redis/errors.h"
#include "base/base.h"
#include "stores/redis/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    enum rd_verdict verdict;
} words[] = {
    {"NOSCRIPT", RD_NOSCRIPT},     {"MOVED", RD_MOVED},      {"ASK", RD_ASK},
    {"TRYAGAIN", RD_TRYAGAIN},     {"LOADING", RD_LOADING},  {"READONLY", RD_READONLY},
    {"BUSY", RD_BUSY_SCRIPT},      {"OOM", RD_OOM},          {"MISCONF", RD_MISCONF},
    {"NOREPLICAS", RD_NOREPLICAS}, {"CLUSTERDOWN", RD_DOWN}, {"MASTERDOWN", RD_DOWN},
    {"NOPERM", RD_NOPERM},         {"NOAUTH", RD_NOAUTH},    {"WRONGPASS", RD_NOAUTH},
    {"WRONGTYPE", RD_WRONGTYPE},   {"DENIED", RD_PROTECTED},
};

/* Before Redis 7 an error inside a script came wrapped: "ERR Error running script (...):
 * @user_script:3: -OOM command not allowed". The inner word is the one that counts. */
static const char *inner(const char *error)
{
    static const char mark[] = "@user_script";
    const char *at;

    if (strncmp(error, "ERR Error running script", 24) != 0)
        return error;
    for (at = strstr(error, mark); at != NULL; at = strstr(error, mark)) {
        error = at + sizeof mark - 1;
        error += strspn(error, ": 0123456789");
    }
    return error + (*error == '-');
}

enum rd_verdict rd_verdict(const char *error)
{
    size_t len;

    error = inner(error);
    len = strcspn(error, " ");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == len && memcmp(words[i].word, error, len) == 0)
            return words[i].verdict;
    /* What an ACL refuses inside a script is a NOPERM in some versions only. */
    if (strstr(error, "ACL failure in script") != NULL ||
        strstr(error, "can't run this command or subcommand") != NULL ||
        strstr(error, "can't access at least one of the keys") != NULL)
        return RD_NOPERM;
    if (strstr(error, "max number of clients") != NULL)
        return RD_CROWDED;
    return RD_OTHER_ERROR;
}

bool rd_verdict_address(const char *error, struct hf__address *out, unsigned *slot)
{
    const char *at = strchr(error, ' ');
    const char *colon;
    char digits[8];
    uint64_t number;
    size_t len;

    if (at == NULL)
        return false;
    len = strcspn(++at, " ");
    if (len >= sizeof digits || at[len] != ' ')
        return false;
    memcpy(digits, at, len);
    digits[len] = '\0';
    if (!hf__parse_u64(digits, &number) || number > 16383)
        return false;
    *slot = (unsigned)number;
    at += len + 1;
    /* "host:port", where an IPv6 host has colons of its own and no brackets. */
    colon = strrchr(at, ':');
    if (colon == NULL || (size_t)(colon - at) >= sizeof out->host ||
        !hf__parse_u64(colon + 1, &number) || number == 0 || number > 65535)
        return false;
    memcpy(out->host, at, (size_t)(colon - at));
    out->host[colon - at] = '\0';
    out->port = (unsigned)number;
    return true;
}

void rd_verdict_quote(char out[RD_QUOTE_MAX], const char *error)
{
    char *args;

    hf__copy_printable(out, RD_QUOTE_MAX, error);
    args = strstr(out, ", with args");
    if (args != NULL)
        *args = '\0';
}

/* The command that line `number` of a script calls; false if it calls none. */
static bool command_at(const char *script, long number, char *out, size_t size)
{
    const char *call;
    size_t len;

    for (; number > 1; number--) {
        script = strchr(script, '\n');
        if (script == NULL)
            return false;
        script++;
    }
    len = strcspn(script, "\n");
    call = memmem(script, len, "call('", 6);
    if (call == NULL || (len = strcspn(call + 6, "'")) + 1 >= size)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(call[6 + i] | 0x20); /* lower case */
    out[len] = '\0';
    return true;
}

/* An error inside a script says "script: SHA1, on @user_script:LINE." and not what it refused. */
static bool command_in_script(const char *error, char *out, size_t size)
{
    const char *line = strstr(error, "@user_script:");

    for (size_t i = 0; i < RD_SCRIPT_COUNT && line != NULL; i++)
        if (strstr(error, rd_scripts[i].sha1) != NULL)
            return command_at(rd_scripts[i].text, strtol(line + 13, NULL, 10), out, size);
    return false;
}

/* "+evalsha" for "... no permissions to run the 'evalsha' command", else "". */
static void missing_rule(char *out, size_t size, const char *error)
{
    const char *open = strchr(error, '\'');
    const char *close = open != NULL ? strchr(open + 1, '\'') : NULL;

    out[0] = '\0';
    if (close != NULL && strstr(error, "no permissions to run") != NULL)
        (void)snprintf(out, size, "+%.*s", (int)(close - open - 1), open + 1);
    else if (strstr(error, "keys") != NULL)
        (void)snprintf(out, size, "~holdfast:* or ~ for the lock's own key");
    else if (command_in_script(error, out + 1, size - 1))
        out[0] = '+';
}

static enum hf_status fail_permission(const char *error, const char *lock, const char *store,
                                      struct hf_error *err)
{
    char rule[80];

    missing_rule(rule, sizeof rule, error);
    if (rule[0] != '\0')
        return hf__fail_lock(err, HF_DENIED, lock, store,
                             ": the user lacks the ACL rule %s (see holdfast-redis(7))", rule);
    return hf__fail_lock(err, HF_DENIED, lock, store,
                         ": the user lacks ACL rules for what the scripts do; holdfast-redis(7) "
                         "lists them");
}

/* What is told of each; what ends with a colon is followed by the server's own words. */
static const struct {
    enum hf_status status;
    const char *sentence;
} meanings[] = {
    [RD_NOSCRIPT] = {HF_UNSUPPORTED, "the server says:"},
    [RD_MOVED] = {HF_UNREACHABLE, "the cluster does not serve this key now:"},
    [RD_ASK] = {HF_UNREACHABLE, "the cluster does not serve this key now:"},
    [RD_TRYAGAIN] = {HF_UNREACHABLE, "the cluster does not serve this key now:"},
    [RD_LOADING] = {HF_UNREACHABLE, "the server is loading its data; try again later"},
    [RD_READONLY] = {HF_UNREACHABLE, "the server is a read-only replica; give the master's "
                                     "address, or the sentinels' with redis+sentinel://"},
    [RD_BUSY_SCRIPT] = {HF_UNREACHABLE,
                        "the server is busy with another script (SCRIPT KILL ends it)"},
    [RD_OOM] = {HF_UNREACHABLE, "the server is out of memory; raise maxmemory or free some"},
    [RD_MISCONF] = {HF_UNREACHABLE,
                    "the server refuses writes because it cannot save its data; see its log"},
    [RD_NOREPLICAS] = {HF_UNREACHABLE, "the server has fewer replicas than min-replicas-to-write"},
    [RD_DOWN] = {HF_UNREACHABLE, "the cluster does not serve this key now:"},
    [RD_NOPERM] = {HF_DENIED, "the user lacks ACL rules:"},
    [RD_NOAUTH] = {HF_DENIED, "wrong or missing user or password; set it in the URL, "
                              "in " RD_PASSWORD_VARIABLE " or with password_file="},
    [RD_WRONGTYPE] = {HF_CORRUPT,
                      "one of its keys holds something that is not a lock; choose another prefix"},
    [RD_CROWDED] = {HF_UNREACHABLE, "the server has reached its maxclients"},
    [RD_PROTECTED] = {HF_DENIED, "the server says:"},
    [RD_OTHER_ERROR] = {HF_UNSUPPORTED, "the server says:"},
};

enum hf_status rd_verdict_fail(const char *error, const char *lock, const char *store,
                               struct hf_error *err)
{
    enum rd_verdict verdict = rd_verdict(error);
    const char *sentence = meanings[verdict].sentence;
    char quote[RD_QUOTE_MAX];

    if (verdict == RD_NOPERM)
        return fail_permission(error, lock, store, err);
    if (sentence[strlen(sentence) - 1] != ':')
        return hf__fail_lock(err, meanings[verdict].status, lock, store, ": %s", sentence);
    rd_verdict_quote(quote, error);
    return hf__fail_lock(err, meanings[verdict].status, lock, store, ": %s %s", sentence, quote);
}

enum hf_status rd_greeting_refused(const char *error, const char *store, struct hf_error *err)
{
    /* Older servers have no error word for "invalid password". */
    if (rd_verdict(error) == RD_OTHER_ERROR && strstr(error, "password") != NULL)
        error = "NOAUTH";
    return rd_verdict_fail(error, NULL, store, err);
}

enum hf_status rd_check_ttl(const struct rd_url *url, const struct hf_claim *claim,
                            struct hf_error *err)
{
    if (claim->ttl_ms <= url->max_ttl_ms)
        return HF_OK;
    return hf__fail_max_ttl(err, claim->name, url->parts.shown, claim->ttl_ms, url->max_ttl_ms);
}

void rd_revocation_take(const struct rd_reply *reply, size_t at, struct hf_revocation *out)
{
    memset(out, 0, sizeof *out);
    out->at_ms = rd_reply_number(rd_reply_at(reply, at), 0);
    hf__copy_printable(out->by, sizeof out->by, rd_reply_text(rd_reply_at(reply, at + 1)));
    hf__copy_printable(out->reason, sizeof out->reason, rd_reply_text(rd_reply_at(reply, at + 2)));
}

/* {'lost', 'broken', at, who, why} */
static enum hf_status lost_broken(const struct rd_url *url, const char *name,
                                  const struct rd_reply *reply, struct hf_grant *grant,
                                  struct hf_error *err)
{
    struct hf_revocation own = {.at_ms = 0};
    struct hf_revocation *revocation =
        grant != NULL && grant->revocation != NULL ? grant->revocation : &own;

    if (grant != NULL)
        grant->loss = HF_LOSS_BROKEN;
    rd_revocation_take(reply, 2, revocation);
    return hf__fail_broken(err, name, url->parts.shown, revocation);
}

enum hf_status rd_lost(const struct rd_url *url, const char *name, const struct rd_reply *reply,
                       struct hf_grant *grant, struct hf_error *err)
{
    static const struct {
        const char *word;
        enum hf_loss loss;
        const char *sentence;
    } reasons[] = {{"taken", HF_LOSS_TAKEN, "another owner has it"},
                   {"expired", HF_LOSS_EXPIRED, "it expired"},
                   {"forgotten", HF_LOSS_FORGOTTEN, "the server has forgotten it"}};
    const char *word = rd_reply_is(reply, "lost") ? rd_reply_text(rd_reply_at(reply, 1)) : "";

    if (strcmp(word, "broken") == 0)
        return lost_broken(url, name, reply, grant, err);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (strcmp(reasons[i].word, word) != 0)
            continue;
        if (grant != NULL)
            grant->loss = reasons[i].loss;
        return hf__fail_lock(err, HF_LOST, name, url->parts.shown, " is not held any more: %s",
                             reasons[i].sentence);
    }
    return rd_nonsense(url, name, err);
}

enum hf_status rd_corrupt(const struct rd_url *url, const char *name, const struct rd_keys *keys,
                          const struct rd_reply *reply, struct hf_error *err)
{
    if (strcmp(rd_reply_text(rd_reply_at(reply, 1)), "clock") == 0)
        return hf__fail_lock(err, HF_CORRUPT, name, url->parts.shown,
                             ": the server's clock is beyond the year 2255, where tokens end; "
                             "set it right");
    return hf__fail_lock(err, HF_CORRUPT, name, url->parts.shown,
                         ": the key %.60s does not hold a token; check the fence, then "
                         "delete it",
                         keys->counter);
}

enum hf_status rd_pass(struct hf_error *err, const struct hf_error *said)
{
    if (err != NULL)
        *err = *said;
    return said->code;
}

enum hf_status rd_nonsense(const struct rd_url *url, const char *name, struct hf_error *err)
{
    return hf__fail_lock(err, HF_CORRUPT, name, url->parts.shown,
                         ": the server's answer makes no sense; is it Redis?");
}
