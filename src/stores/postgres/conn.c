/* conn.c - connecting, and waiting on a connection. */
#include "stores/postgres/conn.h"
#include "base/base.h"
#include "stores/postgres/hosts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A WARNING that comes with a commit says that the wait for the standbys was given up, in whatever
 * language; or that notifications pile up, which only the place in the server's source tells. None
 * of our statements warns of anything else. */
static void on_notice(void *data, const PGresult *notice)
{
    struct pg_conn *conn = data;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *file = PQresultErrorField(notice, PG_DIAG_SOURCE_FILE);

    if (severity == NULL)
        return;
    if (strcmp(severity, "WARNING") == 0 && (file == NULL || strcmp(file, "async.c") != 0))
        conn->warned = true;
    /* Said to an idle connection before it is closed. */
    if (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0)
        conn->broken = true;
}

static void explain(const struct pg_conn *conn, struct pg_outcome *outcome)
{
    pg_connect_error(PQerrorMessage(conn->link), outcome->state, outcome->why);
    if (outcome->state[0] == '\0' && PQconnectionNeedsPassword(conn->link))
        memcpy(outcome->state, "28P01", PG_STATE_SIZE);
}

static enum pg_fate connect_until(struct pg_conn *conn, const struct hf__patience *patience,
                                  struct pg_outcome *outcome)
{
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;

    if (PQstatus(conn->link) == CONNECTION_BAD)
        goto bad;
    while (want != PGRES_POLLING_OK) {
        switch (hf__patience_wait(patience, PQsocket(conn->link),
                                  want == PGRES_POLLING_READING ? POLLIN : POLLOUT)) {
        case HF__WAITED_CANCELLED:
            (void)snprintf(outcome->why, sizeof outcome->why, "cancelled while connecting");
            return PG_CANCELLED;
        case HF__WAITED_TIMEOUT:
            (void)snprintf(outcome->why, sizeof outcome->why, "no answer to the connection");
            return PG_LOST;
        case HF__WAITED_READY:
            break;
        }
        want = PQconnectPoll(conn->link);
        if (want == PGRES_POLLING_FAILED)
            goto bad;
    }
    return PG_DONE;
bad:
    explain(conn, outcome);
    return PG_REFUSED;
}

static enum pg_fate open_once(const char *uri, const struct pg_hosts *hosts,
                              const struct hf__patience *patience, struct pg_conn **out,
                              struct pg_outcome *outcome)
{
    /* The URI overrides what stands before it, and what comes later overrides the URI, unless it is
     * empty. A server that was cut off without a word is noticed within a lease, not within hours.
     */
    static const char *const keys[] = {"keepalives_idle",
                                       "keepalives_interval",
                                       "keepalives_count",
                                       "tcp_user_timeout",
                                       "dbname",
                                       "host",
                                       "hostaddr",
                                       "port",
                                       "fallback_application_name",
                                       NULL};
    const char *const values[] = {
        "10", "5", "2", "10000", uri, hosts->host, hosts->hostaddr, hosts->port, "holdfast", NULL};
    struct pg_conn *conn = calloc(1, sizeof *conn);
    enum pg_fate fate = PG_UNSENT;

    *out = NULL;
    *outcome = (struct pg_outcome){0};
    if (conn == NULL || (conn->link = PQconnectStartParams(keys, values, 1)) == NULL) {
        free(conn);
        (void)snprintf(outcome->why, sizeof outcome->why, "out of memory");
        return fate;
    }
    (void)PQsetErrorVerbosity(conn->link, PQERRORS_VERBOSE);
    (void)PQsetNoticeReceiver(conn->link, on_notice, conn);
    fate = connect_until(conn, patience, outcome);
    if (fate == PG_DONE &&
        (PQsetnonblocking(conn->link, 1) != 0 || PQenterPipelineMode(conn->link) != 1)) {
        explain(conn, outcome);
        fate = PG_REFUSED;
    }
    if (fate != PG_DONE) {
        pg_conn_close(conn, false);
        return fate;
    }
    *out = conn;
    return fate;
}

/* How long the first of the addresses that are left may take. */
static struct hf__patience share_of(const struct hf__patience *patience,
                                    const struct pg_hosts *hosts, unsigned left)
{
    int64_t now_ns = hf__now_ns();
    struct hf__patience share =
        hf__patience_until(patience, now_ns + (patience->deadline_ns - now_ns) / (int64_t)left);

    if (hosts->each_ms > 0)
        share = hf__patience_until(&share, now_ns + hosts->each_ms * HF__NS_PER_MS);
    return share;
}

/* libpq goes on to the next address when one refuses; when one does not answer, that is up to us.
 */
enum pg_fate pg_conn_open(const char *uri, atomic_uint *first, const struct hf__patience *patience,
                          struct pg_conn **out, struct pg_outcome *outcome)
{
    unsigned begin = atomic_load(first);
    struct pg_hosts hosts;

    *out = NULL;
    *outcome = (struct pg_outcome){0};
    if (!pg_hosts_init(&hosts, uri, begin)) {
        memcpy(outcome->why, hosts.why, sizeof outcome->why);
        return PG_REFUSED;
    }
    for (unsigned left = hosts.count;; left--) {
        struct hf__patience share = share_of(patience, &hosts, left > 0 ? left : 1);
        enum pg_fate fate = open_once(uri, &hosts, &share, out, outcome);

        if (fate != PG_LOST || hosts.count == 0)
            return fate;
        (void)atomic_compare_exchange_strong(first, &begin, begin + 1);
        begin++;
        if (left == 1)
            return fate;
        pg_hosts_turn(&hosts);
    }
}

bool pg_conn_at_risk(const struct pg_conn *conn)
{
    PQconninfoOption *options;
    const char *sslmode = NULL;
    const char *binding = NULL;
    bool risk;

    if (!PQconnectionUsedPassword(conn->link) || PQgssEncInUse(conn->link))
        return false;
    options = PQconninfo(conn->link);
    for (const PQconninfoOption *at = options; at != NULL && at->keyword != NULL; at++) {
        if (strcmp(at->keyword, "sslmode") == 0)
            sslmode = at->val;
        else if (strcmp(at->keyword, "channel_binding") == 0)
            binding = at->val;
    }
    risk = pg_password_at_risk(PQhostaddr(conn->link), sslmode, binding);
    PQconninfoFree(options);
    return risk;
}

void pg_conn_close(struct pg_conn *conn, bool forked)
{
    int fd;

    if (conn == NULL)
        return;
    fd = PQsocket(conn->link);
    if (forked && fd >= 0) {
        /* PQfinish says good-bye. Let it talk to a socket that leads nowhere. */
        int nowhere = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (nowhere < 0 || dup3(nowhere, fd, O_CLOEXEC) < 0)
            (void)close(fd);
        if (nowhere >= 0)
            (void)close(nowhere);
    }
    PQfinish(conn->link);
    free(conn);
}

static void drop_notifications(struct pg_conn *conn, unsigned *count)
{
    PGnotify *notify;

    while ((notify = PQnotifies(conn->link)) != NULL) {
        PQfreemem(notify);
        if (count != NULL)
            (*count)++;
    }
}

bool pg_conn_is_quiet(struct pg_conn *conn)
{
    struct pollfd fd = {.fd = PQsocket(conn->link), .events = POLLIN};

    while (hf__poll_until(&fd, 1, 0) > 0)
        if (PQconsumeInput(conn->link) != 1)
            return false;
    drop_notifications(conn, NULL);
    return !conn->broken && PQstatus(conn->link) == CONNECTION_OK && !PQisBusy(conn->link) &&
           PQtransactionStatus(conn->link) == PQTRANS_IDLE;
}

enum pg_heard pg_conn_listen(struct pg_conn *conn, const struct hf__patience *patience)
{
    for (;;) {
        unsigned count = 0;

        drop_notifications(conn, &count);
        if (count > 0)
            return PG_HEARD;
        switch (hf__patience_wait(patience, PQsocket(conn->link), POLLIN)) {
        case HF__WAITED_CANCELLED:
            return PG_HEARD_CANCEL;
        case HF__WAITED_TIMEOUT:
            return PG_HEARD_NOTHING;
        case HF__WAITED_READY:
            break;
        }
        if (PQconsumeInput(conn->link) != 1 || PQstatus(conn->link) != CONNECTION_OK ||
            conn->broken) {
            conn->broken = true;
            return PG_HEARD_BREAK;
        }
    }
}
