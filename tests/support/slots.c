/* slots.c - what is asked of every store about several locks, by processes of their own. */
#include "slots.h"
#include "base/base.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CROWD = 16, /* waiters of slots_order */
    LONG_TTL_MS = 60000,
    SOON_MS = 20000, /* what is to happen at once, on a busy machine */
    NAME_SIZE = 64
};

static char texts[SLOTS][NAME_SIZE];
const char *const slot_names[SLOTS] = {texts[0], texts[1], texts[2], texts[3]};

/* What the processes of one question tell each other. */
struct board {
    atomic_int turns;                   /* how many were granted */
    atomic_llong granted_ns[CROWD + 1]; /* when; 0: not yet */
    atomic_int turn[CROWD + 1];         /* in which turn: 1, 2, ... */
    atomic_int slot[CROWD + 1];
    atomic_int done; /* how many of these turns give back what they have */
};

void slots_name(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        (void)snprintf(texts[i], sizeof texts[i], "pool-%d#%zu", (int)getpid(), i);
}

unsigned dice(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 8) % below;
}

static struct hf_store *open_store(const char *url)
{
    struct hf_store *store;
    struct hf_error err;

    if (hf_open(url, &store, &err) == HF_OK)
        return store;
    printf("# %s\n", err.text);
    exit(2);
}

static int say(const char *what)
{
    printf("# %s\n", what);
    return 1;
}

static struct hf_lease *take(struct hf_store *store, const char *name, int64_t wait_ms)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = LONG_TTL_MS, .wait_ms = wait_ms};
    struct hf_lease *lease;
    struct hf_error err;

    if (hf_acquire(store, name, &options, &lease, &err) == HF_OK)
        return lease;
    printf("# %s\n", err.text);
    exit(2);
}

struct seen {
    uint64_t waiters; /* of all slots together */
    unsigned held;
};

static bool count(const struct hf_lock_info *info, void *data)
{
    struct seen *seen = data;

    seen->waiters += info->waiters;
    seen->held += info->held;
    return true;
}

static struct seen look(struct hf_store *store)
{
    struct seen seen = {0};

    for (size_t i = 0; i < SLOTS; i++)
        (void)!hf_inspect(store, slot_names[i], count, &seen, NULL);
    return seen;
}

/* Until one more waits than before; a store that shows no queues is given a moment. */
static void await_more(struct hf_store *store, uint64_t before)
{
    int64_t until_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;

    if ((hf_store_features(store) & HF_FEATURE_FAIR) == 0)
        hf__sleep_ns(100 * HF__NS_PER_MS);
    else
        while (look(store).waiters <= before && hf__now_ns() < until_ns)
            hf__sleep_ns(HF__NS_PER_MS);
    hf__sleep_ns(50 * HF__NS_PER_MS); /* in all queues, where they are entered one by one */
}

bool slots_clean(const char *url)
{
    struct hf_store *store = open_store(url);
    int64_t until_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;
    struct hf_error err;
    struct seen seen;

    for (size_t i = 0; i < SLOTS; i++)
        if (hf_release(take(store, slot_names[i], SOON_MS), &err) != HF_OK)
            printf("# %s\n", err.text);
    do {
        seen = look(store);
        hf__sleep_ns(10 * HF__NS_PER_MS);
    } while ((seen.held > 0 || seen.waiters > 0) && hf__now_ns() < until_ns);
    hf_close(store);
    if (seen.held > 0 || seen.waiters > 0)
        printf("# left behind: %u held, %llu waiting\n", seen.held,
               (unsigned long long)seen.waiters);
    return seen.held == 0 && seen.waiters == 0;
}

static struct board *board_new(void)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (board == MAP_FAILED)
        exit(2);
    return board;
}

/* A process that waits for any slot, or for a certain one, says when it has it, and gives it back
 * when its turn is done. */
static pid_t start_waiter(const char *url, struct board *board, int index, int only)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = LONG_TTL_MS, .wait_ms = -1};
    struct hf_lease *lease;
    struct hf_error err;
    size_t which = (size_t)only;
    pid_t pid = fork();
    struct hf_store *store;
    enum hf_status status;

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    store = open_store(url);
    status = only >= 0 ? hf_acquire(store, slot_names[only], &options, &lease, &err)
                       : hf_acquire_any(store, slot_names, SLOTS, &options, &lease, &which, &err);
    if (status != HF_OK) {
        printf("# waiter %d: %s\n", index, err.text);
        exit(1);
    }
    atomic_store(&board->turn[index], atomic_fetch_add(&board->turns, 1));
    atomic_store(&board->slot[index], (int)which);
    atomic_store(&board->granted_ns[index], hf__now_ns());
    while (atomic_load(&board->done) <= atomic_load(&board->turn[index]))
        hf__sleep_ns(HF__NS_PER_MS);
    status = hf_release(lease, &err);
    hf_close(store);
    exit(status != HF_OK);
}

static bool await_grant(struct board *board, int index, int64_t until_ns)
{
    while (atomic_load(&board->granted_ns[index]) == 0 && hf__now_ns() < until_ns)
        hf__sleep_ns(HF__NS_PER_MS);
    return atomic_load(&board->granted_ns[index]) != 0;
}

static int end_waiters(const pid_t *pids, size_t count_)
{
    int bad = 0;

    for (size_t i = 0; i < count_; i++) {
        int status;

        if (waitpid(pids[i], &status, 0) == pids[i] && status != 0)
            bad = say("a waiter failed");
    }
    return bad;
}

/* All that are held now have signed, and give back what they have. */
static bool end_turns(struct board *board, int turns)
{
    int64_t until_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;

    while (atomic_load(&board->turns) < turns && hf__now_ns() < until_ns)
        hf__sleep_ns(HF__NS_PER_MS);
    atomic_store(&board->done, turns);
    return atomic_load(&board->turns) == turns;
}

/* Waiters come one after the other; then the slots become free, all of them at once, again and
 * again. Nobody gives one back before all have signed: so it does not matter when the system lets
 * those run who have been granted one. */
int slots_order(const char *url)
{
    struct board *board = board_new();
    pid_t pids[CROWD];
    struct hf_lease *held[SLOTS];
    struct hf_store *store = open_store(url);
    int most = 0, bad;

    for (size_t i = 0; i < SLOTS; i++)
        held[i] = take(store, slot_names[i], 0);
    for (int i = 0; i < CROWD; i++) {
        uint64_t before = look(store).waiters;

        pids[i] = start_waiter(url, board, i, -1);
        await_more(store, before);
    }
    bad = hf_release_all(held, SLOTS, NULL) != HF_OK;
    for (int turns = SLOTS; turns <= CROWD; turns += SLOTS)
        if (!end_turns(board, turns))
            bad = say("those who wait are not served");
    bad |= end_waiters(pids, CROWD);
    for (int i = 0; i < CROWD; i++) {
        int apart = abs(atomic_load(&board->turn[i]) - i);

        most = apart > most ? apart : most;
    }
    hf_close(store);
    printf("displaced_most %d of %d\n", most, CROWD);
    return bad || most > SLOTS ? say("waiters were not served in the order they came") : 0;
}

/* Behind the one that is killed, somebody waits for each slot: with all slots together, not each in
 * turn, they get what is free. */
int slots_killed(const char *url, int64_t limit_ms)
{
    struct board *board = board_new();
    struct hf_lease *held[SLOTS];
    pid_t pids[SLOTS], ghost;
    struct hf_store *store;
    int64_t free_ns, took_ms = 0;
    int bad;

    store = open_store(url);
    for (size_t i = 0; i < SLOTS; i++)
        held[i] = take(store, slot_names[i], 0);
    ghost = start_waiter(url, board, SLOTS, -1);
    await_more(store, 0);
    for (int i = 0; i < SLOTS; i++) {
        uint64_t before = look(store).waiters;

        pids[i] = start_waiter(url, board, i, -1);
        await_more(store, before);
    }
    (void)kill(ghost, SIGKILL);
    (void)waitpid(ghost, NULL, 0);
    bad = hf_release_all(held, SLOTS, NULL) != HF_OK;
    free_ns = hf__now_ns();
    for (int i = 0; i < SLOTS; i++) {
        int64_t ms;

        if (!await_grant(board, i, free_ns + 3 * SOON_MS * HF__NS_PER_MS))
            bad = say("somebody waits for ever");
        ms = (atomic_load(&board->granted_ns[i]) - free_ns) / HF__NS_PER_MS;
        took_ms = ms > took_ms ? ms : took_ms;
    }
    atomic_store(&board->done, INT_MAX);
    bad |= end_waiters(pids, SLOTS);
    hf_close(store);
    printf("took_ms %lld\n", (long long)took_ms);
    return bad || took_ms > limit_ms ? say("the ghost kept them waiting") : 0;
}

/* The first waiter stands in all queues and sleeps while two slots are handed to it. */
int slots_second(const char *url, int64_t limit_ms)
{
    struct board *board = board_new();
    struct hf_lease *held[SLOTS];
    pid_t pids[3];
    struct hf_store *store = open_store(url);
    int64_t woken_ns, took_ms = 0;
    int bad = 0;

    for (size_t i = 0; i < SLOTS; i++)
        held[i] = take(store, slot_names[i], 0);
    for (int i = 0; i < 3; i++) {
        uint64_t before = look(store).waiters;

        pids[i] = start_waiter(url, board, i, i - 1);
        await_more(store, before);
    }
    (void)kill(pids[0], SIGSTOP);
    hf__sleep_ns(100 * HF__NS_PER_MS);
    bad |= hf_release(held[0], NULL) != HF_OK;
    bad |= hf_release(held[1], NULL) != HF_OK;
    held[0] = held[1] = NULL;
    hf__sleep_ns(100 * HF__NS_PER_MS);
    woken_ns = hf__now_ns();
    (void)kill(pids[0], SIGCONT);
    /* Slot 0 or 1 is the first one's; the other goes to who waits for it. */
    if (!await_grant(board, 0, woken_ns + SOON_MS * HF__NS_PER_MS)) {
        bad = say("the first has none");
    } else {
        int other = atomic_load(&board->slot[0]) == 0 ? 2 : 1;

        if (!await_grant(board, other, woken_ns + SOON_MS * HF__NS_PER_MS))
            bad = say("the second grant never arrived");
        took_ms = (atomic_load(&board->granted_ns[other]) - woken_ns) / HF__NS_PER_MS;
    }
    atomic_store(&board->done, INT_MAX);
    bad |= end_waiters(pids, 3);
    bad |= hf_release_all(held, SLOTS, NULL) != HF_OK;
    hf_close(store);
    printf("took_ms %lld\n", (long long)took_ms);
    return bad || took_ms > limit_ms ? say("the second grant was late") : 0;
}

/* Two locks of them, named in this order and in that. */
static int move_again_and_again(const char *url, bool backwards, int rounds, atomic_int *inside)
{
    const char *const names[2] = {slot_names[backwards ? 1 : 0], slot_names[backwards ? 0 : 1]};
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = LONG_TTL_MS, .wait_ms = SOON_MS};
    struct hf_store *store = open_store(url);
    struct hf_lease *leases[2];
    struct hf_error err;

    for (int i = 0; i < rounds; i++) {
        if (hf_acquire_all(store, names, 2, &options, leases, &err) != HF_OK ||
            atomic_fetch_add(inside, 1) != 0 || strcmp(hf_lease_name(leases[0]), names[0]) != 0) {
            printf("# round %d: %s\n", i, err.text);
            return 1;
        }
        atomic_fetch_sub(inside, 1);
        if (hf_release_all(leases, 2, &err) != HF_OK) {
            printf("# round %d: %s\n", i, err.text);
            return 1;
        }
    }
    hf_close(store);
    return 0;
}

int slots_all(const char *url, int rounds)
{
    struct board *board = board_new();
    int64_t began_ns = hf__now_ns();
    pid_t pids[2];

    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            exit(move_again_and_again(url, i == 1, rounds, &board->turns));
        }
    }
    if (end_waiters(pids, 2) != 0)
        return 1;
    printf("rounds %d took_ms %lld\n", rounds, (long long)(hf__now_ns() - began_ns) / 1000000);
    return 0;
}
