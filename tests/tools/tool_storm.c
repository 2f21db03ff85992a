/* tool_storm.c - workers that hold locks of any store while they are killed and frozen, and a
 * referee in other memory that sees whether the promises were kept.
 *
 *   tool_storm URL HOLDS SECONDS TTL_MS [WORKERS [SEED]]
 *
 * For stores that notice a death slowly, two variables of the environment: STORM_KILL_ODDS, at one
 * thought of so many (12) somebody is killed, lest all stand behind the dead most of the time; and
 * STORM_FREEZE_MS, by how much a freeze is longer than the ttl (200), lest nobody is overtaken.
 *
 * Each worker takes one of LOCKS locks, by turns kept by the keeper and not, reads two counters,
 * dawdles, and writes them plus one: one counter behind a fence, the other without. Meanwhile
 * workers are killed, or frozen for longer than the ttl, at random. Ends when so many holds were
 * entered, or after so many seconds. What servers suffer in that time is the caller's affair.
 *
 * Prints one line, "NAME VALUE" pairs (see tell), and a line for each breach. Exit 1 then:
 *
 *   overlap   two holds of one lock were valid at the same time
 *   order     a valid hold had a token that was not above all earlier ones, or a token came twice
 *   lost      an update behind the fence was lost
 *
 * The counter without a fence is the control: it should lose some. */
#include "base/base.h"
#include <fcntl.h>
#include <holdfast.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOCKS = 3,
    WORKERS_MAX = 32,
    WORKERS_DEFAULT = 8,
    STATUSES = HF_NOMEM + 1,
    TROUBLE_PAUSE_MS = 20,
    DAWDLE_MAX_MS = 12,
    LONG_WAIT_MS = 30000,
    STEP_MS = 15, /* between two thoughts of the tormentor */
    KILL_ODDS = 12,
    FREEZE_MS = 200,
    NAME_MAX_BYTES = 64
};

/* What a worker says of itself. Its killer sets doomed before the signal: a hold that ends that way
 * may be followed by another at once. */
struct worker {
    pid_t pid;
    atomic_bool doomed;
    atomic_bool writing; /* has the referee's file locked: not to be frozen now */
    atomic_int lock;     /* -1: holds none */
    atomic_ullong token;
    atomic_llong until_ns; /* valid before this */
    int64_t thaw_ns;       /* the tormentor's: frozen until then, or 0 */
};

/* One lock's data. All but last_token is changed under the referee's file lock only. */
struct ledger {
    uint64_t mark; /* of the fence */
    uint64_t fenced, fenced_writes;
    uint64_t plain, plain_writes;
    atomic_ullong last_token;
    atomic_llong last_hold_ns;
    atomic_llong longest_gap_ns;
};

struct referee {
    struct ledger ledgers[LOCKS];
    struct worker workers[WORKERS_MAX];
    atomic_ulong holds, stale, overlaps, disorders, answers[STATUSES];
    char troubles[STATUSES]
                 [HF_ERROR_TEXT_SIZE]; /* the last text of each status; torn is good enough */
};

struct plan {
    const char *url;
    unsigned long holds;
    int64_t end_ns;
    uint32_t ttl_ms;
    int workers;
    uint64_t seed;
    uint64_t kill_odds, freeze_ms;
    char prefix[NAME_MAX_BYTES];
};

static struct referee *referee;
static struct plan plan;
static char guard_path[] = "/tmp/holdfast-storm.XXXXXX";

static uint64_t draw(uint64_t *state) /* xorshift64 */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int64_t below(uint64_t *state, uint64_t bound)
{
    return (int64_t)(draw(state) % bound);
}

/* --- a worker --- */

static void section_enter(struct worker *me, int fd)
{
    atomic_store(&me->writing, true);
    while (flock(fd, LOCK_EX) != 0)
        ;
}

static void section_leave(struct worker *me, int fd)
{
    (void)flock(fd, LOCK_UN);
    atomic_store(&me->writing, false);
}

/* Read before asking how much is left: what is published is never later than the real deadline. */
static bool publish(struct worker *me, struct hf_lease *lease, int lock)
{
    int64_t now_ns = hf__now_ns();
    int64_t left_ms = hf_lease_remaining_ms(lease);

    if (left_ms <= 0)
        return false;
    atomic_store(&me->token, hf_lease_token(lease));
    atomic_store(&me->until_ns, now_ns + left_ms * HF__NS_PER_MS);
    atomic_store(&me->lock, lock);
    return true;
}

static void renewed(struct hf_lease *lease, int64_t remaining_ms, void *data)
{
    struct worker *me = data;
    int lock = atomic_load(&me->lock);

    (void)remaining_ms;
    if (lock >= 0 && atomic_load(&me->token) == hf_lease_token(lease))
        (void)publish(me, lease, lock);
}

static void check_overlap(struct worker *me, struct hf_lease *lease, int lock)
{
    for (int i = 0; i < plan.workers; i++) {
        struct worker *other = &referee->workers[i];
        unsigned long long token = atomic_load(&other->token);

        if (other == me || atomic_load(&other->lock) != lock ||
            atomic_load(&other->until_ns) <= hf__now_ns() || atomic_load(&other->doomed))
            continue;
        if (atomic_load(&other->lock) != lock || atomic_load(&other->token) != token ||
            hf_lease_remaining_ms(lease) <= 0)
            continue;
        atomic_fetch_add(&referee->overlaps, 1);
        printf("overlap: lock %d, tokens %llu and %llu\n", lock, token,
               (unsigned long long)hf_lease_token(lease));
    }
}

static void check_order(struct hf_lease *lease, int lock)
{
    struct ledger *ledger = &referee->ledgers[lock];
    unsigned long long token = hf_lease_token(lease);
    unsigned long long last = atomic_load(&ledger->last_token);

    while (last < token && !atomic_compare_exchange_weak(&ledger->last_token, &last, token))
        ;
    if (last == token || (last > token && hf_lease_remaining_ms(lease) > 0)) {
        atomic_fetch_add(&referee->disorders, 1);
        printf("order: lock %d, token %llu after %llu\n", lock, token, last);
    }
}

static void note_gap(struct ledger *ledger)
{
    int64_t now_ns = hf__now_ns();
    int64_t before_ns = atomic_exchange(&ledger->last_hold_ns, now_ns);

    if (before_ns != 0 && now_ns - before_ns > atomic_load(&ledger->longest_gap_ns))
        atomic_store(&ledger->longest_gap_ns, now_ns - before_ns);
}

/* One hold: raise the fence, read both counters, dawdle, write both. A frozen worker writes late,
 * as a real one would. */
static void use(struct worker *me, struct hf_lease *lease, int lock, int fd, uint64_t *rng)
{
    struct ledger *ledger = &referee->ledgers[lock];
    uint64_t token = hf_lease_token(lease);
    uint64_t fenced = 0, plain;
    bool admitted;

    section_enter(me, fd);
    admitted = token >= ledger->mark;
    if (admitted) {
        ledger->mark = token;
        fenced = ledger->fenced;
    }
    plain = ledger->plain;
    section_leave(me, fd);

    hf__sleep_ns(below(rng, DAWDLE_MAX_MS) * HF__NS_PER_MS);

    section_enter(me, fd);
    if (admitted && token >= ledger->mark) {
        ledger->fenced = fenced + 1;
        ledger->fenced_writes++;
    } else {
        atomic_fetch_add(&referee->stale, 1);
    }
    ledger->plain = plain + 1;
    ledger->plain_writes++;
    section_leave(me, fd);
}

static void note(enum hf_status status, const struct hf_error *err)
{
    atomic_fetch_add(&referee->answers[status], 1);
    if (status != HF_OK && status != HF_BUSY)
        (void)snprintf(referee->troubles[status], HF_ERROR_TEXT_SIZE, "%s", err->text);
}

static void one_hold(struct hf_store *store, struct worker *me, int fd, uint64_t *rng)
{
    static const int64_t waits[] = {0, 200, LONG_WAIT_MS, LONG_WAIT_MS};
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = plan.ttl_ms,
                                         .wait_ms = waits[below(rng, 4)],
                                         .no_keeper = below(rng, 2) == 0,
                                         .on_renewed = renewed,
                                         .data = me};
    int lock = (int)below(rng, LOCKS);
    char name[NAME_MAX_BYTES + 8];
    struct hf_lease *lease;
    struct hf_error err = {0};
    enum hf_status status;

    (void)snprintf(name, sizeof name, "%s/%d", plan.prefix, lock);
    status = hf_acquire(store, name, &options, &lease, &err);
    note(status, &err);
    if (status == HF_OK) {
        if (publish(me, lease, lock)) {
            check_overlap(me, lease, lock);
            check_order(lease, lock);
            note_gap(&referee->ledgers[lock]);
            atomic_fetch_add(&referee->holds, 1);
            use(me, lease, lock, fd, rng);
        }
        atomic_store(&me->lock, -1);
        note(hf_release(lease, &err), &err);
    } else if (status != HF_BUSY) {
        hf__sleep_ns(TROUBLE_PAUSE_MS * HF__NS_PER_MS);
    }
}

static void work(struct worker *me, uint64_t rng)
{
    int fd = open(guard_path, O_RDWR | O_CLOEXEC);
    struct hf_store *store = NULL;
    struct hf_error err = {0};

    if (fd < 0)
        _exit(2);
    for (;;) {
        if (store == NULL) {
            enum hf_status status = hf_open(plan.url, &store, &err);

            if (status != HF_OK) {
                note(status, &err);
                store = NULL;
                hf__sleep_ns(TROUBLE_PAUSE_MS * HF__NS_PER_MS);
                continue;
            }
        }
        one_hold(store, me, fd, &rng);
        if (below(&rng, 40) == 0) {
            hf_close(store);
            store = NULL;
        }
        (void)fflush(stdout);
    }
}

/* --- the tormentor --- */

static void start(int i, uint64_t *rng)
{
    struct worker *worker = &referee->workers[i];
    uint64_t stream = draw(rng) | 1;
    pid_t pid;

    atomic_store(&worker->lock, -1);
    atomic_store(&worker->doomed, false);
    atomic_store(&worker->writing, false);
    worker->thaw_ns = 0;
    (void)fflush(stdout);
    pid = fork();
    if (pid < 0) {
        perror("tool_storm: fork");
        exit(2);
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        work(worker, stream);
    }
    worker->pid = pid; /* shared memory: by the parent only */
}

/* Stops it, but not while it has the referee's file: everybody waits for that, and what it writes
 * there must be whole. */
static void stop(struct worker *worker)
{
    while (worker->thaw_ns == 0) { /* else it is stopped already */
        (void)kill(worker->pid, SIGSTOP);
        (void)waitpid(worker->pid, NULL, WUNTRACED);
        if (!atomic_load(&worker->writing))
            return;
        (void)kill(worker->pid, SIGCONT);
        hf__sleep_ns(HF__NS_PER_MS);
    }
}

static void end(struct worker *worker)
{
    stop(worker);
    atomic_store(&worker->doomed, true);
    (void)kill(worker->pid, SIGKILL);
    (void)waitpid(worker->pid, NULL, 0);
}

/* For the ttl and then some. */
static void freeze(struct worker *worker, uint64_t *rng)
{
    stop(worker);
    worker->thaw_ns =
        hf__now_ns() +
        ((int64_t)(plan.ttl_ms + plan.freeze_ms) + below(rng, plan.ttl_ms)) * HF__NS_PER_MS;
}

static void thaw(struct worker *worker)
{
    worker->thaw_ns = 0;
    (void)kill(worker->pid, SIGCONT);
}

static void torment(unsigned long *kills, unsigned long *freezes)
{
    uint64_t rng = plan.seed | 1;

    for (int i = 0; i < plan.workers; i++)
        start(i, &rng);
    while (atomic_load(&referee->holds) < plan.holds && hf__now_ns() < plan.end_ns) {
        struct worker *worker = &referee->workers[below(&rng, (uint64_t)plan.workers)];

        hf__sleep_ns(STEP_MS * HF__NS_PER_MS);
        for (int i = 0; i < plan.workers; i++)
            if (referee->workers[i].thaw_ns != 0 && hf__now_ns() > referee->workers[i].thaw_ns)
                thaw(&referee->workers[i]);
        if (worker->thaw_ns != 0)
            continue;
        if (below(&rng, plan.kill_odds) == 0) {
            end(worker);
            start((int)(worker - referee->workers), &rng);
            (*kills)++;
        } else if (atomic_load(&worker->lock) >= 0 && below(&rng, 4) == 0) {
            freeze(worker, &rng);
            (*freezes)++;
        }
    }
    for (int i = 0; i < plan.workers; i++)
        end(&referee->workers[i]);
}

static int tell(unsigned long kills, unsigned long freezes)
{
    uint64_t fenced_lost = 0, plain_lost = 0;
    int64_t gap_ns = 0;

    for (int i = 0; i < LOCKS; i++) {
        struct ledger *ledger = &referee->ledgers[i];

        fenced_lost += ledger->fenced_writes - ledger->fenced;
        plain_lost += ledger->plain_writes - ledger->plain;
        if (atomic_load(&ledger->longest_gap_ns) > gap_ns)
            gap_ns = atomic_load(&ledger->longest_gap_ns);
    }
    for (int i = 0; i < STATUSES; i++)
        if (referee->answers[i] != 0)
            printf("# %s %lu%s%s\n", hf_status_name((enum hf_status)i),
                   (unsigned long)referee->answers[i], referee->troubles[i][0] != '\0' ? ": " : "",
                   referee->troubles[i]);
    printf("holds %lu kills %lu freezes %lu stale %lu overlap %lu order %lu lost %llu "
           "unfenced_lost %llu gap_ms %lld\n",
           (unsigned long)referee->holds, kills, freezes, (unsigned long)referee->stale,
           (unsigned long)referee->overlaps, (unsigned long)referee->disorders,
           (unsigned long long)fenced_lost, (unsigned long long)plain_lost,
           (long long)(gap_ns / HF__NS_PER_MS));
    return referee->overlaps != 0 || referee->disorders != 0 || fenced_lost != 0;
}

static uint64_t told(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    unsigned long kills = 0, freezes = 0;
    int fd;

    if (argc < 5) {
        fprintf(stderr, "usage: tool_storm URL HOLDS SECONDS TTL_MS [WORKERS [SEED]]\n");
        return 64;
    }
    plan.url = argv[1];
    plan.holds = strtoul(argv[2], NULL, 10);
    plan.end_ns = hf__now_ns() + strtoll(argv[3], NULL, 10) * HF__NS_PER_S;
    plan.ttl_ms = (uint32_t)strtoul(argv[4], NULL, 10);
    plan.workers = argc > 5 ? atoi(argv[5]) : WORKERS_DEFAULT;
    plan.seed = argc > 6 ? strtoull(argv[6], NULL, 10) : (uint64_t)hf__wall_us();
    plan.kill_odds = told("STORM_KILL_ODDS", KILL_ODDS);
    plan.freeze_ms = told("STORM_FREEZE_MS", FREEZE_MS);
    if (plan.kill_odds < 1 || plan.workers < 1 || plan.workers > WORKERS_MAX)
        return 64;
    (void)snprintf(plan.prefix, sizeof plan.prefix, "storm/%d/%lld", (int)getpid(),
                   (long long)hf__wall_us());
    fd = mkstemp(guard_path);
    referee =
        mmap(NULL, sizeof *referee, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || referee == MAP_FAILED) {
        perror("tool_storm");
        return 2;
    }
    printf("# seed %llu\n", (unsigned long long)plan.seed);
    torment(&kills, &freezes);
    (void)unlink(guard_path);
    return tell(kills, freezes);
}
