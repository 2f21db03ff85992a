/* zookeeper_bench.c - built and called by zookeeper.sh, because it links the client library.
 *
 *   pair HOSTS COUNT       µs per acquire + release, and per raw create + delete, in turns
 *   line HOSTS WAITERS     µs per hand-over from client to client
 */
#define THREADED
#include "bench.h"

#include <pthread.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define ROUNDS      101
#define WAITERS_MAX 1000

static char url[512];

static void quiet(const char *message)
{
    (void)message;
}

static double raw_pair(zhandle_t *zh, int count)
{
    double start = now_us();
    char path[256];

    for (int i = 0; i < count; i++) {
        if (zoo_create(zh, "/raw/node-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                       path, sizeof path) != ZOK ||
            zoo_delete(zh, path, -1) != ZOK)
            exit(1);
    }
    return (now_us() - start) / count;
}

static double our_pair(struct hf_store *store, int count)
{
    double start = now_us();
    struct hf_lease *lease;
    struct hf_error err;

    for (int i = 0; i < count; i++) {
        must(hf_acquire(store, "pair", NULL, &lease, &err), &err);
        must(hf_release(lease, &err), &err);
    }
    return (now_us() - start) / count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Short blocks in turns and the median of each side: on a busy machine a long block of one side may
 * meet a neighbour that the other side does not. */
static void pair(const char *hosts, int count)
{
    zhandle_t *zh = zookeeper_init2(hosts, NULL, 30000, NULL, NULL, ZOO_NO_LOG_CLIENTENV, quiet);
    double raw[ROUNDS], ours[ROUNDS];
    struct hf_store *store;
    struct hf_error err;

    for (int i = 0; i < 500 && zoo_state(zh) != ZOO_CONNECTED_STATE; i++)
        usleep(10000);
    (void)zoo_create(zh, "/raw", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, NULL, 0);
    must(hf_open(url, &store, &err), &err);
    (void)raw_pair(zh, 20 * count); /* the server's compiler warms up */
    (void)our_pair(store, 20 * count);
    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = raw_pair(zh, count);
        ours[i] = our_pair(store, count);
    }
    qsort(raw, ROUNDS, sizeof *raw, compare);
    qsort(ours, ROUNDS, sizeof *ours, compare);
    printf("raw_us %.1f\nours_us %.1f\n", raw[ROUNDS / 2], ours[ROUNDS / 2]);
    hf_close(store);
    (void)zookeeper_close(zh);
}

static void *wait_in_line(void *data)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = -1};
    struct hf_store *store = data;
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire(store, "line", &options, &lease, &err), &err);
    must(hf_release(lease, &err), &err);
    return NULL;
}

static bool note(const struct hf_lock_info *info, void *data)
{
    *(uint64_t *)data = info->waiters;
    return true;
}

static void line(int count)
{
    static pthread_t threads[WAITERS_MAX];
    static struct hf_store *stores[WAITERS_MAX];
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    uint64_t waiters = 0;
    double start;

    must(hf_open(url, &store, &err), &err);
    must(hf_acquire(store, "line", NULL, &lease, &err), &err);
    for (int i = 0; i < count; i++) {
        must(hf_open(url, &stores[i], &err), &err);
        (void)pthread_create(&threads[i], NULL, wait_in_line, stores[i]);
    }
    while (waiters < (uint64_t)count) {
        usleep(20000);
        must(hf_inspect(store, "line", note, &waiters, &err), &err);
    }
    printf("ready\n");
    (void)fflush(stdout);
    (void)getchar();
    start = now_us();
    must(hf_release(lease, &err), &err);
    for (int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    printf("%.1f\n", (now_us() - start) / count);
    (void)fflush(stdout);
    (void)getchar(); /* closing sends watches too: not before they are counted */
    for (int i = 0; i < count; i++)
        hf_close(stores[i]);
    hf_close(store);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 64;
    (void)snprintf(url, sizeof url, "zookeeper://%s", argv[2]);
    if (strcmp(argv[1], "pair") == 0)
        pair(argv[2], atoi(argv[3]));
    else
        line(atoi(argv[3]));
    return 0;
}
