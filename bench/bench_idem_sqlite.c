/* bench_idem_sqlite.c DATABASE - what claim + INSERT + finish cost in SQLite, beside the same three
 * statements by hand: INSERT of the key, INSERT, UPDATE of the answer.
 *
 * Both are one transaction of prepared statements, and ours reads its verdict. idem.sh made the
 * tables. */
#include "compare.h"

#include <sqlite3.h>

enum { ROUNDS = 100, BATCH = 10 };

struct statements {
    sqlite3_stmt *begin, *key, *answer, *claim, *verdict, *finish, *work, *commit;
    int count; /* every key is new */
};

static void step(struct statements *s, sqlite3_stmt *statement, int wanted)
{
    if (sqlite3_bind_parameter_count(statement) > 0) {
        char key[24];
        int len = snprintf(key, sizeof key, "key%d", s->count);

        (void)sqlite3_bind_text(statement, 1, key, len, SQLITE_TRANSIENT);
    }
    if (sqlite3_step(statement) != wanted) {
        fprintf(stderr, "bench: sqlite: %s\n", sqlite3_errmsg(sqlite3_db_handle(statement)));
        exit(1);
    }
    (void)sqlite3_reset(statement);
}

static void by_hand(void *data)
{
    struct statements *s = data;

    s->count++;
    step(s, s->begin, SQLITE_DONE);
    step(s, s->key, SQLITE_DONE);
    step(s, s->work, SQLITE_DONE);
    step(s, s->answer, SQLITE_DONE);
    step(s, s->commit, SQLITE_DONE);
}

static void keyed(void *data)
{
    struct statements *s = data;

    s->count++;
    step(s, s->begin, SQLITE_DONE);
    step(s, s->claim, SQLITE_DONE);
    step(s, s->verdict, SQLITE_ROW);
    step(s, s->work, SQLITE_DONE);
    step(s, s->finish, SQLITE_DONE);
    step(s, s->commit, SQLITE_DONE);
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

static void measure(sqlite3 *db, struct statements *s, const char *sync, double limit)
{
    char name[96];
    struct compared result;

    (void)snprintf(name, sizeof name, "PRAGMA synchronous = %s", sync);
    (void)sqlite3_exec(db, name, NULL, NULL, NULL);
    result = compare(&(struct comparison){by_hand, keyed, s, ROUNDS, BATCH});
    (void)snprintf(name, sizeof name, "SQLite key by hand, synchronous %s", sync);
    fact(name, result.plain_us, "us");
    (void)snprintf(name, sizeof name, "SQLite claim + finish, synchronous %s", sync);
    fact(name, result.ours_us, "us");
    (void)snprintf(name, sizeof name, "SQLite claim + finish / by hand, synchronous %s", sync);
    at_most(name, result.ratio, limit, "x");
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    struct statements s = {.count = 0};

    if (argc != 2 || sqlite3_open(argv[1], &db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL) != SQLITE_OK)
        return 1;
    s.begin = prepare(db, "BEGIN IMMEDIATE");
    s.key = prepare(db, "INSERT INTO hand (scope, key, fingerprint) VALUES ('scope', ?, 'print')");
    s.answer = prepare(
        db, "UPDATE hand SET status = 200, answer = 'ok' WHERE scope = 'scope' AND key = ?");
    s.claim = prepare(db, "INSERT INTO holdfast_claim VALUES ('scope', ?, 'print')");
    s.verdict = prepare(db, "SELECT state, status, answer FROM holdfast_verdict"
                            " WHERE scope = 'scope' AND key = ?");
    s.finish = prepare(db, "INSERT INTO holdfast_finish VALUES ('scope', ?, 200, 'ok')");
    s.work = prepare(db, "INSERT INTO effect VALUES (?)");
    s.commit = prepare(db, "COMMIT");
    measure(db, &s, "OFF", 1.7);
    measure(db, &s, "FULL", 1.4);
    return 0;
}
