/* tool_storm.c - clients that take one lock again and again and count under its protection.
 *
 *   tool_storm URL CLIENTS SECONDS STOP_FILE
 *
 * Ends when the file is there, or after so many seconds.
 * The counter is read, some time passes, it is written: a lost update shows. A fence in front of it
 * admits a token unless it has admitted a higher one. Prints what was seen:
 *   holds=N unknown=N stale=N lost_updates=N overlaps=N repeated=N */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TTL_MS = 3000 };

struct scene {
    pthread_mutex_t lock;
    uint64_t mark;     /* the fence: the highest token admitted */
    uint64_t counter;  /* what is protected                     */
    uint64_t admitted; /* writes that the fence let through     */
    uint64_t holds;
    uint64_t unknown;
    uint64_t stale;
    uint64_t overlaps; /* inside while another's lease was valid */
    uint64_t repeated; /* a token that is not above the last     */
    uint64_t last_token;
    int64_t valid_until_ms;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void enter(struct scene *scene, struct hf_lease *lease)
{
    uint64_t token = hf_lease_token(lease);

    pthread_mutex_lock(&scene->lock);
    scene->holds++;
    scene->overlaps += now_ms() < scene->valid_until_ms;
    scene->repeated += token <= scene->last_token;
    scene->last_token = token;
    scene->valid_until_ms = now_ms() + hf_lease_remaining_ms(lease);
    if (token > scene->mark)
        scene->mark = token;
    pthread_mutex_unlock(&scene->lock);
}

static void count_one(struct scene *scene, struct hf_lease *lease)
{
    uint64_t read;

    enter(scene, lease);
    read = __atomic_load_n(&scene->counter, __ATOMIC_SEQ_CST);
    (void)usleep((useconds_t)(random() % 3000));
    pthread_mutex_lock(&scene->lock);
    if (hf_lease_token(lease) < scene->mark) {
        scene->stale++;
    } else {
        scene->counter = read + 1;
        scene->admitted++;
        scene->valid_until_ms = 0; /* we are done, and about to say so */
    }
    pthread_mutex_unlock(&scene->lock);
}

static void work(struct scene *scene, const char *url, int64_t until_ms, const char *stop_file)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = TTL_MS, .wait_ms = 4000, .no_keeper = true};
    struct hf_store *store = NULL;
    struct hf_error err;

    while (now_ms() < until_ms && access(stop_file, F_OK) != 0) {
        struct hf_lease *lease;
        enum hf_status status;

        if (store == NULL && hf_open(url, &store, &err) != HF_OK) {
            (void)usleep(50000);
            continue;
        }
        status = hf_acquire(store, "storm", &options, &lease, &err);
        if (status == HF_OK) {
            count_one(scene, lease);
            status = hf_release(lease, &err);
        }
        if (status == HF_UNKNOWN)
            __atomic_add_fetch(&scene->unknown, 1, __ATOMIC_SEQ_CST);
        else if (status != HF_OK && status != HF_BUSY && status != HF_LOST &&
                 status != HF_UNREACHABLE)
            (void)fprintf(stderr, "# %s\n", err.text);
    }
    hf_close(store);
}

int main(int argc, char **argv)
{
    struct scene *scene =
        mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;
    int64_t until_ms;

    if (argc != 5 || scene == MAP_FAILED)
        return 64;
    (void)pthread_mutexattr_init(&shared);
    (void)pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&scene->lock, &shared);
    until_ms = now_ms() + strtol(argv[3], NULL, 10) * 1000;
    for (long i = strtol(argv[2], NULL, 10); i > 0; i--)
        if (fork() == 0) {
            srandom((unsigned)i);
            work(scene, argv[1], until_ms, argv[4]);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    printf("holds=%llu unknown=%llu stale=%llu lost_updates=%llu overlaps=%llu repeated=%llu\n",
           (unsigned long long)scene->holds, (unsigned long long)scene->unknown,
           (unsigned long long)scene->stale, (unsigned long long)(scene->admitted - scene->counter),
           (unsigned long long)scene->overlaps, (unsigned long long)scene->repeated);
    return 0;
}
