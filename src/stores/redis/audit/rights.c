/* rights.c - which commands are allowed. A user of ours may not ask the server that, as a rule; but
 * a command that is not allowed is refused before anything else is looked at. So each is sent in a
 * form that does nothing: on a key that is not there. (RPUSH has no such form, and is left out.) */
#include "stores/redis/audit/audit.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define NOBODYS "holdfast:{holdfast-doctor-asks}:none" /* no lock of ours has such a key */
#define NO_SHA  "0000000000000000000000000000000000000000"

enum { WORDS_MAX = 8, LIST_MAX = 400 };

static const struct probe {
    const char *right; /* as ACL SETUSER wants it */
    bool redlock;      /* a Redlock needs it too */
    const char *words[WORDS_MAX];
} probes[] = {
    {"+evalsha", true, {"EVALSHA", NO_SHA, "0"}},
    {"+script|load", true, {"SCRIPT", "LOAD", NULL}}, /* a script of ours: every client does */
    {"+get", true, {"GET", NOBODYS}},
    {"+set", true, {"SET", NOBODYS, "x", "XX", "PX", "1"}},
    {"+del", true, {"DEL", NOBODYS}},
    {"+pttl", true, {"PTTL", NOBODYS}},
    {"+pexpire", true, {"PEXPIRE", NOBODYS, "1"}},
    {"+time", true, {"TIME"}},
    {"+scan", true, {"SCAN", "0", "MATCH", NOBODYS, "COUNT", "1"}},
    {"+command|info", true, {"COMMAND", "INFO", "get"}},
    {"+mget", false, {"MGET", NOBODYS}},
    {"+exists", false, {"EXISTS", NOBODYS}},
    {"+type", false, {"TYPE", NOBODYS}},
    {"+zadd", false, {"ZADD", NOBODYS, "XX", "0", "x"}},
    {"+zrem", false, {"ZREM", NOBODYS, "x"}},
    {"+zrange", false, {"ZRANGE", NOBODYS, "0", "0"}},
    {"+zrangebyscore", false, {"ZRANGEBYSCORE", NOBODYS, "0", "0"}},
    {"+zscore", false, {"ZSCORE", NOBODYS, "x"}},
    {"+zcount", false, {"ZCOUNT", NOBODYS, "0", "0"}},
    {"+blpop", false, {"BLPOP", NOBODYS, "0.001"}},
};
enum { PROBES = sizeof probes / sizeof *probes };

static void ask(struct rd_request *request, const struct probe *probe)
{
    const char *words[WORDS_MAX + 1];
    size_t count = 0;

    while (count < WORDS_MAX && probe->words[count] != NULL) {
        words[count] = probe->words[count];
        count++;
    }
    if (strcmp(probe->right, "+script|load") == 0)
        words[count++] = rd_scripts[RD_SCRIPT_HANDSHAKE].text;
    words[count] = NULL;
    rd_request_command(request, words);
}

/* A key that is out of reach is named too, once. */
static void add(char list[LIST_MAX], const char *right, const struct rd_reply *reply)
{
    size_t used = strlen(list);
    const char *missing = strstr(reply->text, " keys") != NULL ? "~holdfast:*" : right;

    if (strstr(list, missing) == NULL)
        (void)snprintf(list + used, LIST_MAX - used, "%s%s", used > 0 ? " " : "", missing);
}

static void tell_missing(const struct rd_audit *audit, struct rd_audited *server,
                         const struct hf__patience *patience)
{
    static const struct hf__topic topic = {"redis.rights_missing", NULL, "commands on no key"};
    bool redlock = audit->store->setup.url.kind == RD_REDLOCK;
    const struct probe *asked[PROBES];
    struct rd_reply *replies[PROBES];
    struct rd_request request = {0};
    char missing[LIST_MAX] = "";
    struct hf_error err;
    enum hf_status status;
    size_t count = 0;

    for (size_t i = 0; i < PROBES; i++) {
        if (redlock && !probes[i].redlock)
            continue;
        ask(&request, &probes[i]);
        asked[count++] = &probes[i];
    }
    status = rd_pool_ask(&server->node->pool, &request, count, patience, replies, &err);
    rd_request_release(&request);
    if (status != HF_OK) {
        hf__tell_unknown(audit->teller, topic, err.text);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (replies[i]->type == RD_REPLY_ERROR && strncmp(replies[i]->text, "NOPERM", 6) == 0)
            add(missing, asked[i]->right, replies[i]);
        rd_reply_free(replies[i]);
    }
    hf__tell(audit->teller, topic, "%s", missing);
}

static bool may(const struct rd_reply *reply)
{
    return reply->type == RD_REPLY_STATUS && strcmp(reply->text, "OK") == 0;
}

/* Those that forget every lock at once. ACL DRYRUN says OK, or in a text why not. */
static void tell_by_dry_run(const struct rd_audit *audit, struct rd_audited *server,
                            const char *user, const struct hf__patience *patience)
{
    static const struct hf__topic topic = {"redis.rights_dangerous", NULL, "ACL DRYRUN"};
    static const char *const commands[] = {"FLUSHALL", "FLUSHDB", "SHUTDOWN"};
    enum { COMMANDS = sizeof commands / sizeof *commands };
    struct rd_reply *replies[COMMANDS];
    struct rd_request request = {0};
    char held[LIST_MAX] = "";
    struct hf_error err;
    enum hf_status status;

    for (size_t i = 0; i < COMMANDS; i++)
        rd_request_command(&request,
                           (const char *const[]){"ACL", "DRYRUN", user, commands[i], NULL});
    status = rd_pool_ask(&server->node->pool, &request, COMMANDS, patience, replies, &err);
    rd_request_release(&request);
    if (status != HF_OK) {
        hf__tell_unknown(audit->teller, topic, err.text);
        return;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t used = strlen(held);

        if (may(replies[i]))
            (void)snprintf(held + used, sizeof held - used, "%s%s", used > 0 ? " " : "",
                           commands[i]);
    }
    if (replies[0]->type == RD_REPLY_ERROR)
        hf__tell_unknown(audit->teller, topic, replies[0]->text);
    else
        hf__tell(audit->teller, topic, "%s", held);
    for (size_t i = 0; i < COMMANDS; i++)
        rd_reply_free(replies[i]);
}

static void tell_dangerous(const struct rd_audit *audit, struct rd_audited *server,
                           const struct hf__patience *patience)
{
    static const struct hf__topic topic = {"redis.rights_dangerous", NULL, "ACL WHOAMI"};
    struct rd_request request = {0};
    struct rd_reply *reply;
    struct hf_error err;
    enum hf_status status;

    rd_request_command(&request, (const char *const[]){"ACL", "WHOAMI", NULL});
    status = rd_pool_ask(&server->node->pool, &request, 1, patience, &reply, &err);
    rd_request_release(&request);
    if (status != HF_OK) {
        hf__tell_unknown(audit->teller, topic, err.text);
        return;
    }
    if (reply->type == RD_REPLY_STRING)
        tell_by_dry_run(audit, server, reply->text, patience);
    else
        hf__tell_unknown(audit->teller, topic, reply->type == RD_REPLY_ERROR ? reply->text : "");
    rd_reply_free(reply);
}

void rd_audit_tell_rights(const struct rd_audit *audit, struct rd_audited *server,
                          const struct hf__patience *patience)
{
    tell_missing(audit, server, patience);
    if (audit->query->scope == HF_AUDIT_ALL)
        tell_dangerous(audit, server, patience);
}
