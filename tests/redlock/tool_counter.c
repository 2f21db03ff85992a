/* tool_counter.c - processes that take a lock in turns and add one to a counter behind a fence.
 *
 *   tool_counter URL PROCESSES SECONDS
 *
 * The counter stands in shared memory under a mutex of its own: it is the resource, with the rule
 * of the fence, and the witness of who holds the lock until when. Prints one line: value V admitted
 * A stale S overlaps O grants G refusals R longest_gap_ms L last_gap_ms E
 */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TTL_MS = 2000, WAIT_MS = 500, WORK_US = 500 };

struct shared {
    pthread_mutex_t lock;
    uint64_t fence, value, admitted, stale, overlaps, grants, refusals, disorder;
    int64_t held_until_ns; /* by the client that says so itself; 0: nobody */
    int64_t last_grant_ns, longest_gap_ns;
};

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void nap(long us)
{
    struct timespec pause = {.tv_nsec = us * 1000};

    (void)nanosleep(&pause, NULL);
}

/* The fence is raised before the first read. */
static bool enter(struct shared *shared, uint64_t token, int64_t remaining_ms, uint64_t *value)
{
    int64_t now = now_ns();
    bool admitted;

    (void)pthread_mutex_lock(&shared->lock);
    if (shared->held_until_ns > now && remaining_ms > 0)
        shared->overlaps++;
    shared->held_until_ns = now + remaining_ms * 1000000;
    if (now - shared->last_grant_ns > shared->longest_gap_ns)
        shared->longest_gap_ns = now - shared->last_grant_ns;
    shared->last_grant_ns = now;
    shared->grants++;
    admitted = token >= shared->fence;
    if (admitted)
        shared->fence = token;
    else
        shared->disorder++;
    *value = shared->value;
    (void)pthread_mutex_unlock(&shared->lock);
    return admitted;
}

static void leave(struct shared *shared, uint64_t token, uint64_t value)
{
    (void)pthread_mutex_lock(&shared->lock);
    if (token >= shared->fence) {
        shared->value = value;
        shared->admitted++;
    } else {
        shared->stale++;
    }
    shared->held_until_ns = 0;
    (void)pthread_mutex_unlock(&shared->lock);
}

static void work(struct hf_store *store, struct shared *shared, int64_t end_ns)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = TTL_MS, .wait_ms = WAIT_MS, .no_keeper = true};

    while (now_ns() < end_ns) {
        struct hf_lease *lease;
        struct hf_error err;
        uint64_t value;

        if (hf_acquire(store, "counter", &options, &lease, &err) != HF_OK) {
            (void)__atomic_fetch_add(&shared->refusals, 1, __ATOMIC_RELAXED);
            nap(WORK_US);
            continue;
        }
        if (enter(shared, hf_lease_token(lease), hf_lease_remaining_ms(lease), &value)) {
            nap(WORK_US);
            leave(shared, hf_lease_token(lease), value + 1);
        }
        (void)!hf_release(lease, &err);
    }
}

int main(int argc, char **argv)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int processes = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
    pthread_mutexattr_t attributes;
    int64_t end_ns;

    if (shared == MAP_FAILED || processes <= 0)
        return 64;
    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&shared->lock, &attributes);
    end_ns = now_ns() + strtol(argv[3], NULL, 10) * 1000000000LL;
    shared->last_grant_ns = now_ns();
    for (int i = 0; i < processes; i++) {
        struct hf_store *store;
        struct hf_error err;

        if (fork() != 0)
            continue;
        if (hf_open(argv[1], &store, &err) != HF_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
        work(store, shared, end_ns);
        hf_close(store);
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    printf("value %llu admitted %llu stale %llu disorder %llu overlaps %llu grants %llu "
           "refusals %llu longest_gap_ms %lld last_gap_ms %lld\n",
           (unsigned long long)shared->value, (unsigned long long)shared->admitted,
           (unsigned long long)shared->stale, (unsigned long long)shared->disorder,
           (unsigned long long)shared->overlaps, (unsigned long long)shared->grants,
           (unsigned long long)shared->refusals, (long long)(shared->longest_gap_ns / 1000000),
           (long long)((now_ns() - shared->last_grant_ns) / 1000000));
    return 0;
}
