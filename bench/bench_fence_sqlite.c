/* bench_fence_sqlite.c DATABASE - what the fence adds to an UPDATE of one row in SQLite, durable.
 *
 * All are one transaction of prepared statements. The tables plain, fenced and keyed are alike, and
 * were made by fence.sh. */
#include "compare.h"

#include <sqlite3.h>

enum { ROUNDS = 200, BATCH = 2 };

struct statements {
    sqlite3_stmt *begin, *plain, *enter, *fenced, *enter_key, *keyed, *leave, *commit;
};

static void step(sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE) {
        fprintf(stderr, "bench: sqlite: %s\n", sqlite3_errmsg(sqlite3_db_handle(statement)));
        exit(1);
    }
    (void)sqlite3_reset(statement);
}

static void plain(void *data)
{
    struct statements *s = data;

    step(s->begin);
    step(s->plain);
    step(s->commit);
}

static void fenced(void *data)
{
    struct statements *s = data;

    step(s->begin);
    step(s->enter);
    step(s->fenced);
    step(s->leave);
    step(s->commit);
}

static void keyed(void *data)
{
    struct statements *s = data;

    step(s->begin);
    step(s->enter_key);
    step(s->keyed);
    step(s->leave);
    step(s->commit);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        fprintf(stderr, "bench: sqlite: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
    return statement;
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    struct statements s;

    if (argc != 2 || sqlite3_open(argv[1], &db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL) != SQLITE_OK)
        return 1;
    s.begin = prepare(db, "BEGIN IMMEDIATE");
    s.plain = prepare(db, "UPDATE plain SET v = v + 1 WHERE id = 1");
    s.enter = prepare(db, "INSERT INTO holdfast_enter (resource, token) VALUES ('fenced', 34)");
    s.fenced = prepare(db, "UPDATE fenced SET v = v + 1 WHERE id = 1");
    s.enter_key =
        prepare(db, "INSERT INTO holdfast_enter (resource, key, token) VALUES ('keyed', '1', 34)");
    s.keyed = prepare(db, "UPDATE keyed SET v = v + 1 WHERE id = 1");
    s.leave = prepare(db, "DELETE FROM holdfast_entered");
    s.commit = prepare(db, "COMMIT");
    compare_print("SQLite UPDATE", &(struct comparison){plain, fenced, &s, ROUNDS, BATCH}, 1.15);
    compare_print("SQLite UPDATE, per key", &(struct comparison){plain, keyed, &s, ROUNDS, BATCH},
                  1.3);
    return 0;
}
