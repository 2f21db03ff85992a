/* audit.c - which servers are looked at, in which order, and what is told of all of them. */
#include "stores/redis/audit/audit.h"
#include "base/base.h"
#include "core/quorum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEET_MS 1000 /* what meeting one of several servers may take */

static bool is_redlock(const struct rd_audit *audit)
{
    return audit->store->setup.url.kind == RD_REDLOCK;
}

/* All of them are met before anything is told. Those that hang share the time. */
static struct hf__patience patience_for(const struct rd_audit *audit, size_t left)
{
    struct hf__patience patience = {.deadline_ns = audit->query->deadline_ns, .cancel_fd = -1};
    int64_t now_ns = audit->host->now_ns();
    int64_t share_ns = (patience.deadline_ns - now_ns) / (int64_t)(left + 1);

    if (share_ns > MEET_MS * HF__NS_PER_MS)
        share_ns = MEET_MS * HF__NS_PER_MS;
    return audit->count > 1 ? hf__patience_until(&patience, now_ns + share_ns) : patience;
}

/* The servers of the URL, of the cluster, or whom the sentinels name. */
static enum hf_status find_servers(struct rd_audit *audit, struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = audit->query->deadline_ns, .cancel_fd = -1};
    const struct hf__url *parts = &audit->store->setup.url.parts;
    struct rd_node *nodes[RD_NODES_MAX] = {NULL};
    enum hf_status status = HF_OK;

    if (is_redlock(audit)) {
        for (size_t i = 0; i < parts->host_count; i++)
            nodes[audit->count++] = rd_route_node(audit->store, &parts->hosts[i]);
    } else {
        status = rd_route_learn(audit->store, &patience, err);
        if (status == HF_OK)
            status = rd_route_all(audit->store, &patience, nodes, &audit->count, err);
    }
    if (status != HF_OK)
        return status;
    audit->servers = calloc(audit->count > 0 ? audit->count : 1, sizeof *audit->servers);
    for (size_t i = 0; i < audit->count; i++) {
        if (audit->servers == NULL || nodes[i] == NULL)
            return hf__nomem(err);
        audit->servers[i].node = nodes[i];
        if (!hf__address_format(audit->servers[i].where, sizeof audit->servers[i].where,
                                &nodes[i]->pool.address) ||
            nodes[i]->pool.address.host[0] == '/')
            (void)snprintf(audit->servers[i].where, sizeof audit->servers[i].where, "%s",
                           nodes[i]->pool.address.host);
    }
    return HF_OK;
}

/* Nothing can be learned if no server answers, or too few nodes do. */
static enum hf_status meet_all(struct rd_audit *audit, unsigned *answering, unsigned *processes,
                               struct hf_error *err)
{
    size_t needed = is_redlock(audit) ? hf__quorum_majority((unsigned)audit->count) : 1;

    *answering = 0;
    for (size_t i = 0; i < audit->count; i++) {
        struct hf__patience patience = patience_for(audit, audit->count - i);

        if (rd_audit_meet(&audit->servers[i], &patience, &processes[i]) == HF_OK)
            (*answering)++;
        else
            *err = audit->servers[i].failed;
    }
    return *answering >= needed ? HF_OK : err->code;
}

/* The lives of all servers, as one text. */
static void tell_incarnation(const struct rd_audit *audit)
{
    static const struct hf__topic topic = {"store.incarnation", NULL, "INFO replication"};
    char id[RD_INCARNATION_LEN + 1];
    uint64_t all = 0;

    for (size_t i = 0; i < audit->count; i++) {
        const struct rd_audited *server = &audit->servers[i];

        if (server->info == NULL || !rd_audit_field(server->info, "master_replid", id, sizeof id))
            (void)snprintf(id, sizeof id, "?");
        all = hf__hash64(id, strlen(id), all + i);
    }
    if (audit->count == 1)
        hf__tell(audit->teller, topic, "%s", id);
    else
        hf__tell(audit->teller, topic, "%016" PRIx64, all);
}

static void tell_server(const struct rd_audit *audit, struct rd_audited *server, unsigned processes)
{
    struct hf__patience patience = patience_for(audit, audit->count);
    struct hf_error err;
    enum hf_status status;

    hf__tell(audit->teller, (struct hf__topic){"redis.servers", NULL, "INFO server, thrice"}, "%u",
             processes);
    rd_audit_tell_info(audit, server);
    rd_audit_tell_settings(audit, server, &patience);
    rd_audit_tell_writes(audit, server, &patience);
    rd_audit_tell_rights(audit, server, &patience);
    if (audit->query->scope != HF_AUDIT_ALL)
        return;
    rd_audit_tell_endless(audit, server, &patience);
    if (audit->count == 1)
        return; /* what holds for the store holds for its server */
    status = rd_quarantine_inquire(server->node, &patience, &err);
    if (status == HF_OK || status == HF_QUARANTINE)
        hf__tell(audit->teller, (struct hf__topic){"redis.quarantine", "ms", "the handshake"},
                 "%" PRId64, status == HF_OK ? 0 : err.retry_after_ms);
    else
        hf__tell_unknown(audit->teller,
                         (struct hf__topic){"redis.quarantine", "ms", "the handshake"}, err.text);
}

/* Loopback addresses are all this machine's. */
static bool same_host(const struct rd_audited *a, const struct rd_audited *b)
{
    bool a_here = strncmp(a->peer, "127.", 4) == 0 || strcmp(a->peer, "::1") == 0;
    bool b_here = strncmp(b->peer, "127.", 4) == 0 || strcmp(b->peer, "::1") == 0;

    return a->peer[0] != '\0' && ((a_here && b_here) || strcmp(a->peer, b->peer) == 0);
}

static void tell_hosts(const struct rd_audit *audit)
{
    char together[HF__FACT_VALUE_MAX] = "";

    for (size_t i = 0; i < audit->count; i++) {
        size_t used = strlen(together);
        bool shares = false;

        for (size_t j = 0; j < audit->count; j++)
            shares = shares || (i != j && same_host(&audit->servers[i], &audit->servers[j]));
        if (shares && used + RD_WHERE_MAX < sizeof together)
            (void)snprintf(together + used, sizeof together - used, "%s%.100s", used > 0 ? " " : "",
                           audit->servers[i].where);
    }
    hf__tell(audit->teller, (struct hf__topic){"redlock.same_host", NULL, "getpeername"}, "%s",
             together);
}

static void tell_redlock(const struct rd_audit *audit, unsigned answering)
{
    unsigned refusing = 0;

    for (size_t i = 0; i < audit->count; i++)
        refusing += audit->servers[i].refuses;
    audit->teller->where = NULL;
    rd_audit_tell_clocks(audit);
    hf__tell(audit->teller, (struct hf__topic){"redlock.nodes", NULL, "the URL"}, "%zu",
             audit->count);
    hf__tell(audit->teller, (struct hf__topic){"redlock.nodes_answering", NULL, "INFO"}, "%u",
             answering);
    hf__tell(audit->teller, (struct hf__topic){"redlock.nodes_refusing", NULL, "SET XX"}, "%u",
             refusing);
    tell_hosts(audit);
}

/* Stops where fn has heard enough. */
static void tell_all(struct rd_audit *audit, unsigned answering, const unsigned *processes)
{
    struct hf__teller *teller = audit->teller;

    tell_incarnation(audit);
    hf__tell(teller, (struct hf__topic){"store.max_ttl", "ms", "the URL"}, "%" PRId64,
             audit->store->setup.url.max_ttl_ms);
    for (size_t i = 0; i < audit->count && !teller->stopped; i++) {
        struct rd_audited *server = &audit->servers[i];

        teller->where = server->where;
        if (server->info != NULL)
            tell_server(audit, server, processes[i]);
        else if (!is_redlock(audit)) /* which can do without one */
            hf__tell_unknown(teller, (struct hf__topic){"redis.role", NULL, "INFO replication"},
                             server->failed.text);
    }
    if (teller->stopped || (audit->query->scope != HF_AUDIT_ALL && !is_redlock(audit)))
        return;
    rd_audit_watch_clocks(audit);
    for (size_t i = 0; i < audit->count && audit->query->scope == HF_AUDIT_ALL; i++) {
        teller->where = audit->servers[i].where;
        if (audit->servers[i].info != NULL)
            rd_audit_tell_clock(audit, &audit->servers[i]);
    }
    if (is_redlock(audit))
        tell_redlock(audit, answering);
}

enum hf_status rd_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err)
{
    struct hf__teller teller = {.fn = fn, .data = data};
    struct rd_audit audit = {.host = host, .query = query, .teller = &teller};
    unsigned processes[RD_NODES_MAX];
    unsigned answering;
    enum hf_status status = rd_store_new(host, url, true, &audit.store, err);

    if (status != HF_OK)
        return status;
    status = find_servers(&audit, err);
    if (status == HF_OK)
        status = meet_all(&audit, &answering, processes, err);
    if (status == HF_OK)
        tell_all(&audit, answering, processes);
    for (size_t i = 0; audit.servers != NULL && i < audit.count; i++)
        free(audit.servers[i].info);
    free(audit.servers);
    rd_store_free(audit.store, false);
    return status == HF_OK ? hf__ok(err) : status;
}
