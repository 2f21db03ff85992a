/* test_crash_steps_stop.c - SIGSTOP at every step of a change, with mapped and with guarded words.
 * Other locks go on; this one goes on too, or whoever wants it is told which process is in the way;
 * and a process that goes on when its lock was taken meanwhile changes nothing any more.
 * run: first, run: late asan */
#include "../support/steps.h"
#include "crash_steps.h"
#include "stores/file/layout.h"
#include "stores/file/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_MS    40 /* the ttl of the one that is stopped */
#define PATIENCE_MS 60

typedef void act_fn(struct scene *scene);

struct child {
    act_fn *act;
    struct scene *scene;
};

static void run_child(void *data)
{
    struct child *child = data;

    child->act(child->scene);
    _exit(0);
}

/* Starts the child; false if it ended before it met the step. */
static bool start_and_stop(struct child *child)
{
    int status;

    child->scene->child = kit_spawn(run_child, child);
    assert_int_equal(waitpid(child->scene->child, &status, WUNTRACED), child->scene->child);
    if (!WIFSTOPPED(status))
        assert_int_equal(status, 0);
    return WIFSTOPPED(status);
}

static void go_on(const struct scene *scene)
{
    assert_int_equal(kill(scene->child, SIGCONT), 0);
    if (kit_wait(scene->child) != 0)
        fail_msg("who was stopped at %s failed", steps_met()->last);
}

static void set_scene(struct scene *scene, long at)
{
    *scene = (struct scene){.dir = getenv("KIT_MAPPED") != NULL ? kit_fast_dir() : kit_dir(),
                            .plan = {.ops = KIT_STEP, .action = KIT_STOP_BEFORE, .at = at},
                            .notes = mmap(NULL, sizeof *scene->notes, PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    assert_true(scene->notes != MAP_FAILED);
    kit_plan = (struct kit_plan){0};
    choose_names(scene);
    scene->base = kit_open(scene->dir);
}

static void strike_scene(struct scene *scene)
{
    kit_close(scene->base);
    (void)munmap(scene->notes, sizeof *scene->notes);
    kit_remove(scene->dir);
}

/* A lock of another page. */
static void others_go_on(struct scene *scene)
{
    char name[24];
    int i = 0;

    do
        (void)snprintf(name, sizeof name, "apart-%d", i++);
    while (hf__name_hash(name) % ROOTS == 0);
    (void)kit_pair(scene->base, name);
}

/* True: it is ours. Else the error names who is stopped. */
static bool take_or_be_told(struct scene *scene, uint32_t ttl_ms, struct kit_hold *hold)
{
    struct kit_terms terms = {
        .ttl_ms = ttl_ms, .wait_ms = 5 * SHORT_MS, .patience_ms = PATIENCE_MS};
    struct hf_error err = {0};
    char wanted[32];
    enum hf_status status = kit_take_on(scene->base, scene->names[0], &terms, hold, &err);

    if (status == HF_OK)
        return true;
    (void)snprintf(wanted, sizeof wanted, "process %d (", (int)scene->child);
    if (status != HF_UNREACHABLE || strstr(err.text, wanted) == NULL)
        fail_msg("stopped at %s: %s: %s", steps_met()->last, hf_status_name(status), err.text);
    return false;
}

/* ---- somebody else has taken the lock meanwhile ---- */

static void take_late(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_arm(scene);
    if (kit_take(base, scene->names[0], SHORT_MS, 0, &hold, &err) == HF_OK)
        scene->notes->token = hold.token;
}

static void renew_late(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_must(kit_take(base, scene->names[0], SHORT_MS, 0, &hold, &err), &err);
    scene_arm(scene);
    (void)kit_renew(base, &hold, &err);
}

static void release_late(struct scene *scene)
{
    struct hf_store_base *base = scene_open(scene);
    struct kit_hold hold;
    struct hf_error err = {0};

    scene_must(kit_take(base, scene->names[0], SHORT_MS, 0, &hold, &err), &err);
    scene_arm(scene);
    (void)kit_drop(base, &hold, &err);
}

/* Returns false when there are fewer steps. *taken counts the takeovers. */
static bool come_late(act_fn *act, bool used, long at, long *taken)
{
    struct scene scene;
    struct child child = {act, &scene};
    struct kit_hold hold;
    struct hf_error err = {0};
    bool stopped;

    set_scene(&scene, at);
    if (used)
        (void)kit_pair(scene.base, scene.names[0]);
    stopped = start_and_stop(&child);
    if (stopped) {
        bool ours = take_or_be_told(&scene, 60000, &hold);

        others_go_on(&scene);
        go_on(&scene);
        if (ours) {
            ++*taken;
            kit_expect(kit_renew(scene.base, &hold, &err), HF_OK, &err);
            assert_true(hold.token > scene.notes->token);
            kit_expect(kit_drop(scene.base, &hold, &err), HF_OK, &err);
        }
        kit_sleep_ms(SHORT_MS);
        scene_takeable(&scene, scene.names[0], scene.notes->token);
    }
    strike_scene(&scene);
    return stopped;
}

static void late_changes_nothing(void)
{
    static act_fn *const acts[] = {take_late, take_late, renew_late, release_late};
    long points = 0;
    long taken = 0;

    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        for (long at = 1; come_late(acts[i], i == 1, at, &taken); at++)
            points++;
    print_message("# stopped at %ld points, taken over at %ld\n", points, taken);
    assert_true(taken > 5);
}

/* ---- whoever holds a lock of the same page goes on ---- */

/* What moves is marked, and a guarded word may be locked itself: its holder waits then. */
static void holders_go_on(struct scene *scene)
{
    const char *step = steps_met()->last;

    if (strncmp(step, "split_", 6) == 0 || strncmp(step, "word_", 5) == 0)
        return;
    for (int i = 0; i < CROWD; i++) {
        struct hf_error err = {0};

        if (scene->held[i].token != 0 && scene->held[i].ttl_ms > 1000)
            kit_expect(kit_renew(scene->base, &scene->held[i], &err), HF_OK, &err);
    }
}

static bool stop_once(const struct scenario *scenario, long at)
{
    struct scene scene;
    struct child child = {scenario->act, &scene};
    bool stopped;

    set_scene(&scene, at);
    if (scenario->prepare != NULL)
        scenario->prepare(&scene);
    stopped = start_and_stop(&child);
    if (stopped) {
        others_go_on(&scene);
        holders_go_on(&scene);
        go_on(&scene);
        scenario->check(&scene);
    }
    strike_scene(&scene);
    return stopped;
}

static void page_goes_on(void)
{
    long points = 0;

    for (size_t i = 0; i < SCENARIOS; i++)
        if (!scenarios[i].fresh && scenarios[i].meanwhile == NULL && scenarios[i].prepare != NULL &&
            strcmp(scenarios[i].name, "reboot") != 0)
            for (long at = 1; stop_once(&scenarios[i], at); at++)
                points++;
    for (size_t i = 0; i < STEP_SCENARIOS; i++)
        if (strcmp(step_scenarios[i].name, "break now") != 0)
            for (long at = 1; stop_once(&step_scenarios[i], at); at++)
                points++;
    print_message("# stopped at %ld points, at %d steps so far\n", points, steps_met()->count);
    assert_true(points > 30);
}

static void mapped(void **state)
{
    (void)state;
    assert_int_equal(setenv("KIT_MAPPED", "1", 1), 0);
    late_changes_nothing();
    page_goes_on();
}

static void guarded(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("KIT_MAPPED"), 0);
    late_changes_nothing();
    page_goes_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mapped), cmocka_unit_test(guarded)};

    (void)steps_met();
    return KIT_RUN(tests);
}
