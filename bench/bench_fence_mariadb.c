/* bench_fence_mariadb.c SOCKET - what the fence adds to an UPDATE of one row in MariaDB, durable.
 *
 * A transaction is BEGIN, UPDATE and COMMIT, each a round trip. Entering is sent along with BEGIN,
 * without another one. The tables plain, fenced and keyed are alike, and were made by fence.sh. */
#include "compare.h"

#include <mariadb/mysql.h>
#include <string.h>

enum { ROUNDS = 200, BATCH = 2 };

static void fail(MYSQL *link)
{
    fprintf(stderr, "bench: mariadb: %s\n", mysql_error(link));
    exit(1);
}

/* One round trip, of several statements perhaps. */
static void run(MYSQL *link, const char *sql)
{
    int more;

    if (mysql_real_query(link, sql, strlen(sql)) != 0)
        fail(link);
    do {
        mysql_free_result(mysql_store_result(link));
        more = mysql_next_result(link);
    } while (more == 0);
    if (more > 0)
        fail(link);
}

static void transact(MYSQL *link, const char *begin, const char *update)
{
    run(link, begin);
    run(link, update);
    run(link, "COMMIT");
}

static void plain(void *link)
{
    transact(link, "START TRANSACTION", "UPDATE plain SET v = v + 1 WHERE id = 1");
}

static void fenced(void *link)
{
    transact(link, "START TRANSACTION; CALL holdfast_enter('fenced', 34)",
             "UPDATE fenced SET v = v + 1 WHERE id = 1");
}

static void keyed(void *link)
{
    transact(link, "START TRANSACTION; CALL holdfast_enter_key('keyed', '1', 34)",
             "UPDATE keyed SET v = v + 1 WHERE id = 1");
}

int main(int argc, char **argv)
{
    MYSQL *link = mysql_init(NULL);

    if (argc != 2)
        return 64;
    if (mysql_real_connect(link, NULL, "root", "", "app", 0, argv[1],
                           CLIENT_MULTI_STATEMENTS | CLIENT_MULTI_RESULTS) == NULL)
        fail(link);
    compare_print("MariaDB UPDATE", &(struct comparison){plain, fenced, link, ROUNDS, BATCH}, 1.3);
    compare_print("MariaDB UPDATE, per key",
                  &(struct comparison){plain, keyed, link, ROUNDS, BATCH}, 1.3);
    mysql_close(link);
    return 0;
}
