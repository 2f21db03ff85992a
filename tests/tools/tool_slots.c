/* tool_slots.c - processes that share slots of any store while they are killed, frozen and
 * cancelled, and a referee in other memory that sees whether the promises were kept.
 *
 *   tool_slots storm SECONDS TTL_MS URL...    30 workers on 4 slots; they take turns with the URLs
 *   tool_slots order URL                      waiters are served in the order they came
 *   tool_slots killed LIMIT_MS URL            a waiter in all queues is killed: those behind it
 *                                             have what is free within the limit
 *   tool_slots second LIMIT_MS URL            a waiter is handed two locks at once: the second
 *                                             reaches the next waiter within the limit
 *   tool_slots all ROUNDS URL                 two processes want the same locks, named in opposite
 *                                             orders, again and again
 *
 * Prints one line of "NAME VALUE" pairs, and a line for each breach. Exit 1 then. */
#include "../support/slots.h"
#include "base/base.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKERS = 30,
    STEP_MS = 20,  /* from one step of the driver to the next */
    KILL_ODDS = 8, /* at one step in this many */
    FREEZE_ODDS = 40,
    FREEZE_MS = 200, /* longer than the ttl */
    HOLD_MAX_MS = 15,
    CANCEL_MAX_MS = 40
};

/* What a worker says of itself: one number, so that nobody sees half of it. */
struct worker {
    pid_t pid;
    atomic_bool doomed; /* is being killed: its hold may be followed by another at once */
    atomic_bool frozen; /* was, during this wait */
    atomic_ullong hold; /* until when it is valid, in us, and the slot plus 1; 0: none */
    int64_t thaw_ns;    /* the driver's */
};

struct referee {
    struct worker workers[WORKERS];
    atomic_ullong last_token[SLOTS];
    atomic_ulong holds[SLOTS];
    atomic_ulong twice, too_many, disorders, cancels, troubles;
    atomic_llong longest_wait_ns;
    atomic_bool over;
};

static struct referee *referee;

static void raise_to(atomic_ullong *mark, uint64_t value)
{
    unsigned long long seen = atomic_load(mark);

    while (value > seen && !atomic_compare_exchange_weak(mark, &seen, value))
        continue;
}

/* What others hold at this moment; *same: one of them has our slot. */
static unsigned count_valid(const struct worker *me, unsigned slot, bool *same)
{
    uint64_t now_us = (uint64_t)hf__now_ns() / 1000;
    unsigned valid = 0;

    *same = false;
    for (size_t i = 0; i < WORKERS; i++) {
        const struct worker *other = &referee->workers[i];
        uint64_t hold = atomic_load(&other->hold);

        if (other == me || atomic_load(&other->doomed) || hold >> 8 <= now_us)
            continue;
        valid++;
        *same = *same || (hold & 0xff) == slot + 1;
    }
    return valid;
}

static void enter(struct worker *me, const struct hf_lease *lease, unsigned slot)
{
    uint64_t last = atomic_load(&referee->last_token[slot]);
    uint64_t now_us = (uint64_t)hf__now_ns() / 1000;
    int64_t left_ms = hf_lease_remaining_ms(lease);
    bool same;

    if (left_ms <= 0)
        return;
    atomic_store(&me->hold, (now_us + (uint64_t)left_ms * 1000) << 8 | (slot + 1));
    if (count_valid(me, slot, &same) >= SLOTS && hf_lease_remaining_ms(lease) > 0) {
        atomic_fetch_add(&referee->too_many, 1);
        printf("# more than %d at once\n", SLOTS);
    }
    if (same && hf_lease_remaining_ms(lease) > 0) {
        atomic_fetch_add(&referee->twice, 1);
        printf("# slot %u is held twice\n", slot);
    }
    if (hf_lease_token(lease) <= last && hf_lease_remaining_ms(lease) > 0) {
        atomic_fetch_add(&referee->disorders, 1);
        printf("# slot %u: token %" PRIu64 " after %" PRIu64 "\n", slot, hf_lease_token(lease),
               last);
    }
    raise_to(&referee->last_token[slot], hf_lease_token(lease));
    atomic_fetch_add(&referee->holds[slot], 1);
}

static void note_wait(const struct worker *me, int64_t began_ns)
{
    int64_t took_ns = hf__now_ns() - began_ns;
    long long seen = atomic_load(&referee->longest_wait_ns);

    while (!atomic_load(&me->frozen) && took_ns > seen &&
           !atomic_compare_exchange_weak(&referee->longest_wait_ns, &seen, took_ns))
        continue;
}

/* One hold, or a wait that is cancelled or over too soon. */
static void one_turn(struct worker *me, struct hf_store *store, uint32_t ttl_ms, unsigned *seed)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = ttl_ms, .wait_ms = -1, .spread = dice(seed, 2) == 0};
    unsigned kind = dice(seed, 6);
    int64_t began_ns = hf__now_ns();
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status;
    size_t which;

    if (kind == 0) {
        struct itimerspec soon = {.it_value.tv_nsec = 1 + dice(seed, CANCEL_MAX_MS) * 1000000L};

        (void)timerfd_settime(timer, 0, &soon, NULL);
        options.cancel_fd = timer;
    } else if (kind == 1) {
        options.wait_ms = dice(seed, CANCEL_MAX_MS);
    }
    atomic_store(&me->frozen, false);
    status = hf_acquire_any(store, slot_names, SLOTS, &options, &lease, &which, &err);
    (void)close(timer);
    if (status == HF_CANCELLED)
        atomic_fetch_add(&referee->cancels, 1);
    else if (status != HF_OK && status != HF_BUSY)
        atomic_fetch_add(&referee->troubles, 1);
    if (status != HF_OK)
        return;
    if (kind > 1)
        note_wait(me, began_ns);
    enter(me, lease, (unsigned)which);
    hf__sleep_ns(dice(seed, HOLD_MAX_MS) * HF__NS_PER_MS);
    atomic_store(&me->hold, 0);
    (void)!hf_release(lease, NULL);
}

static void start_worker(size_t index, const char *url, uint32_t ttl_ms, unsigned seed)
{
    struct worker *me = &referee->workers[index];
    pid_t pid;

    atomic_store(&me->hold, 0);
    atomic_store(&me->doomed, false);
    me->thaw_ns = 0;
    pid = fork();
    if (pid == 0) {
        struct hf_store *store;
        struct hf_error err;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (hf_open(url, &store, &err) != HF_OK) {
            printf("# %s\n", err.text);
            exit(1);
        }
        while (!atomic_load(&referee->over))
            one_turn(me, store, ttl_ms, &seed);
        hf_close(store);
        exit(0);
    }
    if (pid < 0)
        exit(2);
    me->pid = pid; /* ours to write: the child shares this memory */
}

struct counts {
    unsigned long kills, freezes;
};

static void kill_worker(struct worker *worker)
{
    atomic_store(&worker->doomed, true);
    (void)kill(worker->pid, SIGKILL);
    (void)waitpid(worker->pid, NULL, 0);
}

/* One thought: somebody is killed and replaced, frozen, or thawed. */
static void torment(char *const *urls, size_t url_count, uint32_t ttl_ms, unsigned *seed,
                    struct counts *counts)
{
    size_t victim = dice(seed, WORKERS);
    struct worker *worker = &referee->workers[victim];

    for (size_t i = 0; i < WORKERS; i++) {
        struct worker *frozen = &referee->workers[i];

        if (frozen->thaw_ns != 0 && hf__now_ns() >= frozen->thaw_ns) {
            (void)kill(frozen->pid, SIGCONT);
            frozen->thaw_ns = 0;
        }
    }
    if (dice(seed, KILL_ODDS) == 0) {
        kill_worker(worker);
        counts->kills++;
        start_worker(victim, urls[victim % url_count], ttl_ms, dice(seed, 1u << 23));
    } else if (dice(seed, FREEZE_ODDS) == 0 && worker->thaw_ns == 0) {
        atomic_store(&worker->frozen, true);
        (void)kill(worker->pid, SIGSTOP);
        worker->thaw_ns = hf__now_ns() + (ttl_ms + FREEZE_MS) * HF__NS_PER_MS;
        counts->freezes++;
    }
}

static void end_workers(void)
{
    atomic_store(&referee->over, true);
    for (size_t i = 0; i < WORKERS; i++)
        (void)kill(referee->workers[i].pid, SIGCONT);
    for (size_t i = 0; i < WORKERS; i++)
        (void)waitpid(referee->workers[i].pid, NULL, 0);
}

static int judge(const char *url, const struct counts *counts)
{
    unsigned long holds = 0, least = (unsigned long)-1;
    unsigned long breaches = atomic_load(&referee->twice) + atomic_load(&referee->too_many) +
                             atomic_load(&referee->disorders);
    bool clean = slots_clean(url);

    for (size_t i = 0; i < SLOTS; i++) {
        unsigned long of_slot = atomic_load(&referee->holds[i]);

        holds += of_slot;
        least = of_slot < least ? of_slot : least;
    }
    printf("holds %lu least %lu kills %lu freezes %lu cancels %lu troubles %lu longest_wait_ms "
           "%lld\n",
           holds, least, counts->kills, counts->freezes, atomic_load(&referee->cancels),
           atomic_load(&referee->troubles), atomic_load(&referee->longest_wait_ns) / 1000000);
    return breaches > 0 || !clean || least == 0;
}

static int storm(int seconds, uint32_t ttl_ms, char *const *urls, size_t url_count)
{
    int64_t until_ns = hf__now_ns() + seconds * HF__NS_PER_S;
    struct counts counts = {0, 0};
    unsigned seed = (unsigned)getpid();

    referee =
        mmap(NULL, sizeof *referee, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (referee == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < WORKERS; i++)
        start_worker(i, urls[i % url_count], ttl_ms, seed + (unsigned)i);
    while (hf__now_ns() < until_ns) {
        hf__sleep_ns(STEP_MS * HF__NS_PER_MS);
        torment(urls, url_count, ttl_ms, &seed, &counts);
    }
    end_workers();
    return judge(urls[0], &counts);
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    slots_name();
    if (argc > 4 && strcmp(argv[1], "storm") == 0)
        return storm(atoi(argv[2]), (uint32_t)atoi(argv[3]), argv + 4, (size_t)argc - 4);
    if (argc == 3 && strcmp(argv[1], "order") == 0)
        return slots_order(argv[2]);
    if (argc == 4 && strcmp(argv[1], "killed") == 0)
        return slots_killed(argv[3], atoi(argv[2]));
    if (argc == 4 && strcmp(argv[1], "second") == 0)
        return slots_second(argv[3], atoi(argv[2]));
    if (argc == 4 && strcmp(argv[1], "all") == 0)
        return slots_all(argv[3], atoi(argv[2]));
    fprintf(stderr, "usage: see tool_slots.c\n");
    return 64;
}
