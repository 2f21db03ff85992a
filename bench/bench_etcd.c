/* bench_etcd.c - measures the etcd store against bare requests and etcdctl, for etcd.sh.
 *
 *   bench_etcd pair URL ENDPOINT LEASE      acquire+release against a raw transaction + delete
 *   bench_etcd turns COUNT CMD... + CMD...  two commands in turns, whole processes
 *   bench_etcd bare ENDPOINT                the least that a process with libcurl can do
 *   bench_etcd wait URL LOCK COUNT          COUNT clients wait for the lock; prints their tokens */
#include "compare.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS   120 /* of two pairs each */
#define WAITERS  1000
#define PUT_SIZE 512

extern char **environ;

struct pair {
    struct hf_store *store;
    CURL *curl;
    const char *endpoint;
    char put[PUT_SIZE];
};

struct turns {
    char **first;
    char **second;
};

static size_t swallow(char *bytes, size_t one, size_t len, void *data)
{
    (void)bytes;
    (void)data;
    return one * len;
}

static void post(CURL *curl, const char *endpoint, const char *path, const char *json)
{
    char url[256];
    long status = 0;

    (void)snprintf(url, sizeof url, "%s/v3/%s", endpoint, path);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json);
    if (curl_easy_perform(curl) != CURLE_OK ||
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status != 200) {
        fprintf(stderr, "bench: a raw request failed\n");
        exit(1);
    }
}

/* What anybody would write: put on a lease if absent, delete if there. */
static void write_put(char out[PUT_SIZE], const char *lease)
{
    (void)snprintf(
        out, PUT_SIZE,
        "{\"compare\":[{\"key\":\"cmF3\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
        "\"create_revision\":\"0\"}],\"success\":[{\"request_put\":{\"key\":\"cmF3\","
        "\"value\":\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\",\"lease\":\"%s\"}}]}",
        lease);
}

static void raw_pair(void *data)
{
    const struct pair *pair = data;

    post(pair->curl, pair->endpoint, "kv/txn", pair->put);
    post(pair->curl, pair->endpoint, "kv/txn",
         "{\"compare\":[{\"key\":\"cmF3\",\"target\":\"CREATE\",\"result\":\"GREATER\","
         "\"create_revision\":\"0\"}],\"success\":[{\"request_delete_range\":"
         "{\"key\":\"cmF3\"}}]}");
}

static void bare(const char *endpoint)
{
    struct pair pair = {.curl = curl_easy_init(), .endpoint = endpoint};
    char lease[32];
    char grant[96];

    (void)curl_easy_setopt(pair.curl, CURLOPT_WRITEFUNCTION, swallow);
    (void)snprintf(lease, sizeof lease, "%d%06ld", (int)getpid(), (long)now_us() % 1000000);
    (void)snprintf(grant, sizeof grant, "{\"ID\":\"%s\",\"TTL\":\"30\"}", lease);
    write_put(pair.put, lease);
    post(pair.curl, endpoint, "lease/grant", grant);
    raw_pair(&pair);
    curl_easy_cleanup(pair.curl);
}

static void lock_pair(void *data)
{
    const struct pair *pair = data;
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire(pair->store, "pair", NULL, &lease, &err), &err);
    must(hf_release(lease, &err), &err);
}

static void measure_pair(const char *url, const char *endpoint, const char *lease)
{
    struct pair pair = {.curl = curl_easy_init(), .endpoint = endpoint};
    struct hf_error err;
    struct compared result;

    (void)curl_easy_setopt(pair.curl, CURLOPT_WRITEFUNCTION, swallow);
    write_put(pair.put, lease);
    must(hf_open(url, &pair.store, &err), &err);
    result = compare(&(struct comparison){raw_pair, lock_pair, &pair, ROUNDS, 1});
    printf("raw_us %.2f\nours_us %.2f\nratio %.2f\n", result.plain_us, result.ours_us,
           result.ratio);
    hf_close(pair.store);
    curl_easy_cleanup(pair.curl);
}

static void run(char **argv)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench: %s failed\n", argv[0]);
        exit(1);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
}

static void run_first(void *data)
{
    run(((const struct turns *)data)->first);
}

static void run_second(void *data)
{
    run(((const struct turns *)data)->second);
}

/* words: a command, "+", a command, NULL. */
static int measure_turns(int rounds, char **words)
{
    struct turns turns = {.first = words};
    struct compared result;

    while (*words != NULL && strcmp(*words, "+") != 0)
        words++;
    if (*words == NULL || words[1] == NULL || rounds < 1 || rounds > COMPARE_ROUNDS_MAX)
        return 64;
    *words = NULL;
    turns.second = words + 1;
    result = compare(&(struct comparison){run_second, run_first, &turns, rounds, 1});
    printf("first_us %.2f\nsecond_us %.2f\nratio %.2f\n", result.ours_us, result.plain_us,
           result.ratio);
    return 0;
}

struct waiter {
    pthread_t thread;
    const char *url;
    const char *lock;
};

/* Waits for its turn, says when it had it, and lets the next one in. */
static void *wait_turn(void *data)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = -1};
    struct waiter *waiter = data;
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_open(waiter->url, &store, &err), &err);
    must(hf_acquire(store, waiter->lock, &options, &lease, &err), &err);
    printf("%llu\n", (unsigned long long)hf_lease_token(lease));
    (void)fflush(stdout);
    must(hf_release(lease, &err), &err);
    hf_close(store);
    return NULL;
}

static void wait_line(const char *url, const char *lock, size_t count)
{
    static struct waiter waiters[WAITERS];

    for (size_t i = 0; i < count && i < WAITERS; i++) {
        waiters[i] = (struct waiter){.url = url, .lock = lock};
        if (pthread_create(&waiters[i].thread, NULL, wait_turn, &waiters[i]) != 0)
            exit(1);
    }
    for (size_t i = 0; i < count && i < WAITERS; i++)
        pthread_join(waiters[i].thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "pair") == 0)
        measure_pair(argv[2], argv[3], argv[4]);
    else if (argc > 5 && strcmp(argv[1], "turns") == 0)
        return measure_turns((int)strtol(argv[2], NULL, 10), argv + 3);
    else if (argc == 3 && strcmp(argv[1], "bare") == 0)
        bare(argv[2]);
    else if (argc == 5 && strcmp(argv[1], "wait") == 0)
        wait_line(argv[2], argv[3], strtoul(argv[4], NULL, 10));
    else
        return 64;
    return 0;
}
