/* bench_redlock.c - acquire + release over five servers beside the floor: raw SET NX PX to all,
 * then DEL to all, each time going on after three answers.
 *
 *   bench_redlock pair PORT PORT PORT PORT PORT      both, block by block; "name value" lines
 *   bench_redlock latency COUNT PORT...              p50 and p99 of a pair, in microseconds
 *   bench_redlock floor COUNT PORT...                the floor alone, to measure the servers
 *   bench_redlock once PORT...                       one pair, to count its requests
 *
 * The lock has the name in BENCH_LOCK: parts that follow each other must not meet each other's
 * leftovers. */
#include <arpa/inet.h>
#include <holdfast.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 5, MAJORITY = 3, BLOCKS = 40, BLOCK_PAIRS = 200 };

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static _Noreturn void die(const char *text)
{
    fprintf(stderr, "bench_redlock: %s\n", text);
    exit(1);
}

static int dial(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;

    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* A connection, and how many answers it is behind. */
struct raw {
    int fd;
    unsigned owed;
};

/* Sends to all; goes on when the answer to this request has come from three. */
static void raw_round(struct raw *raw, const char *request, size_t len)
{
    struct pollfd fds[NODES];
    unsigned answered = 0;

    for (int i = 0; i < NODES; i++) {
        if (send(raw[i].fd, request, len, MSG_NOSIGNAL) != (ssize_t)len)
            die("cannot send");
        raw[i].owed++;
        fds[i] = (struct pollfd){.fd = raw[i].fd, .events = POLLIN};
    }
    while (answered < MAJORITY) {
        if (poll(fds, NODES, 5000) <= 0)
            die("no answer");
        for (int i = 0; i < NODES; i++) {
            char data[512];
            ssize_t got;

            if (fds[i].revents == 0)
                continue;
            got = recv(raw[i].fd, data, sizeof data, 0);
            for (ssize_t at = 0; at < got; at++)
                raw[i].owed -= data[at] == '\n';
            if (raw[i].owed == 0) {
                fds[i].fd = -1;
                answered++;
            }
        }
    }
}

static double raw_block(struct raw *raw)
{
    static const char set[] = "*6\r\n$3\r\nSET\r\n$9\r\nbench:raw\r\n$32\r\n"
                              "0123456789abcdef0123456789abcdef\r\n$2\r\nNX\r\n$2\r\nPX\r\n"
                              "$5\r\n30000\r\n";
    static const char del[] = "*2\r\n$3\r\nDEL\r\n$9\r\nbench:raw\r\n";
    double start = now_us();

    for (int i = 0; i < BLOCK_PAIRS; i++) {
        raw_round(raw, set, sizeof set - 1);
        raw_round(raw, del, sizeof del - 1);
    }
    return (now_us() - start) / BLOCK_PAIRS;
}

static struct hf_store *open_store(char **ports)
{
    struct hf_store *store;
    struct hf_error err;
    char url[256];

    (void)snprintf(url, sizeof url,
                   "redlock://127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s",
                   ports[0], ports[1], ports[2], ports[3], ports[4]);
    if (hf_open(url, &store, &err) != HF_OK)
        die(err.text);
    return store;
}

static void pair(struct hf_store *store)
{
    struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    const char *name = getenv("BENCH_LOCK");
    struct hf_lease *lease;
    struct hf_error err;

    if (hf_acquire(store, name != NULL ? name : "bench:redlock", &options, &lease, &err) != HF_OK ||
        hf_release(lease, &err) != HF_OK)
        die(err.text);
}

/* CPU time of this process. */
static double cpu_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double holdfast_block(struct hf_store *store)
{
    double start = now_us();

    for (int i = 0; i < BLOCK_PAIRS; i++)
        pair(store);
    return (now_us() - start) / BLOCK_PAIRS;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void compare(char **ports)
{
    struct hf_store *store = open_store(ports);
    double floor_us[BLOCKS], ours_us[BLOCKS], ratio[BLOCKS];
    struct raw raw[NODES] = {{0}};

    for (int i = 0; i < NODES; i++)
        raw[i].fd = dial(ports[i]);
    (void)raw_block(raw);
    (void)holdfast_block(store);
    for (int i = 0; i < BLOCKS; i++) {
        floor_us[i] = raw_block(raw);
        ours_us[i] = holdfast_block(store);
        ratio[i] = ours_us[i] / floor_us[i];
    }
    qsort(floor_us, BLOCKS, sizeof *floor_us, by_size);
    qsort(ours_us, BLOCKS, sizeof *ours_us, by_size);
    qsort(ratio, BLOCKS, sizeof *ratio, by_size);
    printf("floor_us %.1f\nredlock_us %.1f\nredlock_ratio %.2f\n", floor_us[BLOCKS / 2],
           ours_us[BLOCKS / 2], ratio[BLOCKS / 2]);
    hf_close(store);
}

static void floor_only(size_t count, char **ports)
{
    struct raw raw[NODES] = {{0}};
    double cpu;

    for (int i = 0; i < NODES; i++)
        raw[i].fd = dial(ports[i]);
    cpu = cpu_us();
    for (size_t i = 0; i < count; i += BLOCK_PAIRS)
        (void)raw_block(raw);
    printf("cpu_us %.1f\n", (cpu_us() - cpu) / (double)count);
}

static void latency(size_t count, char **ports)
{
    struct hf_store *store = open_store(ports);
    double *took = calloc(count, sizeof *took);
    double cpu;

    if (took == NULL)
        die("out of memory");
    for (int i = 0; i < 50; i++)
        pair(store);
    puts("ready");
    (void)fflush(stdout);
    (void)!getchar(); /* whoever measures a bad day lets it begin now */
    cpu = cpu_us();
    for (size_t i = 0; i < count; i++) {
        double start = now_us();

        pair(store);
        took[i] = now_us() - start;
    }
    cpu = cpu_us() - cpu;
    qsort(took, count, sizeof *took, by_size);
    printf("p50_us %.1f\np99_us %.1f\ncpu_us %.1f\n", took[count / 2], took[count * 99 / 100],
           cpu / (double)count);
    free(took);
    hf_close(store);
}

int main(int argc, char **argv)
{
    if (argc == 2 + NODES && strcmp(argv[1], "pair") == 0) {
        compare(argv + 2);
    } else if (argc == 3 + NODES && strcmp(argv[1], "latency") == 0) {
        latency(strtoul(argv[2], NULL, 10), argv + 3);
    } else if (argc == 3 + NODES && strcmp(argv[1], "floor") == 0) {
        floor_only(strtoul(argv[2], NULL, 10), argv + 3);
    } else if (argc == 2 + NODES && strcmp(argv[1], "once") == 0) {
        struct hf_store *store = open_store(argv + 2);

        pair(store);
        hf_close(store);
    } else {
        return 64;
    }
    return 0;
}
