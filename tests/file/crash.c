/* crash.c - what a child does until it is killed, and what must be true afterwards. */
#include "crash.h"
#include "stores/file/floor.h"
#include "stores/file/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void arm(struct scene *scene)
{
    kit_plan = scene->plan;
}

static struct hf_store_base *open_in_child(struct scene *scene)
{
    struct hf_store_base *base;
    struct hf_error err = {0};

    if (kit_try_open(scene->dir, &base, &err) != HF_OK)
        kit_die("open: %s", err.text);
    return base;
}

static void must(enum hf_status status, const struct hf_error *err)
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
static void takeable(struct scene *scene, const char *name, uint64_t last)
{
    uint64_t token = kit_pair(scene->base, name);

    if (token <= last)
        fail_msg("token %llu of %s after %llu", (unsigned long long)token, name,
                 (unsigned long long)last);
}

static void act_open(struct scene *scene)
{
    arm(scene);
    (void)open_in_child(scene);
}

static void act_acquire(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    arm(scene);
    must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
}

static void check_first(struct scene *scene)
{
    takeable(scene, scene->names[0], scene->notes->token);
}

static void prepare_used(struct scene *scene)
{
    scene->notes->token = kit_pair(scene->base, scene->names[0]);
}

static void act_renew(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    arm(scene);
    must(kit_renew(base, &hold, &err), &err);
}

/* A waiter in a process of its own. */
static void wait_in_line(void *data)
{
    struct scene *scene = data;
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    must(kit_take(base, scene->names[0], 60000, 20000, &hold, &err), &err);
    scene->notes->waiter = hold.token;
    must(kit_drop(base, &hold, &err), &err);
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
    takeable(scene, scene->names[0],
             scene->notes->waiter > scene->notes->token ? scene->notes->waiter
                                                        : scene->notes->token);
}

/* A release with somebody in line. */
static void act_release(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    scene->notes->ready = true;
    until(&scene->notes->go);
    arm(scene);
    must(kit_drop(base, &hold, &err), &err);
}

static void meanwhile_release(struct scene *scene)
{
    until(&scene->notes->ready);
    start_waiter(scene, false);
    scene->notes->go = true;
}

/* The dying one waits, gets its turn, and another one stands behind it. */
static void prepare_held(struct scene *scene)
{
    struct hf_error err = {0};

    kit_expect(kit_take(scene->base, scene->names[0], 60000, 0, &scene->held[0], &err), HF_OK,
               &err);
    scene->notes->token = scene->held[0].token;
}

static void act_wait(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    arm(scene);
    must(kit_take(base, scene->names[0], 60000, 20000, &hold, &err), &err);
    scene->notes->token = hold.token;
    must(kit_drop(base, &hold, &err), &err);
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
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    arm(scene);
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
static void prepare_crowd(struct scene *scene)
{
    struct hf_error err = {0};

    for (int i = 1; i < CROWD; i++)
        kit_expect(kit_take_detached(scene->base, scene->names[i], 60000, &scene->held[i], &err),
                   HF_OK, &err);
}

static void check_crowd(struct scene *scene)
{
    struct hf_error err = {0};
    struct kit_hold other;

    takeable(scene, scene->names[0], scene->notes->token);
    for (int i = 1; i < CROWD; i++) {
        kit_expect(kit_take(scene->base, scene->names[i], 1000, 0, &other, &err), HF_BUSY, &err);
        kit_expect(kit_renew(scene->base, &scene->held[i], &err), HF_OK, &err);
        kit_expect(kit_drop(scene->base, &scene->held[i], &err), HF_OK, &err);
        takeable(scene, scene->names[i], scene->held[i].token);
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
    takeable(scene, scene->names[0], scene->notes->token);
    for (int i = 1; i < CROWD; i++)
        takeable(scene, scene->names[i], scene->last[i]);
}

/* The clock leaps beyond the promise: the floor is raised before the token is given. */
static void act_raise(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    kit_world.wall_us = 3 * HOUR_US;
    arm(scene);
    must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
}

/* A reboot at once: the clock is back at 1, and all that is left is the floor. */
static void check_reboot(struct scene *scene)
{
    kit_close(scene->base);
    kit_world.boot_id = "00000000-0000-4000-8000-000000000002";
    scene->base = kit_open(scene->dir);
    takeable(scene, scene->names[0], scene->notes->token);
}

/* A release that finds half of the promise used up raises the floor. */
static void act_refill(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    kit_world.wall_us = HOUR_US * 3 / 4;
    must(kit_take(base, scene->names[0], 60000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    arm(scene);
    must(kit_drop(base, &hold, &err), &err);
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
    takeable(scene, scene->names[0], scene->notes->token);
}

/* A holder with a label in the slot itself, whose time is over: its successor's label lies there too. */
static void prepare_expired(struct scene *scene)
{
    struct hf_error err = {0};

    kit_expect(kit_take_detached(scene->base, scene->names[0], 20, &scene->held[0], &err), HF_OK, &err);
    scene->notes->token = scene->held[0].token;
    kit_sleep_ms(40);
}

static void act_take_over(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    arm(scene);
    must(kit_take_detached(base, scene->names[0], 20, &hold, &err), &err);
    scene->notes->token = hold.token;
}

static void check_taken_over(struct scene *scene)
{
    kit_sleep_ms(40);
    takeable(scene, scene->names[0], scene->notes->token);
}

/* A renewal that changes the ttl. */
static void act_renew_for_longer(struct scene *scene)
{
    struct hf_store_base *base = open_in_child(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    must(kit_take(base, scene->names[0], 30000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    hold.ttl_ms = 60000;
    arm(scene);
    must(kit_renew(base, &hold, &err), &err);
}

static void act_in_child(void *data)
{
    act_acquire(data);
}

/* Somebody else's hold is broken: it is held on, or passed on at once. */
static void break_held(struct scene *scene, bool now)
{
    struct hf_store_base *base = open_in_child(scene);
    struct hf_revoke revoke = {.name = scene->names[0],
                               .token = scene->held[0].token,
                               .by = "crash",
                               .reason = "",
                               .now = now,
                               .deadline_ns = hf__now_ns() + 5 * HF__NS_PER_S};
    struct hf_broken broken;
    struct hf_error err = {0};

    arm(scene);
    must(base->ops->revoke(base, &revoke, &broken, &err), &err);
}

static void act_break(struct scene *scene)
{
    break_held(scene, false);
}

static void act_break_now(struct scene *scene)
{
    break_held(scene, true);
}

/* Whether or not it was broken: its holder gives it back, or has lost it. */
static void check_broken(struct scene *scene)
{
    struct hf_error err = {0};
    enum hf_status status = kit_drop(scene->base, &scene->held[0], &err);

    if (status != HF_LOST)
        kit_expect(status, HF_OK, &err);
    takeable(scene, scene->names[0], scene->notes->token);
}

/* A client has died with locks in its hands: the next one that comes gets its page. */
static void hold_and_die(void *data)
{
    struct scene *scene = data;
    struct hf_store_base *base = open_in_child(scene);
    struct hf_error err = {0};

    for (int i = 1; i < 4; i++)
        must(kit_take(base, scene->names[i], 60000, 0, &scene->held[i], &err), &err);
    (void)raise(SIGKILL);
}

static void prepare_dead(struct scene *scene)
{
    (void)kit_wait(kit_spawn(hold_and_die, scene));
}

static void check_buried(struct scene *scene)
{
    takeable(scene, scene->names[0], scene->notes->token);
    for (int i = 1; i < 4; i++)
        takeable(scene, scene->names[i], 0);
}

/* The eighth name was half-way to its slot, or the page to its split, when another was killed. */
static void prepare_half_split(struct scene *scene)
{
    struct kit_plan plan = scene->plan;
    struct kit_plan mine = kit_plan;

    prepare_crowd(scene);
    scene->plan = (struct kit_plan){.ops = KIT_STEP, .action = KIT_KILL_BEFORE, .at = 2};
    (void)kit_wait(kit_spawn(act_in_child, scene));
    scene->plan = plan;
    kit_plan = mine;
}

const struct scenario scenarios[SCENARIOS] = {
    [SCENARIO_CREATE] = {.name = "create", .fresh = true, .act = act_open, .check = check_first},
    {.name = "acquire", .act = act_acquire, .check = check_first},
    {.name = "acquire again", .prepare = prepare_used, .act = act_acquire, .check = check_first},
    {.name = "renew", .act = act_renew, .check = check_first},
    {.name = "release", .act = act_release, .meanwhile = meanwhile_release, .check = check_waiter},
    {.name = "wait",
     .prepare = prepare_held,
     .act = act_wait,
     .meanwhile = meanwhile_wait,
     .check = check_waiter},
    {.name = "give up", .prepare = prepare_held, .act = act_give_up, .check = check_given_up},
    [SCENARIO_SPLIT] = {.name = "split",
                        .prepare = prepare_crowd,
                        .act = act_acquire,
                        .check = check_crowd},
    {.name = "reuse", .prepare = prepare_idle, .act = act_acquire, .check = check_idle},
    {.name = "raise", .act = act_raise, .check = check_reboot},
    {.name = "refill", .act = act_refill, .check = check_reboot},
    {.name = "reboot", .prepare = prepare_reboot, .act = act_reboot, .check = check_second_boot},
    {.name = "renew for longer", .act = act_renew_for_longer, .check = check_first},
    {.name = "take over",
     .prepare = prepare_expired,
     .act = act_take_over,
     .check = check_taken_over},
    {.name = "break", .prepare = prepare_held, .act = act_break, .check = check_broken},
    {.name = "break now", .prepare = prepare_held, .act = act_break_now, .check = check_broken},
    {.name = "bury", .prepare = prepare_dead, .act = act_acquire, .check = check_buried},
    [SCENARIOS_OF_CALLS] = {.name = "mend",
                            .prepare = prepare_half_split,
                            .act = act_acquire,
                            .check = check_crowd},
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
    struct scene scene = {
        .dir = getenv("KIT_MAPPED") != NULL ? kit_fast_dir() : kit_dir(),
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
