/* step_storm.c - workers that are killed, stopped or held up at random steps, and their referee. */
#include "step_storm.h"
#include "../support/steps.h"
#include "client/client.h"
#include "stores/file/fifo.h"
#include "stores/file/map.h"
#include "stores/file/page.h"
#include "stores/file/word.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUCK_MS  20000 /* a wait that takes this long means a queue that is stuck */
#define KILL_ODDS 3000  /* one step in this many */
#define STOP_ODDS 2000
#define HOLD_ODDS 40

static struct step_storm *storm; /* of this process */
static struct storm_process *self;
static uint64_t stream;
static _Thread_local struct kit_rng rng;

static void breach(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void breach(const char *format, ...)
{
    char text[sizeof storm->text];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (atomic_exchange(&storm->broken, 1) == 0)
        memcpy(storm->text, text, sizeof text);
}

const char *step_storm_name(int lock)
{
    return lock == 0 ? storm->others[STORM_OTHERS - 1] : storm->others[STORM_OTHERS - 2];
}

/* ---- what is done wrong on purpose ---- */

enum hf_status __real_hf__word_swap(struct file_store *store, off_t at, struct hf__pair from,
                                    struct hf__pair to, struct hf_error *err);
enum hf_status __wrap_hf__word_swap(struct file_store *store, off_t at, struct hf__pair from,
                                    struct hf__pair to, struct hf_error *err);
void __real_hf__fifo_wake(int fd);
void __wrap_hf__fifo_wake(int fd);

static enum hf_status store_over(struct file_store *store, off_t at, struct hf__pair from,
                                 struct hf__pair to, struct hf_error *err)
{
    enum hf_status status;

    do {
        struct hf__pair there;

        status = hf__word_load(store, at, &there, err);
        if (status == HF_OK && storm->plan.mutant == MUTANT_TOKEN_ALONE && there.low != from.low)
            return HF_STALE;
        if (status == HF_OK)
            status = __real_hf__word_swap(store, at, there, to, err);
    } while (status == HF_STALE);
    return status;
}

enum hf_status __wrap_hf__word_swap(struct file_store *store, off_t at, struct hf__pair from,
                                    struct hf__pair to, struct hf_error *err)
{
    bool renews = to.low == from.low && hf__word_expiry_ms(to) != hf__word_expiry_ms(from) &&
                  to.high != 0 && !hf__word_is(to, WORD_RESERVED | WORD_MOVING);

    switch (storm != NULL ? storm->plan.mutant : MUTANT_NONE) {
    case MUTANT_STORE:
    case MUTANT_TOKEN_ALONE:
        return store_over(store, at, from, to, err);
    case MUTANT_NOT_WAITED:
        if (to.low == from.low && to.high == (from.high | WORD_WAITED))
            return HF_OK;
        break;
    case MUTANT_RENEW_DROPS:
        if (renews)
            to = hf__word_without(to, WORD_WAITED);
        break;
    case MUTANT_NOT_MARKED:
        to = hf__word_without(to, WORD_MOVING);
        from = hf__word_without(from, WORD_MOVING);
        break;
    case MUTANT_NONE:
    case MUTANT_NO_BYTE:
        break;
    }
    return __real_hf__word_swap(store, at, from, to, err);
}

void __wrap_hf__fifo_wake(int fd)
{
    if (storm == NULL || storm->plan.mutant != MUTANT_NO_BYTE)
        __real_hf__fifo_wake(fd);
}

/* ---- steps ---- */

static void at_step(const char *name)
{
    (void)name;
    if (storm->plan.kills && kit_below(&rng, KILL_ODDS) == 0) {
        atomic_store(&self->doomed, 1);
        (void)kill(getpid(), SIGKILL);
    } else if (storm->plan.stops && kit_below(&rng, STOP_ODDS) == 0) {
        atomic_fetch_add(&storm->stops, 1);
        (void)kill(getpid(), SIGSTOP);
    } else if (kit_below(&rng, HOLD_ODDS) == 0) {
        hf__sleep_ns((int64_t)kit_below(&rng, 300000));
    }
}

/* ---- the referee ---- */

static bool held_by_other(const struct storm_note *mine, int lock, unsigned long long *token)
{
    for (int i = 0; i < STORM_PROCESSES; i++) {
        for (int j = 0; j < STORM_THREADS; j++) {
            struct storm_process *process = &storm->processes[i];
            struct storm_note *note = &process->notes[j];

            *token = atomic_load(&note->token);
            if (note != mine && atomic_load(&note->lock) == lock &&
                atomic_load(&note->until_ns) > hf__now_ns() && !atomic_load(&process->doomed) &&
                atomic_load(&note->lock) == lock && atomic_load(&note->token) == *token)
                return true;
        }
    }
    return false;
}

static void enter(struct storm_note *note, int lock, struct hf_lease *lease)
{
    unsigned long long token = hf_lease_token(lease);
    unsigned long long last = atomic_load(&storm->last[lock]);
    unsigned long long other;
    int64_t now_ns = hf__now_ns();
    int64_t left_ms = hf_lease_remaining_ms(lease);

    if (left_ms <= 0)
        return;
    atomic_store(&note->token, token);
    atomic_store(&note->until_ns, now_ns + left_ms * HF__NS_PER_MS);
    atomic_store(&note->lock, lock);
    if (held_by_other(note, lock, &other) && hf_lease_remaining_ms(lease) > 0)
        breach("lock %d is held twice, with tokens %llu and %llu", lock, token, other);
    while (last < token && !atomic_compare_exchange_weak(&storm->last[lock], &last, token))
        ;
    if (last >= token && hf_lease_remaining_ms(lease) > 0)
        breach("lock %d: token %llu comes after %llu", lock, token, last);
    atomic_fetch_add(&storm->holds, 1);
}

/* Another ttl, half as long or the first one. */
static void renew(struct storm_note *note, int lock, struct hf_lease *lease)
{
    uint32_t ttl_ms = storm->plan.ttl_ms >> kit_below(&rng, 2);
    long long shorter_ns = hf__now_ns() + ttl_ms * HF__NS_PER_MS;
    bool revoked = atomic_load(&storm->revoked[lock]) == hf_lease_token(lease);
    struct hf_error err = {0};
    enum hf_status status;
    int64_t now_ns;

    if (atomic_load(&note->until_ns) > shorter_ns)
        atomic_store(&note->until_ns, shorter_ns);
    status = hf_renew(lease, ttl_ms, &err);
    now_ns = hf__now_ns();
    if (status == HF_OK && revoked)
        breach("lock %d: token %llu was broken, and renewed", lock,
               (unsigned long long)hf_lease_token(lease));
    if (status == HF_OK)
        atomic_store(&note->until_ns, now_ns + hf_lease_remaining_ms(lease) * HF__NS_PER_MS);
    atomic_fetch_add(&storm->renewals, 1);
}

static void break_it(struct hf_store *store, int lock, struct hf_lease *lease)
{
    uint64_t token = hf_lease_token(lease);
    struct hf_error err = {0};

    if (hf_break(store, step_storm_name(lock), token, NULL, NULL, &err) == HF_OK) {
        atomic_store(&storm->revoked[lock], token);
        atomic_fetch_add(&storm->breaks, 1);
    }
}

static void hold(struct hf_store *store, struct storm_note *note, int lock, struct hf_lease *lease)
{
    bool safe = !storm->plan.stops && hf_lease_remaining_ms(lease) > 1000;
    struct hf_error err = {0};
    enum hf_status status;

    enter(note, lock, lease);
    if (kit_below(&rng, 20) == 0)
        break_it(store, lock, lease);
    if (kit_below(&rng, 3) == 0)
        renew(note, lock, lease);
    if (kit_below(&rng, 4) == 0)
        hf__sleep_ns((int64_t)kit_below(&rng, 200000));
    atomic_store(&note->lock, -1);
    safe = safe && atomic_load(&storm->revoked[lock]) != hf_lease_token(lease);
    status = hf_release(lease, &err);
    if (status == HF_LOST ? safe : status != HF_OK)
        breach("release of lock %d: %s: %s", lock, hf_status_name(status), err.text);
}

/* ---- the workers ---- */

static struct hf_lease *take_other(struct hf_store *store)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = storm->plan.ttl_ms, .no_keeper = true};
    struct hf_lease *lease = NULL;
    struct hf_error err = {0};
    const char *name = storm->others[kit_below(&rng, STORM_OTHERS - STORM_LOCKS)];
    enum hf_status status = hf_acquire(store, name, &options, &lease, &err);

    if (status != HF_OK && status != HF_BUSY && !storm->plan.stops)
        breach("acquire of %s: %s: %s", name, hf_status_name(status), err.text);
    return status == HF_OK ? lease : NULL;
}

static void one_round(struct hf_store *store, struct storm_note *note)
{
    /* A wait of a few milliseconds ends by the clock, and would hide one that should not. */
    uint64_t brief_ms = storm->plan.kills || storm->plan.stops ? 20 : 1;
    int64_t wait_ms = kit_below(&rng, 5) == 0 ? (int64_t)kit_below(&rng, brief_ms) : STUCK_MS;
    int lock = (int)kit_below(&rng, STORM_LOCKS);
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = storm->plan.ttl_ms,
                                         .wait_ms = wait_ms,
                                         .no_keeper = true};
    struct hf_lease *other = kit_below(&rng, 3) == 0 ? take_other(store) : NULL;
    struct hf_lease *lease;
    struct hf_error err = {0};
    enum hf_status status = hf_acquire(store, step_storm_name(lock), &options, &lease, &err);

    if (status == HF_OK)
        hold(store, note, lock, lease);
    else if (status == HF_BUSY && wait_ms != STUCK_MS)
        atomic_fetch_add(&storm->waits, 1);
    else if (!(status == HF_UNKNOWN && storm->plan.stops))
        breach("acquire of lock %d: %s: %s", lock, hf_status_name(status), err.text);
    if (other != NULL)
        (void)!hf_release(other, &err);
}

static void count_wakes(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void count_wakes(const char *format, ...)
{
    char text[300];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strstr(text, "is woken by the clock") != NULL) {
        atomic_fetch_add(&storm->woken_by_clock, 1);
        if (!storm->plan.kills && !storm->plan.stops)
            breach("%s", text);
    }
}

static struct hf_store *open_store(void)
{
    static struct hf_host host;
    struct hf_store_base *base;
    struct hf_store *store = NULL;
    struct hf_error err = {0};
    char url[600];

    host = kit_host;
    host.log = count_wakes;
    (void)snprintf(url, sizeof url, "file:%s", storm->dir);
    if (hf__file_open_on(storm->plan.mapped ? &kit_mapped_sys : &kit_sys, &host, url,
                         hf__now_ns() + 5 * HF__NS_PER_S, &base, &err) != HF_OK ||
        hf__store_wrap(base, url, &store, &err) != HF_OK)
        breach("open: %s", err.text);
    return store;
}

struct thread {
    struct hf_store *store;
    int index;
};

static void *work(void *data)
{
    struct thread *thread = data;

    rng = kit_rng(stream * STORM_THREADS + (uint64_t)thread->index);
    while (!atomic_load(&storm->over) && !atomic_load(&storm->broken))
        one_round(thread->store, &self->notes[thread->index]);
    return NULL;
}

static void run_process(void *data)
{
    pthread_t threads[STORM_THREADS];
    struct thread parts[STORM_THREADS];
    struct hf_store *store;

    self = data;
    rng = kit_rng(stream * STORM_THREADS);
    steps_hook = at_step;
    store = open_store();
    if (store == NULL)
        return;
    for (int i = 0; i < STORM_THREADS; i++) {
        parts[i] = (struct thread){store, i};
        if (pthread_create(&threads[i], NULL, work, &parts[i]) != 0)
            kit_die("no thread");
    }
    for (int i = 0; i < STORM_THREADS; i++)
        pthread_join(threads[i], NULL);
    hf_close(store);
}

/* ---- their keeper ---- */

static void start(struct storm_process *process)
{
    for (int i = 0; i < STORM_THREADS; i++)
        atomic_store(&process->notes[i].lock, -1);
    atomic_store(&process->doomed, 0);
    process->go_on_ns = 0;
    stream++;
    process->pid = kit_spawn(run_process, process);
}

static void look_after(struct storm_process *process)
{
    int status;
    int64_t now_ns = hf__now_ns();
    int64_t ttl_ns = storm->plan.ttl_ms * HF__NS_PER_MS;

    if (process->go_on_ns != 0 && process->go_on_ns <= now_ns) {
        process->go_on_ns = 0;
        (void)kill(process->pid, SIGCONT);
    }
    if (process->pid == 0 || waitpid(process->pid, &status, WNOHANG | WUNTRACED) != process->pid)
        return;
    if (WIFSTOPPED(status)) {
        bool until_lost = kit_below(&rng, 8) == 0;

        process->go_on_ns =
            now_ns + 1 +
            (int64_t)kit_below(&rng, (uint64_t)(until_lost ? 2 * ttl_ns : ttl_ns / 20));
        return;
    }
    process->pid = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && atomic_load(&process->doomed)) {
        atomic_fetch_add(&storm->kills, 1);
        if (!atomic_load(&storm->over))
            start(process);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        breach("a worker ended with status %d", status);
    }
}

static bool any_left(void)
{
    for (int i = 0; i < STORM_PROCESSES; i++)
        if (storm->processes[i].pid != 0)
            return true;
    return false;
}

static void name_locks(void)
{
    int found = 0;

    for (int i = 0; found < STORM_OTHERS; i++) {
        (void)snprintf(storm->others[found], sizeof storm->others[found], "storm-%d", i);
        if (hf__name_hash(storm->others[found]) % ROOTS == 3)
            found++;
    }
}

/* A slow machine may not come as far as the first kill in its time. */
static bool is_over(int64_t end_ns)
{
    bool complete = (!storm->plan.kills || atomic_load(&storm->kills) > 0) &&
                    (!storm->plan.stops || atomic_load(&storm->stops) > 0) &&
                    atomic_load(&storm->holds) > STORM_HOLDS_MIN;

    return hf__now_ns() > (complete ? end_ns : end_ns + STUCK_MS * HF__NS_PER_MS);
}

struct step_storm *step_storm_run(const struct storm_plan *plan)
{
    int64_t end_ns = hf__now_ns() + plan->for_ms * HF__NS_PER_MS;

    storm = mmap(NULL, sizeof *storm, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(storm != MAP_FAILED);
    storm->plan = *plan;
    storm->dir = plan->mapped ? kit_fast_dir() : kit_dir();
    name_locks();
    rng = kit_rng(++stream);
    for (int i = 0; i < STORM_PROCESSES; i++)
        start(&storm->processes[i]);
    while (any_left()) {
        if (is_over(end_ns) || atomic_load(&storm->broken))
            atomic_store(&storm->over, 1);
        if (hf__now_ns() > end_ns + 3 * STUCK_MS * HF__NS_PER_MS)
            breach("the workers do not end");
        for (int i = 0; i < STORM_PROCESSES; i++) {
            if (atomic_load(&storm->broken) && storm->processes[i].pid != 0) {
                atomic_store(&storm->processes[i].doomed, 1);
                (void)kill(storm->processes[i].pid, SIGKILL);
            }
            look_after(&storm->processes[i]);
        }
        hf__sleep_ns(200000);
    }
    return storm;
}

void step_storm_free(struct step_storm *old)
{
    (void)munmap(old, sizeof *old);
    storm = NULL;
}
