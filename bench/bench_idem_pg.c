/* bench_idem_pg.c CONNINFO - what claim + INSERT + finish cost in PostgreSQL, beside the same three
 * statements by hand: INSERT of the key, INSERT, UPDATE of the answer.
 *
 * Both are a transaction as drivers do it: prepared statements over TCP, five round trips. idem.sh
 * made the tables. */
#include "compare.h"

#include <libpq-fe.h>

enum { CONNECTIONS = 3, ROUNDS = 60, BATCH = 10 };

struct bench {
    PGconn *conn;
    unsigned long count; /* every key is new */
};

static void check(PGconn *conn, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fprintf(stderr, "bench: postgres: %s", PQerrorMessage(conn));
        exit(1);
    }
    PQclear(result);
}

static void run(struct bench *b, const char *name)
{
    char key[40];
    const char *values[] = {key};

    (void)snprintf(key, sizeof key, "%d-%lu", PQbackendPID(b->conn), b->count);
    check(b->conn, PQexecPrepared(b->conn, name, name[0] == '-' ? 0 : 1, values, NULL, NULL, 0));
}

static void transact(struct bench *b, const char *before, const char *after)
{
    b->count++;
    run(b, "-begin");
    run(b, before);
    run(b, "work");
    run(b, after);
    run(b, "-commit");
}

static void by_hand(void *data)
{
    transact(data, "key", "answer");
}

static void keyed(void *data)
{
    transact(data, "claim", "finish");
}

static void prepare(PGconn *conn, const char *name, const char *sql)
{
    check(conn, PQprepare(conn, name, sql, 0, NULL));
}

static PGconn *begin(const char *info)
{
    PGconn *conn = PQconnectdb(info);

    prepare(conn, "-begin", "BEGIN");
    prepare(conn, "-commit", "COMMIT");
    prepare(conn, "work", "INSERT INTO effect VALUES ($1)");
    prepare(conn, "key",
            "INSERT INTO hand (scope, key, fingerprint) VALUES ('scope', $1, 'print')");
    prepare(conn, "answer",
            "UPDATE hand SET status = 200, answer = 'ok' WHERE scope = 'scope' AND key = $1");
    prepare(conn, "claim", "SELECT * FROM holdfast_idem.claim('scope', $1, 'print')");
    prepare(conn, "finish", "SELECT holdfast_idem.finish('scope', $1, 200, 'ok')");
    return conn;
}

static void measure(const char *info, const char *sync, const char *name, double limit)
{
    double hand_us[CONNECTIONS];
    double keyed_us[CONNECTIONS];
    double ratios[CONNECTIONS];
    char text[128];

    for (int i = 0; i < CONNECTIONS; i++) {
        struct bench b = {.conn = begin(info)};
        struct compared result;

        (void)snprintf(text, sizeof text, "SET synchronous_commit = %s", sync);
        check(b.conn, PQexec(b.conn, text));
        result = compare(&(struct comparison){by_hand, keyed, &b, ROUNDS, BATCH});
        hand_us[i] = result.plain_us;
        keyed_us[i] = result.ours_us;
        ratios[i] = result.ratio;
        PQfinish(b.conn);
    }
    qsort(ratios, CONNECTIONS, sizeof *ratios, compare_doubles);
    (void)snprintf(text, sizeof text, "PostgreSQL key by hand%s", name);
    fact(text, hand_us[0], "us");
    (void)snprintf(text, sizeof text, "PostgreSQL claim + finish%s", name);
    fact(text, keyed_us[0], "us");
    (void)snprintf(text, sizeof text, "PostgreSQL claim + finish / by hand%s", name);
    at_most(text, ratios[CONNECTIONS / 2], limit, "x");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 64;
    measure(argv[1], "off", "", 1.7);
    measure(argv[1], "on", ", synced", 1.4);
    return 0;
}
