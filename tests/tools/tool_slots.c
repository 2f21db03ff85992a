/* tool_slots.c - workers that want one of a few slots of any store, while they are killed, frozen
 * and cancelled, and a referee in other memory: a table with a place for each number, which the
 * worker who has that number signs.
 *
 *   tool_slots URL SLOTS SECONDS TTL_MS WORKERS
 *
 * At one thought of so many somebody is killed, and as often frozen for longer than the ttl:
 * STORM_KILL_ODDS, of the environment (30).
 *
 * Prints a line for each breach, and in the end one of "NAME VALUE" pairs (see judge). Exit 1 if
 *
 *   overlap   a number was somebody's already, and validly so
 *   order     its token was not above the last one
 *   unused    numbers that nobody had in the second half
 *   starved   workers that never had any
 *   left      locks that are held or waited for when everybody is gone
 */
#include "base/base.h"
#include <fcntl.h>
#include <holdfast/several.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 32,
    STEP_MS = 15, /* between two thoughts of the tormentor */
    DWELL_MS = 12,
    CANCEL_MS = 60,
    LONG_WAIT_MS = 30000,
    OVER_MS = 60000 /* within which all numbers must be free when all workers are dead */
};

struct place { /* changed with the referee's file locked, but for until_ns */
    uint64_t token;
    _Atomic int64_t until_ns; /* valid before this; 0: nobody is there */
    int worker;
    unsigned long late_holds; /* in the second half */
};

struct worker {
    pid_t pid;
    atomic_bool writing; /* has the referee's file locked: not to be ended now */
    atomic_ulong holds;
    int64_t thaw_ns; /* frozen until then, or 0 */
};

static struct referee {
    struct place places[HF_SEVERAL_MAX];
    struct worker workers[WORKERS_MAX];
    atomic_ulong holds, cancelled, overlaps, disorders;
} *referee;

static struct {
    const char *url;
    size_t slots;
    int workers;
    uint32_t ttl_ms;
    int64_t half_ns, end_ns;
    uint64_t odds;
    char names[HF_SEVERAL_MAX][64];
    const char *list[HF_SEVERAL_MAX];
    char stem[48];
} plan;
static char guard_path[] = "/tmp/holdfast-slots.XXXXXX";

static int64_t below(uint64_t bound)
{
    uint32_t dice;

    hf__random(&dice, sizeof dice);
    return (int64_t)(dice % bound);
}

/* --- a worker --- */

static void section(struct worker *me, int fd, bool enter)
{
    if (enter)
        atomic_store(&me->writing, true);
    while (flock(fd, enter ? LOCK_EX : LOCK_UN) != 0)
        ;
    if (!enter)
        atomic_store(&me->writing, false);
}

static int64_t valid_until_ns(struct hf_lease *lease)
{
    int64_t now_ns = hf__now_ns(); /* read first: what is told is never later than the truth */

    return now_ns + hf_lease_remaining_ms(lease) * HF__NS_PER_MS;
}

static void renewed(struct hf_lease *lease, int64_t remaining_ms, void *data)
{
    struct place *place = *(struct place **)data;

    (void)remaining_ms;
    if (place != NULL)
        atomic_store(&place->until_ns, valid_until_ns(lease));
}

/* Signs the table. False: the lease is over, and nothing may be done with it. */
static bool sign(struct worker *me, struct place *place, struct hf_lease *lease, int fd)
{
    uint64_t token = hf_lease_token(lease);
    int64_t until_ns;

    section(me, fd, true);
    until_ns = valid_until_ns(lease);
    if (until_ns > hf__now_ns()) {
        if (atomic_load(&place->until_ns) > hf__now_ns()) {
            atomic_fetch_add(&referee->overlaps, 1);
            printf("overlap: number %td, tokens %llu and %llu\n", place - referee->places,
                   (unsigned long long)place->token, (unsigned long long)token);
        }
        if (token <= place->token) {
            atomic_fetch_add(&referee->disorders, 1);
            printf("order: number %td, token %llu after %llu\n", place - referee->places,
                   (unsigned long long)token, (unsigned long long)place->token);
        }
        place->token = token;
        place->worker = (int)(me - referee->workers);
        place->late_holds += hf__now_ns() > plan.half_ns;
        atomic_store(&place->until_ns, until_ns);
        atomic_fetch_add(&me->holds, 1);
        atomic_fetch_add(&referee->holds, 1);
    }
    section(me, fd, false);
    return until_ns > hf__now_ns();
}

static void unsign(struct worker *me, struct place *place, struct hf_lease *lease, int fd)
{
    section(me, fd, true);
    if (place->token == hf_lease_token(lease))
        atomic_store(&place->until_ns, 0);
    section(me, fd, false);
}

/* Readable after a while. */
static int alarm_fd(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec when = {.it_value.tv_nsec = (1 + below(CANCEL_MS)) * HF__NS_PER_MS};

    if (fd < 0 || timerfd_settime(fd, 0, &when, NULL) != 0)
        _exit(2);
    return fd;
}

static void one_hold(struct hf_store *store, struct worker *me, int fd)
{
    struct place *place = NULL;
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = plan.ttl_ms,
                                         .wait_ms = below(8) == 0 ? 0 : LONG_WAIT_MS,
                                         .cancel_fd = below(4) == 0 ? alarm_fd() : 0,
                                         .no_keeper = below(2) == 0,
                                         .spread = below(2) == 0,
                                         .on_renewed = renewed,
                                         .data = &place};
    struct hf_lease *lease;
    struct hf_error err;
    size_t which;
    enum hf_status status =
        hf_acquire_any(store, plan.list, plan.slots, &options, &lease, &which, &err);

    if (options.cancel_fd > 0)
        (void)close(options.cancel_fd);
    if (status == HF_CANCELLED)
        atomic_fetch_add(&referee->cancelled, 1);
    if (status != HF_OK) {
        hf__sleep_ns(below(5) * HF__NS_PER_MS);
        return;
    }
    if (sign(me, &referee->places[which], lease, fd)) {
        place = &referee->places[which];
        hf__sleep_ns(below(DWELL_MS) * HF__NS_PER_MS);
        place = NULL;
        unsign(me, &referee->places[which], lease, fd);
    }
    (void)!hf_release(lease, &err);
}

static _Noreturn void work(struct worker *me)
{
    int fd = open(guard_path, O_RDWR | O_CLOEXEC);
    struct hf_store *store;
    struct hf_error err;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (hf_open(plan.url, &store, &err) != HF_OK)
        hf__sleep_ns(20 * HF__NS_PER_MS);
    for (;;) {
        one_hold(store, me, fd);
        (void)fflush(stdout);
    }
}

/* --- the tormentor --- */

static void start(struct worker *worker)
{
    pid_t pid;

    (void)fflush(stdout);
    worker->thaw_ns = 0;
    atomic_store(&worker->writing, false);
    pid = fork();
    if (pid < 0)
        exit(2);
    if (pid == 0)
        work(worker);
    worker->pid = pid; /* shared memory: by the parent only */
}

/* Not while it has the referee's file: everybody waits for that. */
static void stop(struct worker *worker)
{
    while (worker->thaw_ns == 0) {
        (void)kill(worker->pid, SIGSTOP);
        (void)waitpid(worker->pid, NULL, WUNTRACED);
        if (!atomic_load(&worker->writing))
            return;
        (void)kill(worker->pid, SIGCONT);
        hf__sleep_ns(HF__NS_PER_MS);
    }
}

/* Its signature counts no more from now on: the next may have its number at once. */
static void end(struct worker *worker)
{
    stop(worker);
    for (size_t i = 0; i < plan.slots; i++)
        if (referee->places[i].worker == worker - referee->workers)
            atomic_store(&referee->places[i].until_ns, 0);
    (void)kill(worker->pid, SIGKILL);
    (void)waitpid(worker->pid, NULL, 0);
}

static void torment(unsigned long *kills, unsigned long *freezes)
{
    for (int i = 0; i < plan.workers; i++)
        start(&referee->workers[i]);
    while (hf__now_ns() < plan.end_ns) {
        struct worker *worker = &referee->workers[below((uint64_t)plan.workers)];
        int64_t what = below(plan.odds);

        hf__sleep_ns(STEP_MS * HF__NS_PER_MS);
        for (int i = 0; i < plan.workers; i++)
            if (referee->workers[i].thaw_ns != 0 && hf__now_ns() > referee->workers[i].thaw_ns) {
                referee->workers[i].thaw_ns = 0;
                (void)kill(referee->workers[i].pid, SIGCONT);
            }
        if (worker->thaw_ns != 0 || what > 1)
            continue;
        if (what == 0) {
            end(worker);
            start(worker);
            ++*kills;
        } else {
            stop(worker);
            worker->thaw_ns = hf__now_ns() + ((int64_t)plan.ttl_ms * 5 / 4 + 200) * HF__NS_PER_MS;
            ++*freezes;
        }
    }
    for (int i = 0; i < plan.workers; i++)
        end(&referee->workers[i]);
}

/* --- the judgement --- */

static bool count_lock(const struct hf_lock_info *info, void *data)
{
    *(unsigned long *)data += info->held || info->waiters > 0;
    return true;
}

/* Milliseconds until one process has all numbers at once; -1: it never had. */
static int64_t take_all(struct hf_store *store)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = plan.ttl_ms, .wait_ms = OVER_MS};
    struct hf_lease *leases[HF_SEVERAL_MAX];
    struct hf_error err;
    int64_t start_ns = hf__now_ns();

    if (hf_acquire_all(store, plan.list, plan.slots, &options, leases, &err) != HF_OK) {
        printf("all: %s\n", err.text);
        return -1;
    }
    start_ns = hf__now_ns() - start_ns;
    return hf_release_all(leases, plan.slots, &err) == HF_OK ? start_ns / HF__NS_PER_MS : -1;
}

static int judge(unsigned long kills, unsigned long freezes)
{
    unsigned long unused = 0, starved = 0, left = 0;
    struct hf_store *store;
    struct hf_error err;
    int64_t free_ms;

    if (hf_open(plan.url, &store, &err) != HF_OK)
        return 1;
    free_ms = take_all(store);
    for (int tries = 0; tries < 100; tries++) { /* the waiters of the dead are forgotten soon */
        left = 0;
        if (hf_list(store, plan.stem, count_lock, &left, &err) == HF_OK && left == 0)
            break;
        hf__sleep_ns(200 * HF__NS_PER_MS);
    }
    hf_close(store);
    for (size_t i = 0; i < plan.slots; i++)
        unused += referee->places[i].late_holds == 0;
    for (int i = 0; i < plan.workers; i++)
        starved += atomic_load(&referee->workers[i].holds) == 0;
    printf("holds %lu kills %lu freezes %lu cancelled %lu overlap %lu order %lu unused %lu "
           "starved %lu left %lu free_ms %lld\n",
           (unsigned long)referee->holds, kills, freezes, (unsigned long)referee->cancelled,
           (unsigned long)referee->overlaps, (unsigned long)referee->disorders, unused, starved,
           left, (long long)free_ms);
    return referee->overlaps + referee->disorders + unused + starved + left != 0 || free_ms < 0;
}

int main(int argc, char **argv)
{
    unsigned long kills = 0, freezes = 0;
    int64_t seconds;
    int fd;

    if (argc < 6) {
        fprintf(stderr, "usage: tool_slots URL SLOTS SECONDS TTL_MS WORKERS\n");
        return 64;
    }
    plan.url = argv[1];
    plan.slots = (size_t)(strtoul(argv[2], NULL, 10) - 1) % HF_SEVERAL_MAX + 1;
    seconds = strtoll(argv[3], NULL, 10);
    plan.ttl_ms = (uint32_t)strtoul(argv[4], NULL, 10);
    plan.workers = (int)(strtoul(argv[5], NULL, 10) % (WORKERS_MAX + 1));
    plan.odds = getenv("STORM_KILL_ODDS") != NULL ? strtoull(getenv("STORM_KILL_ODDS"), NULL, 10) : 30;
    plan.odds += plan.odds == 0;
    plan.half_ns = hf__now_ns() + seconds * HF__NS_PER_S / 2;
    plan.end_ns = hf__now_ns() + seconds * HF__NS_PER_S;
    (void)snprintf(plan.stem, sizeof plan.stem, "slots%d", (int)getpid());
    for (size_t i = 0; i < plan.slots; i++) {
        (void)snprintf(plan.names[i], sizeof plan.names[i], "%s#%zu", plan.stem, i);
        plan.list[i] = plan.names[i];
    }
    referee = mmap(NULL, sizeof *referee, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fd = mkstemp(guard_path);
    if (referee == MAP_FAILED || fd < 0)
        return 2;
    torment(&kills, &freezes);
    (void)unlink(guard_path);
    return judge(kills, freezes);
}
