/* audit.c - what can be learned about an etcd cluster without a change, and without any right
 * beyond those below the prefix: `holdfast doctor` judges it. */
#include "base/base.h"
#include "base/fact.h"
#include "stores/etcd/etcd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 1000                   /* what one of several servers may take */
#define NOBODYS   "holdfast-doctor-asks" /* a key that nobody has, below the prefix */

enum { ALARMS_MAX = 256, VERSION_MAX = 32 };

/* What the servers of the URL said of themselves. */
struct census {
    size_t answered; /* to maintenance/status */
    size_t healthy;  /* of these, with a leader */
    int64_t db_size; /* of the largest */
    char version[VERSION_MAX];
    char affected[VERSION_MAX]; /* by the fault that frees held locks; "": none */
    char alarms[ALARMS_MAX];
    char why[160]; /* the last that did not answer */
};

struct audit {
    struct ec_store *store;
    struct hf__teller *teller;
    const struct hf_audit_query *query;
    struct hf__patience patience;
    uint64_t revision;
};

static void tell(const struct audit *audit, const char *key, const char *source, const char *value)
{
    hf__tell(audit->teller, (struct hf__topic){key, NULL, source}, "%s", value);
}

static const char *yes(bool condition)
{
    return condition ? "yes" : "no";
}

/* A request to whichever server; NULL with *err. The caller deletes it. */
static cJSON *ask(const struct audit *audit, const char *path, const struct ec_text *body,
                  enum ec_verdict *verdict, struct hf_error *err)
{
    struct ec_call call = {
        .path = path, .body = body, .patience = audit->patience, .repeatable = true};
    struct ec_answer answer = {.json = NULL};

    return ec_call(audit->store, &call, &answer, verdict, err) == HF_OK ? answer.json : NULL;
}

/* The key that nobody has, in base64. */
static void add_key(const struct audit *audit, struct ec_text *body)
{
    char key[EC_PREFIX_MAX + sizeof NOBODYS];

    (void)snprintf(key, sizeof key, "%s%s", audit->store->url.prefix, NOBODYS);
    ec_text_base64(body, key, strlen(key));
}

/* https://github.com/etcd-io/etcd/issues/15247 */
static bool is_affected(const char *version)
{
    unsigned major = 0, minor = 0, patch = 0;

    if (sscanf(version, "%u.%u.%u", &major, &minor, &patch) != 3 || major != 3)
        return false;
    return minor < 4 || (minor == 4 && patch < 31) || (minor == 5 && patch < 13);
}

/* "memberID:10276657743932975437 alarm:NOSPACE " and others. */
static void note_alarms(struct census *census, const cJSON *status)
{
    const cJSON *error;

    cJSON_ArrayForEach(error, cJSON_GetObjectItemCaseSensitive(status, "errors"))
    {
        const char *text = cJSON_GetStringValue(error);
        const char *alarm = text != NULL ? strstr(text, "alarm:") : NULL;
        size_t used = strlen(census->alarms);
        char name[32];

        if (alarm == NULL || sscanf(alarm, "alarm:%31[A-Z]", name) != 1 ||
            strstr(census->alarms, name) != NULL)
            continue;
        (void)snprintf(census->alarms + used, sizeof census->alarms - used, "%s%s",
                       used > 0 ? " " : "", name);
    }
}

static void note_status(struct census *census, const cJSON *status)
{
    const char *version = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "version"));
    const char *leader = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "leader"));
    int64_t size = ec_answer_number(status, "dbSize");

    census->answered++;
    census->healthy += leader != NULL && strcmp(leader, "0") != 0;
    census->db_size = size > census->db_size ? size : census->db_size;
    if (version != NULL)
        (void)snprintf(census->version, sizeof census->version, "%s", version);
    if (version != NULL && is_affected(version))
        (void)snprintf(census->affected, sizeof census->affected, "%s", version);
    note_alarms(census, status);
}

/* Each server by itself: otherwise whichever answers first would answer for all. */
static void ask_endpoint(const struct audit *audit, struct hf__http *http, size_t i,
                         struct census *census)
{
    char current[EC_ENDPOINT_MAX];
    char auth[HF__HTTP_AUTH_MAX];
    struct hf__http_request post = {.endpoint = audit->store->url.endpoints[i],
                                    .path = "/v3/maintenance/status",
                                    .json = "{}",
                                    .json_len = 2,
                                    .auth = auth};
    int64_t soon_ns = audit->store->base.host->now_ns() + ANSWER_MS * HF__NS_PER_MS;
    struct hf__patience patience = hf__patience_until(&audit->patience, soon_ns);
    cJSON *json = NULL;

    ec_where(audit->store, current, auth);
    if (hf__http_exchange(http, &post, &patience, ANSWER_MS) != HF__HTTP_ANSWERED)
        (void)hf__http_explain(http, post.endpoint, census->why, sizeof census->why);
    else
        json = ec_answer_parse(http->body, http->len);
    explicit_bzero(auth, sizeof auth);
    if (json != NULL && ec_answer_is_etcd(json))
        note_status(census, json);
    else if (json != NULL)
        (void)snprintf(census->why, sizeof census->why, "maintenance/status was refused");
    cJSON_Delete(json);
}

static void tell_census(const struct audit *audit)
{
    static const char source[] = "maintenance/status";
    static const char *const keys[] = {"etcd.alarms", "etcd.leader", "etcd.version",
                                       "etcd.affected"};
    struct census census = {.answered = 0, .why = "no answer"};
    struct hf__http *http = hf__http_open(audit->store->base.host, &audit->store->pool.options);
    size_t count = audit->store->url.common.host_count;

    for (size_t i = 0; i < count && http != NULL; i++)
        ask_endpoint(audit, http, i, &census);
    if (http != NULL)
        hf__http_close(http, false);
    hf__tell(audit->teller, (struct hf__topic){"etcd.endpoints", NULL, "the URL"}, "%zu", count);
    hf__tell(audit->teller, (struct hf__topic){"etcd.endpoints_healthy", NULL, source}, "%zu",
             census.healthy);
    if (census.answered == 0) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            hf__tell_unknown(audit->teller, (struct hf__topic){keys[i], NULL, source}, census.why);
        return;
    }
    tell(audit, "etcd.alarms", source, census.alarms);
    tell(audit, "etcd.leader", source, yes(census.healthy > 0));
    tell(audit, "etcd.version", source, census.version);
    tell(audit, "etcd.affected", source, census.affected);
    hf__tell(audit->teller, (struct hf__topic){"etcd.db_size", "bytes", source}, "%" PRId64,
             census.db_size);
}

/* A transaction whose condition cannot hold, so that nothing is put; but etcd asks first whether
 * it may be. */
static void tell_rights(const struct audit *audit)
{
    static const struct hf__topic topic = {"etcd.rights", NULL,
                                           "a transaction that changes nothing"};
    enum ec_verdict verdict = EC_FINE;
    struct hf_error err;
    struct ec_text body;
    cJSON *json;

    ec_text_clear(&body);
    ec_text_add(&body, "{\"compare\":[{\"target\":\"VERSION\",\"result\":\"GREATER\",\"version\":"
                       "\"9000000000000000000\",\"key\":");
    add_key(audit, &body);
    ec_text_add(&body, "}],\"success\":[{\"requestPut\":{\"key\":");
    add_key(audit, &body);
    ec_text_add(&body, "}}]}");
    json = ask(audit, "/v3/kv/txn", &body, &verdict, &err);
    if (json != NULL || verdict == EC_FORBIDDEN)
        hf__tell(audit->teller, topic, "%s", yes(json != NULL));
    else
        hf__tell_unknown(audit->teller, topic, err.text);
    cJSON_Delete(json);
}

static void tell_members(const struct audit *audit)
{
    static const struct hf__topic topic = {"etcd.members", NULL, "cluster/member/list"};
    struct hf_error err;
    struct ec_text body;
    cJSON *json;

    ec_text_clear(&body);
    ec_text_add(&body, "{}");
    json = ask(audit, "/v3/cluster/member/list", &body, NULL, &err);
    if (json != NULL)
        hf__tell(audit->teller, topic, "%d",
                 cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "members")));
    else
        hf__tell_unknown(audit->teller, topic, err.text);
    cJSON_Delete(json);
}

/* What was true at the first revision can be read unless somebody has compacted it away. */
static void tell_compaction(const struct audit *audit)
{
    static const struct hf__topic topic = {"etcd.compacted", NULL, "a range at revision 1"};
    struct hf_error err;
    struct ec_text body;
    cJSON *json;

    hf__tell(audit->teller, (struct hf__topic){"etcd.revision", NULL, "a range"}, "%" PRIu64,
             audit->revision);
    if (audit->revision <= 1) {
        hf__tell(audit->teller, topic, "no");
        return;
    }
    ec_text_clear(&body);
    ec_text_add(&body, "{\"revision\":\"1\",\"key\":");
    add_key(audit, &body);
    ec_text_add(&body, "}");
    json = ask(audit, "/v3/kv/range", &body, NULL, &err);
    if (json != NULL || strstr(err.text, "compacted") != NULL)
        hf__tell(audit->teller, topic, "%s", yes(json == NULL));
    else
        hf__tell_unknown(audit->teller, topic, err.text);
    cJSON_Delete(json);
}

/* Whoever may read without a user may do anything. */
static void tell_auth(const struct audit *audit)
{
    static const struct hf__topic topic = {"etcd.auth", NULL, "a range without a user"};
    struct hf__http *http = hf__http_open(audit->store->base.host, &audit->store->pool.options);
    char endpoint[EC_ENDPOINT_MAX];
    char auth[HF__HTTP_AUTH_MAX];
    struct ec_text body;
    struct hf__http_request post = {.endpoint = endpoint, .path = "/v3/kv/range", .auth = ""};
    cJSON *json = NULL;

    ec_where(audit->store, endpoint, auth);
    explicit_bzero(auth, sizeof auth);
    ec_text_clear(&body);
    ec_text_add(&body, "{\"key\":");
    add_key(audit, &body);
    ec_text_add(&body, "}");
    post.json = body.data;
    post.json_len = body.len;
    if (http != NULL &&
        hf__http_exchange(http, &post, &audit->patience, ANSWER_MS) == HF__HTTP_ANSWERED)
        json = ec_answer_parse(http->body, http->len);
    if (json != NULL)
        hf__tell(audit->teller, topic, "%s", ec_answer_is_etcd(json) ? "off" : "on");
    else
        hf__tell_unknown(audit->teller, topic, "");
    cJSON_Delete(json);
    if (http != NULL)
        hf__http_close(http, false);
}

static void tell_way(const struct audit *audit)
{
    const struct ec_url *url = &audit->store->url;
    bool local = true;

    for (size_t i = 0; i < url->common.host_count; i++)
        local = local && hf__address_is_local(&url->common.hosts[i]);
    tell(audit, "store.loopback", "the URL", yes(local));
    tell(audit, "etcd.tls", "the URL", url->tls ? "on" : "off");
    if (url->tls)
        tell(audit, "etcd.verify", "the URL", url->verify ? "on" : "off");
}

static void tell_all(const struct audit *audit)
{
    tell_census(audit);
    tell_rights(audit);
    if (audit->query->scope != HF_AUDIT_ALL)
        return;
    tell_way(audit);
    tell_members(audit);
    tell_auth(audit);
    tell_compaction(audit);
}

enum hf_status ec_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err)
{
    struct hf__teller teller = {.fn = fn, .data = data};
    struct audit audit = {.teller = &teller,
                          .query = query,
                          .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1}};
    struct ec_answer answer;
    enum hf_status status = ec_store_new(host, url, &audit.store, err);

    if (status != HF_OK)
        return status;
    status = ec_meet(audit.store, query->deadline_ns, &answer, err);
    if (status == HF_OK) {
        audit.revision = ec_answer_revision(answer.json);
        tell(&audit, "store.incarnation", "cluster_id", ec_answer_cluster(answer.json));
        ec_answer_release(&answer);
        if (!teller.stopped)
            tell_all(&audit);
    }
    ec_store_free(audit.store, false);
    return status == HF_OK ? hf__ok(err) : status;
}
