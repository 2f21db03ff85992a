/* test_crash_points.c - kill -9 at every call the store makes, before and after it takes effect.
 *
 * Each scenario is run once per call: a child is killed at the n-th one, for all n. */
#include "crash.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Returns false when the scenario makes fewer calls than that. */
static bool run_once(const struct scenario *scenario, enum kit_action action, long at)
{
    struct scene scene = {
        .dir = kit_dir(),
        .plan = {.ops = action == KIT_TORN ? KIT_PWRITE : KIT_ALL, .action = action, .at = at}};
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

static void killed_at_every(enum kit_action action)
{
    for (size_t i = 0; i < SCENARIOS; i++) {
        long at = 1;

        while (run_once(&scenarios[i], action, at))
            at++;
        print_message("# %s: %ld calls\n", scenarios[i].name, at - 1);
        assert_true(at > 1);
    }
}

static void killed_before(void **state)
{
    (void)state;
    killed_at_every(KIT_KILL_BEFORE);
}

static void killed_after(void **state)
{
    (void)state;
    killed_at_every(KIT_KILL_AFTER);
}

/* A write of more than a slot can be cut off in the middle: the new file's image, a new page. Only
 * those: what lies within a slot is written whole. */
static void killed_amid(void **state)
{
    (void)state;
    (void)run_once(&scenarios[SCENARIO_CREATE], KIT_TORN, 1); /* the floor's line, never renamed */
    (void)run_once(&scenarios[SCENARIO_CREATE], KIT_TORN, 2); /* the image */
    (void)run_once(&scenarios[SCENARIO_SPLIT], KIT_TORN, 1);  /* the page */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_before),
                                       cmocka_unit_test(killed_after),
                                       cmocka_unit_test(killed_amid)};

    return KIT_RUN(tests);
}
