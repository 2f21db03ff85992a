/* etcd_client.c - measures the etcd store against bare requests. Built and called by etcd.sh.
 *
 *   etcd_client pair URL ENDPOINT LEASE    acquire+release against a raw transaction + delete
 *   etcd_client wait URL LOCK COUNT        COUNT clients wait for the lock; prints their tokens
 */
#include "bench.h"

#include <curl/curl.h>
#include <pthread.h>
#include <unistd.h>

#define PAIRS   500
#define WAITERS 1000

static size_t swallow(char *bytes, size_t one, size_t len, void *data)
{
    (void)bytes;
    (void)data;
    return one * len;
}

static void post(CURL *curl, const char *endpoint, const char *json)
{
    char url[256];
    long status = 0;

    (void)snprintf(url, sizeof url, "%s/v3/kv/txn", endpoint);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json);
    if (curl_easy_perform(curl) != CURLE_OK ||
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status != 200) {
        fprintf(stderr, "bench: a raw request failed\n");
        exit(1);
    }
}

/* What anybody would write: put on a lease if absent, delete if there. */
static double raw_pair(CURL *curl, const char *endpoint, const char *put)
{
    double start = now_us();

    post(curl, endpoint, put);
    post(curl, endpoint,
         "{\"compare\":[{\"key\":\"cmF3\",\"target\":\"CREATE\",\"result\":\"GREATER\","
         "\"create_revision\":\"0\"}],\"success\":[{\"request_delete_range\":"
         "{\"key\":\"cmF3\"}}]}");
    return now_us() - start;
}

static double lock_pair(struct hf_store *store)
{
    double start = now_us();
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire(store, "pair", NULL, &lease, &err), &err);
    must(hf_release(lease, &err), &err);
    return now_us() - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One of each in turn, so that whatever else the machine does hits both. */
static void pair(const char *url, const char *endpoint, const char *lease)
{
    CURL *curl = curl_easy_init();
    static double raw[PAIRS];
    static double ours[PAIRS];
    struct hf_store *store;
    struct hf_error err;
    char put[512];

    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    (void)snprintf(
        put, sizeof put,
        "{\"compare\":[{\"key\":\"cmF3\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
        "\"create_revision\":\"0\"}],\"success\":[{\"request_put\":{\"key\":\"cmF3\","
        "\"value\":\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\",\"lease\":\"%s\"}}]}",
        lease);
    must(hf_open(url, &store, &err), &err);
    for (int i = -20; i < PAIRS; i++) {
        double r = raw_pair(curl, endpoint, put);
        double o = lock_pair(store);

        raw[i < 0 ? 0 : i] = r;
        ours[i < 0 ? 0 : i] = o;
    }
    qsort(raw, PAIRS, sizeof *raw, by_value);
    qsort(ours, PAIRS, sizeof *ours, by_value);
    fact("etcd: raw JSON transaction + delete", raw[PAIRS / 2], "us");
    fact("etcd: acquire + release", ours[PAIRS / 2], "us");
    at_most("etcd: acquire + release against raw", ours[PAIRS / 2] / raw[PAIRS / 2], 1.1, "x");
    hf_close(store);
    curl_easy_cleanup(curl);
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
    fflush(stdout);
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
        (void)pthread_join(waiters[i].thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "pair") == 0)
        pair(argv[2], argv[3], argv[4]);
    else if (argc == 5 && strcmp(argv[1], "wait") == 0)
        wait_line(argv[2], argv[3], strtoul(argv[4], NULL, 10));
    else
        return 64;
    return 0;
}
