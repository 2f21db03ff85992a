/* bench_redis.c - the Redis store beside the bare commands, on one server, in one run.
 *
 *   bench_redis pair PORT              raw SET NX PX + DEL and acquire + release, block by block
 *   bench_redis contend PORT N SECONDS N processes hand one lock around
 *   bench_redis keep PORT N TTL_MS SECONDS   N leases kept alive by one process
 *
 * Prints "name value" lines for redis.sh. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 60, BLOCK_PAIRS = 100 };

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double cpu_s(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static _Noreturn void die(const char *text)
{
    fprintf(stderr, "bench_redis: %s\n", text);
    exit(1);
}

static struct hf_store *open_store(const char *port)
{
    struct hf_store *store;
    struct hf_error err;
    char url[64];

    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%s", port);
    if (hf_open(url, &store, &err) != HF_OK)
        die(err.text);
    return store;
}

static double raw_block(redisContext *redis)
{
    double start = now_us();

    for (int i = 0; i < BLOCK_PAIRS; i++) {
        freeReplyObject(redisCommand(redis, "SET %s %s NX PX %d", "bench:raw",
                                     "0123456789abcdef0123456789abcdef", 30000));
        freeReplyObject(redisCommand(redis, "DEL %s", "bench:raw"));
    }
    return (now_us() - start) / BLOCK_PAIRS;
}

static double holdfast_block(struct hf_store *store)
{
    struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    double start = now_us();

    for (int i = 0; i < BLOCK_PAIRS; i++) {
        struct hf_lease *lease;
        struct hf_error err;

        if (hf_acquire(store, "bench:hf", &options, &lease, &err) != HF_OK ||
            hf_release(lease, &err) != HF_OK)
            die(err.text);
    }
    return (now_us() - start) / BLOCK_PAIRS;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Blocks of both take turns, so that whatever else the machine does hits both; the median
 * counts. */
static void pair(const char *port)
{
    redisContext *redis = redisConnect("127.0.0.1", (int)strtol(port, NULL, 10));
    struct hf_store *store = open_store(port);
    double raw[BLOCKS];
    double ours[BLOCKS];

    if (redis == NULL || redis->err != 0)
        die("cannot connect");
    (void)raw_block(redis);
    (void)holdfast_block(store);
    for (int i = 0; i < BLOCKS; i++) {
        raw[i] = raw_block(redis);
        ours[i] = holdfast_block(store);
    }
    qsort(raw, BLOCKS, sizeof *raw, by_value);
    qsort(ours, BLOCKS, sizeof *ours, by_value);
    printf("raw_pair_us %.2f\nholdfast_pair_us %.2f\n", raw[BLOCKS / 2], ours[BLOCKS / 2]);
    hf_close(store);
    redisFree(redis);
}

/* What the contenders tell each other. */
struct arena {
    long ready;
    long go;
    long handovers; /* holds by another process than the last */
    pid_t holder;
    long last_token;
    long disorder; /* a token that is not above the last */
    double end_us;
};

static _Noreturn void contender(struct arena *arena, const char *port)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 10000, .wait_ms = 30000, .no_keeper = true};
    struct hf_store *store = open_store(port);
    struct hf_error err;

    __atomic_add_fetch(&arena->ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&arena->go, __ATOMIC_SEQ_CST) == 0)
        (void)usleep(1000);
    while (now_us() < arena->end_us) {
        struct hf_lease *lease;
        enum hf_status status = hf_acquire(store, "bench:contend", &options, &lease, &err);

        if (status == HF_BUSY)
            continue;
        if (status != HF_OK)
            die(err.text);
        if ((long)hf_lease_token(lease) <= arena->last_token)
            arena->disorder++;
        arena->last_token = (long)hf_lease_token(lease);
        arena->handovers += arena->holder != getpid();
        arena->holder = getpid();
        if (hf_release(lease, &err) != HF_OK)
            die(err.text);
    }
    hf_close(store);
    _exit(0);
}

static void contend(const char *port, long count, double seconds)
{
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (arena == MAP_FAILED)
        die(strerror(errno));
    for (long i = 0; i < count; i++)
        if (fork() == 0)
            contender(arena, port);
    while (__atomic_load_n(&arena->ready, __ATOMIC_SEQ_CST) < count)
        (void)usleep(1000);
    arena->end_us = now_us() + seconds * 1e6;
    __atomic_store_n(&arena->go, 1, __ATOMIC_SEQ_CST);
    (void)usleep((useconds_t)(seconds * 1e6));
    printf("handovers_per_s %.1f\n", (double)arena->handovers / seconds);
    (void)fflush(stdout);
    while (wait(NULL) > 0)
        ;
    printf("handovers %ld\ndisorder %ld\n", arena->handovers, arena->disorder);
}

static void keep(const char *port, size_t count, uint32_t ttl_ms, double seconds)
{
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = ttl_ms};
    struct hf_lease **leases = calloc(count, sizeof *leases);
    struct hf_store *store = open_store(port);
    int64_t least_ms = ttl_ms;
    struct hf_error err;
    size_t lost = 0;
    double start_cpu;
    double start;

    for (size_t i = 0; leases != NULL && i < count; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "bench:keep:%zu", i);
        if (hf_acquire(store, name, &options, &leases[i], &err) != HF_OK)
            die(err.text);
    }
    start_cpu = cpu_s();
    start = now_us();
    while (now_us() < start + seconds * 1e6) {
        (void)usleep(500000);
        for (size_t i = 0; i < count; i++) {
            int64_t left_ms = hf_lease_remaining_ms(leases[i]);

            if (left_ms < least_ms)
                least_ms = left_ms;
        }
    }
    printf("keep_cpu_percent %.2f\n", (cpu_s() - start_cpu) / ((now_us() - start) / 1e6) * 100);
    for (size_t i = 0; i < count; i++)
        lost += hf_lease_loss(leases[i]) != HF_LOSS_NONE;
    /* The longest time since a renewal was sent, as a share of the ttl. */
    printf("keep_oldest_share %.3f\nkeep_lost %zu\n",
           1 - ((double)least_ms + (double)ttl_ms / 100 + 2) / (double)ttl_ms, lost);
    for (size_t i = 0; i < count; i++)
        if (hf_release(leases[i], &err) != HF_OK)
            lost++;
    free(leases);
    hf_close(store);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "pair") == 0)
        pair(argv[2]);
    else if (argc == 5 && strcmp(argv[1], "contend") == 0)
        contend(argv[2], strtol(argv[3], NULL, 10), strtod(argv[4], NULL));
    else if (argc == 6 && strcmp(argv[1], "keep") == 0)
        keep(argv[2], strtoul(argv[3], NULL, 10), (uint32_t)strtoul(argv[4], NULL, 10),
             strtod(argv[5], NULL));
    else
        die("pair PORT | contend PORT N SECONDS | keep PORT N TTL_MS SECONDS");
    return 0;
}
