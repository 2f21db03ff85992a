/* test_blocked.c - a bucket that nobody can use for a while, because somebody is stopped in the
 * middle of a change or because too many want it. Nothing is decided meanwhile, so nobody may lose
 * anything by it: not its place in line, and not its lease before its time.
 *
 * run: first
 * run: threads */
#include "../support/faultkit.h"
#include "stores/file/slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME        "blocked"
#define PATIENCE_MS 100  /* for a single request of a waiter */
#define BLOCK_MS    3000 /* in which every waiter comes by to look, and finds the bucket locked */

struct ledger {
    atomic_int count;
    atomic_int order[8];
};

struct part {
    const char *dir;
    struct ledger *ledger;
    int self;
    int64_t wait_ms;
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
    struct kit_terms terms = {
        .ttl_ms = 60000, .wait_ms = part->wait_ms, .patience_ms = PATIENCE_MS};
    struct kit_hold hold;
    struct hf_error err = {0};

    if (kit_take_on(base, NAME, &terms, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    atomic_store(&part->ledger->order[atomic_fetch_add(&part->ledger->count, 1)], part->self);
    if (kit_drop(base, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    kit_close(base);
}

/* Takes another lock of the same bucket, and is stopped with the bucket locked. */
static void stop_inside(void *data)
{
    struct hf_store_base *base = kit_open(data);
    struct kit_hold hold;
    char name[32];
    int i = 0;

    do
        (void)snprintf(name, sizeof name, "other-%d", i++);
    while (hf__name_hash(name) % ROOTS != hf__name_hash(NAME) % ROOTS);
    kit_plan = (struct kit_plan){.ops = KIT_PWRITE, .action = KIT_STOP_BEFORE, .at = 1};
    (void)kit_take_detached(base, name, 60000, &hold, NULL);
}

static pid_t block(const char *dir)
{
    pid_t pid = kit_spawn(stop_inside, (void *)(uintptr_t)dir);

    kit_wait_stopped(pid);
    return pid;
}

static void unblock(pid_t pid)
{
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(kit_wait(pid), 0);
}

static void waiters_keep_their_places(void **state)
{
    enum { WAITERS = 4 };
    struct part parts[WAITERS];
    pid_t pids[WAITERS];
    pid_t blocker;
    const char *dir = kit_dir();
    struct ledger *ledger = new_ledger();
    struct hf_store_base *base = kit_open(dir);
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    for (int i = 0; i < WAITERS; i++) {
        parts[i] = (struct part){.dir = dir, .ledger = ledger, .self = i, .wait_ms = -1};
        pids[i] = kit_spawn(stand_in_line, &parts[i]);
        kit_until_waiting(base, NAME, (uint64_t)i + 1);
    }
    blocker = block(dir);
    kit_sleep_ms(BLOCK_MS);
    unblock(blocker);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(kit_wait(pids[i]), 0);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(atomic_load(&ledger->order[i]), i);
    kit_close(base);
}

struct waiting {
    const char *dir;
    struct hf_store_base *base;
    int cancel_fd;
    int64_t wait_until_ns;
    enum hf_status status;
    struct hf_error err;
};

static void *wait_in_thread(void *data)
{
    struct waiting *waiting = data;
    struct hf_grant grant = {0};
    struct hf_claim claim = {.name = NAME,
                             .owner = "00112233445566778899aabbccddeeff",
                             .label = "host/1/test",
                             .ttl_ms = 60000,
                             .deadline_ns = hf__now_ns() + PATIENCE_MS * HF__NS_PER_MS,
                             .wait_until_ns = waiting->wait_until_ns,
                             .cancel_fd = waiting->cancel_fd};

    waiting->status = waiting->base->ops->acquire(waiting->base, &claim, &grant, &waiting->err);
    return NULL;
}

/* Waits behind a holder while the bucket is blocked, and returns what became of the wait. */
static struct waiting wait_blocked(int64_t wait_ms, bool cancel)
{
    const char *dir = kit_dir();
    struct hf_store_base *base = kit_open(dir);
    struct waiting waiting = {.base = kit_open(dir)};
    struct kit_hold hold;
    struct hf_error err = {0};
    pthread_t thread;
    pid_t blocker;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    waiting.cancel_fd = ends[0];
    waiting.wait_until_ns = wait_ms < 0 ? HF_NEVER : hf__now_ns() + wait_ms * HF__NS_PER_MS;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiting), 0);
    kit_until_waiting(base, NAME, 1);
    blocker = block(dir);
    if (cancel) {
        kit_sleep_ms(BLOCK_MS);
        assert_int_equal(write(ends[1], "x", 1), 1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0); /* while it is blocked still */
    unblock(blocker);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    (void)kit_pair(base, NAME);
    (void)close(ends[0]);
    (void)close(ends[1]);
    kit_close(base);
    kit_close(waiting.base);
    return waiting;
}

static void a_blocked_waiter_can_be_cancelled(void **state)
{
    struct waiting waiting = wait_blocked(-1, true);

    (void)state;
    kit_expect(waiting.status, HF_CANCELLED, &waiting.err);
}

/* A wait that ends in a blocked bucket says who is in the way. */
static void the_blocker_is_named_in_the_end(void **state)
{
    struct waiting waiting = wait_blocked(4000, false);

    (void)state;
    kit_expect(waiting.status, HF_UNREACHABLE, &waiting.err);
    assert_non_null(strstr(waiting.err.text, "stopped"));
}

/* The keeper tries on until the deadline, and no renewal that found the bucket locked brings it
 * forward. */
static void a_holder_keeps_its_lease(void **state)
{
    const char *dir = kit_dir();
    struct hf_store *store = kit_open_client(dir);
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = 9000};
    struct hf_lease *lease;
    struct hf_error err = {0};
    pid_t blocker;

    (void)state;
    kit_expect(hf_acquire(store, NAME, &options, &lease, &err), HF_OK, &err);
    kit_sleep_ms(2000);
    blocker = block(dir);
    kit_sleep_ms(BLOCK_MS); /* the renewal of the third second finds it locked */
    assert_true(hf_lease_remaining_ms(lease) > 0);
    unblock(blocker);
    kit_sleep_ms(5000); /* beyond the first ttl */
    assert_true(hf_lease_remaining_ms(lease) > 0);
    kit_expect(hf_release(lease, &err), HF_OK, &err);
    hf_close(store);
}

static void *acquire_in_thread(void *data)
{
    struct waiting *waiting = data;
    struct hf_store *store = kit_open_client(waiting->dir);
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 60000, .wait_ms = -1, .no_keeper = true};
    struct hf_lease *lease;

    waiting->status = hf_acquire(store, NAME, &options, &lease, &waiting->err);
    if (waiting->status == HF_OK)
        waiting->status = hf_release(lease, &waiting->err);
    hf_close(store);
    return NULL;
}

/* A newcomer that finds the bucket blocked cannot even draw a ticket: it comes again. */
static void a_newcomer_waits_too(void **state)
{
    struct waiting waiting = {.dir = kit_dir()};
    struct hf_store_base *base = kit_open(waiting.dir);
    pid_t blocker = block(waiting.dir);
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, acquire_in_thread, &waiting), 0);
    kit_sleep_ms(6500); /* longer than a single request may take */
    unblock(blocker);
    assert_int_equal(pthread_join(thread, NULL), 0);
    kit_expect(waiting.status, HF_OK, &waiting.err);
    kit_close(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiters_keep_their_places),
        cmocka_unit_test(a_blocked_waiter_can_be_cancelled),
        cmocka_unit_test(the_blocker_is_named_in_the_end),
        cmocka_unit_test(a_holder_keeps_its_lease),
        cmocka_unit_test(a_newcomer_waits_too),
    };

    return KIT_RUN(tests);
}
