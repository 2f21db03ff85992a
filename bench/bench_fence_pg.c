/* bench_fence_pg.c CONNINFO - what the fence adds to an UPDATE of one row in PostgreSQL.
 *
 * Both are a transaction as drivers do it: prepared statements over TCP, BEGIN, UPDATE and COMMIT
 * each a round trip. enter() is sent along with the UPDATE, or, by a holder that reads first, along
 * with BEGIN: no extra trip. The tables plain and fenced are alike, and were made by fence.sh.
 * Each connection has a server process of its own, and one is a little quicker at this than
 * another: the median of several counts. */
#include "compare.h"

#include <libpq-fe.h>

enum { CONNECTIONS = 5, ROUNDS = 100, BATCH = 5, MANY_ROUNDS = 20, MANY_BATCH = 2 };

static void fail(PGconn *conn)
{
    fprintf(stderr, "bench: postgres: %s", PQerrorMessage(conn));
    exit(1);
}

static void prepare(PGconn *conn, const char *name, const char *sql)
{
    PGresult *result = PQprepare(conn, name, sql, 0, NULL);

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fail(conn);
    PQclear(result);
}

/* Prepared statements, sent together: one round trip. The list ends with NULL. */
static void run(PGconn *conn, const char *const *names)
{
    int open = 0;

    for (; *names != NULL; names++, open++)
        if (PQsendQueryPrepared(conn, *names, 0, NULL, NULL, NULL, 0) != 1)
            fail(conn);
    if (PQpipelineSync(conn) != 1)
        fail(conn);
    for (open++; open > 0;) {
        PGresult *result = PQgetResult(conn);
        ExecStatusType status = PQresultStatus(result);

        if (result == NULL)
            continue; /* between two statements */
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK &&
            status != PGRES_PIPELINE_SYNC)
            fail(conn);
        open--;
        PQclear(result);
    }
}

/* A transaction of three round trips. */
static void transact(PGconn *conn, const char *const trips[3][3])
{
    for (int i = 0; i < 3; i++)
        run(conn, trips[i]);
}

static void plain(void *conn)
{
    static const char *const trips[3][3] = {{"begin"}, {"plain"}, {"commit"}};

    transact(conn, trips);
}

static void fenced(void *conn)
{
    static const char *const trips[3][3] = {{"begin"}, {"enter", "fenced"}, {"commit"}};

    transact(conn, trips);
}

static void entered_first(void *conn)
{
    static const char *const trips[3][3] = {{"begin", "enter"}, {"fenced"}, {"commit"}};

    transact(conn, trips);
}

static void keyed(void *conn)
{
    static const char *const trips[3][3] = {{"begin"}, {"enter_key", "keyed"}, {"commit"}};

    transact(conn, trips);
}

static void plain_many(void *conn)
{
    static const char *const trips[3][3] = {{"begin"}, {"plain_many"}, {"commit"}};

    transact(conn, trips);
}

static void keyed_many(void *conn)
{
    static const char *const trips[3][3] = {{"begin"}, {"enter_key", "keyed_many"}, {"commit"}};

    transact(conn, trips);
}

static PGconn *begin(const char *info)
{
    PGconn *conn = PQconnectdb(info);

    if (PQstatus(conn) != CONNECTION_OK)
        fail(conn);
    prepare(conn, "begin", "BEGIN");
    prepare(conn, "plain", "UPDATE plain SET v = v + 1 WHERE id = 1");
    prepare(conn, "enter", "CALL holdfast_fence.enter('public.fenced', 34)");
    prepare(conn, "enter_key", "CALL holdfast_fence.enter('public.keyed', '1', 34)");
    prepare(conn, "keyed", "UPDATE keyed SET v = v + 1 WHERE id = 1");
    prepare(conn, "plain_many", "UPDATE plain SET v = v + 1 WHERE id <= 1000");
    prepare(conn, "keyed_many", "UPDATE keyed SET v = v + 1 WHERE id <= 1000");
    prepare(conn, "fenced", "UPDATE fenced SET v = v + 1 WHERE id = 1");
    prepare(conn, "commit", "COMMIT");
    if (PQenterPipelineMode(conn) != 1)
        fail(conn);
    return conn;
}

static double median(double *values)
{
    return compare_median(values, CONNECTIONS);
}

static struct compared against(compare_fn *plain_fn, compare_fn *our_fn, PGconn *conn)
{
    return compare(&(struct comparison){plain_fn, our_fn, conn, ROUNDS, BATCH});
}

int main(int argc, char **argv)
{
    double plain_us[CONNECTIONS];
    double fenced_us[CONNECTIONS];
    double ratios[CONNECTIONS];
    double first_ratios[CONNECTIONS];
    double key_ratios[CONNECTIONS];
    double many_ratios[CONNECTIONS];

    if (argc != 2)
        return 64;
    for (int i = 0; i < CONNECTIONS; i++) {
        PGconn *conn = begin(argv[1]);
        struct compared result;

        first_ratios[i] = against(plain, entered_first, conn).ratio;
        key_ratios[i] = against(plain, keyed, conn).ratio;
        many_ratios[i] =
            compare(&(struct comparison){plain_many, keyed_many, conn, MANY_ROUNDS, MANY_BATCH})
                .ratio;
        result = against(plain, fenced, conn);
        plain_us[i] = result.plain_us;
        fenced_us[i] = result.ours_us;
        ratios[i] = result.ratio;
        PQfinish(conn);
    }
    fact("PostgreSQL UPDATE, plain", median(plain_us), "us");
    fact("PostgreSQL UPDATE, fenced", median(fenced_us), "us");
    at_most("PostgreSQL UPDATE: fenced / plain", median(ratios), 1.15, "x");
    at_most("PostgreSQL UPDATE: fenced per key / plain", median(key_ratios), 1.25, "x");
    at_most("PostgreSQL UPDATE of 1,000 rows: fenced per key / plain", median(many_ratios), 1.3,
            "x");
    fact("PostgreSQL UPDATE: the same, entered with BEGIN", median(first_ratios), "x");
    return 0;
}
