/* test_stopped.c - processes that are stopped: holding a lock, waiting for one, and in the very
 * middle of a change of the store.
 * run: first */
#include "../support/steps.h"
#include "../support/storm.h"
#include "stores/file/slot.h"
#include "stores/file/floor.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct notes {
    atomic_llong valid_at_ns; /* when the child last knew its lease to be valid */
    atomic_ullong token;
    atomic_int status; /* what its release said */
    atomic_int loss;
    atomic_int fd_ready;
};

struct part {
    const char *dir;
    const char *name;
    struct notes *notes;
    struct kit_plan plan;
    const char *step; /* instead of a call */
    int64_t wall_us;
    uint32_t ttl_ms;
};

static struct notes *new_notes(void)
{
    struct notes *notes =
        mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(notes != MAP_FAILED);
    return notes;
}

static void until_token(const struct notes *notes)
{
    int64_t until_ns = hf__now_ns() + 20 * HF__NS_PER_S;

    while (atomic_load(&notes->token) == 0) {
        assert_true(hf__now_ns() < until_ns);
        hf__sleep_ns(200000);
    }
}

/* Holds a lock with the keeper's help, and says for how long it was valid. */
static void hold_until_lost(void *data)
{
    struct part *part = data;
    struct hf_store *store = kit_open_client(part->dir);
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = part->ttl_ms};
    struct hf_lease *lease;
    struct hf_error err = {0};
    struct pollfd poll_fd = {.events = POLLIN};

    if (hf_acquire(store, part->name, &options, &lease, &err) != HF_OK)
        kit_die("%s", err.text);
    poll_fd.fd = hf_lease_fd(lease);
    atomic_store(&part->notes->token, hf_lease_token(lease));
    for (;;) {
        int64_t now_ns = hf__now_ns();

        if (hf_lease_remaining_ms(lease) <= 0)
            break;
        atomic_store(&part->notes->valid_at_ns, now_ns);
        hf__sleep_ns(1000000);
    }
    atomic_store(&part->notes->fd_ready, hf__poll_until(&poll_fd, 1, hf__now_ns() + HF__NS_PER_S));
    atomic_store(&part->notes->loss, (int)hf_lease_loss(lease));
    atomic_store(&part->notes->status, (int)hf_release(lease, &err));
    hf_close(store);
}

static void stopped_holder(void **state)
{
    struct part part = {.dir = kit_dir(), .name = "held", .notes = new_notes(), .ttl_ms = 1000};
    struct hf_store_base *base = kit_open(part.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    int64_t taken_ns;
    pid_t pid = kit_spawn(hold_until_lost, &part);

    (void)state;
    until_token(part.notes);
    kit_sleep_ms(1500); /* the keeper keeps it beyond its first ttl */
    kit_expect(kit_take(base, part.name, 10000, 0, &hold, &err), HF_BUSY, &err);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    kit_expect(kit_take(base, part.name, 10000, 10000, &hold, &err), HF_OK, &err);
    taken_ns = hf__now_ns();
    assert_true(hold.token > atomic_load(&part.notes->token));
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(kit_wait(pid), 0);
    assert_true(atomic_load(&part.notes->valid_at_ns) < taken_ns);
    assert_int_equal(atomic_load(&part.notes->status), HF_LOST);
    assert_int_equal(atomic_load(&part.notes->loss), HF_LOSS_EXPIRED);
    assert_int_equal(atomic_load(&part.notes->fd_ready), 1);
    kit_expect(kit_renew(base, &hold, &err), HF_OK, &err); /* the loser's release left it alone */
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    kit_close(base);
}

static void wait_and_hold(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);
    struct kit_hold hold;
    struct hf_error err = {0};

    if (kit_take(base, part->name, 60000, 30000, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    atomic_store(&part->notes->token, hold.token);
    kit_sleep_ms(100);
    if (kit_drop(base, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
}

/* The first in line is stopped when its turn comes: the next one gets it, and the first one later.
 */
static void stopped_waiter(void **state)
{
    struct part first = {.dir = kit_dir(), .name = "queue", .notes = new_notes()};
    struct part second = {.dir = first.dir, .name = "queue", .notes = new_notes()};
    struct hf_store_base *base = kit_open(first.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    pid_t pid[2];

    (void)state;
    kit_expect(kit_take(base, "queue", 60000, 0, &hold, &err), HF_OK, &err);
    pid[0] = kit_spawn(wait_and_hold, &first);
    kit_until_waiting(base, "queue", 1);
    pid[1] = kit_spawn(wait_and_hold, &second);
    kit_until_waiting(base, "queue", 2);
    assert_int_equal(kill(pid[0], SIGSTOP), 0);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    assert_int_equal(kit_wait(pid[1]), 0);
    assert_int_equal(atomic_load(&first.notes->token), 0);
    assert_int_equal(kill(pid[0], SIGCONT), 0);
    assert_int_equal(kit_wait(pid[0]), 0);
    assert_true(atomic_load(&first.notes->token) > atomic_load(&second.notes->token));
    kit_close(base);
}

/* Takes a lock and is stopped at a call of the plan, or at a step. */
static void stop_inside(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);
    struct kit_hold hold;
    struct hf_error err = {0};

    if (part->wall_us != 0) {
        kit_world.wall_fake = true;
        kit_world.wall_us = part->wall_us;
    }
    kit_plan = part->plan;
    if (part->step != NULL)
        steps_signal_at(part->step, SIGSTOP);
    if (kit_take_detached(base, part->name, 60000, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    atomic_store(&part->notes->token, hold.token);
}

/* A refusal within the deadline that names the process. */
static void expect_named(struct hf_store_base *base, const char *name, pid_t pid)
{
    struct kit_hold hold;
    struct hf_error err = {0};
    char wanted[32];
    int64_t start_ns = hf__now_ns();

    kit_expect(kit_take_on(base, name, &(struct kit_terms){.ttl_ms = 1000, .patience_ms = 500},
                           &hold, &err),
               HF_UNREACHABLE, &err);
    assert_true(hf__now_ns() - start_ns < 5 * HF__NS_PER_S);
    (void)snprintf(wanted, sizeof wanted, "process %d (", (int)pid);
    if (strstr(err.text, wanted) == NULL || strstr(err.text, "stopped") == NULL)
        fail_msg("does not name process %d: %s", (int)pid, err.text);
}

/* Names of the first bucket, and one of another. */
static void bucket_name(char *out, size_t size, int n, unsigned bucket)
{
    for (int i = 0;; i++) {
        (void)snprintf(out, size, "name-%d", i);
        if (hf__name_hash(out) % ROOTS == bucket && n-- == 0)
            return;
    }
}

/* Takes a lock for the first time, and has its page locked when it is stopped. taken: the lock is
 * its own by then, and, being detached, remains so. */
static void stopped_in_bucket(const char *step, bool taken, int end_signal)
{
    char name[32];
    char other[32];
    struct part part = {.dir = kit_fast_dir(), .name = name, .notes = new_notes(), .step = step};
    struct hf_store_base *base = kit_open(part.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    pid_t pid;

    bucket_name(name, sizeof name, 0, 1);
    bucket_name(other, sizeof other, 0, 2);
    pid = kit_spawn(stop_inside, &part);
    kit_wait_stopped(pid);
    expect_named(base, name, pid);
    (void)kit_pair(base, other);
    assert_int_equal(kill(pid, end_signal), 0);
    (void)kit_wait(pid);
    assert_int_equal(atomic_load(&part.notes->token) != 0, end_signal == SIGCONT);
    kit_expect(kit_take(base, name, 1000, 0, &hold, &err),
               taken || end_signal == SIGCONT ? HF_BUSY : HF_OK, &err);
    kit_close(base);
}

static void stopped_inside_bucket(void **state)
{
    /* From then on it is free, and others take it without the page's lock. */
    static const char *const before[] = {"reuse_marked", "reuse_named", "reuse_hashed"};

    (void)state;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        stopped_in_bucket(before[i], false, SIGCONT);
        stopped_in_bucket(before[i], false, SIGKILL);
    }
    stopped_in_bucket("grant_swapped", true, SIGCONT);
    stopped_in_bucket("grant_swapped", true, SIGKILL);
}

/* Fills a bucket with held locks, so that the next name splits it. */
static void fill(struct hf_store_base *base, unsigned bucket)
{
    struct kit_hold hold;
    struct hf_error err = {0};
    char name[32];

    for (int i = 0; i < SLOTS_PER_PAGE; i++) {
        bucket_name(name, sizeof name, i, bucket);
        kit_expect(kit_take_detached(base, name, 60000, &hold, &err), HF_OK, &err);
    }
}

/* Stopped while it makes the file grow: nobody else can grow it, everything else goes on. */
static void stopped_while_growing(void **state)
{
    char name[32];
    char second[32];
    char other[32];
    struct part part = {.dir = kit_dir(),
                        .name = name,
                        .notes = new_notes(),
                        .plan = {.ops = KIT_PWRITE, .action = KIT_STOP_BEFORE, .at = 1}};
    struct hf_store_base *base = kit_open(part.dir);
    pid_t pid;

    (void)state;
    fill(base, 1);
    fill(base, 2);
    bucket_name(name, sizeof name, SLOTS_PER_PAGE, 1);
    bucket_name(second, sizeof second, SLOTS_PER_PAGE, 2);
    bucket_name(other, sizeof other, 0, 3);
    pid = kit_spawn(stop_inside, &part);
    kit_wait_stopped(pid);
    expect_named(base, second, pid);
    (void)kit_pair(base, other);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)kit_wait(pid);
    (void)kit_pair(base, second);
    (void)kit_pair(base, name);
    kit_close(base);
}

/* Stopped while it raises the floor: whoever needs it raised, too, is told which process is in the
 * way. */
static void stopped_while_raising(void **state)
{
    char name[32];
    char other[32];
    struct part part = {.dir = kit_dir(),
                        .name = name,
                        .notes = new_notes(),
                        .wall_us = hf__wall_us() + 3 * HOUR_US,
                        .plan = {.ops = KIT_FSYNC, .action = KIT_STOP_BEFORE, .at = 1}};
    struct hf_store_base *base = kit_open(part.dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    pid_t pid;

    (void)state;
    bucket_name(name, sizeof name, 0, 1);
    bucket_name(other, sizeof other, 0, 2);
    pid = kit_spawn(stop_inside, &part);
    kit_wait_stopped(pid);
    (void)kit_pair(base, other); /* within the promise */
    kit_expect(kit_take(base, other, 60000, 0, &hold, &err), HF_OK, &err);
    kit_world.wall_fake = true;
    kit_world.wall_us = part.wall_us;
    kit_expect(kit_renew(base, &hold, &err), HF_OK, &err);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    expect_named(base, other, pid);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)kit_wait(pid);
    assert_true(kit_pair(base, other) >= (uint64_t)part.wall_us);
    kit_world = (struct kit_world){0};
    kit_close(base);
}

/* All of it at once, at random. */
static void stop_storm(void **state)
{
    struct storm *storm = storm_new(kit_dir(), 300);
    struct kit_rng rng = kit_rng(77);
    int64_t until_ns = hf__now_ns() + (kit_rounds(10) > 10 ? 60 : 8) * HF__NS_PER_S;
    uint64_t stream = 1000;
    long stopped = 0;

    (void)state;
    storm->stops = true;
    for (int i = 0; i < STORM_WORKERS; i++)
        storm_start(storm, i, stream++);
    while (!atomic_load(&storm->broken) && hf__now_ns() < until_ns) {
        int victim = (int)kit_below(&rng, STORM_WORKERS);
        pid_t pid = storm->workers[victim].pid;

        hf__sleep_ns((int64_t)kit_below(&rng, 20000000));
        (void)kill(pid, SIGSTOP);
        kit_sleep_ms((int64_t)kit_below(&rng, kit_below(&rng, 8) == 0 ? 600 : 30));
        if (kit_below(&rng, 4) == 0) {
            storm_kill(storm, victim);
            storm_start(storm, victim, stream++);
        } else {
            (void)kill(pid, SIGCONT);
        }
        stopped++;
    }
    for (int i = 0; i < STORM_WORKERS; i++)
        storm_kill(storm, i);
    print_message("# %ld stopped, %ld holds\n", stopped, atomic_load(&storm->holds));
    storm_check(storm);
    storm_free(storm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_holder),        cmocka_unit_test(stopped_waiter),
        cmocka_unit_test(stopped_inside_bucket), cmocka_unit_test(stopped_while_growing),
        cmocka_unit_test(stopped_while_raising), cmocka_unit_test(stop_storm),
    };

    return KIT_RUN(tests);
}
