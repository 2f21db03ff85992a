/* crash.c - what a child does until it is killed, and what must be true afterwards. */
#include "crash.h"
#include "stores/file/floor.h"
#include "stores/file/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void scene_arm(struct scene *scene)
{
    kit_plan = scene->plan;
}

struct hf_store_base *scene_open(struct scene *scene)
{
    struct hf_store_base *base;
    struct hf_error err = {0};

    if (kit_try_open(scene->dir, &base, &err) != HF_OK)
        kit_die("open: %s", err.text);
    return base;
}

void scene_must(enum hf_status status, const struct hf_error *err)
{
    if (status != HF_OK)
        kit_die("%s: %s", hf_status_name(status), err->text);
}

void choose_names(struct scene *scene)
{
    int found = 0;

    for (int i = 0; found < CROWD; i++) {
        (void)snprintf(scene->names[found], sizeof scene->names[found], "crowd-%d", i);
        if (hf__name_hash(scene->names[found]) % ROOTS == 0)
            found++;
    }
}

/* The lock can be had well before any ttl, and its token is above `last`. */
void scene_takeable(struct scene *scene, const char *name, uint64_t last)
{
    uint64_t token = kit_pair(scene->base, name);

    if (token <= last)
        fail_msg("token %llu of %s after %llu", (unsigned long long)token, name,
                 (unsigned long long)last);
}

static void act_open(struct scene *scene)
{
    scene_arm(scene);
    (void)scene_open(scene);
}

void scene_acquire(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_arm(scene);
    scene_must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
}

void scene_check_first(struct scene *scene)
{
    scene_takeable(scene, scene->names[0], scene->notes->token);
}

static void prepare_used(struct scene *scene)
{
    scene->notes->token = kit_pair(scene->base, scene->names[0]);
}

static void act_renew(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    scene_arm(scene);
    scene_must(kit_renew(base, &hold, &err), &err);
}

/* A waiter in a process of its own. */
static void wait_in_line(void *data)
{
    struct scene *scene = data;
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_must(kit_take(base, scene->names[0], 60000, 20000, &hold, &err), &err);
    scene->notes->waiter = hold.token;
    scene_must(kit_drop(base, &hold, &err), &err);
    scene->notes->waiter_done = true;
}

static pid_t waiter_pid;

static void until(const volatile bool *flag)
{
    int64_t until_ns = hf__now_ns() + 20 * HF__NS_PER_S;

    while (!*flag && hf__now_ns() < until_ns)
        hf__sleep_ns(100000);
}

static bool child_ended(const struct scene *scene)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)scene->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == scene->child;
}

/* Returns when the waiter is in line, behind the child if that one lives. */
static void start_waiter(struct scene *scene, bool child_waits)
{
    int64_t until_ns = hf__now_ns() + 20 * HF__NS_PER_S;

    waiter_pid = kit_spawn(wait_in_line, scene);
    while (kit_waiters(scene->base, scene->names[0]) <
               (child_waits && !child_ended(scene) ? 2u : 1u) &&
           hf__now_ns() < until_ns)
        hf__sleep_ns(100000);
}

static void check_waiter(struct scene *scene)
{
    int64_t start_ns = hf__now_ns();

    assert_int_equal(kit_wait(waiter_pid), 0);
    assert_true(hf__now_ns() - start_ns < 10 * HF__NS_PER_S); /* its ttl was a minute */
    /* On a slow machine the two may have changed places. */
    assert_true(scene->notes->waiter != 0 && scene->notes->waiter != scene->notes->token);
    scene_takeable(scene, scene->names[0],
                   scene->notes->waiter > scene->notes->token ? scene->notes->waiter
                                                              : scene->notes->token);
}

/* A release with somebody in line. */
static void act_release(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    scene->notes->ready = true;
    until(&scene->notes->go);
    scene_arm(scene);
    scene_must(kit_drop(base, &hold, &err), &err);
}

static void meanwhile_release(struct scene *scene)
{
    until(&scene->notes->ready);
    start_waiter(scene, false);
    scene->notes->go = true;
}

/* The dying one waits, gets its turn, and another one stands behind it. */
void scene_hold_first(struct scene *scene)
{
    struct hf_error err = {0};

    kit_expect(kit_take(scene->base, scene->names[0], 60000, 0, &scene->held[0], &err), HF_OK,
               &err);
    scene->notes->token = scene->held[0].token;
}

static void act_wait(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_arm(scene);
    scene_must(kit_take(base, scene->names[0], 60000, 20000, &hold, &err), &err);
    scene->notes->token = hold.token;
    scene_must(kit_drop(base, &hold, &err), &err);
}

static void meanwhile_wait(struct scene *scene)
{
    struct hf_error err = {0};

    while (kit_waiters(scene->base, scene->names[0]) == 0 && !child_ended(scene))
        hf__sleep_ns(100000);
    start_waiter(scene, true);
    kit_expect(kit_drop(scene->base, &scene->held[0], &err), HF_OK, &err);
}

static void act_give_up(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_arm(scene);
    if (kit_take(base, scene->names[0], 60000, 5, &hold, &err) != HF_BUSY)
        kit_die("not busy: %s", err.text);
}

static void check_given_up(struct scene *scene)
{
    struct hf_error err = {0};

    start_waiter(scene, false);
    kit_expect(kit_drop(scene->base, &scene->held[0], &err), HF_OK, &err);
    check_waiter(scene);
}

/* The bucket is full of held locks: an eighth splits it. */
void scene_fill(struct scene *scene)
{
    struct hf_error err = {0};

    for (int i = 1; i < CROWD; i++)
        kit_expect(kit_take_detached(scene->base, scene->names[i], 60000, &scene->held[i], &err),
                   HF_OK, &err);
}

void scene_check_crowd(struct scene *scene)
{
    struct hf_error err = {0};
    struct kit_hold other;

    scene_takeable(scene, scene->names[0], scene->notes->token);
    for (int i = 1; i < CROWD; i++) {
        kit_expect(kit_take(scene->base, scene->names[i], 1000, 0, &other, &err), HF_BUSY, &err);
        kit_expect(kit_renew(scene->base, &scene->held[i], &err), HF_OK, &err);
        kit_expect(kit_drop(scene->base, &scene->held[i], &err), HF_OK, &err);
        scene_takeable(scene, scene->names[i], scene->held[i].token);
    }
}

/* The bucket is full of names that nobody holds: an eighth takes the slot of one. */
static void prepare_idle(struct scene *scene)
{
    for (int i = 1; i < CROWD; i++)
        for (int times = 0; times <= i; times++) /* so that their tokens differ */
            scene->last[i] = kit_pair(scene->base, scene->names[i]);
}

static void check_idle(struct scene *scene)
{
    scene_takeable(scene, scene->names[0], scene->notes->token);
    for (int i = 1; i < CROWD; i++)
        scene_takeable(scene, scene->names[i], scene->last[i]);
}

/* The clock leaps beyond the promise: the floor is raised before the token is given. */
static void act_raise(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    kit_world.wall_us = 3 * HOUR_US;
    scene_arm(scene);
    scene_must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
}

/* A reboot at once: the clock is back at 1, and all that is left is the floor. */
static void check_reboot(struct scene *scene)
{
    kit_close(scene->base);
    kit_world.boot_id = "00000000-0000-4000-8000-000000000002";
    scene->base = kit_open(scene->dir);
    scene_takeable(scene, scene->names[0], scene->notes->token);
}

/* A release that finds half of the promise used up raises the floor. */
static void act_refill(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    kit_world.wall_us = HOUR_US * 3 / 4;
    scene_must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    scene_arm(scene);
    scene_must(kit_drop(base, &hold, &err), &err);
}

static void act_reboot(struct scene *scene)
{
    kit_world.boot_id = "00000000-0000-4000-8000-000000000002";
    act_open(scene);
}

static void prepare_reboot(struct scene *scene)
{
    scene->notes->token = kit_pair(scene->base, scene->names[0]);
    kit_close(scene->base);
    scene->base = NULL;
}

static void check_second_boot(struct scene *scene)
{
    kit_world.boot_id = "00000000-0000-4000-8000-000000000002";
    scene->base = kit_open(scene->dir);
    scene_takeable(scene, scene->names[0], scene->notes->token);
}

const struct scenario scenarios[SCENARIOS] = {
    [SCENARIO_CREATE] = {.name = "create",
                         .fresh = true,
                         .act = act_open,
                         .check = scene_check_first},
    {.name = "acquire", .act = scene_acquire, .check = scene_check_first},
    {.name = "acquire again",
     .prepare = prepare_used,
     .act = scene_acquire,
     .check = scene_check_first},
    {.name = "renew", .act = act_renew, .check = scene_check_first},
    {.name = "release", .act = act_release, .meanwhile = meanwhile_release, .check = check_waiter},
    {.name = "wait",
     .prepare = scene_hold_first,
     .act = act_wait,
     .meanwhile = meanwhile_wait,
     .check = check_waiter},
    {.name = "give up", .prepare = scene_hold_first, .act = act_give_up, .check = check_given_up},
    [SCENARIO_SPLIT] = {.name = "split",
                        .prepare = scene_fill,
                        .act = scene_acquire,
                        .check = scene_check_crowd},
    {.name = "reuse", .prepare = prepare_idle, .act = scene_acquire, .check = check_idle},
    {.name = "raise", .act = act_raise, .check = check_reboot},
    {.name = "refill", .act = act_refill, .check = check_reboot},
    {.name = "reboot", .prepare = prepare_reboot, .act = act_reboot, .check = check_second_boot},
};

struct child {
    const struct scenario *scenario;
    struct scene *scene;
};

static void run_child(void *data)
{
    struct child *child = data;

    child->scenario->act(child->scene);
    /* The plan was not met: there is no n-th call any more. */
    _exit(kit_plan.seen < child->scene->plan.at ? 2 : 0);
}

bool crash_run(const struct scenario *scenario, unsigned ops, enum kit_action action, long at)
{
    struct scene scene = {.dir = getenv("KIT_MAPPED") != NULL ? kit_fast_dir() : kit_dir(),
                          .plan = {.ops = ops, .action = action, .at = at}};
    struct child child = {scenario, &scene};
    int status;
    pid_t pid;

    kit_world = (struct kit_world){.wall_fake = true, .wall_us = 1, .no_fsync = true};
    kit_plan = (struct kit_plan){0};
    scene.notes =
        mmap(NULL, sizeof *scene.notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(scene.notes != MAP_FAILED);
    choose_names(&scene);
    if (!scenario->fresh)
        scene.base = kit_open(scene.dir);
    if (scenario->prepare != NULL)
        scenario->prepare(&scene);
    pid = scene.child = kit_spawn(run_child, &child);
    if (scenario->meanwhile != NULL)
        scenario->meanwhile(&scene);
    status = kit_wait(pid);
    if (!WIFSIGNALED(status) && (!WIFEXITED(status) || WEXITSTATUS(status) != 2))
        fail_msg("%s: the child failed at call %ld", scenario->name, at);
    if (scene.base == NULL && scenario->fresh)
        scene.base = kit_open(scene.dir);
    scenario->check(&scene);
    kit_close(scene.base);
    (void)munmap(scene.notes, sizeof *scene.notes);
    kit_remove(scene.dir);
    return WIFSIGNALED(status);
}
