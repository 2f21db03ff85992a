/* bench_pair.c DIR - what an uncontended acquire and release costs in the embedded store, against
 * flock(2) and a leased lock in SQLite, and with a million locks held. Where the file system lets
 * the words of its locks be mapped, that is; and where they are guarded, as in a shared
 * directory. */
#include "bench.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS 5
#define PAIRS  40000
#define HELD   1000000

static double flock_pair(int fd)
{
    double start = now_us();

    for (int i = 0; i < PAIRS; i++) {
        (void)flock(fd, LOCK_EX);
        (void)flock(fd, LOCK_UN);
    }
    return (now_us() - start) / PAIRS;
}

static double our_pair(struct hf_store *store)
{
    struct hf_error err;
    struct hf_lease *lease;
    double start = now_us();

    for (int i = 0; i < PAIRS; i++) {
        must(hf_acquire(store, "pair", NULL, &lease, &err), &err);
        must(hf_release(lease, &err), &err);
    }
    return (now_us() - start) / PAIRS;
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

/* The same lease, token and owner, as a careful person would write it in SQL. */
static double sqlite_pair(sqlite3 *db)
{
    sqlite3_stmt *take = prepare(
        db, "INSERT INTO lock VALUES ('pair', ?1, 1, ?2 + 30000) ON CONFLICT (name) DO UPDATE "
            "SET owner = ?1, token = token + 1, expires = ?2 + 30000 "
            "WHERE owner IS NULL OR expires < ?2 RETURNING token");
    sqlite3_stmt *give =
        prepare(db, "UPDATE lock SET owner = NULL WHERE name = 'pair' AND owner = ?1");
    double start = now_us();

    for (int i = 0; i < PAIRS / 10; i++) {
        (void)sqlite3_bind_int64(take, 1, i);
        (void)sqlite3_bind_int64(take, 2, (sqlite3_int64)(now_us() / 1000));
        if (sqlite3_step(take) != SQLITE_ROW)
            exit(1);
        (void)sqlite3_reset(take);
        (void)sqlite3_bind_int64(give, 1, i);
        if (sqlite3_step(give) != SQLITE_DONE)
            exit(1);
        (void)sqlite3_reset(give);
    }
    start = (now_us() - start) / (PAIRS / 10);
    (void)sqlite3_finalize(take);
    (void)sqlite3_finalize(give);
    return start;
}

static sqlite3 *open_sqlite(const char *dir, const char *journal)
{
    char text[4200];
    sqlite3 *db;

    (void)snprintf(text, sizeof text, "%s/%s.db", dir, journal);
    if (sqlite3_open(text, &db) != SQLITE_OK)
        exit(1);
    (void)snprintf(text, sizeof text,
                   "PRAGMA journal_mode=%s; PRAGMA synchronous=OFF;"
                   "CREATE TABLE lock (name TEXT PRIMARY KEY, owner INT, token INT, expires INT)",
                   journal);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        exit(1);
    return db;
}

/* Interleaved rounds and the least of each, so that a busy moment of the machine hits all alike. */
static double compare(struct hf_store *store, struct hf_store *guarded, int fd, sqlite3 *db,
                      sqlite3 *wal)
{
    double least[5] = {1e9, 1e9, 1e9, 1e9, 1e9};

    for (int round = 0; round < ROUNDS; round++) {
        double took[5] = {flock_pair(fd), our_pair(store), sqlite_pair(db), sqlite_pair(wal),
                          our_pair(guarded)};

        for (int i = 0; i < 5; i++)
            if (took[i] < least[i])
                least[i] = took[i];
    }
    fact("flock(2) pair", least[0], "us");
    fact("embedded pair", least[1], "us");
    fact("the same with guarded words", least[4], "us");
    fact("SQLite lease pair, synchronous=off", least[2], "us");
    fact("the same with journal_mode=WAL", least[3], "us");
    at_most("embedded pair / flock(2) pair", least[1] / least[0], 1, "x");
    at_most("the same with guarded words", least[4] / least[0], 10, "x");
    at_least("SQLite lease pair / embedded pair", least[2] / least[1], 5, "x");
    fact("the same with journal_mode=WAL", least[3] / least[1], "x");
    return least[1];
}

static void hold_a_million(struct hf_store *store)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = HF_TTL_MAX_MS, .detached = true};
    double start = now_us();

    for (int i = 0; i < HELD; i++) {
        struct hf_error err;
        struct hf_lease *lease;
        char name[32];

        (void)snprintf(name, sizeof name, "seat-%d", i);
        must(hf_acquire(store, name, &options, &lease, &err), &err);
        hf_leave(lease);
    }
    fact("taking a million locks, each", (now_us() - start) / HELD, "us");
}

static double bytes_on_disk(const char *dir)
{
    char command[4200];
    double kib = 0;
    FILE *du;

    (void)snprintf(command, sizeof command, "du -sk '%s' | cut -f1", dir);
    du = popen(command, "r");
    if (du == NULL || fscanf(du, "%lf", &kib) != 1)
        exit(1);
    (void)pclose(du);
    return kib * 1024;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : ".";
    char url[4096];
    struct hf_error err;
    struct hf_store *store;
    struct hf_store *guarded;
    sqlite3 *db = open_sqlite(dir, "DELETE"); /* SQLite's default */
    sqlite3 *wal = open_sqlite(dir, "WAL");
    double empty;
    double full = 1e9;
    int fd;

    (void)snprintf(url, sizeof url, "%s/flock", dir);
    fd = open(url, O_RDWR | O_CREAT, 0600);
    (void)snprintf(url, sizeof url, "file:%s/guarded?shared=group", dir);
    must(hf_open(url, &guarded, &err), &err);
    (void)snprintf(url, sizeof url, "file:%s/store", dir);
    must(hf_open(url, &store, &err), &err);
    empty = compare(store, guarded, fd, db, wal);
    hold_a_million(store);
    for (int round = 0; round < ROUNDS; round++) {
        double took = our_pair(store);

        full = took < full ? took : full;
    }
    at_most("pair with a million held / in an empty store", full / empty, 1.5, "x");
    at_most("bytes per held lock", bytes_on_disk(url + 5) / HELD, 1024, "B");
    hf_close(guarded);
    hf_close(store);
    (void)sqlite3_close(db);
    (void)sqlite3_close(wal);
    return 0;
}
