/* tool_overlap.c - holds that nothing disturbs, and somebody who waits for each of them.
 *
 *   tool_overlap HOLDER_URL WAITER_URL LOCKS ROUNDS TTL_MS HOLD_MS
 *
 * For each lock a thread of its own with two clients: one takes the lock and keeps it, the other
 * one waits for HOLD_MS. Whoever gets in shows that the hold ended at the server; if the first one
 * thinks at that moment that it holds, the two overlap. Prints "held N lost N overlaps N". */
#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCKS_MAX 64

static char **words;
static atomic_int held, lost, overlaps;

static void one_round(struct hf_store *holder, struct hf_store *waiter, const char *name)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = (uint32_t)strtoul(words[5], NULL, 10)};
    struct hf_lease *first;
    struct hf_lease *second;
    struct hf_error err;

    if (hf_acquire(holder, name, &options, &first, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return;
    }
    atomic_fetch_add(&held, 1);
    options.wait_ms = strtoll(words[6], NULL, 10);
    if (hf_acquire(waiter, name, &options, &second, &err) == HF_OK) {
        atomic_fetch_add(&lost, 1);
        if (hf_lease_remaining_ms(first) > 0)
            atomic_fetch_add(&overlaps, 1);
        if (hf_release(second, &err) != HF_OK)
            fprintf(stderr, "%s\n", err.text);
    }
    if (hf_release(first, &err) != HF_OK)
        fprintf(stderr, "%s\n", err.text);
}

static void *work(void *data)
{
    unsigned long rounds = strtoul(words[4], NULL, 10);
    struct hf_store *holder = NULL;
    struct hf_store *waiter = NULL;
    struct hf_error err;
    char name[64];

    if (hf_open(words[1], &holder, &err) != HF_OK || hf_open(words[2], &waiter, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        rounds = 0;
    }
    for (unsigned long i = 0; i < rounds; i++) {
        (void)snprintf(name, sizeof name, "lock%lu", (unsigned long)(size_t)data);
        one_round(holder, waiter, name);
    }
    hf_close(holder);
    hf_close(waiter);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[LOCKS_MAX];
    size_t count = argc == 7 ? strtoul(argv[3], NULL, 10) : 0;

    if (count < 1 || count > LOCKS_MAX)
        return 64;
    words = argv;
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return 1;
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("held %d lost %d overlaps %d\n", atomic_load(&held), atomic_load(&lost),
           atomic_load(&overlaps));
    return 0;
}
