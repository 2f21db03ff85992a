/* tool_worker.c - counts under a lock, with a fence, for as long as it is told.
 *
 *   tool_worker URL LOCK FILE SECONDS [TTL_MS]
 *
 * FILE holds "TOKEN COUNTER": the highest token that was admitted, and what is counted. Each hold
 * enters with its token, reads the counter, works a moment and writes the counter plus one, unless
 * the fence has seen a higher token since. So the counter in the end is the number of writes that
 * were admitted, or an update was lost. Prints "done WRITES holds HOLDS stale STALE errors ERRORS".
 * Exit 1 if a hold got a token that is not above all before it. */
#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct fence {
    unsigned long long token;
    unsigned long long counter;
};

static unsigned long writes;
static unsigned long holds;
static unsigned long stale;
static unsigned long errors;

static void load(int fd, struct fence *fence)
{
    char text[64] = "";

    memset(fence, 0, sizeof *fence);
    if (pread(fd, text, sizeof text - 1, 0) > 0)
        (void)sscanf(text, "%llu %llu", &fence->token, &fence->counter);
}

static void save(int fd, const struct fence *fence)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%020llu %020llu\n", fence->token, fence->counter);

    if (pwrite(fd, text, (size_t)len, 0) != len)
        exit(2);
}

/* Raises the fence. False if the token is not above every hold's before: it should be. */
static bool enter(int fd, unsigned long long token, struct fence *fence)
{
    bool above;

    (void)flock(fd, LOCK_EX);
    load(fd, fence);
    above = token > fence->token;
    if (above) {
        fence->token = token;
        save(fd, fence);
    }
    (void)flock(fd, LOCK_UN);
    return above;
}

static void commit(int fd, unsigned long long token, unsigned long long counter)
{
    struct fence now;

    (void)flock(fd, LOCK_EX);
    load(fd, &now);
    if (token < now.token) {
        stale++;
    } else {
        now.counter = counter + 1;
        save(fd, &now);
        writes++;
    }
    (void)flock(fd, LOCK_UN);
}

int main(int argc, char **argv)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = 5000, .ttl_ms = 4000};
    struct hf_store *store = NULL;
    struct hf_error err;
    int64_t until_ns;
    int fd;

    if (argc < 5 || (fd = open(argv[3], O_RDWR)) < 0)
        return 64;
    until_ns = hf__now_ns() + strtoll(argv[4], NULL, 10) * HF__NS_PER_S;
    if (argc > 5)
        options.ttl_ms = (uint32_t)strtoul(argv[5], NULL, 10);
    while (hf__now_ns() < until_ns) {
        struct hf_lease *lease;
        struct fence fence;

        if ((store == NULL && hf_open(argv[1], &store, &err) != HF_OK) ||
            hf_acquire(store, argv[2], &options, &lease, &err) != HF_OK) {
            errors++;
            (void)fprintf(stderr, "%s\n", err.text);
            hf__sleep_ns(50 * HF__NS_PER_MS);
            continue;
        }
        holds++;
        /* A hold that is past its deadline already must not begin, and may come too late. */
        if (hf_lease_remaining_ms(lease) > 0) {
            if (!enter(fd, hf_lease_token(lease), &fence)) {
                if (hf_lease_remaining_ms(lease) > 0) {
                    (void)printf("token %llu not above %llu\n",
                                 (unsigned long long)hf_lease_token(lease), fence.token);
                    return 1;
                }
            } else {
                hf__sleep_ns(HF__NS_PER_MS);
                commit(fd, hf_lease_token(lease), fence.counter);
            }
        }
        if (hf_release(lease, &err) != HF_OK) {
            errors++;
            (void)fprintf(stderr, "%s\n", err.text);
        }
    }
    (void)printf("done %lu holds %lu stale %lu errors %lu\n", writes, holds, stale, errors);
    hf_close(store);
    return 0;
}
