/* crowd.c - many processes and threads at one lock: never two inside their validity. */
#include "conform.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CROWD_MS     2000 /* how long a crowd works; longer, if the machine is busy, until ... */
#define HOLDS_MIN    11   /* ... it has held the lock this often */
#define SLEEPERS_MAX 1    /* each stops everybody for a ttl */

/* What all of a crowd see of one lock. */
struct scene {
    atomic_llong valid_until_ns; /* of the hold that is thought to be inside; 0: nobody */
    atomic_ullong last_token;
    atomic_uint holds;
    atomic_uint sleepers; /* holds that were left to expire */
    atomic_uint overlaps;
    atomic_uint token_faults;
    atomic_uint other_faults;
};

static unsigned next(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 8) % below;
}

static bool goes_on(struct scene *scene, int64_t until_ns)
{
    int64_t now_ns = hf__now_ns();

    return now_ns < until_ns || (atomic_load(&scene->holds) < HOLDS_MIN &&
                                 now_ns < until_ns + 3 * SOON_MS * HF__NS_PER_MS);
}

static void enter(struct scene *scene, const struct hold *hold)
{
    int64_t until_ns = atomic_exchange(&scene->valid_until_ns, deadline_of(hold));
    uint64_t last = atomic_exchange(&scene->last_token, hold->grant.token);

    atomic_fetch_add(&scene->holds, 1);
    if (until_ns != 0 && hf__now_ns() < until_ns)
        atomic_fetch_add(&scene->overlaps, 1);
    if (hold->grant.token <= last)
        atomic_fetch_add(&scene->token_faults, 1);
}

/* Leaves if we are still the ones inside: past our validity another may have come. */
static void leave(struct scene *scene, const struct hold *hold)
{
    long long ours = deadline_of(hold);

    (void)atomic_compare_exchange_strong(&scene->valid_until_ns, &ours, 0);
}

/* One hold: released, left to expire, or ended by death. */
static void one_hold(struct hf_store_base *store, struct scene *scene, struct hold *hold,
                     unsigned *seed, bool may_die)
{
    unsigned fate = next(seed, 1000);
    bool oversleep = fate < 3 && atomic_fetch_add(&scene->sleepers, 1) < SLEEPERS_MAX;
    uint32_t ttl_ms = oversleep ? conform.short_ttl_ms : LONG_TTL_MS;
    enum hf_status status = take(store, hold, ttl_ms, next(seed, 4) == 0 ? 0 : 2 * SOON_MS);

    if (status == HF_BUSY)
        return;
    if (status != HF_OK) {
        print_error("# acquire: %s\n", hold->err.text);
        atomic_fetch_add(&scene->other_faults, 1);
        return;
    }
    enter(scene, hold);
    if (next(seed, 8) == 0)
        check_pause_ms(1);
    if (oversleep) { /* whoever comes now is right to */
        check_pause_ms(2 * conform.short_ttl_ms);
        if (release(store, hold) != HF_LOST)
            atomic_fetch_add(&scene->other_faults, 1);
        return;
    }
    leave(scene, hold);
    if (may_die && fate < 30)
        (void)raise(SIGKILL);
    status = release(store, hold);
    if (status != HF_OK) {
        print_error("# release: %s\n", hold->err.text);
        atomic_fetch_add(&scene->other_faults, 1);
    }
}

static void judge(struct scene *scene)
{
    assert_int_equal(atomic_load(&scene->overlaps), 0);
    assert_int_equal(atomic_load(&scene->token_faults), 0);
    assert_int_equal(atomic_load(&scene->other_faults), 0);
    print_message("# %u holds\n", atomic_load(&scene->holds));
    assert_true(atomic_load(&scene->holds) >= HOLDS_MIN);
}

static pid_t start_member(struct scene *scene, const struct hold *like, unsigned seed,
                          int64_t until_ns)
{
    pid_t pid = fork_child();

    if (pid == 0) {
        struct hf_store_base *store = client_try_open();
        struct hold hold = hold_same(like);

        if (store == NULL)
            _exit(1);
        while (goes_on(scene, until_ns))
            one_hold(store, scene, &hold, &seed, has(HF_FEATURE_CRASH_RELEASE));
        client_close(store);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* Processes that take one lock again and again, some of which die with it in their hands. */
static void processes_never_overlap(void **state)
{
    enum { MEMBERS = 5 };
    struct scene *scene =
        mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct hf_store_base *store;
    struct hold hold = hold_new("crowd");
    int64_t until_ns = hf__now_ns() + CROWD_MS * HF__NS_PER_MS;
    unsigned seed = 1;
    int alive = 0;

    (void)state;
    assert_true(scene != MAP_FAILED);
    for (; alive < MEMBERS; alive++)
        (void)start_member(scene, &hold, seed++, until_ns);
    while (alive > 0) {
        int status;

        assert_true(waitpid(-1, &status, 0) > 0);
        alive--;
        assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
        if (WIFSIGNALED(status) && goes_on(scene, until_ns)) {
            (void)start_member(scene, &hold, seed++, until_ns);
            alive++;
        }
    }
    judge(scene);
    store = client_open();
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 2 * SOON_MS), HF_OK); /* nothing is stuck */
    assert_true(hold.grant.token > atomic_load(&scene->last_token));
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
    (void)munmap(scene, sizeof *scene);
}

enum { THREADS = 6, LOCKS = 3 };

struct member {
    pthread_t thread;
    struct hf_store_base *store;
    struct scene *scenes;
    const struct hold *locks;
    unsigned seed;
    int64_t until_ns;
};

static bool any_goes_on(const struct member *member)
{
    bool any = false;

    for (int i = 0; i < LOCKS; i++)
        any = any || goes_on(&member->scenes[i], member->until_ns);
    return any;
}

static void *member_main(void *data)
{
    struct member *member = data;

    while (any_goes_on(member)) {
        unsigned at = next(&member->seed, LOCKS);
        struct hold hold = hold_same(&member->locks[at]);

        one_hold(member->store, &member->scenes[at], &hold, &member->seed, false);
    }
    return NULL;
}

/* Two clients, each shared by several threads, over several locks. */
static void threads_never_overlap(void **state)
{
    struct hf_store_base *clients[2] = {client_open(), client_open()};
    struct scene scenes[LOCKS];
    struct hold locks[LOCKS];
    struct member members[THREADS];

    (void)state;
    memset(scenes, 0, sizeof scenes);
    for (int i = 0; i < LOCKS; i++)
        locks[i] = hold_new("threads");
    for (int i = 0; i < THREADS; i++) {
        members[i] = (struct member){.store = clients[i % 2],
                                     .scenes = scenes,
                                     .locks = locks,
                                     .seed = 77u + (unsigned)i,
                                     .until_ns = hf__now_ns() + CROWD_MS * HF__NS_PER_MS};
        assert_int_equal(pthread_create(&members[i].thread, NULL, member_main, &members[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    for (int i = 0; i < LOCKS; i++)
        judge(&scenes[i]);
    client_close(clients[0]);
    client_close(clients[1]);
}

void add_crowd_tests(struct suite *suite)
{
    ADD(suite, processes_never_overlap);
    ADD(suite, threads_never_overlap);
}
