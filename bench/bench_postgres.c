/* bench_postgres.c - the PostgreSQL store beside bare statements, on one server, in one run.
 *
 *   bench_postgres pair URL        upsert + delete of a row, and acquire + release, in turns
 *   bench_postgres handover URL N  N processes queue for one lock, and hand it on in their order
 */
#include "compare.h"

#include <postgresql/libpq-fe.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 60, BATCH = 20 };

static _Noreturn void die(const char *text)
{
    fprintf(stderr, "bench_postgres: %s\n", text);
    exit(1);
}

static struct hf_store *open_store(const char *url)
{
    struct hf_store *store;
    struct hf_error err;

    must(hf_open(url, &store, &err), &err);
    return store;
}

static void check(PGconn *db, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        die(PQerrorMessage(db));
    PQclear(result);
}

static const char upsert[] =
    "INSERT INTO bench_raw AS l VALUES ($1, $2, clock_timestamp() + interval '30 s') "
    "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires = excluded.expires "
    "WHERE l.expires < clock_timestamp() RETURNING owner";
static const char delete[] = "DELETE FROM bench_raw WHERE name = $1 AND owner = $2";
static const char *const values[] = {"bench", "0123456789abcdef0123456789abcdef"};

/* One of each, with the connection or store of its own. */
struct rivals {
    PGconn *db;
    struct hf_store *store;
};

static void raw_pair(void *data)
{
    PGconn *db = ((struct rivals *)data)->db;

    check(db, PQexecParams(db, upsert, 2, NULL, values, NULL, NULL, 0));
    check(db, PQexecParams(db, delete, 2, NULL, values, NULL, NULL, 0));
}

static void prepared_pair(void *data)
{
    PGconn *db = ((struct rivals *)data)->db;

    check(db, PQexecPrepared(db, "upsert", 2, values, NULL, NULL, 0));
    check(db, PQexecPrepared(db, "delete", 2, values, NULL, NULL, 0));
}

static void our_pair(void *data)
{
    struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire(((struct rivals *)data)->store, "bench", &options, &lease, &err), &err);
    must(hf_release(lease, &err), &err);
}

static void pair(const char *url)
{
    struct rivals rivals = {.db = PQconnectdb(url), .store = open_store(url)};
    struct compared raw;
    struct compared prepared;

    check(rivals.db, PQexec(rivals.db, "CREATE TABLE bench_raw (name text PRIMARY KEY, "
                                       "owner text NOT NULL, expires timestamptz NOT NULL)"));
    check(rivals.db, PQprepare(rivals.db, "upsert", upsert, 2, NULL));
    check(rivals.db, PQprepare(rivals.db, "delete", delete, 2, NULL));
    prepared = compare(&(struct comparison){prepared_pair, our_pair, &rivals, ROUNDS, BATCH});
    raw = compare(&(struct comparison){raw_pair, our_pair, &rivals, ROUNDS, BATCH});
    fact("postgres: raw upsert + delete", raw.plain_us, "us");
    fact("postgres: raw upsert + delete, prepared", prepared.plain_us, "us");
    fact("postgres: acquire + release", raw.ours_us, "us");
    at_most("postgres: acquire + release / raw", raw.ratio, 1.15, "x");
    fact("postgres: acquire + release / raw, prepared", prepared.ratio, "x");
    hf_close(rivals.store);
    PQfinish(rivals.db);
}

/* What the processes tell each other. */
struct arena {
    long turn; /* the number of the process whose turn it is by the order of arrival */
    long disorder;
    uint64_t last_token;
};

static _Noreturn void waiter(struct arena *arena, const char *url, long number)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 60000, .wait_ms = 120000, .no_keeper = true};
    struct hf_store *store = open_store(url);
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire(store, "bench:line", &options, &lease, &err), &err);
    arena->disorder += arena->turn != number || hf_lease_token(lease) <= arena->last_token;
    arena->turn++;
    arena->last_token = hf_lease_token(lease);
    must(hf_release(lease, &err), &err);
    hf_close(store);
    _exit(0);
}

static bool count_waiters(const struct hf_lock_info *info, void *data)
{
    *(uint64_t *)data = info->waiters;
    return true;
}

static void handover(const char *url, long count)
{
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 60000, .no_keeper = true};
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    double start;
    pid_t first;

    if (arena == MAP_FAILED)
        die("no memory");
    store = open_store(url);
    must(hf_acquire(store, "bench:line", &options, &lease, &err), &err);
    for (long i = 0; i < count; i++) {
        uint64_t waiters = 0;

        first = fork();
        if (first == 0)
            waiter(arena, url, i);
        while (waiters <= (uint64_t)i) {
            (void)usleep(2000);
            must(hf_inspect(store, "bench:line", count_waiters, &waiters, &err), &err);
        }
        must(hf_renew(lease, 0, &err), &err);
    }
    (void)usleep(1500000); /* all of them listen */
    start = now_us();
    must(hf_release(lease, &err), &err);
    while (wait(NULL) > 0)
        ;
    fact("postgres: hand-over among 200 waiters", (now_us() - start) / (double)count, "us");
    at_most("postgres: hand-overs out of order", (double)arena->disorder, 0, "");
    at_least("postgres: hand-overs", (double)arena->turn, (double)count, "");
    hf_close(store);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "pair") == 0)
        pair(argv[2]);
    else if (argc == 4 && strcmp(argv[1], "handover") == 0)
        handover(argv[2], strtol(argv[3], NULL, 10));
    else
        die("usage: bench_postgres pair URL | handover URL COUNT");
    return 0;
}
