/* tool_counter.c - one of several processes that count together, under a lock and behind a fence.
 *
 *   tool_counter URL LOCK FILE SECONDS TTL_MS
 *
 * FILE holds "TOKEN VALUE": the highest token admitted, and the counter. Every hold raises the
 * token first, reads the value, dawdles, and writes value + 1 if its token still is the highest.
 * Prints how many increments were admitted: together they are the value, or one was lost. A token
 * that comes twice, or a hold inside its validity that finds a higher one, is a fault (exit 1). */
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum verdict { ADMITTED, STALE, REPEATED };

static int fd;

/* Under flock: admits the token and, if add is not 0, adds to the counter. */
static enum verdict visit(uint64_t token, bool entering, uint64_t seen, uint64_t *value)
{
    unsigned long long highest = 0;
    unsigned long long count = 0;
    char text[64] = "";
    enum verdict verdict = ADMITTED;

    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    (void)!pread(fd, text, sizeof text - 1, 0);
    (void)sscanf(text, "%llu %llu", &highest, &count);
    if (token < highest)
        verdict = STALE;
    else if (entering && token == highest)
        verdict = REPEATED;
    else if (!entering && count != seen)
        verdict = REPEATED; /* somebody wrote behind the fence */
    if (verdict == ADMITTED) {
        if (!entering)
            count++;
        (void)snprintf(text, sizeof text, "%020llu %020llu\n", (unsigned long long)token, count);
        (void)!pwrite(fd, text, strlen(text), 0);
    }
    (void)flock(fd, LOCK_UN);
    *value = count;
    return verdict;
}

/* One hold. Returns whether anything is wrong. */
static bool hold(struct hf_lease *lease, unsigned long *counted, unsigned long *stale)
{
    uint64_t token = hf_lease_token(lease);
    uint64_t value;
    uint64_t ignored;
    enum verdict verdict = visit(token, true, 0, &value);

    if (verdict == STALE && hf_lease_remaining_ms(lease) > 0) {
        printf("a valid hold with token %llu was overtaken\n", (unsigned long long)token);
        return true;
    }
    if (verdict == ADMITTED) {
        hf__sleep_ns((int64_t)(token % 5) * HF__NS_PER_MS);
        verdict = visit(token, false, value, &ignored);
    }
    if (verdict == REPEATED) {
        printf("token %llu came twice, or somebody wrote behind the fence\n",
               (unsigned long long)token);
        return true;
    }
    *(verdict == ADMITTED ? counted : stale) += 1;
    return false;
}

int main(int argc, char **argv)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = 2000};
    unsigned long counted = 0, stale = 0, busy = 0, troubled = 0;
    struct hf_store *store = NULL;
    struct hf_error err = {0};
    int64_t until_ns;
    bool wrong = false;

    if (argc != 6)
        return 64;
    fd = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    until_ns = hf__now_ns() + strtoll(argv[4], NULL, 10) * HF__NS_PER_S;
    options.ttl_ms = (uint32_t)strtoul(argv[5], NULL, 10);
    while (hf_open(argv[1], &store, &err) != HF_OK && hf__now_ns() < until_ns)
        ;
    while (!wrong && store != NULL && hf__now_ns() < until_ns) {
        struct hf_lease *lease;
        enum hf_status status = hf_acquire(store, argv[2], &options, &lease, &err);

        if (status == HF_OK) {
            wrong = hold(lease, &counted, &stale);
            if (hf_release(lease, &err) != HF_OK)
                troubled++;
        } else if (status == HF_BUSY) {
            busy++;
        } else {
            troubled++;
            hf__sleep_ns(20 * HF__NS_PER_MS);
        }
    }
    hf_close(store);
    printf("counted %lu stale %lu busy %lu troubled %lu last: %s\n", counted, stale, busy, troubled,
           err.text);
    return wrong || fd < 0;
}
