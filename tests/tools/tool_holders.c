/* tool_holders.c - threads of one process that hold a lock each, kept by the keeper.
 *
 *   tool_holders URL THREADS TTL_MS
 *
 * All threads lock and unlock for a while first, so that each has had a connection. Then each takes
 * a lock and keeps it: "held". After TERM: "lost N of THREADS". */
#include <holdfast.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 64, WARM_PAIRS = 40 };

static struct hf_store *store;
static uint32_t ttl_ms;
static pthread_barrier_t together;
static struct hf_lease *leases[THREADS_MAX];

static enum hf_status take(const char *name, bool kept, struct hf_lease **out)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = ttl_ms, .wait_ms = 20000, .no_keeper = !kept};
    struct hf_error err;
    enum hf_status status = hf_acquire(store, name, &options, out, &err);

    if (status != HF_OK)
        fprintf(stderr, "%s: %s\n", hf_status_name(status), err.text);
    return status;
}

static void *hold(void *data)
{
    size_t index = (size_t)(struct hf_lease **)data - (size_t)leases;
    char name[64];

    index /= sizeof *leases;
    (void)snprintf(name, sizeof name, "holder %ld.%zu", (long)getpid(), index);
    pthread_barrier_wait(&together);
    for (int i = 0; i < WARM_PAIRS; i++) {
        struct hf_lease *lease;

        if (take(name, false, &lease) == HF_OK)
            (void)!hf_release(lease, NULL);
    }
    pthread_barrier_wait(&together);
    (void)take(name, true, &leases[index]);
    return NULL;
}

int main(int argc, char **argv)
{
    size_t count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    pthread_t threads[THREADS_MAX];
    struct hf_error err;
    size_t lost = 0;
    sigset_t ends;
    int number;

    if (count == 0 || count > THREADS_MAX)
        return 64;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    ttl_ms = (uint32_t)strtoul(argv[3], NULL, 10);
    if (hf_open(argv[1], &store, &err) != HF_OK) {
        puts(err.text);
        return 1;
    }
    pthread_barrier_init(&together, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, hold, &leases[i]) != 0)
            return 1;
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    puts("held");
    (void)fflush(stdout);
    (void)sigwait(&ends, &number);
    for (size_t i = 0; i < count; i++)
        lost += leases[i] == NULL || hf_lease_remaining_ms(leases[i]) <= 0;
    printf("lost %zu of %zu\n", lost, count);
    for (size_t i = 0; i < count; i++)
        if (leases[i] != NULL)
            (void)!hf_release(leases[i], NULL);
    hf_close(store);
    return 0;
}
