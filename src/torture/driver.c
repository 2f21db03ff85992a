/* driver.c - what is done to the workers, and the end of it. */
#include "torture/torture.h"

#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    END_MS = 3000,        /* for workers to end by themselves, once it is over */
    FREEZE_MAX_MS = 30000 /* how much longer than the ttl one may wait to be overtaken */
};

/* A run under way. */
struct torment {
    struct torture_referee *referee;
    struct torture_story *story;
    uint64_t rng;
    int64_t start_ns;
    int64_t sample_ns; /* between two samples */
    int frozen;        /* how many workers are */
    int64_t next_ns[TORTURE_FAULTS];
};

/* kill(2) of a process of ours: a number below 2 would reach others. */
static void signal_worker(const struct torture_worker *worker, int number)
{
    if (worker->pid > 1)
        (void)kill(worker->pid, number);
}

/* In the child: nothing of the parent's but the three descriptors that everybody has. */
static void become_worker(struct torment *torment, struct torture_worker *worker, uint64_t stream,
                          pid_t parent)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* a Ctrl-C is the driver's, who ends it in order */
    if (torment->referee->over_fd != TORTURE_OVER_FD)
        (void)dup2(torment->referee->over_fd, TORTURE_OVER_FD);
    (void)close_range(TORTURE_OVER_FD + 1, ~0u, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    torture_work(torment->referee, worker, stream);
}

static bool start(struct torment *torment, struct torture_worker *worker)
{
    uint64_t stream = torture_random(&torment->rng) | 1;
    pid_t parent = getpid();
    pid_t pid;

    atomic_store(&worker->lock, -1);
    atomic_store(&worker->doomed, false);
    atomic_store(&worker->writing, false);
    atomic_store(&worker->cut_ns, 0);
    worker->thaw_ns = 0;
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        become_worker(torment, worker, stream, parent);
    worker->pid = pid; /* shared memory: by the parent only */
    return pid > 0;
}

/* Stops it, but not while it has the referee's mutex: everybody waits for that. */
static void stop(struct torture_worker *worker)
{
    while (worker->thaw_ns == 0 && worker->pid > 1) { /* else it is stopped already, or gone */
        signal_worker(worker, SIGSTOP);
        (void)waitpid(worker->pid, NULL, WUNTRACED);
        if (!atomic_load(&worker->writing))
            return;
        signal_worker(worker, SIGCONT);
        hf__sleep_ns(HF__NS_PER_MS);
    }
}

static void mark(struct torment *torment, enum torture_fault fault)
{
    struct torture_story *story = torment->story;

    if (story->faults[fault] < TORTURE_MARKS_MAX)
        story->marks_ns[fault][story->faults[fault]] = hf__now_ns() - torment->start_ns;
    story->faults[fault]++;
}

/* From now on somebody waits for this one's lock. The worker is stopped. */
static void orphan(struct torment *torment, const struct torture_worker *worker,
                   enum torture_fault fault)
{
    int lock = atomic_load(&worker->lock);

    if (lock >= 0)
        atomic_store(&torment->referee->ledgers[lock].orphaned_ns[fault], hf__now_ns());
}

/* It is stopped, or has nothing of the referee's. */
static void end(struct torture_worker *worker)
{
    if (worker->pid <= 1)
        return;
    atomic_store(&worker->doomed, true);
    signal_worker(worker, SIGKILL);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    worker->pid = 0;
}

static bool kill_one(struct torment *torment, struct torture_worker *worker)
{
    stop(worker);
    orphan(torment, worker, TORTURE_KILL);
    end(worker);
    mark(torment, TORTURE_KILL);
    return start(torment, worker);
}

/* For the ttl and then some. */
static void freeze(struct torment *torment, struct torture_worker *worker)
{
    const struct torture_plan *plan = torment->referee->plan;
    int64_t ms =
        (int64_t)(plan->ttl_ms + plan->freeze_ms) + torture_below(&torment->rng, plan->ttl_ms);

    stop(worker);
    orphan(torment, worker, TORTURE_FREEZE);
    worker->frozen_lock = atomic_load(&worker->lock);
    worker->frozen_token = atomic_load(&worker->token);
    worker->thaw_ns = hf__now_ns() + ms * HF__NS_PER_MS;
    torment->frozen++;
    mark(torment, TORTURE_FREEZE);
}

/* Whether somebody else has had the lock since, or nobody will. */
static bool overtaken(const struct torment *torment, const struct torture_worker *worker)
{
    if (!torment->referee->plan->until_overtaken || worker->frozen_lock < 0)
        return true;
    return atomic_load(&torment->referee->ledgers[worker->frozen_lock].last_token) >
               worker->frozen_token ||
           hf__now_ns() > worker->thaw_ns + FREEZE_MAX_MS * HF__NS_PER_MS;
}

static void thaw(struct torment *torment, struct torture_worker *worker)
{
    worker->thaw_ns = 0;
    torment->frozen--;
    signal_worker(worker, SIGCONT);
}

static void cut(struct torment *torment, struct torture_worker *worker)
{
    uint32_t ttl_ms = torment->referee->plan->ttl_ms;
    int64_t ms = ttl_ms / 4 + torture_below(&torment->rng, 2 * (uint64_t)ttl_ms);

    atomic_store(&worker->cut_ns, hf__now_ns() + ms * HF__NS_PER_MS);
    mark(torment, TORTURE_CUT);
}

/* Whether its time has come; a victim that is not to be had is looked for at the next thought. */
static bool due(struct torment *torment, enum torture_fault fault)
{
    int64_t every_ns = torment->referee->plan->every_ms[fault] * HF__NS_PER_MS;

    return every_ns > 0 && hf__now_ns() >= torment->next_ns[fault];
}

static void done(struct torment *torment, enum torture_fault fault)
{
    uint64_t every_ns = (uint64_t)(torment->referee->plan->every_ms[fault] * HF__NS_PER_MS);

    if (every_ns == 0)
        return;
    torment->next_ns[fault] =
        hf__now_ns() + (int64_t)(every_ns / 2) + torture_below(&torment->rng, every_ns);
}

/* A worker that goes about its work, by lot; one that holds a lock, if it has to. NULL: none. */
static struct torture_worker *victim(struct torment *torment, bool holder)
{
    int count = torment->referee->plan->workers;
    int first = (int)torture_below(&torment->rng, (uint64_t)count);

    for (int i = 0; i < count; i++) {
        struct torture_worker *worker = &torment->referee->workers[(first + i) % count];

        if (worker->thaw_ns == 0 && (!holder || atomic_load(&worker->lock) >= 0))
            return worker;
    }
    return NULL;
}

/* Of those that are killed or cut off half hold a lock, if anybody does. */
static struct torture_worker *any_victim(struct torment *torment)
{
    struct torture_worker *worker = NULL;

    if (torture_below(&torment->rng, 2) == 0)
        worker = victim(torment, true);
    return worker != NULL ? worker : victim(torment, false);
}

static void thaw_some(struct torment *torment)
{
    for (int i = 0; i < torment->referee->plan->workers; i++) {
        struct torture_worker *worker = &torment->referee->workers[i];

        if (worker->thaw_ns != 0 && hf__now_ns() > worker->thaw_ns && overtaken(torment, worker))
            thaw(torment, worker);
    }
}

/* One thought. */
static bool think(struct torment *torment)
{
    struct torture_worker *worker;

    thaw_some(torment);
    if (due(torment, TORTURE_FREEZE) && torment->frozen < torment->referee->plan->frozen_max &&
        (worker = victim(torment, true)) != NULL) {
        freeze(torment, worker);
        done(torment, TORTURE_FREEZE);
    }
    if (due(torment, TORTURE_CUT) && (worker = any_victim(torment)) != NULL) {
        cut(torment, worker);
        done(torment, TORTURE_CUT);
    }
    if (due(torment, TORTURE_KILL) && (worker = any_victim(torment)) != NULL) {
        done(torment, TORTURE_KILL);
        return kill_one(torment, worker);
    }
    return true;
}

static void sample(struct torment *torment, bool last)
{
    struct torture_story *story = torment->story;
    int64_t at_ns = hf__now_ns() - torment->start_ns;
    struct torture_verdict sum;

    if (story->sample_count == TORTURE_SAMPLES_MAX ||
        (!last && at_ns < (int64_t)story->sample_count * torment->sample_ns))
        return;
    sum = torture_sum(torment->referee);
    story->samples[story->sample_count++] = (struct torture_sample){
        .at_ns = at_ns, .fenced_lost = sum.fenced_lost, .plain_lost = sum.plain_lost};
}

static bool told_to_stop(const struct torture_plan *plan, int64_t until_ns)
{
    struct pollfd fd = {.fd = plan->stop_fd, .events = POLLIN};

    return hf__poll_until(&fd, 1, until_ns) > 0;
}

/* Workers end their holds and themselves; those that do not in time are ended. */
static void finish(struct torment *torment)
{
    struct torture_referee *referee = torment->referee;
    int64_t deadline_ns = hf__now_ns() + END_MS * HF__NS_PER_MS;

    atomic_store(&referee->over, true);
    (void)eventfd_write(referee->over_fd, 1);
    for (int i = 0; i < referee->plan->workers; i++) {
        atomic_store(&referee->workers[i].cut_ns, 0);
        if (referee->workers[i].thaw_ns != 0)
            thaw(torment, &referee->workers[i]);
    }
    for (int i = 0; i < referee->plan->workers; i++) {
        struct torture_worker *worker = &referee->workers[i];

        while (worker->pid > 1 && waitpid(worker->pid, NULL, WNOHANG) == 0 &&
               hf__now_ns() < deadline_ns)
            hf__sleep_ns(HF__NS_PER_MS);
        if (worker->pid > 1 && waitpid(worker->pid, NULL, WNOHANG) != 0)
            worker->pid = 0; /* it has ended */
        stop(worker);
        end(worker);
    }
}

bool torture_run(struct torture_referee *referee, struct torture_story *story)
{
    const struct torture_plan *plan = referee->plan;
    struct torment torment = {.referee = referee,
                              .story = story,
                              .rng = plan->seed | 1,
                              .start_ns = hf__now_ns(),
                              .sample_ns = plan->for_ns / (TORTURE_SAMPLES_MAX - 1)};
    int64_t end_ns = hf__time_add(torment.start_ns, plan->for_ns);
    bool going = true;

    for (int i = 0; i < TORTURE_FAULTS; i++)
        done(&torment, (enum torture_fault)i);
    for (int i = 0; i < plan->workers && going; i++)
        going = start(&torment, &referee->workers[i]);
    while (going && hf__now_ns() < end_ns &&
           (plan->holds == 0 || atomic_load(&referee->holds) < plan->holds)) {
        if (told_to_stop(plan, hf__now_ns() + TORTURE_STEP_MS * HF__NS_PER_MS)) {
            story->stopped = true;
            break;
        }
        going = think(&torment);
        sample(&torment, false);
    }
    story->lasted_ns = hf__now_ns() - torment.start_ns;
    finish(&torment);
    sample(&torment, true);
    return going;
}
