/* test_queue.c - the queue under fire: dead and stopped waiters, releasers that die before the
 * wake-up, long queues, and crowds that come and leave.
 * run: first, run: late asan */
#include "../support/faultkit.h"
#include "stores/file/slot.h"
#include "stores/file/sweep.h"
#include "stores/file/floor.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX 200
#define NAME     "line"

struct ledger {
    atomic_int count;
    atomic_int order[LINE_MAX];
    atomic_ullong tokens[LINE_MAX];
    atomic_int stop;
    atomic_int inside;
    atomic_int twice;
    atomic_long turns;
    atomic_long left;
};

struct part {
    const char *dir;
    struct ledger *ledger;
    int self;
    struct kit_plan plan;
    struct kit_hold hold;
};

static struct ledger *new_ledger(void)
{
    struct ledger *ledger =
        mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(ledger != MAP_FAILED);
    return ledger;
}

static void stand_in_line(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    int at;

    if (kit_take(base, NAME, 60000, -1, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    at = atomic_fetch_add(&part->ledger->count, 1);
    atomic_store(&part->ledger->order[at], part->self);
    atomic_store(&part->ledger->tokens[at], hold.token);
    if (kit_drop(base, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    kit_close(base);
}

static pid_t join_line(struct hf_store_base *base, struct part *part, uint64_t in_line)
{
    pid_t pid = kit_spawn(stand_in_line, part);

    kit_until_waiting(base, NAME, in_line);
    return pid;
}

/* The turn is given to one who dies before it takes it. */
static void dead_at_its_turn(void **state)
{
    struct part first = {.dir = kit_dir(), .ledger = new_ledger()};
    struct part second = first;
    struct hf_store_base *base = kit_open(first.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    int64_t start_ns;
    pid_t pids[2];

    (void)state;
    second.self = 1;
    for (long round = 0; round < kit_rounds(20); round++) {
        kit_expect(kit_take(base, NAME, 60000, 5000, &hold, &err), HF_OK, &err);
        pids[0] = join_line(base, &first, 1);
        pids[1] = join_line(base, &second, 2);
        assert_int_equal(kill(pids[0], SIGSTOP), 0);
        kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
        start_ns = hf__now_ns();
        assert_int_equal(kill(pids[0], SIGKILL), 0);
        (void)kit_wait(pids[0]);
        assert_int_equal(kit_wait(pids[1]), 0);
        assert_true(hf__now_ns() - start_ns < 10 * HF__NS_PER_S);
    }
    kit_close(base);
}

static void release_for_another(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);
    struct hf_error err = {0};

    kit_plan = part->plan;
    (void)kit_drop(base, &part->hold, &err);
}

/* A detached lease is released by a process that dies before it can wake the next one up; nobody
 * watches that process. */
static void dead_before_the_wake_up(void **state)
{
    struct part waiter = {.dir = kit_dir(), .ledger = new_ledger()};
    struct part releaser = {.dir = waiter.dir,
                            .plan = {.ops = KIT_PWRITE, .action = KIT_KILL_AFTER, .at = 1}};
    struct hf_store_base *base = kit_open(waiter.dir);
    struct hf_error err = {0};
    int64_t start_ns;
    pid_t pid;

    (void)state;
    kit_expect(kit_take_detached(base, NAME, 60000, &releaser.hold, &err), HF_OK, &err);
    pid = join_line(base, &waiter, 1);
    assert_true(WIFSIGNALED(kit_wait(kit_spawn(release_for_another, &releaser))));
    start_ns = hf__now_ns();
    assert_int_equal(kit_wait(pid), 0);
    assert_true(hf__now_ns() - start_ns < 10 * HF__NS_PER_S);
    kit_close(base);
}

static void long_line(void **state)
{
    struct part parts[LINE_MAX];
    pid_t pids[LINE_MAX];
    struct ledger *ledger = new_ledger();
    const char *dir = kit_dir();
    struct hf_store_base *base = kit_open(dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    int count = kit_rounds(5) < 5 ? 60 : LINE_MAX;
    int out_of_order = 0;

    (void)state;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    for (int i = 0; i < count; i++) {
        parts[i] = (struct part){.dir = dir, .ledger = ledger, .self = i};
        pids[i] = join_line(base, &parts[i], (uint64_t)i + 1);
    }
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    for (int i = 0; i < count; i++)
        assert_int_equal(kit_wait(pids[i]), 0);
    assert_int_equal(atomic_load(&ledger->count), count);
    for (int i = 1; i < count; i++) {
        assert_true(ledger->tokens[i] > ledger->tokens[i - 1]);
        out_of_order += ledger->order[i] < ledger->order[i - 1];
    }
    /* Whoever the machine kept from running for a second lost its place, by design. */
    if (out_of_order > 2)
        fail_msg("%d of %d out of order", out_of_order, count);
    kit_close(base);
}

static uint64_t tickets(struct hf_store_base *base)
{
    struct bucket bucket;
    uint64_t hash = hf__name_hash(NAME);
    struct view view;
    struct view *found;

    kit_expect(hf__page_lock(hf__file_of(base), hash, HF_NEVER, &bucket, NULL), HF_OK, NULL);
    kit_expect(hf__slot_see(hf__file_of(base), &bucket, NAME, &view, &found, NULL), HF_OK, NULL);
    assert_non_null(found);
    hf__page_unlock(hf__file_of(base), &bucket);
    return view.tail - view.head;
}

/* Thousands who lose patience while one holds on: what they leave behind must not pile up, because
 * everybody after them steps over it. */
static void impatient(void **state)
{
    struct part part = {.dir = kit_dir(), .ledger = new_ledger()};
    struct hf_store_base *base = kit_open(part.dir);
    struct kit_hold hold;
    struct kit_hold other;
    struct hf_error err = {0};
    pid_t pid;

    (void)state;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    for (long i = 0; i < kit_rounds(2000); i++)
        kit_expect(kit_take(base, NAME, 1000, 1, &other, &err), HF_BUSY, &err);
    assert_true(tickets(base) <= 2);
    pid = join_line(base, &part, 1); /* behind a patient one */
    for (long i = 0; i < kit_rounds(2000); i++)
        kit_expect(kit_take(base, NAME, 1000, 1, &other, &err), HF_BUSY, &err);
    assert_true(tickets(base) <= 3);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    assert_int_equal(kit_wait(pid), 0);
    (void)kit_pair(base, NAME);
    kit_close(base);
    assert_int_equal(kit_count(part.dir, "queue", ""), 0);
}

static void come_and_leave(void *data)
{
    struct part *part = data;
    struct hf_store *store = kit_open_client(part->dir);
    struct kit_rng rng = kit_rng(900 + (uint64_t)part->self);
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 60000, .no_keeper = true};
    int cancel[2];

    if (pipe(cancel) != 0 || write(cancel[1], "x", 1) != 1)
        kit_die("pipe");
    while (!atomic_load(&part->ledger->stop)) {
        struct hf_lease *lease;
        struct hf_error err = {0};
        enum hf_status status;

        options.wait_ms = (int64_t)kit_below(&rng, 8);
        options.cancel_fd = kit_below(&rng, 3) == 0 ? cancel[0] : 0;
        status = hf_acquire(store, NAME, &options, &lease, &err);
        if (status == HF_OK) {
            if (atomic_fetch_add(&part->ledger->inside, 1) != 0)
                atomic_store(&part->ledger->twice, 1);
            hf__sleep_ns((int64_t)kit_below(&rng, 200000));
            atomic_fetch_sub(&part->ledger->inside, 1);
            atomic_fetch_add(&part->ledger->turns, 1);
            if (hf_release(lease, &err) != HF_OK)
                kit_die("release: %s", err.text);
        } else if (status == HF_BUSY || status == HF_CANCELLED) {
            atomic_fetch_add(&part->ledger->left, 1);
        } else {
            kit_die("acquire: %s: %s", hf_status_name(status), err.text);
        }
    }
    hf_close(store);
}

static void keep_looking(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);

    while (!atomic_load(&part->ledger->stop))
        (void)kit_waiters(base, NAME);
    kit_close(base);
}

/* Even while somebody looks all the time: a look must not disturb the line. */
static void cancel_storm(void **state)
{
    struct part parts[9];
    pid_t pids[9];
    struct ledger *ledger = new_ledger();
    const char *dir = kit_dir();
    struct hf_store_base *base = kit_open(dir);

    (void)state;
    for (int i = 0; i < 9; i++) {
        parts[i] = (struct part){.dir = dir, .ledger = ledger, .self = i};
        pids[i] = kit_spawn(i < 8 ? come_and_leave : keep_looking, &parts[i]);
    }
    kit_sleep_ms(kit_rounds(10) > 10 ? 30000 : 4000);
    atomic_store(&ledger->stop, 1);
    for (int i = 0; i < 9; i++)
        assert_int_equal(kit_wait(pids[i]), 0);
    print_message("# %ld turns, %ld left\n", atomic_load(&ledger->turns),
                  atomic_load(&ledger->left));
    assert_int_equal(atomic_load(&ledger->twice), 0);
    assert_true(atomic_load(&ledger->turns) > 5 && atomic_load(&ledger->left) > 5);
    (void)kit_pair(base, NAME);
    assert_int_equal(kit_count(dir, "queue", ""), 0);
    kit_close(base);
}

/* A FIFO that nobody reads may be that of a waiter who is about to open it. Only those who have the
 * bucket locked know better, and a listing does not. */
static void looking_changes_nothing(void **state)
{
    struct part part = {.dir = kit_dir(), .ledger = new_ledger()};
    struct hf_store_base *base = kit_open(part.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    pid_t pid;

    (void)state;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    pid = join_line(base, &part, 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)kit_wait(pid);
    assert_int_equal(kit_count(part.dir, "queue", ""), 1);
    assert_int_equal(kit_waiters(base, NAME), 0);
    assert_int_equal(kit_count(part.dir, "queue", ""), 1);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    assert_int_equal(kit_count(part.dir, "queue", ""), 0);
    kit_close(base);
}

/* The sweep clears away what the dead left, and leaves the living alone. */
static void sweep_takes_the_dead_only(void **state)
{
    struct part living = {.dir = kit_dir(), .ledger = new_ledger()};
    struct part dead = living;
    struct hf_store_base *base = kit_open(living.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    pid_t pids[2];

    (void)state;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    pids[0] = join_line(base, &dead, 1);
    pids[1] = join_line(base, &living, 2);
    assert_int_equal(kill(pids[0], SIGKILL), 0);
    (void)kit_wait(pids[0]);
    kit_world.wall_fake = true;
    kit_world.wall_us = hf__wall_us() + 2 * HOUR_US;
    hf__sweep(hf__file_of(base));
    kit_world.wall_fake = false;
    assert_int_equal(kit_count(living.dir, "queue", ""), 1);
    assert_int_equal(kit_waiters(base, NAME), 1);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    assert_int_equal(kit_wait(pids[1]), 0);
    kit_close(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_at_its_turn),
        cmocka_unit_test(dead_before_the_wake_up),
        cmocka_unit_test(long_line),
        cmocka_unit_test(impatient),
        cmocka_unit_test(cancel_storm),
        cmocka_unit_test(looking_changes_nothing),
        cmocka_unit_test(sweep_takes_the_dead_only),
    };

    return KIT_RUN(tests);
}
