/* audit.c - what can be learned about a PostgreSQL server without a change, and without any right
 * beyond USAGE of our schema: `holdfast doctor` judges it. */
#include "base/base.h"
#include "base/fact.h"
#include "core/samples.h"
#include "stores/postgres/postgres.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GAP_MS 700 /* between two readings of the clock */
#define PID    ", pg_catalog.pg_backend_pid() AS pid"
/* The columns of `settings` are told in this order. */
static const struct hf__topic topics[] = {
    {"postgres.in_recovery", NULL, "pg_is_in_recovery"},
    {"postgres.read_only", NULL, "SHOW default_transaction_read_only"},
    {"postgres.fsync", NULL, "SHOW"},
    {"postgres.full_page_writes", NULL, "SHOW"},
    {"postgres.synchronous_commit", NULL, "SHOW"},
    {"postgres.synchronous_standby_names", NULL, "SHOW"},
    {"postgres.version", NULL, "SHOW server_version"},
    {"postgres.standbys", NULL, "pg_stat_replication"},
};
enum { TOPICS = sizeof topics / sizeof *topics };

static const struct pg_statement settings = {
    "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'yes' ELSE 'no' END, "
    "pg_catalog.current_setting('default_transaction_read_only'), "
    "pg_catalog.current_setting('fsync'), "
    "pg_catalog.current_setting('full_page_writes'), "
    "pg_catalog.current_setting('synchronous_commit'), "
    "pg_catalog.current_setting('synchronous_standby_names'), "
    "pg_catalog.current_setting('server_version'), "
    "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication)" PID,
    NULL, 0};

/* A standby writes on no timeline, and has the one of its last checkpoint. */
static const struct pg_statement incarnation = {
    "SELECT s.system_identifier::pg_catalog.text, CASE WHEN pg_catalog.pg_is_in_recovery() THEN "
    "pg_catalog.upper(pg_catalog.lpad(pg_catalog.to_hex(c.timeline_id), 8, '0')) ELSE "
    "pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) END" PID
    " FROM pg_catalog.pg_control_system() AS s, pg_catalog.pg_control_checkpoint() AS c",
    NULL, 0};

static const struct pg_statement rights = {
    "SELECT n.oid IS NOT NULL, pg_catalog.has_schema_privilege(n.oid, 'USAGE'), "
    "pg_catalog.has_database_privilege(d.oid, 'CREATE')" PID
    " FROM pg_catalog.pg_database AS d LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = "
    "'holdfast' WHERE d.datname = pg_catalog.current_database()",
    NULL, 0};

static const struct pg_statement agreed = {
    "SELECT COALESCE(agreed_ms, 0)" PID " FROM holdfast.quarantine($1::bigint)", NULL, 0};

static const struct pg_statement clock_now = {
    "SELECT (EXTRACT(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::pg_catalog.int8" PID,
    NULL, 0};

struct audit {
    const struct hf_host *host;
    const struct hf_audit_query *query;
    const struct pg_url *url;
    struct hf__teller *teller;
    struct pg_pool *pool;
    struct pg_conn *conn;
    struct hf__patience patience;
    char why[PG_WHY_SIZE]; /* of the last statement that was not answered */
};

/* The one row that answers; NULL with audit->why. The caller clears it. */
static PGresult *ask(struct audit *audit, const struct pg_statement *statement,
                     const struct pg_params *params)
{
    const struct pg_params none = {.count = 0};
    struct pg_outcome outcome = {.fate = PG_UNSENT};

    (void)snprintf(audit->why, sizeof audit->why, "the connection is gone");
    if (audit->conn == NULL || audit->conn->broken)
        return NULL;
    pg_conn_execute(audit->conn, audit->host, statement, params != NULL ? params : &none,
                    &audit->patience, &outcome);
    if (outcome.fate == PG_DONE && PQntuples(outcome.rows) == 1)
        return outcome.rows;
    if (outcome.fate == PG_DONE) {
        PQclear(outcome.rows);
        (void)snprintf(audit->why, sizeof audit->why, "an answer that makes no sense");
    } else {
        memcpy(audit->why, outcome.why, sizeof audit->why);
    }
    return NULL;
}

static void tell_incarnation(struct audit *audit)
{
    static const struct hf__topic id = {"store.incarnation", NULL, "pg_control_system"};
    static const struct hf__topic timeline = {"postgres.timeline", NULL, "pg_walfile_name"};
    PGresult *rows = ask(audit, &incarnation, NULL);

    if (rows == NULL) {
        hf__tell_unknown(audit->teller, id, audit->why);
        hf__tell_unknown(audit->teller, timeline, audit->why);
        return;
    }
    hf__tell(audit->teller, id, "%s/%s", PQgetvalue(rows, 0, 0), PQgetvalue(rows, 0, 1));
    hf__tell(audit->teller, timeline, "%s", PQgetvalue(rows, 0, 1));
    PQclear(rows);
}

static void tell_settings(struct audit *audit)
{
    PGresult *rows = ask(audit, &settings, NULL);

    for (int i = 0; i < TOPICS; i++) {
        if (rows != NULL)
            hf__tell(audit->teller, topics[i], "%s", PQgetvalue(rows, 0, i));
        else
            hf__tell_unknown(audit->teller, topics[i], audit->why);
    }
    PQclear(rows);
}

static void tell_agreed(struct audit *audit, bool there, bool usable)
{
    static const struct hf__topic topic = {"postgres.max_ttl_agreed", "ms", "holdfast.quarantine"};
    struct pg_params params = {0};
    PGresult *rows = NULL;

    pg_params_number(&params, audit->url->max_ttl_ms);
    if (there && usable)
        rows = ask(audit, &agreed, &params);
    if (!there)
        hf__tell(audit->teller, topic, "0");
    else if (rows != NULL)
        hf__tell(audit->teller, topic, "%s", PQgetvalue(rows, 0, 0));
    else
        hf__tell_unknown(audit->teller, topic,
                         usable ? audit->why : "no right to use the schema holdfast");
    PQclear(rows);
}

/* What keeps this role from taking a lock; "" is nothing. */
static void tell_rights(struct audit *audit)
{
    static const struct hf__topic topic = {"postgres.rights", NULL, "has_schema_privilege"};
    PGresult *rows = ask(audit, &rights, NULL);
    bool there, usable, may_create;
    const char *missing = "";

    if (rows == NULL) {
        hf__tell_unknown(audit->teller, topic, audit->why);
        tell_agreed(audit, true, true);
        return;
    }
    there = strcmp(PQgetvalue(rows, 0, 0), "t") == 0;
    usable = strcmp(PQgetvalue(rows, 0, 1), "t") == 0;
    may_create = strcmp(PQgetvalue(rows, 0, 2), "t") == 0;
    PQclear(rows);
    if (there && !usable)
        missing = "this role may not use the schema holdfast";
    else if (!there && !may_create)
        missing = "there is no schema holdfast yet, and this role may not create it";
    hf__tell(audit->teller, (struct hf__topic){"postgres.schema", NULL, "pg_namespace"}, "%s",
             there ? "yes" : "no");
    hf__tell(audit->teller, topic, "%s", missing);
    tell_agreed(audit, there, usable);
}

static void tell_way(struct audit *audit)
{
    static const struct hf__topic pooler = {"postgres.pooler", NULL, "pg_backend_pid"};
    const struct hf__topic tls = {"postgres.tls", NULL, "PQsslInUse"};
    const struct hf__topic loopback = {"store.loopback", NULL, "PQhostaddr"};
    struct hf__address address = {.port = 0};
    const char *host = PQhostaddr(audit->conn->link);

    (void)snprintf(address.host, sizeof address.host, "%s",
                   host != NULL && host[0] != '\0' ? host : "/");
    hf__tell(audit->teller, loopback, "%s", hf__address_is_local(&address) ? "yes" : "no");
    hf__tell(audit->teller, tls, "%s", PQsslInUse(audit->conn->link) != 0 ? "on" : "off");
    if (audit->conn->route == PG_ROUTE_UNKNOWN)
        hf__tell_unknown(audit->teller, pooler, "");
    else
        hf__tell(audit->teller, pooler, "%s", audit->conn->route == PG_ROUTE_POOLED ? "yes" : "no");
}

static bool read_clock(struct audit *audit, struct hf__clock_reading *out)
{
    PGresult *rows;

    out->sent_ns = audit->host->now_ns();
    rows = ask(audit, &clock_now, NULL);
    out->heard_ns = audit->host->now_ns();
    out->wall_us = audit->host->wall_us();
    if (rows == NULL)
        return false;
    out->their_us = strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
    PQclear(rows);
    return true;
}

/* The first answer pays for what the server has to load. */
static void tell_clock(struct audit *audit)
{
    static const struct hf__topic offset = {"store.clock_offset", "ms", "clock_timestamp"};
    static const struct hf__topic rate = {"store.clock_rate", "ppm", "clock_timestamp, twice"};
    struct hf__clock_reading first, second;

    (void)read_clock(audit, &first);
    if (read_clock(audit, &first)) {
        (void)hf__patience_pause(&audit->patience, first.sent_ns + GAP_MS * HF__NS_PER_MS);
        if (read_clock(audit, &second)) {
            hf__tell(audit->teller, offset, "%" PRId64, hf__clock_ahead_us(&first) / 1000);
            hf__tell(audit->teller, rate, "%" PRId64, hf__clock_rate_ppm(&first, &second));
            return;
        }
    }
    hf__tell_unknown(audit->teller, offset, audit->why);
    hf__tell_unknown(audit->teller, rate, audit->why);
}

static void tell_all(struct audit *audit)
{
    tell_incarnation(audit);
    if (audit->teller->stopped)
        return;
    hf__tell(audit->teller, (struct hf__topic){"store.max_ttl", "ms", "the URL"}, "%" PRId64,
             audit->url->max_ttl_ms);
    tell_settings(audit);
    tell_rights(audit);
    if (audit->query->scope != HF_AUDIT_ALL)
        return;
    tell_way(audit);
    tell_clock(audit);
}

enum hf_status pg_audit(const struct hf_host *host, const char *url,
                        const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                        struct hf_error *err)
{
    struct hf__teller teller = {.fn = fn, .data = data};
    struct pg_pool pool = {.uri = NULL};
    struct pg_url parsed = {.max_ttl_ms = 0};
    struct audit audit = {.host = host,
                          .query = query,
                          .url = &parsed,
                          .teller = &teller,
                          .pool = &pool,
                          .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1}};
    enum hf_status status = pg_url_parse(url, &parsed, err);

    if (status != HF_OK)
        return status;
    pg_pool_init(&pool, host, parsed.uri, parsed.shown);
    status = pg_pool_take(&pool, PG_USE_ACQUIRE, false, &audit.patience, &audit.conn, err);
    if (status == HF_OK) {
        tell_all(&audit);
        pg_pool_give(&pool, audit.conn);
    }
    pg_pool_release(&pool, false);
    explicit_bzero(&parsed, sizeof parsed);
    return status == HF_OK ? hf__ok(err) : status;
}
