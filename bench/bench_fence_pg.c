/* bench_fence_pg.c CONNINFO - what the fence adds to an UPDATE of one row in PostgreSQL.
 *
 * Both are one transaction in one round trip: the holder sends its statements together. The tables
 * plain and fenced are alike, and were made by fence.sh. */
#include "compare.h"

#include <libpq-fe.h>

enum { ROUNDS = 300, BATCH = 10 };

static void run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        fprintf(stderr, "bench: postgres: %s", PQerrorMessage(conn));
        exit(1);
    }
    PQclear(result);
}

static void plain(void *conn)
{
    run(conn, "BEGIN; UPDATE plain SET v = v + 1 WHERE id = 1; COMMIT");
}

static void fenced(void *conn)
{
    run(conn, "BEGIN; SELECT holdfast.enter('fenced', 34); "
              "UPDATE fenced SET v = v + 1 WHERE id = 1; COMMIT");
}

int main(int argc, char **argv)
{
    PGconn *conn;
    double a;
    double b;

    if (argc != 2)
        return 64;
    conn = PQconnectdb(argv[1]);
    if (PQstatus(conn) != CONNECTION_OK) {
        fprintf(stderr, "bench: postgres: %s", PQerrorMessage(conn));
        return 1;
    }
    compare(plain, fenced, conn, ROUNDS, BATCH, &a, &b);
    compare_print("PostgreSQL UPDATE", a, b, 1.15);
    PQfinish(conn);
    return 0;
}
