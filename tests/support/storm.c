/* storm.c - the workers of the kill and stop storms. */
#include "storm.h"
#include "stores/file/slot.h"
#include "stores/file/sweep.h"
#include "stores/file/floor.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUCK_MS 20000 /* a wait that takes this long means a queue that is stuck */

struct start {
    struct storm *storm;
    int self;
    uint64_t stream;
};

const char *storm_lock_name(int lock)
{
    static const char *const names[STORM_LOCKS] = {"storm/a", "storm/b", "storm/c"};

    return names[lock];
}

struct storm *storm_new(const char *dir, uint32_t ttl_ms)
{
    struct storm *storm =
        mmap(NULL, sizeof *storm, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(storm != MAP_FAILED);
    storm->dir = dir;
    storm->ttl_ms = ttl_ms;
    return storm;
}

void storm_free(struct storm *storm)
{
    (void)munmap(storm, sizeof *storm);
}

static void breach(struct storm *storm, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void breach(struct storm *storm, const char *format, ...)
{
    char text[sizeof storm->text];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (atomic_exchange(&storm->broken, 1) == 0)
        memcpy(storm->text, text, sizeof text);
}

/* Does another valid hold of this lock stand in the ledger? */
static bool held_by_other(struct storm *storm, int self, int lock, int *who)
{
    for (int i = 0; i < STORM_WORKERS; i++) {
        struct storm_worker *other = &storm->workers[i];

        if (i != self && atomic_load(&other->lock) == lock &&
            atomic_load(&other->until_ns) > hf__now_ns() && !atomic_load(&other->doomed) &&
            atomic_load(&other->lock) == lock) {
            *who = i;
            return true;
        }
    }
    return false;
}

/* What a holder can see of the promises. A breach counts only if the hold is valid still. */
static void enter(struct storm *storm, int self, int lock, struct hf_lease *lease)
{
    struct storm_worker *me = &storm->workers[self];
    unsigned long long token = hf_lease_token(lease);
    unsigned long long last = atomic_load(&storm->last[lock]);
    int64_t now_ns = hf__now_ns();
    int64_t left_ms = hf_lease_remaining_ms(lease);
    int who = -1;

    if (left_ms <= 0)
        return;
    atomic_store(&me->token, token);
    atomic_store(&me->until_ns, now_ns + left_ms * HF__NS_PER_MS);
    atomic_store(&me->lock, lock);
    if (held_by_other(storm, self, lock, &who) && hf_lease_remaining_ms(lease) > 0)
        breach(storm, "%s is held twice: token %llu by %d and %llu by %d", storm_lock_name(lock),
               token, self, (unsigned long long)storm->workers[who].token, who);
    while (last < token && !atomic_compare_exchange_weak(&storm->last[lock], &last, token))
        ;
    if (last >= token && hf_lease_remaining_ms(lease) > 0)
        breach(storm, "%s: token %llu comes after %llu", storm_lock_name(lock), token, last);
    atomic_store(&storm->inside[lock], self);
    atomic_fetch_add(&storm->holds, 1);
}

static void hold(struct storm *storm, int self, int lock, struct hf_lease *lease,
                 struct kit_rng *rng)
{
    struct hf_error err = {0};
    struct storm_worker *me = &storm->workers[self];

    enter(storm, self, lock, lease);
    if (kit_below(rng, 4) == 0)
        (void)!hf_renew(lease, 0, &err);
    hf__sleep_ns((int64_t)kit_below(rng, 400000));
    if (atomic_load(&me->lock) == lock && atomic_load(&storm->inside[lock]) != self &&
        hf_lease_remaining_ms(lease) > 0)
        breach(storm, "%s: somebody came in on %d", storm_lock_name(lock), self);
    atomic_store(&me->lock, -1);
}

static void give_back(struct storm *storm, int lock, struct hf_lease *lease)
{
    bool valid = !storm->stops && hf_lease_remaining_ms(lease) > 1000;
    struct hf_error err = {0};
    enum hf_status status = hf_release(lease, &err);

    if (status == HF_LOST ? valid : status != HF_OK)
        breach(storm, "release of %s: %s: %s", storm_lock_name(lock), hf_status_name(status),
               err.text);
}

static void one_round(struct storm *storm, struct hf_store *store, int self, struct kit_rng *rng)
{
    static const int64_t waits[] = {0, 20, STUCK_MS, STUCK_MS, STUCK_MS};
    int64_t wait_ms = waits[kit_below(rng, 5)];
    int lock = (int)kit_below(rng, STORM_LOCKS);
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = storm->ttl_ms,
                                         .wait_ms = wait_ms,
                                         .no_keeper = kit_below(rng, 4) != 0};
    char other[32];
    struct hf_lease *lease;
    struct hf_error err = {0};
    enum hf_status status;

    if (kit_below(rng, 8) == 0) { /* names that come and go take the slots of idle ones */
        (void)snprintf(other, sizeof other, "other/%llu",
                       (unsigned long long)kit_below(rng, 100000));
        if (hf_acquire(store, other, &options, &lease, &err) == HF_OK)
            (void)!hf_release(lease, &err);
        return;
    }
    status = hf_acquire(store, storm_lock_name(lock), &options, &lease, &err);
    if (status == HF_OK) {
        hold(storm, self, lock, lease, rng);
        give_back(storm, lock, lease);
    } else if (status == HF_UNKNOWN && storm->stops) {
        /* it was stopped until the grant was over, before it was seen */
    } else if (status != HF_BUSY || wait_ms == STUCK_MS) {
        breach(storm, "acquire of %s: %s: %s", storm_lock_name(lock), hf_status_name(status),
               err.text);
    } else {
        atomic_fetch_add(&storm->waits, 1);
    }
}

static void work(void *data)
{
    struct start *start = data;
    struct storm *storm = start->storm;
    struct kit_rng rng = kit_rng(start->stream);
    struct hf_store *store = NULL;
    struct hf_error err = {0};
    char url[600];

    (void)snprintf(url, sizeof url, "file:%s", storm->dir);
    while (!atomic_load(&storm->broken)) {
        if (store == NULL && hf_open(url, &store, &err) != HF_OK) {
            breach(storm, "open: %s", err.text);
            return;
        }
        one_round(storm, store, start->self, &rng);
        if (kit_below(&rng, 20) == 0) {
            hf_close(store);
            store = NULL;
        }
    }
    hf_close(store);
}

void storm_start(struct storm *storm, int i, uint64_t stream)
{
    struct storm_worker *worker = &storm->workers[i];
    struct start start = {storm, i, stream};

    atomic_store(&worker->lock, -1);
    atomic_store(&worker->doomed, 0);
    worker->pid = kit_spawn(work, &start);
}

void storm_kill(struct storm *storm, int i)
{
    struct storm_worker *worker = &storm->workers[i];

    atomic_store(&worker->doomed, 1);
    (void)kill(worker->pid, SIGKILL);
    (void)waitpid(worker->pid, NULL, 0);
    worker->pid = 0;
}

void storm_check(struct storm *storm)
{
    struct hf_store_base *base;

    if (atomic_load(&storm->broken))
        fail_msg("%s", storm->text);
    base = kit_open(storm->dir);
    for (int lock = 0; lock < STORM_LOCKS; lock++) {
        struct kit_hold hold;
        struct hf_error err = {0};

        /* Far sooner than the ttl: those who held it are dead. */
        kit_expect(kit_take(base, storm_lock_name(lock), 30000, 5000, &hold, &err), HF_OK, &err);
        assert_true(hold.token > atomic_load(&storm->last[lock]));
        kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    }
    /* Two hours later: what is young may just be about to be opened. */
    kit_world = (struct kit_world){.wall_fake = true, .wall_us = hf__wall_us() + 2 * HOUR_US};
    hf__sweep(hf__file_of(base));
    kit_world = (struct kit_world){0};
    assert_int_equal(kit_count(storm->dir, "alive", ""), 1);
    assert_int_equal(kit_count(storm->dir, "queue", ""), 0);
    kit_close(base);
}
