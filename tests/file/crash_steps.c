/* crash_steps.c - more scenes, for programs that reach the steps of the store. */
#include "crash_steps.h"
#include "../support/steps.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The time of a holder with details in the slot is over: its successor's lie there too. */
static void prepare_expired(struct scene *scene)
{
    struct hf_error err = {0};

    kit_expect(kit_take_detached(scene->base, scene->names[0], 20, &scene->held[0], &err), HF_OK,
               &err);
    scene->notes->token = scene->held[0].token;
    kit_sleep_ms(40);
}

static void act_take_over(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_arm(scene);
    scene_must(kit_take_detached(base, scene->names[0], 20, &hold, &err), &err);
    scene->notes->token = hold.token;
}

static void check_taken_over(struct scene *scene)
{
    kit_sleep_ms(40);
    scene_takeable(scene, scene->names[0], scene->notes->token);
}

/* A renewal that changes the ttl. */
static void act_renew_for_longer(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_must(kit_take(base, scene->names[0], 30000, 0, &hold, &err), &err);
    scene->notes->token = hold.token;
    hold.ttl_ms = 60000;
    scene_arm(scene);
    scene_must(kit_renew(base, &hold, &err), &err);
}

/* Somebody else's hold is broken: it is held on, or passed on at once. */
static void break_held(struct scene *scene, bool now)
{
    struct hf_store_base *base = scene_open(scene);
    struct hf_revoke revoke = {.name = scene->names[0],
                               .token = scene->held[0].token,
                               .by = "crash",
                               .reason = "",
                               .now = now,
                               .deadline_ns = hf__now_ns() + 5 * HF__NS_PER_S};
    struct hf_broken broken;
    struct hf_error err = {0};

    scene_arm(scene);
    scene_must(base->ops->revoke(base, &revoke, &broken, &err), &err);
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
    scene_takeable(scene, scene->names[0], scene->notes->token);
}

/* A client has died with locks in its hands: the next one that comes gets its page. */
static void hold_and_die(void *data)
{
    struct scene *scene = data;
    struct hf_store_base *base = scene_open(scene);
    struct hf_error err = {0};

    for (int i = 1; i < 4; i++)
        scene_must(kit_take(base, scene->names[i], 60000, 0, &scene->held[i], &err), &err);
    (void)raise(SIGKILL);
}

static void prepare_dead(struct scene *scene)
{
    (void)kit_wait(kit_spawn(hold_and_die, scene));
}

static void check_buried(struct scene *scene)
{
    scene_takeable(scene, scene->names[0], scene->notes->token);
    for (int i = 1; i < 4; i++)
        scene_takeable(scene, scene->names[i], 0);
}

static void die_when_marked(const char *step)
{
    if (strcmp(step, "split_marked") == 0)
        (void)kill(getpid(), SIGKILL);
}

static void split_and_die(void *data)
{
    steps_hook = die_when_marked;
    scene_acquire(data);
}

/* Somebody was killed in the middle of a split, and left a slot moving. */
static void prepare_half_split(struct scene *scene)
{
    scene_fill(scene);
    assert_true(WIFSIGNALED(kit_wait(kit_spawn(split_and_die, scene))));
}

const struct scenario step_scenarios[STEP_SCENARIOS] = {
    {.name = "renew for longer", .act = act_renew_for_longer, .check = scene_check_first},
    {.name = "take over",
     .prepare = prepare_expired,
     .act = act_take_over,
     .check = check_taken_over},
    {.name = "break", .prepare = scene_hold_first, .act = act_break, .check = check_broken},
    {.name = "break now", .prepare = scene_hold_first, .act = act_break_now, .check = check_broken},
    {.name = "bury", .prepare = prepare_dead, .act = scene_acquire, .check = check_buried},
    {.name = "mend",
     .prepare = prepare_half_split,
     .act = scene_acquire,
     .check = scene_check_crowd},
};
