/* info.c - what INFO tells, which every user of ours may ask; and what CONFIG GET does, which most
 * may not. */
#include "stores/redis/audit/audit.h"
#include "base/base.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { CONNECTIONS = 3, VALUE_MAX = 128 };

bool rd_audit_field(const char *info, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);
    const char *at = info;

    out[0] = '\0';
    while (at != NULL && (strncmp(at, name, len) != 0 || at[len] != ':')) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL)
        return false;
    at += len + 1;
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    return true;
}

static void note_peer(struct rd_audited *server, int fd)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof peer;

    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
        return;
    if (peer.ss_family == AF_INET)
        (void)inet_ntop(AF_INET, &((struct sockaddr_in *)&peer)->sin_addr, server->peer,
                        sizeof server->peer);
    else if (peer.ss_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&peer)->sin6_addr, server->peer,
                        sizeof server->peer);
}

/* One INFO over a connection of our own. NULL with the reason in *err. */
static char *ask_info(struct rd_audited *server, struct rd_conn *conn,
                      const struct hf__patience *patience, struct hf_error *err)
{
    const char *shown = server->node->pool.setup->url.parts.shown;
    struct rd_request request = {0};
    struct rd_reply *reply = NULL;
    enum hf_status status;
    char *info = NULL;

    rd_request_command(&request, (const char *const[]){"INFO", NULL});
    status = rd_conn_send(conn, &request, patience);
    rd_request_release(&request);
    if (status == HF_OK)
        status = rd_conn_receive(conn, patience, &reply);
    if (status != HF_OK) {
        (void)rd_pool_fail(&server->node->pool, HF_UNREACHABLE, conn->why, err);
    } else if (reply->type == RD_REPLY_ERROR) {
        /* An INFO that is not understood is no mistake in what was asked for. */
        if (rd_verdict_fail(reply->text, NULL, shown, err) != HF_DENIED)
            err->code = HF_UNREACHABLE;
    } else {
        info = strdup(rd_reply_text(reply));
        if (info == NULL)
            (void)hf__nomem(err);
        note_peer(server, conn->fd);
    }
    rd_reply_free(reply);
    return info;
}

/* Whether another process answered than before. */
static bool is_new(char ids[CONNECTIONS][VALUE_MAX], unsigned count, const char *id)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(ids[i], id) == 0)
            return false;
    return true;
}

/* Behind a load balancer each connection may end at another server. */
enum hf_status rd_audit_meet(struct rd_audited *server, const struct hf__patience *patience,
                             unsigned *servers)
{
    struct rd_conn *conns[CONNECTIONS] = {NULL};
    char ids[CONNECTIONS][VALUE_MAX];
    struct hf_error *err = &server->failed;

    *servers = 0;
    (void)hf__ok(err);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        char id[VALUE_MAX];
        char *info = NULL;

        if (rd_pool_take(&server->node->pool, true, patience, &conns[i], err) == HF_OK)
            info = ask_info(server, conns[i], patience, err);
        if (info == NULL)
            break;
        (void)rd_audit_field(info, "run_id", id, sizeof id);
        if (is_new(ids, *servers, id))
            memcpy(ids[(*servers)++], id, sizeof id);
        free(server->info);
        server->info = info;
    }
    for (unsigned i = 0; i < CONNECTIONS; i++)
        if (conns[i] != NULL)
            rd_pool_give(&server->node->pool, conns[i]);
    return err->code;
}

/* "7.0.15" as 700, so that it can be compared. */
static int version_number(const char *version)
{
    unsigned major = 0, minor = 0;

    if (sscanf(version, "%u.%u", &major, &minor) != 2 || major > 999 || minor > 99)
        return -1;
    return (int)(major * 100 + minor);
}

static void tell_version(struct hf__teller *teller, const char *info)
{
    static const struct hf__topic number = {"redis.version_number", NULL, "INFO server"};
    char version[VALUE_MAX];

    if (!rd_audit_field(info, "redis_version", version, sizeof version))
        return;
    hf__tell(teller, (struct hf__topic){"redis.version", NULL, "INFO server"}, "%s", version);
    if (version_number(version) > 0)
        hf__tell(teller, number, "%d", version_number(version));
    else
        hf__tell_unknown(teller, number, "its version is not one of Redis");
}

/* False if the field is not there, too. */
static bool is_number(const char *info, const char *field)
{
    char value[VALUE_MAX];
    uint64_t number;

    return rd_audit_field(info, field, value, sizeof value) && hf__parse_u64(value, &number);
}

/* It tells of this setting only if it is made. */
static void tell_replicas(struct hf__teller *teller, const char *info)
{
    static const struct hf__topic topic = {"redis.min_replicas", NULL, "INFO replication"};
    char good[VALUE_MAX];

    if (is_number(info, "connected_slaves"))
        hf__tell(teller, topic, "%s",
                 rd_audit_field(info, "min_slaves_good_slaves", good, sizeof good) ? "yes" : "no");
    else
        hf__tell_unknown(teller, topic, "INFO does not tell how many replicas there are");
}

/* The policy counts only where there is a limit. */
static void tell_eviction(struct hf__teller *teller, const char *info)
{
    static const struct hf__topic topic = {"redis.maxmemory_policy", NULL, "INFO memory"};
    char policy[VALUE_MAX];

    if (is_number(info, "maxmemory") &&
        rd_audit_field(info, "maxmemory_policy", policy, sizeof policy))
        hf__tell(teller, topic, "%s", policy);
    else
        hf__tell_unknown(teller, topic, "INFO does not tell what is evicted");
}

void rd_audit_tell_info(const struct rd_audit *audit, const struct rd_audited *server)
{
    static const struct {
        const char *field;
        struct hf__topic topic;
    } told[] = {
        {"role", {"redis.role", NULL, "INFO replication"}},
        {"redis_mode", {"redis.mode", NULL, "INFO server"}},
        {"uptime_in_seconds", {"redis.uptime", "s", "INFO server"}},
        {"tcp_port", {"redis.port", NULL, "INFO server"}},
        {"maxmemory", {"redis.maxmemory", "bytes", "INFO memory"}},
        {"aof_enabled", {"redis.appendonly", NULL, "INFO persistence"}},
        {"connected_slaves", {"redis.replicas", NULL, "INFO replication"}},
    };
    const struct rd_url *url = &audit->store->setup.url;
    const struct hf__address *address = &server->node->pool.address;
    char value[VALUE_MAX];

    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (rd_audit_field(server->info, told[i].field, value, sizeof value))
            hf__tell(audit->teller, told[i].topic, "%s", value);
    tell_version(audit->teller, server->info);
    tell_eviction(audit->teller, server->info);
    tell_replicas(audit->teller, server->info);
    hf__tell(audit->teller, (struct hf__topic){"redis.port_dialled", NULL, "the URL"}, "%u",
             address->host[0] == '/' ? 0 : address->port);
    hf__tell(audit->teller, (struct hf__topic){"store.loopback", NULL, "the URL"}, "%s",
             hf__address_is_local(address) ? "yes" : "no");
    hf__tell(audit->teller, (struct hf__topic){"redis.tls", NULL, "the URL"}, "%s",
             url->tls ? "on" : "off");
    if (url->tls)
        hf__tell(audit->teller, (struct hf__topic){"redis.verify", NULL, "the URL"}, "%s",
                 url->verify ? "on" : "off");
}

/* "id open_at since max_ttl ...", in one of two places. */
static void tell_agreed(const struct rd_audit *audit, const struct rd_reply *const records[2])
{
    static const struct hf__topic topic = {"redis.max_ttl_agreed", "ms", "GET holdfast:inc"};
    int64_t agreed_ms = 0;
    const char *why = NULL;

    for (size_t i = 0; i < 2 && agreed_ms == 0; i++) {
        if (records[i]->type == RD_REPLY_STRING &&
            sscanf(records[i]->text, "%*s %*s %*s %" SCNd64, &agreed_ms) != 1)
            why = "the server's record is damaged";
        else if (records[i]->type == RD_REPLY_ERROR && rd_verdict(records[i]->text) != RD_MOVED)
            why = records[i]->text;
    }
    if (agreed_ms == 0 && why != NULL)
        hf__tell_unknown(audit->teller, topic, why);
    else
        hf__tell(audit->teller, topic, "%" PRId64, agreed_ms);
}

/* What is worth knowing only in some set-ups is not asked for in others. */
static bool matters(const struct rd_audited *server, const char *field)
{
    char value[VALUE_MAX];

    return rd_audit_field(server->info, field, value, sizeof value) && strcmp(value, "0") != 0;
}

static void tell_setting(const struct rd_audit *audit, struct hf__topic topic,
                         const struct rd_reply *reply)
{
    if (reply->type == RD_REPLY_ERROR)
        hf__tell_unknown(audit->teller, topic, reply->text);
    else if (rd_reply_at(reply, 1)->type != RD_REPLY_STRING)
        hf__tell_unknown(audit->teller, topic, "the server does not know this setting");
    else
        hf__tell(audit->teller, topic, "%s", rd_reply_text(rd_reply_at(reply, 1)));
}

void rd_audit_tell_settings(const struct rd_audit *audit, struct rd_audited *server,
                            const struct hf__patience *patience)
{
    static const struct {
        const char *setting;
        const char *field; /* of INFO: it matters unless this is 0 */
        struct hf__topic topic;
    } asked[] = {
        {"appendfsync", "aof_enabled", {"redis.appendfsync", NULL, "CONFIG GET"}},
        {"min-replicas-max-lag",
         "connected_slaves",
         {"redis.min_replicas_max_lag", "s", "CONFIG GET"}},
        {"repl-backlog-ttl", "connected_slaves", {"redis.repl_backlog_ttl", "s", "CONFIG GET"}},
    };
    enum { ASKED = sizeof asked / sizeof *asked };
    struct rd_request request = {0};
    struct rd_reply *replies[ASKED + 2];
    const char *copy = server->node->handshake_copy;
    struct hf_error err;
    enum hf_status status;

    for (size_t i = 0; i < ASKED; i++)
        rd_request_command(&request,
                           (const char *const[]){"CONFIG", "GET", asked[i].setting, NULL});
    rd_request_command(&request, (const char *const[]){"GET", server->node->handshake_key, NULL});
    rd_request_command(
        &request,
        (const char *const[]){"GET", copy[0] != '\0' ? copy : server->node->handshake_key, NULL});
    status = rd_pool_ask(&server->node->pool, &request, ASKED + 2, patience, replies, &err);
    rd_request_release(&request);
    for (size_t i = 0; i < ASKED; i++) {
        if (!matters(server, asked[i].field))
            continue;
        if (status == HF_OK)
            tell_setting(audit, asked[i].topic, replies[i]);
        else
            hf__tell_unknown(audit->teller, asked[i].topic, err.text);
    }
    if (status != HF_OK) {
        hf__tell_unknown(audit->teller, (struct hf__topic){"redis.max_ttl_agreed", "ms", "GET"},
                         err.text);
        return;
    }
    tell_agreed(audit, (const struct rd_reply *const[2]){replies[ASKED], replies[ASKED + 1]});
    for (size_t i = 0; i < ASKED + 2; i++)
        rd_reply_free(replies[i]);
}
