/* bench_handover.c DIR - handing a lock from process to process: what it costs with 10 and with
 * 1,000 in line, whom a release wakes, in which order they come, and how soon a killed holder's
 * lock is free. */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_LEN 1000
#define HANDOVERS    4000

/* Shared by all processes. */
struct board {
    atomic_int in_line; /* waiters that are about to wait */
    atomic_int served;  /* how many have had the lock */
    atomic_int order[LINE_MAX_LEN];
    atomic_int stop;
    double got_at; /* when the one behind a dead holder had the lock */
};

static struct board *board;
static char url[4096];

static struct hf_store *open_store(void)
{
    struct hf_error err;
    struct hf_store *store;

    must(hf_open(url, &store, &err), &err);
    return store;
}

static struct hf_lease *take(struct hf_store *store, const char *name)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = -1, .no_keeper = true};
    struct hf_error err;
    struct hf_lease *lease;

    must(hf_acquire(store, name, &options, &lease, &err), &err);
    return lease;
}

static void give(struct hf_lease *lease)
{
    struct hf_error err;

    must(hf_release(lease, &err), &err);
}

static void sleep_us(long us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    (void)nanosleep(&t, NULL);
}

/* How many wait for the lock, as the store sees it. */
static bool count_waiters(const struct hf_lock_info *info, void *data)
{
    *(uint64_t *)data = info->waiters;
    return false;
}

static void wait_for_line(struct hf_store *store, const char *name, uint64_t length)
{
    struct hf_error err;
    uint64_t waiters = 0;

    while (waiters < length) {
        must(hf_inspect(store, name, count_waiters, &waiters, &err), &err);
        sleep_us(waiters + 100 < length ? 20000 : 1000);
    }
}

/* Goes round in the line until the board says stop. */
static void go_round(const char *name)
{
    struct hf_store *store = open_store();

    atomic_fetch_add(&board->in_line, 1);
    while (!atomic_load(&board->stop)) {
        struct hf_lease *lease = take(store, name);

        atomic_fetch_add(&board->served, 1);
        give(lease);
    }
    hf_close(store);
    _exit(0);
}

/* Microseconds per hand-over while `length` processes go round in the line. */
static double cost(int length, const char *name)
{
    struct hf_store *store = open_store();
    struct hf_lease *gate = take(store, name);
    double start;
    double took;

    atomic_store(&board->stop, 0);
    atomic_store(&board->served, 0);
    for (int i = 0; i < length; i++)
        if (fork() == 0)
            go_round(name);
    wait_for_line(store, name, (uint64_t)length);
    give(gate);
    while (atomic_load(&board->served) < length)
        sleep_us(100); /* once round to warm up */
    atomic_store(&board->served, 0);
    start = now_us();
    while (atomic_load(&board->served) < HANDOVERS)
        sleep_us(100);
    took = (now_us() - start) / atomic_load(&board->served);
    atomic_store(&board->stop, 1);
    while (wait(NULL) > 0)
        continue;
    hf_close(store);
    return took;
}

/* One of a line of `length`: waits its turn once and signs the board. */
static void stand_in_line(const char *name, int number)
{
    struct hf_store *store = open_store();
    struct hf_lease *lease = take(store, name);

    atomic_store(&board->order[atomic_fetch_add(&board->served, 1)], number);
    give(lease);
    hf_close(store);
    _exit(0);
}

/* Lines in the trace that tell of a waiter being woken, and not by the slow clock. */
static int count_wakes(const char *path)
{
    FILE *trace = fopen(path, "r");
    char line[512];
    int wakes = 0;

    while (trace != NULL && fgets(line, sizeof line, trace) != NULL)
        wakes += strstr(line, " is woken by ") != NULL && strstr(line, "the clock") == NULL;
    if (trace != NULL)
        (void)fclose(trace);
    return wakes;
}

static void order_and_wakes(const char *dir, int length, const char *name)
{
    char path[4200];
    struct hf_store *store = open_store();
    struct hf_lease *gate = take(store, name);
    int saved = dup(STDERR_FILENO);
    int in_order = 1;
    int trace;

    (void)snprintf(path, sizeof path, "%s/trace", dir);
    trace = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    atomic_store(&board->served, 0);
    (void)setenv("HOLDFAST_TRACE", "1", 1);
    (void)dup2(trace, STDERR_FILENO);
    for (int i = 0; i < length; i++) {
        if (fork() == 0)
            stand_in_line(name, i);
        wait_for_line(store, name, (uint64_t)i + 1);
    }
    give(gate);
    while (wait(NULL) > 0)
        continue;
    (void)dup2(saved, STDERR_FILENO);
    (void)unsetenv("HOLDFAST_TRACE");
    for (int i = 0; i < length; i++)
        in_order += atomic_load(&board->order[i]) == i;
    at_least("processes served in the order they came, of 200", in_order - 1, length, "");
    at_most("processes woken per release", (double)count_wakes(path) / length, 1, "");
    hf_close(store);
}

/* Milliseconds from kill -9 of a holder to the lock in the hands of the next. */
static double takeover(const char *name)
{
    struct hf_store *store = open_store();
    int ready[2];
    char byte;
    pid_t holder;
    pid_t next;
    double killed_at;

    if (pipe(ready) != 0)
        exit(1);
    holder = fork();
    if (holder == 0) {
        (void)take(open_store(), name);
        (void)!write(ready[1], "!", 1);
        (void)pause();
    }
    (void)!read(ready[0], &byte, 1);
    next = fork();
    if (next == 0) {
        (void)take(open_store(), name);
        board->got_at = now_us();
        _exit(0);
    }
    wait_for_line(store, name, 1);
    sleep_us(20000);
    killed_at = now_us();
    (void)kill(holder, SIGKILL);
    (void)waitpid(next, NULL, 0);
    (void)waitpid(holder, NULL, 0);
    hf_close(store);
    return (board->got_at - killed_at) / 1000;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : ".";
    double worst = 0;
    double few = 1e9;
    double many = 1e9;

    (void)snprintf(url, sizeof url, "file:%s/handover", dir);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    for (int round = 0; round < 3; round++) {
        double took = cost(10, "few");

        few = took < few ? took : few;
        took = cost(1000, "many");
        many = took < many ? took : many;
    }
    fact("hand-over with 10 in line", few, "us");
    fact("hand-over with 1,000 in line", many, "us");
    at_most("hand-over with 1,000 in line / with 10", many / few, 1.5, "x");
    order_and_wakes(dir, 200, "order");
    for (int round = 0; round < 20; round++) {
        double took = takeover("takeover");

        worst = took > worst ? took : worst;
    }
    at_most("takeover after kill -9, worst of 20", worst, 10, "ms");
    return 0;
}
