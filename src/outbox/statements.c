/* statements.c - what the relay says to a database. */
#include "outbox/outbox.h"

#include <inttypes.h>
#include <string.h>

#define SQLITE_TIME "strftime('%Y-%m-%dT%H:%M:%fZ', 'now'"

/* What differs between dialects, apart from how a few things are written. */
static const struct {
    const char *now;
    const char *parked;  /* not_before of what is parked, or dead */
    const char *at_once; /* not_before of what may be sent */
    const char *key;     /* the column */
    const char *bytes;   /* of payload and headers */
    const char *headers; /* as text */
    const char *ready;   /* behind the table: the index of what is not parked */
    const char *lock;    /* at the end of a SELECT */
    const char *as_text; /* behind a value */
    const char *user;    /* who is asking */
    const char *begin;
    const char *text; /* around the hex digits of a text */
    const char *text_end;
} words[] = {
    [HF__POSTGRES] = {.now = "clock_timestamp()",
                      .parked = "'infinity'",
                      .at_once = "'-infinity'",
                      .key = "key",
                      .bytes = "octet_length(m.payload) + octet_length(m.headers)",
                      .headers = "m.headers::text",
                      .ready = "",
                      .lock = " FOR UPDATE",
                      .as_text = "::text",
                      .user = "session_user",
                      .begin = "BEGIN ISOLATION LEVEL READ COMMITTED",
                      .text = "convert_from(decode('",
                      .text_end = "', 'hex'), 'UTF8')"},
    [HF__SQLITE] = {.now = SQLITE_TIME ")",
                    .parked = "'9999'",
                    .at_once = "''",
                    .key = "key",
                    .bytes = "length(m.payload) + length(m.headers)",
                    .headers = "json(m.headers)",
                    .ready = " INDEXED BY holdfast_outbox_ready",
                    .lock = "",
                    .as_text = "",
                    .user = "NULL",
                    .begin = "BEGIN IMMEDIATE",
                    .text = "CAST(X'",
                    .text_end = "' AS TEXT)"},
    [HF__MARIADB] = {.now = "UTC_TIMESTAMP(6)",
                     .parked = "'9999-12-31 00:00:00'",
                     .at_once = "'1970-01-01 00:00:00'",
                     .key = "`key`",
                     .bytes = "LENGTH(m.payload) + LENGTH(m.headers)",
                     .headers = "JSON_COMPACT(m.headers)",
                     .ready = " FORCE INDEX (ready)",
                     .lock = " FOR UPDATE",
                     .as_text = "",
                     .user = "USER()",
                     .begin = "START TRANSACTION",
                     .text = "CONVERT(X'",
                     .text_end = "' USING utf8mb4)"},
};

enum hf_status hf__outbox_names(struct hf__outbox_names *out, enum hf__dialect dialect,
                                const char *schema, struct hf_error *err)
{
    char quoted[HF__SQL_QUOTED_SIZE];
    const char *own = schema != NULL ? schema : "holdfast_outbox";
    enum hf_status status = hf__sql_name(quoted, HF__POSTGRES, own, err);

    out->dialect = dialect;
    if (schema != NULL && dialect != HF__POSTGRES)
        return hf__fail(err, HF_INVALID, "only PostgreSQL has schemas here");
    if (status != HF_OK)
        return status;
    if (dialect != HF__POSTGRES) {
        (void)snprintf(out->message, sizeof out->message, "holdfast_outbox");
        (void)snprintf(out->fence, sizeof out->fence, "holdfast_outbox_fence");
        (void)snprintf(out->settled, sizeof out->settled, "holdfast_outbox_settled");
        return HF_OK;
    }
    (void)snprintf(out->message, sizeof out->message, "%s.message", quoted);
    (void)snprintf(out->fence, sizeof out->fence, "%s.fence", quoted);
    (void)snprintf(out->settled, sizeof out->settled, "%s.settled", quoted);
    return HF_OK;
}

void hf__outbox_put_text(FILE *out, enum hf__dialect dialect, const char *text)
{
    fputs(words[dialect].text, out);
    for (; *text != '\0'; text++)
        fprintf(out, "%02x", (unsigned char)*text);
    fputs(words[dialect].text_end, out);
}

/* In PostgreSQL a list is one text, and a uid a type of its own, without quotes. */
void hf__outbox_put_uid(FILE *out, enum hf__dialect dialect, const char *uid)
{
    if (dialect == HF__POSTGRES)
        fputs(uid, out);
    else
        hf__outbox_put_text(out, dialect, uid);
}

/* A relay that is frozen in the middle of a transaction is ended by the server, as far as it can:
 * all others wait for it. No scan of the whole table, whatever statistics say. */
const char *const *hf__outbox_session(enum hf__dialect dialect)
{
    static const char *const postgres[] = {"SET idle_in_transaction_session_timeout = '10s'",
                                           "SET lock_timeout = '10s'",
                                           "SET default_transaction_isolation = 'read committed'",
                                           "SET plan_cache_mode = force_generic_plan",
                                           "SET enable_seqscan = off",
                                           "SET enable_bitmapscan = off",
                                           "SET enable_sort = off",
                                           "SET jit = off",
                                           "SET client_encoding = 'UTF8'",
                                           "SET TimeZone = 'UTC'",
                                           "SET DateStyle = 'ISO'",
                                           NULL};
    static const char *const sqlite[] = {NULL};
    static const char *const mariadb[] = {
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION idle_write_transaction_timeout = 10, innodb_lock_wait_timeout = 10, "
        "sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00'",
        NULL};

    if (dialect == HF__SQLITE)
        return sqlite;
    return dialect == HF__POSTGRES ? postgres : mariadb;
}

const char *hf__outbox_begin(enum hf__dialect dialect)
{
    return words[dialect].begin;
}

/* A time, as RFC 3339 has it. In PostgreSQL to_char would cost more than all the rest of a fetch;
 * the session is in UTC. */
static void put_time(FILE *out, enum hf__dialect dialect, const char *column)
{
    if (dialect == HF__POSTGRES)
        fprintf(out, "replace(%s::text, ' ', 'T') || ':00'", column);
    else if (dialect == HF__MARIADB)
        fprintf(out, "DATE_FORMAT(%s, '%%Y-%%m-%%dT%%H:%%i:%%s.%%fZ')", column);
    else
        fputs(column, out);
}

static void put_if_small(FILE *out, enum hf__dialect dialect, const char *column)
{
    fprintf(out, ", CASE WHEN %s <= %d THEN %s END", words[dialect].bytes, HF__OUTBOX_SMALL,
            column);
}

/* The column is one of these. One array is read faster than a list of numbers. */
static void put_among(FILE *out, enum hf__dialect dialect, const char *column, const char *ids)
{
    if (dialect == HF__POSTGRES)
        fprintf(out, "%s = ANY ('{%s}')", column, ids);
    else
        fprintf(out, "%s IN (%s)", column, ids);
}

/* The lowest of its key that failed. Mostly nothing has: where an index knows that, it is asked
 * once and not for each message. */
static void put_blocker(FILE *out, const struct hf__outbox_names *names)
{
    enum hf__dialect d = names->dialect;
    const char *key = words[d].key;
    bool asks = d != HF__MARIADB;

    if (asks)
        fprintf(out, "CASE WHEN EXISTS (SELECT 1 FROM %s AS f WHERE f.attempts > 0) THEN ",
                names->message);
    fprintf(out,
            "(SELECT min(b.id) FROM %s AS b WHERE b.%s = m.%s AND b.attempts > 0 AND b.id < m.id)",
            names->message, key, key);
    fputs(asks ? " END, " : ", ", out);
}

/* In MariaDB parked is a column, so that an index can begin with it. */
static void put_due(FILE *out, const struct hf__outbox_names *names, uint64_t count,
                    const char *aside)
{
    enum hf__dialect d = names->dialect;

    fprintf(out, " FROM %s AS m%s WHERE ", names->message, words[d].ready);
    if (d == HF__MARIADB)
        fputs("m.parked = 0", out);
    else
        fprintf(out, "m.not_before < %s", words[d].parked);
    if (aside != NULL) {
        fprintf(out, " AND m.%s NOT IN (SELECT a.%s FROM %s AS a WHERE ", words[d].key,
                words[d].key, names->message);
        put_among(out, d, "a.id", aside);
        fputs(")", out);
    }
    fprintf(out, " AND m.not_before <= %s ORDER BY m.id LIMIT %" PRIu64, words[d].now, count);
}

/* PostgreSQL makes a text of jsonb wherever it is named: once for each row is enough. */
void hf__outbox_put_fetch(FILE *out, const struct hf__outbox_names *names, uint64_t count,
                          const char *aside)
{
    enum hf__dialect d = names->dialect;
    bool once = d == HF__POSTGRES;

    fprintf(out, "SELECT m.id, m.uid, m.topic, m.%s, ", words[d].key);
    put_time(out, d, "m.created");
    fputs(", m.attempts, ", out);
    put_blocker(out, names);
    fputs(words[d].bytes, out);
    put_if_small(out, d, "m.payload");
    put_if_small(out, d, once ? "m.headers" : words[d].headers);
    if (once)
        fprintf(out, " FROM (SELECT m.id, m.uid, m.topic, m.key, m.created, m.attempts, m.payload, "
                     "m.headers::text");
    put_due(out, names, count, aside);
    if (once)
        fputs(") AS m", out);
}

void hf__outbox_put_bodies(FILE *out, const struct hf__outbox_names *names, const char *ids)
{
    enum hf__dialect d = names->dialect;

    fprintf(out, "SELECT m.id%s, m.payload, %s FROM %s AS m WHERE ", words[d].as_text,
            words[d].headers, names->message);
    put_among(out, d, "m.id", ids);
    fputs(" ORDER BY m.id", out);
}

void hf__outbox_put_enter(FILE *out, const struct hf__outbox_names *names,
                          const struct hf__outbox_pass *pass)
{
    enum hf__dialect d = names->dialect;

    fprintf(out,
            "UPDATE %s SET %sadmitted_at = CASE WHEN token = %" PRIu64
            " THEN admitted_at ELSE %s END, token = %" PRIu64 ", name = coalesce(name, ",
            names->fence, d == HF__MARIADB ? "entries = entries + 1, " : "", pass->token,
            words[d].now, pass->token);
    hf__outbox_put_text(out, d, pass->name);
    fputs("), issuer = coalesce(issuer, nullif(", out);
    hf__outbox_put_text(out, d, pass->issuer);
    fprintf(out, ", '')) WHERE token <= %" PRIu64 " AND coalesce(name = ", pass->token);
    hf__outbox_put_text(out, d, pass->name);
    fputs(d == HF__SQLITE ? ", 1)" : ", true)", out);
    if (pass->issuer[0] == '\0')
        return;
    fputs(" AND coalesce(issuer = ", out);
    hf__outbox_put_text(out, d, pass->issuer);
    fputs(d == HF__SQLITE ? ", 1)" : ", true)", out);
}

void hf__outbox_put_mark(FILE *out, const struct hf__outbox_names *names)
{
    fprintf(out, "SELECT name, token%s, issuer FROM %s", words[names->dialect].as_text,
            names->fence);
}

/* The fence is entered before the first row is looked at. The plan is kept, and must not turn on
 * how many messages there were: an IN below IS TRUE is hashed, and not made a join. */
bool hf__outbox_put_settle(FILE *out, const struct hf__outbox_names *names,
                           const struct hf__outbox_pass *pass)
{
    if (names->dialect != HF__POSTGRES)
        return false;
    fputs("WITH entered AS (", out);
    hf__outbox_put_enter(out, names, pass);
    fprintf(out,
            " RETURNING 1) DELETE FROM %s AS m WHERE EXISTS (SELECT FROM entered) AND "
            "m.id = ANY (('{' || $1 || '}')::bigint[]) AND m.attempts = 0 AND ((m.id, m.uid) IN "
            "(SELECT * FROM unnest(('{' || $1 || '}')::bigint[], ('{' || $2 || '}')::uuid[]))) "
            "IS TRUE",
            names->message);
    return true;
}

void hf__outbox_put_delete(FILE *out, const struct hf__outbox_names *names, const char *ids)
{
    fprintf(out, "DELETE FROM %s WHERE ", names->message);
    put_among(out, names->dialect, "id", ids);
}

void hf__outbox_put_only(FILE *out, const struct hf__outbox_names *names, const char *uids)
{
    fputs(" AND ", out);
    put_among(out, names->dialect, "uid", uids);
}

void hf__outbox_put_unmarked(FILE *out)
{
    fputs(" AND attempts = 0", out);
}

static void put_free(FILE *out, const struct hf__outbox_names *names)
{
    enum hf__dialect d = names->dialect;

    fprintf(out, "UPDATE %s SET not_before = %s WHERE attempts = 0 AND not_before = %s AND ",
            names->message, words[d].at_once, words[d].parked);
}

void hf__outbox_put_failed(FILE *out, const struct hf__outbox_names *names, const char *ids)
{
    fprintf(out, "SELECT id%s FROM %s WHERE attempts > 0 AND ", words[names->dialect].as_text,
            names->message);
    put_among(out, names->dialect, "id", ids);
}

/* MariaDB looks at every row for an UPDATE with a subquery; a join has an index. */
void hf__outbox_put_free(FILE *out, const struct hf__outbox_names *names, const char *ids)
{
    enum hf__dialect d = names->dialect;
    const char *key = words[d].key;

    if (d == HF__MARIADB) {
        fprintf(out,
                "UPDATE %s AS m JOIN (SELECT DISTINCT h.%s FROM %s AS h WHERE h.id IN (%s)) AS k "
                "ON m.%s = k.%s SET m.not_before = %s WHERE m.attempts = 0 AND m.not_before = %s",
                names->message, key, names->message, ids, key, key, words[d].at_once,
                words[d].parked);
        return;
    }
    put_free(out, names);
    fprintf(out, "%s IN (SELECT h.%s FROM %s AS h WHERE ", key, key, names->message);
    put_among(out, d, "h.id", ids);
    fputs(")", out);
}

void hf__outbox_put_free_orphans(FILE *out, const struct hf__outbox_names *names)
{
    const char *key = words[names->dialect].key;

    put_free(out, names);
    fprintf(out, "%s NOT IN (SELECT h.%s FROM %s AS h WHERE h.attempts > 0)", key, key,
            names->message);
}

static void put_delay(FILE *out, enum hf__dialect dialect, int64_t delay_ms)
{
    if (delay_ms < 0)
        fputs(words[dialect].parked, out);
    else if (dialect == HF__POSTGRES)
        fprintf(out, "clock_timestamp() + interval '%" PRId64 " milliseconds'", delay_ms);
    else if (dialect == HF__MARIADB)
        fprintf(out, "UTC_TIMESTAMP(6) + INTERVAL %" PRId64 " MICROSECOND", delay_ms * 1000);
    else
        fprintf(out, "%s, '+%" PRId64 ".%03" PRId64 " seconds')", SQLITE_TIME, delay_ms / 1000,
                delay_ms % 1000);
}

void hf__outbox_put_failure(FILE *out, const struct hf__outbox_names *names,
                            const struct hf__outbox_failure *failure)
{
    fprintf(out, "UPDATE %s SET attempts = %u, not_before = ", names->message, failure->attempts);
    put_delay(out, names->dialect, failure->delay_ms);
    fputs(", error = ", out);
    hf__outbox_put_text(out, names->dialect, failure->error);
    fprintf(out, " WHERE id = %s AND uid%s = ", failure->id, words[names->dialect].as_text);
    hf__outbox_put_text(out, names->dialect, failure->uid);
}

void hf__outbox_put_blockers(FILE *out, const struct hf__outbox_names *names, const char *ids)
{
    enum hf__dialect d = names->dialect;

    fprintf(out, "SELECT id%s, %s FROM %s WHERE attempts > 0 AND not_before > %s AND ",
            words[d].as_text, words[d].key, names->message, words[d].now);
    put_among(out, d, "id", ids);
    fputs(words[d].lock, out);
}

/* A message that had failed by itself before one with a lower id and the same key appeared starts
 * again at no failures: otherwise it would look dead. */
void hf__outbox_put_park(FILE *out, const struct hf__outbox_names *names, const char *ids)
{
    fprintf(out, "UPDATE %s SET not_before = %s, attempts = 0 WHERE ", names->message,
            words[names->dialect].parked);
    put_among(out, names->dialect, "id", ids);
}

void hf__outbox_put_list(FILE *out, const struct hf__outbox_names *names)
{
    enum hf__dialect d = names->dialect;
    const char *key = words[d].key;
    const char *text = words[d].as_text;

    fprintf(out,
            "SELECT uid%s, topic, %s, CASE WHEN not_before = %s THEN 'dead' "
            "WHEN not_before > %s THEN 'waiting' ELSE 'due' END, attempts%s, ",
            text, key, words[d].parked, words[d].now, text);
    put_time(out, d, "created");
    fprintf(out, ", CASE WHEN not_before < %s THEN ", words[d].parked);
    put_time(out, d, "not_before");
    fprintf(out,
            " END, error, (SELECT count(*) FROM %s AS p WHERE p.%s = m.%s AND p.attempts = 0 AND "
            "p.not_before = %s)%s FROM %s AS m WHERE attempts > 0 ORDER BY id",
            names->message, key, key, words[d].parked, text, names->message);
}

void hf__outbox_put_depth(FILE *out, const struct hf__outbox_names *names)
{
    static const char *const age[] = {
        [HF__POSTGRES] = "extract(epoch FROM clock_timestamp() - created)::text",
        [HF__SQLITE] = "(julianday('now') - julianday(created)) * 86400",
        [HF__MARIADB] = "TIMESTAMPDIFF(MICROSECOND, created, UTC_TIMESTAMP(6)) / 1000000",
    };
    enum hf__dialect d = names->dialect;
    const char *text = words[d].as_text;

    fprintf(out,
            "SELECT (SELECT count(*) FROM %s)%s, (SELECT %s FROM %s ORDER BY id LIMIT 1), "
            "(SELECT count(*) FROM %s WHERE attempts > 0 AND not_before = %s)%s, "
            "(SELECT count(*) FROM %s WHERE attempts = 0 AND not_before = %s)%s",
            names->message, text, age[d], names->message, names->message, words[d].parked, text,
            names->message, words[d].parked, text);
}

void hf__outbox_put_find(FILE *out, const struct hf__outbox_names *names, const char *uid)
{
    enum hf__dialect d = names->dialect;

    fprintf(out, "SELECT id%s FROM %s WHERE uid%s = '%s' AND attempts > 0%s", words[d].as_text,
            names->message, words[d].as_text, uid, words[d].lock);
}

void hf__outbox_put_settled(FILE *out, const struct hf__outbox_names *names, const char *id,
                            const char *decision, const char *reason)
{
    enum hf__dialect d = names->dialect;
    const char *key = words[d].key;

    fprintf(out,
            "INSERT INTO %s (at, by_role, decision, uid, topic, %s, attempts, error, reason) "
            "SELECT %s, %s, '%s', uid, topic, %s, attempts, error, ",
            names->settled, key, words[d].now, words[d].user, decision, key);
    hf__outbox_put_text(out, d, reason);
    fprintf(out, " FROM %s WHERE id = %s", names->message, id);
}

void hf__outbox_put_retry(FILE *out, const struct hf__outbox_names *names, const char *id)
{
    fprintf(out, "UPDATE %s SET attempts = 1, not_before = %s WHERE id = %s", names->message,
            words[names->dialect].at_once, id);
}
