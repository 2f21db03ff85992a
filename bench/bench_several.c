/* bench_several.c - one of several locks, and all of several, beside one lock.
 *
 *   bench_several pair URL STORE       one of 8, one of 8 with 7 held, all of 3 / one lock
 *   bench_several release URL STORE    a release to one who stands in 8 queues / in one
 *   bench_several contend URL N SECONDS   N processes go round on 8 slots: hand-overs per second
 *   bench_several stand URL N          N processes wait in 8 queues until the input ends
 *
 * A hand-over is a hold by another process than the one before, of that number. */
#include "compare.h"

#include <holdfast/several.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SLOTS = 8,
    ALL = 3,
    ROUNDS = 40,
    BATCH = 10,
    BATCH_FILE = 1000, /* calls of less than a microsecond */
    RELEASES = 80,
    PROCESSES_MAX = 200
};

static const char *const slots[SLOTS] = {"bench#0", "bench#1", "bench#2", "bench#3",
                                         "bench#4", "bench#5", "bench#6", "bench#7"};
static const char *const all[ALL] = {"bench/a", "bench/b", "bench/c"};

static struct hf_store *open_store(const char *url)
{
    struct hf_store *store;
    struct hf_error err;

    must(hf_open(url, &store, &err), &err);
    return store;
}

static struct hf_lease *take(struct hf_store *store, const char *name, int64_t wait_ms)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 20000, .wait_ms = wait_ms, .no_keeper = true};
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire(store, name, &options, &lease, &err), &err);
    return lease;
}

static struct hf_lease *take_any(struct hf_store *store, int64_t wait_ms, size_t *which)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 20000, .wait_ms = wait_ms, .no_keeper = true};
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire_any(store, slots, SLOTS, &options, &lease, which, &err), &err);
    return lease;
}

static void give(struct hf_lease *lease)
{
    struct hf_error err;

    must(hf_release(lease, &err), &err);
}

static void one_pair(void *data)
{
    give(take(data, "bench", 0));
}

static void any_pair(void *data)
{
    size_t which;

    give(take_any(data, 0, &which));
}

static void all_pair(void *data)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 20000, .no_keeper = true};
    struct hf_lease *leases[ALL];
    struct hf_error err;

    must(hf_acquire_all(data, all, ALL, &options, leases, &err), &err);
    must(hf_release_all(leases, ALL, &err), &err);
}

/* What ours costs against one lock; limit 0: no bound. */
static void against_one(struct hf_store *store, compare_fn *ours, const char *name, double limit)
{
    int batch = strncmp(name, "file:", 5) == 0 ? BATCH_FILE : BATCH;
    struct compared result = compare(&(struct comparison){one_pair, ours, store, ROUNDS, batch});

    if (limit > 0)
        at_most(name, result.ratio, limit, "x");
    else
        fact(name, result.ratio, "x");
}

static void pair(const char *url, const char *kind)
{
    struct hf_store *store = open_store(url);
    struct hf_store *other = open_store(url);
    bool counted = strcmp(kind, "redis") == 0 || strcmp(kind, "postgres") == 0;
    struct hf_lease *held[SLOTS];
    char name[96];

    (void)snprintf(name, sizeof name, "%s: one of 8, all free / one lock", kind);
    against_one(store, any_pair, name, 1.1);
    (void)snprintf(name, sizeof name, "%s: all of 3 / one lock", kind);
    against_one(store, all_pair, name, counted ? 3.2 : 0);
    for (size_t i = 0; i < SLOTS - 1; i++)
        held[i] = take(other, slots[i], 0);
    (void)snprintf(name, sizeof name, "%s: one of 8, 7 held / one lock", kind);
    against_one(store, any_pair, name, strcmp(kind, "file") == 0 ? 3 : 0);
    for (size_t i = 0; i < SLOTS - 1; i++)
        give(held[i]);
    hf_close(other);
    hf_close(store);
}

static bool count_waiters(const struct hf_lock_info *info, void *data)
{
    *(uint64_t *)data = info->waiters;
    return true;
}

static void await_waiter(struct hf_store *store, const char *name, uint64_t count)
{
    uint64_t waiters = 0;
    struct hf_error err;

    while (waiters < count) {
        (void)usleep(3000);
        must(hf_inspect(store, name, count_waiters, &waiters, &err), &err);
    }
}

/* Waits for one lock, or for one of 8, whenever it is told to. */
static _Noreturn void waiter(const char *url, int in, int out)
{
    struct hf_store *store = open_store(url);
    size_t which;
    char how;

    while (read(in, &how, 1) == 1) {
        give(how == '8' ? take_any(store, -1, &which) : take(store, slots[0], -1));
        if (write(out, "!", 1) != 1)
            break;
    }
    hf_close(store);
    _exit(0);
}

/* Microseconds of a release that hands the lock to such a waiter. */
static double release_us(struct hf_store *store, char how, int in, int out)
{
    struct hf_lease *lease = take(store, slots[0], 0);
    double start;
    double took;
    char done;

    if (write(out, &how, 1) != 1)
        exit(1);
    await_waiter(store, slots[0], 1);
    (void)usleep(5000); /* it sleeps by now */
    start = now_us();
    give(lease);
    took = now_us() - start;
    if (read(in, &done, 1) != 1)
        exit(1);
    return took;
}

static void release(const char *url, const char *kind)
{
    static double one[RELEASES];
    static double eight[RELEASES];
    int to[2];
    int from[2];
    struct hf_lease *held[SLOTS];
    struct hf_store *store;
    struct hf_store *other;
    char name[96];

    if (pipe(to) != 0 || pipe(from) != 0)
        exit(1);
    if (fork() == 0) {
        (void)close(to[1]);
        waiter(url, to[0], from[1]);
    }
    store = open_store(url);
    other = open_store(url);
    for (size_t i = 1; i < SLOTS; i++)
        held[i] = take(other, slots[i], 0);
    for (int i = 0; i < RELEASES; i++) {
        struct hf_error err;

        one[i] = release_us(store, '1', from[0], to[1]);
        eight[i] = release_us(store, '8', from[0], to[1]);
        for (size_t j = 1; j < SLOTS && i % 40 == 39; j++)
            must(hf_renew(held[j], 0, &err), &err);
    }
    (void)snprintf(name, sizeof name, "%s: release to one in 8 queues / in one", kind);
    at_most(name, compare_median(eight, RELEASES) / compare_median(one, RELEASES), 1.2, "x");
    (void)close(to[1]);
    for (size_t i = 1; i < SLOTS; i++)
        give(held[i]);
    hf_close(other);
    hf_close(store);
    (void)wait(NULL);
}

struct board {
    atomic_long handovers;
    atomic_int holders[SLOTS]; /* the last of each */
    atomic_int ready;
    atomic_int go;
    atomic_int stop;
};

static _Noreturn void go_round(struct board *board, const char *url)
{
    struct hf_store *store = open_store(url);

    atomic_fetch_add(&board->ready, 1);
    while (!atomic_load(&board->go))
        (void)usleep(1000);
    while (!atomic_load(&board->stop)) {
        size_t which;
        struct hf_lease *lease = take_any(store, -1, &which);

        if (atomic_exchange(&board->holders[which], (int)getpid()) != (int)getpid())
            atomic_fetch_add(&board->handovers, 1);
        give(lease);
    }
    hf_close(store);
    _exit(0);
}

static struct board *board_new(void)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (board == MAP_FAILED)
        exit(1);
    return board;
}

static void contend(const char *url, int count, unsigned seconds)
{
    struct board *board = board_new();
    long before;

    for (int i = 0; i < count; i++)
        if (fork() == 0)
            go_round(board, url);
    while (atomic_load(&board->ready) < count)
        (void)usleep(1000);
    atomic_store(&board->go, 1);
    (void)sleep(1);
    before = atomic_load(&board->handovers);
    (void)sleep(seconds);
    printf("handovers_per_s %.1f\n", (double)(atomic_load(&board->handovers) - before) / seconds);
    (void)fflush(stdout);
    atomic_store(&board->stop, 1);
    while (wait(NULL) > 0)
        ;
}

static void stand(const char *url, int count)
{
    struct hf_store *store = open_store(url);
    struct hf_lease *held[SLOTS];
    pid_t children[PROCESSES_MAX];

    for (size_t i = 0; i < SLOTS; i++)
        held[i] = take(store, slots[i], 0);
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            size_t which;

            give(take_any(open_store(url), -1, &which));
            _exit(0);
        }
    }
    await_waiter(store, slots[SLOTS - 1], (uint64_t)count);
    (void)usleep(500000);
    puts("they wait");
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
    for (int i = 0; i < count; i++)
        (void)kill(children[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    for (size_t i = 0; i < SLOTS; i++)
        give(held[i]);
    hf_close(store);
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[1] : "";

    if (strcmp(what, "pair") == 0)
        pair(argv[2], argv[3]);
    else if (strcmp(what, "release") == 0)
        release(argv[2], argv[3]);
    else if (strcmp(what, "contend") == 0 && argc > 4)
        contend(argv[2], atoi(argv[3]) % PROCESSES_MAX, (unsigned)atoi(argv[4]));
    else if (strcmp(what, "stand") == 0)
        stand(argv[2], atoi(argv[3]) % PROCESSES_MAX);
    else
        return fprintf(stderr, "usage: bench_several pair|release URL STORE | contend URL COUNT "
                               "SECONDS | stand URL COUNT\n"),
               64;
    return 0;
}
