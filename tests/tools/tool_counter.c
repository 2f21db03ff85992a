/* tool_counter.c - one of several processes that count together, under a lock and behind a fence.
 *
 *   tool_counter URL LOCK FILE SECONDS TTL_MS [kept]
 *
 * FILE holds "TOKEN VALUE UNTIL SINCE GAP": the highest token admitted, the counter, how long the
 * last hold said it was valid (0 when it is over), when it began, and the longest time between two
 * of them, in nanoseconds; the end of the last process counts as one. Every hold raises the token
 * first, reads the value, dawdles, and writes value + 1 if its token still is the highest. So the
 * value in the end is the number of writes that were admitted, or one was lost. Ends after SECONDS,
 * or by TERM.
 *
 * "kept": the keeper renews the holds, as in most programs; otherwise nobody does.
 *
 * Prints "counted N stale N busy N troubled N overlaps N", and the texts of the errors to stderr.
 * An overlap is a hold that began while another's was valid. Exit 1 if a token came twice, if
 * somebody wrote behind the fence, or if a valid hold found a higher token than its own. */
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum verdict { ADMITTED, STALE, REPEATED };

struct counts {
    unsigned long counted, stale, busy, troubled, overlaps;
};

struct record {
    unsigned long long token, value, until_ns, since_ns, gap_ns;
};

static volatile sig_atomic_t ending;

static void on_term(int number)
{
    (void)number;
    ending = 1;
}

enum { RECORD_MAX = 128 };

static void load(int fd, struct record *record)
{
    char text[RECORD_MAX] = "";

    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    memset(record, 0, sizeof *record);
    if (pread(fd, text, sizeof text - 1, 0) > 0)
        (void)sscanf(text, "%llu %llu %llu %llu %llu", &record->token, &record->value,
                     &record->until_ns, &record->since_ns, &record->gap_ns);
}

static void save(int fd, const struct record *record)
{
    char text[RECORD_MAX];
    int len =
        snprintf(text, sizeof text, "%020llu %020llu %020llu %020llu %020llu\n", record->token,
                 record->value, record->until_ns, record->since_ns, record->gap_ns);

    if (pwrite(fd, text, (size_t)len, 0) != len)
        exit(2);
}

/* Somebody has the lock now, or the end has come. */
static void note_gap(struct record *record)
{
    unsigned long long now_ns = (unsigned long long)hf__now_ns();

    if (record->since_ns != 0 && now_ns - record->since_ns > record->gap_ns)
        record->gap_ns = now_ns - record->since_ns;
    record->since_ns = now_ns;
}

static enum verdict enter(int fd, struct hf_lease *lease, uint64_t *value, struct counts *counts)
{
    uint64_t token = hf_lease_token(lease);
    enum verdict verdict = ADMITTED;
    struct record record;
    int64_t left_ms;

    load(fd, &record);
    left_ms = hf_lease_remaining_ms(lease);
    if (left_ms > 0 && record.until_ns > (unsigned long long)hf__now_ns())
        counts->overlaps++;
    if (token <= record.token)
        verdict = token == record.token ? REPEATED : STALE;
    *value = record.value;
    if (verdict == ADMITTED) {
        record.token = token;
        note_gap(&record);
        record.until_ns = (unsigned long long)(hf__now_ns() + left_ms * HF__NS_PER_MS);
        save(fd, &record);
    }
    (void)flock(fd, LOCK_UN);
    return verdict;
}

static enum verdict commit(int fd, uint64_t token, uint64_t seen)
{
    enum verdict verdict = STALE;
    struct record record;

    load(fd, &record);
    if (token == record.token) {
        verdict = record.value == seen ? ADMITTED : REPEATED;
        record.value = seen + 1;
        record.until_ns = 0;
        save(fd, &record);
    }
    (void)flock(fd, LOCK_UN);
    return verdict;
}

/* One hold. Returns whether anything is wrong. */
static bool hold(int fd, struct hf_lease *lease, struct counts *counts)
{
    uint64_t token = hf_lease_token(lease);
    uint64_t value;
    enum verdict verdict = enter(fd, lease, &value, counts);

    if (verdict == STALE && hf_lease_remaining_ms(lease) > 0) {
        printf("a valid hold with token %llu was overtaken\n", (unsigned long long)token);
        return true;
    }
    if (verdict == ADMITTED) {
        hf__sleep_ns((int64_t)(token % 3) * 5 * HF__NS_PER_MS);
        verdict = commit(fd, token, value);
    }
    if (verdict == REPEATED) {
        printf("token %llu came twice, or somebody wrote behind the fence\n",
               (unsigned long long)token);
        return true;
    }
    *(verdict == ADMITTED ? &counts->counted : &counts->stale) += 1;
    return false;
}

static bool work(struct hf_store *store, const char *name, int fd, uint32_t ttl_ms, bool kept,
                 struct counts *counts)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = ttl_ms, .wait_ms = 2000, .no_keeper = !kept};
    struct hf_error err;
    struct hf_lease *lease;
    enum hf_status status = hf_acquire(store, name, &options, &lease, &err);
    bool wrong = false;

    if (status == HF_BUSY) {
        counts->busy++;
        return false;
    }
    if (status == HF_OK) {
        wrong = hold(fd, lease, counts);
        status = hf_release(lease, &err);
    }
    if (status != HF_OK) {
        counts->troubled++;
        fprintf(stderr, "%s\n", err.text);
        hf__sleep_ns(20 * HF__NS_PER_MS);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_term};
    struct counts counts = {0};
    struct record record;
    struct hf_store *store = NULL;
    struct hf_error err;
    int64_t until_ns;
    bool wrong = false;
    int fd;

    if (argc < 6 || argc > 7 || (fd = open(argv[3], O_RDWR | O_CLOEXEC)) < 0)
        return 64;
    (void)sigaction(SIGTERM, &action, NULL);
    until_ns = hf__now_ns() + strtoll(argv[4], NULL, 10) * HF__NS_PER_S;
    while (!wrong && !ending && hf__now_ns() < until_ns) {
        if (store != NULL)
            wrong =
                work(store, argv[2], fd, (uint32_t)strtoul(argv[5], NULL, 10), argc > 6, &counts);
        else if (hf_open(argv[1], &store, &err) != HF_OK)
            hf__sleep_ns(20 * HF__NS_PER_MS);
    }
    hf_close(store);
    load(fd, &record);
    note_gap(&record);
    save(fd, &record);
    (void)flock(fd, LOCK_UN);
    printf("counted %lu stale %lu busy %lu troubled %lu overlaps %lu\n", counts.counted,
           counts.stale, counts.busy, counts.troubled, counts.overlaps);
    return wrong;
}
