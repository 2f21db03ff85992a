/* conn.h - one connection to a server, and one statement on it.
 *
 * Nothing blocks here but the look-up of a host's name: every wait is a poll() with a
 * deadline and a cancel descriptor. */
#ifndef HF_STORES_POSTGRES_CONN_H
#define HF_STORES_POSTGRES_CONN_H

#include "base/patience.h"
#include "stores/postgres/row.h"
#include <holdfast/store.h>
#include <stdatomic.h>

enum { PG_PARAMS_MAX = 10, PG_CHANNEL_SIZE = 48 };

/* Whether the server that answers is the one that was announced, by its process id. Behind a pooler
 * it is not: then nothing may be left in a session, neither statements nor channels. */
enum pg_route { PG_ROUTE_UNKNOWN, PG_ROUTE_DIRECT, PG_ROUTE_POOLED };

/* A statement of ours. Its last column is "pid", of the server process. Names in it are qualified:
 * the session's search path may have anybody's objects before the server's own. */
struct pg_statement {
    const char *sql;
    const char *name; /* under which it is prepared on direct connections; NULL: never */
    unsigned bit;     /* in pg_conn.prepared */
};

struct pg_conn {
    PGconn *link;
    struct pg_conn *next; /* in a pool */
    bool broken; /* of no use any more: gone, or the answers on it are not the next statement's */
    bool warned; /* the statement under way was answered by a WARNING */
    char channel[PG_CHANNEL_SIZE]; /* "" unless it listens */
    enum pg_route route;
    unsigned prepared;       /* bits of the statements it has */
    unsigned preparing;      /* of the one under way */
    int64_t heard_at_ns;     /* when it was last known to be good */
    int64_t linger_until_ns; /* has to be kept open, for what was sent without waiting; else 0 */
};

/* The parameters of a statement; bytes are not copied. */
struct pg_params {
    int count;
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    int formats[PG_PARAMS_MAX];
    char numbers[PG_PARAMS_MAX][24];
};
void pg_params_text(struct pg_params *params, const char *text); /* NULL: null */
void pg_params_number(struct pg_params *params, int64_t number);
void pg_params_bytes(struct pg_params *params, const void *bytes, size_t len);

/* What became of a statement. */
enum pg_fate {
    PG_DONE,     /* executed; the rows are there */
    PG_REFUSED,  /* an error: rolled back; state and why say which */
    PG_UNSENT,   /* not sent */
    PG_LOST,     /* no full answer: it may have been executed, or not durably */
    PG_CANCELLED /* the same, because of the cancel descriptor */
};

struct pg_outcome {
    enum pg_fate fate;
    PGresult *rows;            /* with PG_DONE; the caller clears it */
    int64_t sent_at_ns;        /* host time before it was sent */
    char state[PG_STATE_SIZE]; /* with PG_REFUSED: the SQLSTATE */
    char why[PG_WHY_SIZE];     /* one line, in the server's or libpq's words */
    bool silent;               /* with PG_LOST: nothing came in time, and nothing says why */
};

/* Connects. Of several addresses, number *first (modulo their count) is the first to be tried; it
 * moves on when that one does not answer in its share of the time. On failure *out is NULL, and
 * state and why of *outcome are set; fate PG_CANCELLED: it was cancelled, PG_UNSENT: out of memory,
 * PG_LOST: no answer, PG_REFUSED: anything else. */
enum pg_fate pg_conn_open(const char *uri, atomic_uint *first, const struct hf__patience *patience,
                          struct pg_conn **out, struct pg_outcome *outcome);
/* A password went over it that may have gone to anybody; see pg_password_at_risk. */
bool pg_conn_at_risk(const struct pg_conn *conn);
/* Takes NULL. forked: the server must not hear of it, the connection is the parent's. */
void pg_conn_close(struct pg_conn *conn, bool forked);

/* Executes one statement and collects its answer up to the end of its transaction: a row that
 * arrives before the commit is no answer yet. */
void pg_conn_execute(struct pg_conn *conn, const struct hf_host *host,
                     const struct pg_statement *statement, const struct pg_params *params,
                     const struct hf__patience *patience, struct pg_outcome *outcome);
/* After PG_LOST or PG_CANCELLED: sends one more statement behind the one whose answer never came,
 * where it cannot overtake, and waits for no answer. False: the connection is gone. */
bool pg_conn_follow(struct pg_conn *conn, const struct pg_statement *statement,
                    const struct pg_params *params);
/* Several statements without parameters, as one request; outside of pipeline mode. */
void pg_conn_script(struct pg_conn *conn, const char *sql, const struct hf__patience *patience,
                    struct pg_outcome *outcome);

/* Whether nothing has arrived on an idle connection but notifications; those are dropped. */
bool pg_conn_is_quiet(struct pg_conn *conn);
/* Waits for a notification. */
enum pg_heard { PG_HEARD, PG_HEARD_NOTHING, PG_HEARD_CANCEL, PG_HEARD_BREAK };
enum pg_heard pg_conn_listen(struct pg_conn *conn, const struct hf__patience *patience);

#endif /* HF_STORES_POSTGRES_CONN_H */
