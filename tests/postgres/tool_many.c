/* tool_many.c - keeps many locks, and tells how close to its end any of them came.
 *
 *   tool_many URL COUNT TTL_MS SECONDS
 *
 * Takes the locks many-0 to many-(COUNT-1) from a few threads, says "ready", lets the keeper renew
 * them for that long, and prints "held H lost L least MS": the least time that any of those still
 * held had. */
#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8

static struct hf_store *store;
static struct hf_lease **leases;
static int64_t *least_ms; /* of each */
static unsigned count;
static uint32_t ttl_ms;
static atomic_uint next;
static atomic_uint failed;

static void *take(void *data)
{
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = ttl_ms};
    unsigned i;

    (void)data;
    while ((i = atomic_fetch_add(&next, 1)) < count) {
        struct hf_error err;
        char name[32];

        (void)snprintf(name, sizeof name, "many-%u", i);
        if (hf_acquire(store, name, &options, &leases[i], &err) != HF_OK) {
            fprintf(stderr, "%s\n", err.text);
            atomic_fetch_add(&failed, 1);
        }
    }
    return NULL;
}

static void look(void)
{
    for (unsigned i = 0; i < count; i++) {
        int64_t left_ms = hf_lease_remaining_ms(leases[i]);

        if (left_ms < least_ms[i])
            least_ms[i] = left_ms;
    }
}

static void report(void)
{
    unsigned held = 0;
    int64_t least = INT64_MAX;

    for (unsigned i = 0; i < count; i++) {
        if (least_ms[i] <= 0)
            continue;
        held++;
        if (least_ms[i] < least)
            least = least_ms[i];
    }
    printf("held %u lost %u least %lld\n", held, count - held, (long long)least);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    pthread_t threads[THREADS];
    struct hf_error err;
    time_t end;

    if (argc != 5 || hf_open(argv[1], &store, &err) != HF_OK)
        return 2;
    count = (unsigned)strtoul(argv[2], NULL, 10);
    ttl_ms = (uint32_t)strtoul(argv[3], NULL, 10);
    leases = calloc(count, sizeof *leases);
    least_ms = calloc(count, sizeof *least_ms);
    if (leases == NULL || least_ms == NULL)
        return 2;
    for (unsigned i = 0; i < count; i++)
        least_ms[i] = INT64_MAX;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, take, NULL) != 0)
            return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (failed > 0)
        return 2;
    puts("ready");
    (void)fflush(stdout);
    end = time(NULL) + strtol(argv[4], NULL, 10);
    while (time(NULL) < end) {
        look();
        (void)nanosleep(&pause, NULL);
    }
    report();
    _Exit(0); /* the locks end with their server */
}
