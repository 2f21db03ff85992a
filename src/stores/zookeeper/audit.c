/* audit.c - what can be learned about a ZooKeeper without a change: `holdfast doctor` judges it. */
#include "base/fact.h"
#include "stores/zookeeper/zookeeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_NODE "/zookeeper/config"

struct audit {
    struct zk_store *store;
    struct zk_session *session; /* for leases of the ttl that it is about */
    const struct hf_audit_query *query;
    struct hf__teller *teller;
    struct hf__patience patience;
};

static void tell_number(const struct audit *audit, struct hf__topic topic, int64_t number)
{
    hf__tell(audit->teller, topic, "%" PRId64, number);
}

static void tell_code(const struct audit *audit, struct hf__topic topic, int rc)
{
    hf__tell_unknown(audit->teller, topic, rc == ZK_GIVEN_UP ? "no answer" : zerror(rc));
}

/* A node's data and Stat, or its ACL; NULL and *rc. The caller gives it up. */
static struct zk_request *ask(const struct audit *audit, const char *path, bool acl, int *rc)
{
    struct zk_request *request = zk_request_new();

    *rc = ZK_NOMEM;
    if (request == NULL)
        return NULL;
    *rc = acl ? zk_send_acl(audit->session->handle, request, path)
              : zk_send_get(audit->session->handle, request, path, NULL, NULL);
    if (*rc == ZOK)
        *rc = zk_request_wait(request, &audit->patience);
    if (*rc == ZOK)
        return request;
    zk_request_unref(request);
    return NULL;
}

static const char *root_of(const struct audit *audit)
{
    return audit->store->url.root[0] != '\0' ? audit->store->url.root : "/";
}

/* The node that all locks are below, by when it was made. */
static int tell_incarnation(const struct audit *audit)
{
    static const struct hf__topic topic = {"store.incarnation", NULL, "czxid"};
    struct zk_request *root;
    int rc;

    root = ask(audit, root_of(audit), false, &rc);
    if (root != NULL)
        hf__tell(audit->teller, topic, "%" PRIx64 ":%" PRIx64, (uint64_t)root->stat.czxid,
                 (uint64_t)root->stat.ctime);
    else if (rc == ZNONODE)
        hf__tell_unknown(audit->teller, topic, "no lock has been taken here yet");
    zk_request_unref(root);
    return rc == ZNONODE ? ZOK : rc;
}

/* A multi that makes a node and then checks what is not so: all of it is undone before anybody sees
 * it. The answer to the first half tells whether we may. */
static int try_to_make(const struct audit *audit, const char *parent)
{
    char path[ZK_ROOT_MAX + 32];
    char none[ZK_ROOT_MAX + 32];
    struct zk_request *request = zk_request_new();
    zoo_op_t ops[2];
    int rc;

    if (request == NULL)
        return ZK_NOMEM;
    (void)snprintf(path, sizeof path, "%s/%%doctor", parent);
    (void)snprintf(none, sizeof none, "%s/%%doctor-none", parent);
    zoo_create_op_init(&ops[0], path, "", 0, zk_acl(audit->store), ZOO_PERSISTENT, NULL, 0);
    zoo_check_op_init(&ops[1], none, 0);
    rc = zk_send_multi(audit->session->handle, request, ops, 2);
    if (rc == ZOK)
        rc = zk_request_wait(request, &audit->patience);
    if (rc == ZNONODE && request->results[0].err != ZNONODE)
        rc = ZOK; /* it was the question that failed */
    zk_request_unref(request);
    return rc == ZNODEEXISTS ? ZOK : rc;
}

/* Where nothing is yet, one of the nodes above has to allow it. */
static void tell_rights(const struct audit *audit)
{
    static const struct hf__topic topic = {"zookeeper.rights", NULL, "a multi that fails"};
    char parent[ZK_ROOT_MAX];
    int rc = ZNONODE;

    (void)snprintf(parent, sizeof parent, "%s", audit->store->url.root);
    while (rc == ZNONODE) {
        char *slash = strrchr(parent, '/');

        rc = try_to_make(audit, parent);
        if (slash == NULL)
            break;
        *slash = '\0';
    }
    if (rc == ZOK)
        hf__tell(audit->teller, topic, "%s", "");
    else if (rc == ZNOAUTH)
        hf__tell(audit->teller, topic, "this user may not make nodes below %s", root_of(audit));
    else
        tell_code(audit, topic, rc);
}

/* Lines "server.N=host:port:port:participant;..."; a server by itself has none. */
static int64_t count_servers(const char *config)
{
    int64_t count = 0;

    for (const char *line = config; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t len = end != NULL ? (size_t)(end - line) : strlen(line);

        if (strncmp(line, "server.", strlen("server.")) == 0 &&
            memmem(line, len, ":observer", strlen(":observer")) == NULL)
            count++;
        line = end != NULL ? end + 1 : NULL;
    }
    return count > 0 ? count : 1;
}

static void tell_ensemble(const struct audit *audit)
{
    static const struct hf__topic topic = {"zookeeper.servers", NULL, CONFIG_NODE};
    struct zk_request *config;
    int rc;

    config = ask(audit, CONFIG_NODE, false, &rc);
    if (config != NULL)
        tell_number(audit, topic, count_servers(config->text != NULL ? config->text : ""));
    else
        tell_code(audit, topic, rc);
    zk_request_unref(config);
}

/* Where there is nothing yet, it will have the ACL that we make it with. */
static void tell_acl(const struct audit *audit)
{
    static const struct hf__topic topic = {"zookeeper.acl", NULL, "getAcl"};
    struct zk_request *acl;
    int rc;

    acl = ask(audit, root_of(audit), true, &rc);
    if (acl != NULL)
        hf__tell(audit->teller, topic, "%s", acl->text != NULL ? acl->text : "");
    else if (rc == ZNONODE)
        hf__tell(audit->teller, topic, "%s",
                 audit->store->url.common.user[0] == '\0' ? "world:anyone:cdrwa" : "");
    else
        tell_code(audit, topic, rc);
    zk_request_unref(acl);
}

/* The server makes a session longer if it asks for less than two of its ticks. */
static void tell_sessions(const struct audit *audit)
{
    static const struct hf__topic shortest = {"zookeeper.session_min", "ms", "a short session"};
    struct zk_session *brief;
    struct hf_error err;

    tell_number(audit, (struct hf__topic){"zookeeper.tick", "ms", "the URL"},
                audit->store->url.tick_ms);
    tell_number(audit, (struct hf__topic){"zookeeper.session", "ms", "the session"},
                zoo_recv_timeout(audit->session->handle));
    tell_number(audit, (struct hf__topic){"zookeeper.lease", "ms", "the session"},
                zk_session_lease_ms(audit->session));
    if (zk_session_get(audit->store, HF_TTL_MIN_MS, NULL, &audit->patience, &brief, &err) !=
        HF_OK) {
        hf__tell_unknown(audit->teller, shortest, err.text);
        return;
    }
    if (zoo_recv_timeout(brief->handle) > (int)brief->asked_ms)
        tell_number(audit, shortest, zoo_recv_timeout(brief->handle));
    else
        tell_number(audit, shortest, 0);
    zk_session_unref(brief);
}

static enum hf_status tell_all(struct audit *audit, struct hf_error *err)
{
    int rc = tell_incarnation(audit);

    if (rc != ZOK)
        return zk_verdict(audit->store, NULL, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
    if (audit->teller->stopped)
        return HF_OK;
    tell_rights(audit);
    if (audit->query->scope == HF_AUDIT_ALL) {
        tell_ensemble(audit);
        tell_acl(audit);
        tell_sessions(audit);
    }
    return HF_OK;
}

enum hf_status zk_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err)
{
    struct hf__teller teller = {.fn = fn, .data = data};
    struct audit audit = {.query = query,
                          .teller = &teller,
                          .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1}};
    enum hf_status status = zk_store_new(host, url, &audit.store, err);

    if (status != HF_OK)
        return status;
    status = zk_session_get(audit.store, query->ttl_ms, NULL, &audit.patience, &audit.session, err);
    if (status == HF_OK) {
        status = tell_all(&audit, err);
        zk_session_unref(audit.session);
    }
    zk_store_free(audit.store, false);
    return status == HF_OK ? hf__ok(err) : status;
}
