/* test_records_storm.c - writers that are killed and frozen at random: what is on record only ever
 * gets newer, is whole, and is never behind a put that was reported. */
#include "records.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 5, TTL_MS = 150, PUTS = 4 };

/* A pair (token, number) as one number; a hold makes few puts, and tokens are microseconds. */
static uint64_t rank_of(uint64_t token, uint64_t number)
{
    return token * 8 + number;
}

struct writer {
    const char *dir;
    atomic_ullong reported; /* the highest pair whose put was HF_OK */
    atomic_ulong puts;
    uint64_t stream;
};

static void write_on(void *data)
{
    struct writer *writer = data;
    struct kit_rng rng = kit_rng(writer->stream + (uint64_t)getpid());
    struct hf_store_base *base = kit_open(writer->dir);
    struct hf_error err = {0};
    struct kit_hold hold;
    char value[64];

    for (;;) {
        if (kit_take(base, "job", TTL_MS, 5000, &hold, &err) != HF_OK)
            continue;
        for (uint64_t number = 1; number <= PUTS; number++) {
            enum hf_status status;

            if (kit_below(&rng, 4) == 0) /* as if frozen just here, or a little slow */
                kit_sleep_ms((int64_t)kit_below(&rng, 3 * TTL_MS));
            (void)snprintf(value, sizeof value, "%llu %llu", (unsigned long long)hold.token,
                           (unsigned long long)number);
            status = put_record(base, &hold,
                                (struct put){.key = "k", .value = value, .number = number}, &err);
            if (status == HF_OK) {
                atomic_store(&writer->reported, rank_of(hold.token, number));
                atomic_fetch_add(&writer->puts, 1);
            } else if (status != HF_LOST && status != HF_UNREACHABLE) {
                kit_die("%s: %s", hf_status_name(status), err.text);
            }
        }
        if (kit_below(&rng, 3) != 0)
            (void)!kit_drop(base, &hold, &err);
    }
}

struct seen {
    uint64_t rank;
    bool whole;
};

static bool note(const struct hf_record *record, void *data)
{
    struct seen *seen = data;
    char value[64];

    (void)snprintf(value, sizeof value, "%llu %llu", (unsigned long long)record->token,
                   (unsigned long long)record->number);
    seen->rank = rank_of(record->token, record->number);
    seen->whole = strcmp(value, record->value) == 0;
    return true;
}

/* The record is not behind what was on it before, nor behind what any writer was told. */
static void check(struct hf_store_base *base, struct writer *writers, uint64_t *last)
{
    struct hf_record_query query = {.name = "job", .key = "k", .deadline_ns = HF_NEVER};
    struct seen seen = {.whole = true};
    struct hf_error err = {0};

    for (int i = 0; i < WRITERS; i++) {
        uint64_t reported = atomic_load(&writers[i].reported);

        if (reported > *last)
            *last = reported;
    }
    kit_expect(base->ops->record_get(base, &query, note, &seen, NULL, &err), HF_OK, &err);
    assert_true(seen.whole);
    if (seen.rank < *last)
        fail_msg("%llu is on record after %llu", (unsigned long long)seen.rank,
                 (unsigned long long)*last);
    *last = seen.rank;
}

static void strike(struct kit_rng *rng, struct writer *writer, pid_t *pid)
{
    if (kit_below(rng, 3) == 0) {
        (void)kill(*pid, SIGKILL);
        assert_true(WIFSIGNALED(kit_wait(*pid)));
        *pid = kit_spawn(write_on, writer);
        return;
    }
    (void)kill(*pid, SIGSTOP);
    kit_sleep_ms((int64_t)kit_below(rng, 2 * TTL_MS));
    (void)kill(*pid, SIGCONT);
}

static void newer_and_newer(void **state)
{
    const char *dir = kit_fast_dir();
    struct writer *writers = mmap(NULL, WRITERS * sizeof *writers, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct kit_rng rng = kit_rng(1);
    struct hf_store_base *base;
    pid_t pids[WRITERS];
    unsigned long puts = 0;
    uint64_t last = 0;

    (void)state;
    assert_true(writers != MAP_FAILED);
    kit_world = (struct kit_world){.no_fsync = true};
    base = kit_open(dir);
    for (int i = 0; i < WRITERS; i++) {
        writers[i].dir = dir;
        writers[i].stream = (uint64_t)i << 32;
        pids[i] = kit_spawn(write_on, &writers[i]);
    }
    for (long i = 0; i < kit_rounds(60); i++) {
        int at = (int)kit_below(&rng, WRITERS);

        strike(&rng, &writers[at], &pids[at]);
        for (int looks = 0; looks < 50; looks++)
            check(base, writers, &last);
    }
    for (int64_t end_ns = hf__now_ns() + 20 * HF__NS_PER_S; last == 0 && hf__now_ns() < end_ns;)
        check(base, writers, &last); /* the machine is too busy */
    for (int i = 0; i < WRITERS; i++) {
        (void)kill(pids[i], SIGKILL);
        assert_true(WIFSIGNALED(kit_wait(pids[i])));
        puts += atomic_load(&writers[i].puts);
    }
    check(base, writers, &last);
    print_message("# %lu puts\n", puts);
    assert_true(last > 0);
    kit_close(base);
    (void)munmap(writers, WRITERS * sizeof *writers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(newer_and_newer)};

    return KIT_RUN(tests);
}
