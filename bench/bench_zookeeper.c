/* bench_zookeeper.c - the ZooKeeper store beside the raw library; zookeeper.sh calls it.
 *
 *   pair HOSTS         acquire + release, raw create + delete, and a peer, in turns
 *   line HOSTS COUNT   µs per hand-over from client to client
 *
 * The peer gets the number of its pairs on descriptor 3 and answers on stdin what one took. */
#define THREADED
#include "compare.h"

#include <pthread.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define ROUNDS      150
#define PAIRS       4     /* in one turn: a neighbour's disturbance meets all sides or few turns */
#define WARM_PAIRS  1500  /* the server's compiler takes its time */
#define SESSION_MS  40000 /* what a lease of 30 s asks for */
#define WAITERS_MAX 1000

enum side { RAW, OURS, KAZOO, SIDES };

struct sides {
    zhandle_t *raw;
    struct hf_store *store;
    FILE *peer;
};

static char url[512];

static void quiet(const char *message)
{
    (void)message;
}

static void raw_pairs(zhandle_t *raw, int count)
{
    char path[256];

    for (int i = 0; i < count; i++)
        if (zoo_create(raw, "/raw/node-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                       path, sizeof path) != ZOK ||
            zoo_delete(raw, path, -1) != ZOK)
            exit(1);
}

static void our_pairs(struct hf_store *store, int count)
{
    struct hf_lease *lease;
    struct hf_error err;

    for (int i = 0; i < count; i++) {
        must(hf_acquire(store, "pair", NULL, &lease, &err), &err);
        must(hf_release(lease, &err), &err);
    }
}

static double peer_pairs(FILE *peer, int count)
{
    double us;

    if (fprintf(peer, "%d\n", count) < 0 || fflush(peer) != 0 || scanf("%lf", &us) != 1)
        exit(1);
    return us;
}

/* One turn of one side: µs for a pair. */
static double turn(const struct sides *sides, enum side side, int count)
{
    double start = now_us();

    if (side == KAZOO)
        return peer_pairs(sides->peer, count);
    if (side == RAW)
        raw_pairs(sides->raw, count);
    else
        our_pairs(sides->store, count);
    return (now_us() - start) / count;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare_doubles);
    return values[ROUNDS / 2];
}

/* Each round has a turn of each side, there and back. The ratios are medians over the rounds:
 * what disturbs the machine for longer than a round disturbs all sides, what is shorter does not
 * count. */
static void measure(const struct sides *sides)
{
    static double us[SIDES][ROUNDS], ours_per_raw[ROUNDS], kazoo_per_ours[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        for (int side = 0; side < SIDES; side++)
            us[side][i] = turn(sides, (enum side)side, PAIRS) / 2;
        for (int side = SIDES - 1; side >= 0; side--)
            us[side][i] += turn(sides, (enum side)side, PAIRS) / 2;
        ours_per_raw[i] = us[OURS][i] / us[RAW][i];
        kazoo_per_ours[i] = us[KAZOO][i] / us[OURS][i];
    }
    printf("raw_us %.1f\nours_us %.1f\nkazoo_us %.1f\n", median(us[RAW]), median(us[OURS]),
           median(us[KAZOO]));
    printf("ours_per_raw %.3f\nkazoo_per_ours %.3f\n", median(ours_per_raw),
           median(kazoo_per_ours));
}

static void pair(const char *hosts)
{
    struct sides sides = {.peer = fdopen(3, "w")};
    struct hf_error err;

    sides.raw = zookeeper_init2(hosts, NULL, SESSION_MS, NULL, NULL, ZOO_NO_LOG_CLIENTENV, quiet);
    if (sides.raw == NULL || sides.peer == NULL)
        exit(1);
    for (int i = 0; i < 500 && zoo_state(sides.raw) != ZOO_CONNECTED_STATE; i++)
        (void)usleep(10000);
    (void)zoo_create(sides.raw, "/raw", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, NULL, 0);
    must(hf_open(url, &sides.store, &err), &err);
    for (int side = 0; side < SIDES; side++)
        (void)turn(&sides, (enum side)side, WARM_PAIRS / SIDES);
    measure(&sides);
    hf_close(sides.store);
    (void)zookeeper_close(sides.raw);
    (void)fclose(sides.peer);
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
        if (pthread_create(&threads[i], NULL, wait_in_line, stores[i]) != 0)
            exit(1);
    }
    while (waiters < (uint64_t)count) {
        (void)usleep(20000);
        must(hf_inspect(store, "line", note, &waiters, &err), &err);
    }
    printf("ready\n");
    (void)fflush(stdout);
    (void)getchar();
    start = now_us();
    must(hf_release(lease, &err), &err);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%.1f\n", (now_us() - start) / count);
    (void)fflush(stdout);
    (void)getchar(); /* closing sends watches too: not before they are counted */
    for (int i = 0; i < count; i++)
        hf_close(stores[i]);
    hf_close(store);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    (void)snprintf(url, sizeof url, "zookeeper://%s", argv[2]);
    if (strcmp(argv[1], "pair") == 0)
        pair(argv[2]);
    else if (argc == 4 && atoi(argv[3]) <= WAITERS_MAX)
        line(atoi(argv[3]));
    else
        return 64;
    return 0;
}
